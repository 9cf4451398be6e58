//! The sources of a role: flags, configuration, environment, marker files, the command of an agent.
//!
//! Each source that says anything narrows: a caller is in all the roles that were named, and all must allow.
//! So no source can give what another withholds, and their order means nothing. A source that was asked and
//! cannot be trusted names the minimal role.
//!
//! ```
//! use role_policy::source::{NamedRole, RoleSources, resolve};
//! use role_policy::{BUILTIN, Policy};
//!
//! let policy = Policy::load(BUILTIN, "built-in", &[])?.policy;
//! let mut sources = RoleSources::default();
//! sources.named.push(NamedRole { source: "flag".to_owned(), role: "dev".to_owned() });
//! sources.named.push(NamedRole { source: "environment".to_owned(), role: "worker".to_owned() });
//! assert_eq!(resolve(&policy, &sources).caller.role(), "dev and worker");
//!
//! let mut misspelt = RoleSources::default();
//! misspelt.named.push(NamedRole { source: "environment".to_owned(), role: "Worker".to_owned() });
//! assert_eq!(resolve(&policy, &misspelt).caller.role(), "minimal");
//! # Ok::<(), role_policy::LoadError>(())
//! ```

use crate::caller::Caller;
use crate::policy::Policy;
use crate::policy_file::wrong_role_name;
use std::fmt;

mod marker;
#[cfg(unix)]
mod marker_file;

pub use marker::{MARKER_NAMES, MIN_KEY_BYTES, MarkerError, RoleMarker, SESSION_MARKER_NAME};
#[cfg(unix)]
pub use marker_file::{find_marker, read_key, write_marker};

/// The roles that the sources name for a caller. A source that was not there is empty.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RoleSources {
    /// Roles that were named: by a flag, a configuration, a variable, a token, for the person or for the session.
    pub named: Vec<NamedRole>,
    /// The marker file, if there is one; an error if it cannot be trusted.
    pub marker: Option<Result<RoleMarker, MarkerError>>,
    /// The command that the agent was started with.
    pub command: Option<String>,
}

/// A role that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRole {
    /// The source, in words: `flag --role`.
    pub source: String,
    /// The role, as it was written.
    pub role: String,
}

/// A caller, with the evidence for its roles.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResolvedCaller {
    /// The caller.
    pub caller: Caller,
    /// The role that each source names, for the log and the audit.
    pub evidence: Vec<RoleEvidence>,
}

/// A source of a role. A source is displayed as messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoleSource {
    /// A source that names a role outright: a flag, a configuration, a variable, a token. Holds it in words.
    Named(String),
    /// The marker file.
    Marker,
    /// The command that the agent was started with.
    Command,
    /// The policy, for a caller whom no other source names.
    MissingRole,
}

impl fmt::Display for RoleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named(source) => source,
            Self::Marker => "marker",
            Self::Command => "command",
            Self::MissingRole => "missing_role of the policy",
        })
    }
}

/// The role that one source names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleEvidence {
    /// The source.
    pub source: RoleSource,
    /// The role that it puts the caller in.
    pub role: String,
    /// The reason why that is not the role that it named, if it is not.
    pub distrust: Option<String>,
}

/// Combines all sources into one caller. If there is no source, the caller is in [`Policy::missing_role`].
pub fn resolve(policy: &Policy, sources: &RoleSources) -> ResolvedCaller {
    let mut evidence: Vec<RoleEvidence> = Vec::new();
    let mut session = None;
    evidence.extend(
        sources
            .named
            .iter()
            .map(|named| evidence_of(policy, RoleSource::Named(named.source.clone()), &named.role)),
    );
    match &sources.marker {
        None => {}
        Some(Ok(marker)) => {
            session.clone_from(&marker.session);
            evidence.push(evidence_of(policy, RoleSource::Marker, &marker.role));
        }
        // A marker that cannot be trusted counts as the minimal role. Ignored, breaking the file would give more
        // rights than it named.
        Some(Err(error)) => evidence.push(RoleEvidence {
            source: RoleSource::Marker,
            role: policy.minimal_role().to_owned(),
            distrust: Some(error.to_string()),
        }),
    }
    if let Some(role) = sources.command.as_deref().and_then(|command| policy.role_of_command(command)) {
        evidence.push(RoleEvidence { source: RoleSource::Command, role: role.to_owned(), distrust: None });
    }
    if evidence.is_empty() {
        let role = policy.missing_role().to_owned();
        evidence.push(RoleEvidence { source: RoleSource::MissingRole, role, distrust: None });
    }
    let mut roles = evidence.iter().map(|evidence| evidence.role.clone());
    let first = roles.next().unwrap_or_else(|| policy.minimal_role().to_owned());
    let mut caller = roles.fold(Caller::new(first), Caller::narrowed_by);
    if let Some(session) = session {
        caller = caller.with_session(session);
    }
    ResolvedCaller { caller, evidence }
}

fn evidence_of(policy: &Policy, source: RoleSource, role: &str) -> RoleEvidence {
    if policy.declares(role) {
        return RoleEvidence { source, role: role.to_owned(), distrust: None };
    }
    let distrust = match wrong_role_name(role) {
        Some(wrong) => format!("it names no role: {wrong}"),
        None => format!("it names the role `{role}`, which the policy does not declare"),
    };
    RoleEvidence { source, role: policy.minimal_role().to_owned(), distrust: Some(distrust) }
}
