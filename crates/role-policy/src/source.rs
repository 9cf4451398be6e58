//! Where a role comes from: flags, configuration, environment, marker files, the command of an agent.
//!
//! Each source that says anything narrows: a caller is in all the roles that were named, and all must allow.
//! So no source can give what another withholds, and their order means nothing. A source that was asked and
//! cannot be trusted names the minimal role.
//!
//! ```
//! use role_policy::source::{Named, Sources, resolve};
//! use role_policy::{BUILTIN, Policy};
//!
//! let policy = Policy::load(BUILTIN, "built-in", &[])?.policy;
//! let mut sources = Sources::default();
//! sources.named.push(Named { source: "flag".to_owned(), role: "dev".to_owned() });
//! sources.named.push(Named { source: "environment".to_owned(), role: "worker".to_owned() });
//! assert_eq!(resolve(&policy, &sources).caller.role(), "dev and worker");
//!
//! let mut misspelt = Sources::default();
//! misspelt.named.push(Named { source: "environment".to_owned(), role: "Worker".to_owned() });
//! assert_eq!(resolve(&policy, &misspelt).caller.role(), "minimal");
//! # Ok::<(), role_policy::LoadError>(())
//! ```

use crate::caller::Caller;
use crate::policy::Policy;
use crate::read::wrong_role_name;
use std::io;

#[cfg(unix)]
mod marker;

#[cfg(unix)]
pub use marker::{find_marker, read_key, write_marker};

/// What was said of a caller's role, each by itself. Nothing is a source that was not there.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sources {
    /// Roles that were named: by a flag, a configuration, a variable, a token, for the person or for the session.
    pub named: Vec<Named>,
    /// A marker file that was there, be it one that cannot be trusted.
    pub marker: Option<Result<Marker, MarkerError>>,
    /// The command that the agent was started with.
    pub command: Option<String>,
}

/// A role that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where, in words: `flag --role`.
    pub source: String,
    /// The role, as it was written.
    pub role: String,
}

/// Who is calling, and why so.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// The caller.
    pub caller: Caller,
    /// What each source said, for the log and the audit.
    pub evidence: Vec<Evidence>,
}

/// What one source said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// The source: `flag --role`, `marker` and so on.
    pub source: String,
    /// The role that it puts the caller in.
    pub role: String,
    /// Why that is not the role that it named, where it is not.
    pub distrust: Option<String>,
}

/// Brings all sources together. Where none says anything, the caller is in [`Policy::missing_role`].
pub fn resolve(policy: &Policy, sources: &Sources) -> Resolved {
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut session = None;
    evidence.extend(sources.named.iter().map(|named| judge(policy, &named.source, &named.role)));
    match &sources.marker {
        None => {}
        Some(Ok(marker)) => {
            session.clone_from(&marker.session);
            evidence.push(judge(policy, "marker", &marker.role));
        }
        Some(Err(error)) => evidence.push(Evidence {
            source: "marker".to_owned(),
            role: policy.minimal_role().to_owned(),
            distrust: Some(error.to_string()),
        }),
    }
    if let Some(role) = sources.command.as_deref().and_then(|command| policy.role_of_command(command)) {
        evidence.push(Evidence { source: "command".to_owned(), role: role.to_owned(), distrust: None });
    }
    if evidence.is_empty() {
        let role = policy.missing_role().to_owned();
        evidence.push(Evidence { source: "missing_role of the policy".to_owned(), role, distrust: None });
    }
    let mut roles = evidence.iter().map(|evidence| evidence.role.clone());
    let first = roles.next().unwrap_or_else(|| policy.minimal_role().to_owned());
    let mut caller = roles.fold(Caller::new(first), Caller::narrowed_by);
    if let Some(session) = session {
        caller = caller.with_session(session);
    }
    Resolved { caller, evidence }
}

fn judge(policy: &Policy, source: &str, role: &str) -> Evidence {
    let source = source.to_owned();
    if policy.declares(role) {
        return Evidence { source, role: role.to_owned(), distrust: None };
    }
    let distrust = match wrong_role_name(role) {
        Some(wrong) => format!("it names no role: {wrong}"),
        None => format!("it names the role `{role}`, which the policy does not declare"),
    };
    Evidence { source, role: policy.minimal_role().to_owned(), distrust: Some(distrust) }
}

/// What a marker file says: the role and session of whoever runs beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Marker {
    /// The role.
    pub role: String,
    /// The session, where it names one.
    pub session: Option<String>,
    /// It was signed with the key.
    pub signed: bool,
}

/// Why a marker is not trusted. The caller is then in the minimal role.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkerError {
    /// It should be there.
    #[error("there is no marker, and with a key there must be one")]
    Missing,
    /// It cannot be opened or read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is not what a broker writes, or others may have written it.
    #[error("{0}")]
    Untrusted(String),
    /// It is empty, too long, or does not say what a marker says.
    #[error("{0}")]
    Malformed(&'static str),
    /// It carries no signature that the key made.
    #[error("its signature is missing or was not made with this key")]
    Signature,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
}

/// The names that markers have: our own, and that of the role filter which came before.
pub const MARKER_NAMES: [&str; 2] = ["coretools_role", "teleclaude_role"];

/// The file beside `teleclaude_role` that names its session.
pub const SESSION_MARKER_NAME: &str = "teleclaude_session_id";

/// The shortest key, in bytes.
pub const MIN_KEY_BYTES: usize = 32;
