//! A server's roots, narrowed to what others may use: a session, or the client that offers roots of its own.

use crate::error::Error;
use crate::resources::workspace_of;
use crate::served_paths::{effects_of, served_roots};
use crate::sessions::SessionHandle;
use crate::settings::Settings;
use crate::toolsets::{self, ServedCallers};
use crate::{confinement, environment, policy};
use core_tools::mcp::{Host, WorkspaceEffects};
use error_causes::chain;
use process_runner::Runner;
use role_policy::{Caller, ToolFacts};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Returns the parts of `roots` that lie in `within`, and those of `within` that lie in `roots`.
pub(crate) fn shared_roots(roots: &[PathBuf], within: &[PathBuf]) -> Vec<PathBuf> {
    let mut shared: Vec<PathBuf> = Vec::new();
    for root in roots {
        // Compared by where they lead, since a root may be given through a link. One that is not there grants nothing.
        let Ok(real) = root.canonicalize() else { continue };
        let common = within.iter().filter_map(|outer| match real.starts_with(outer) {
            true => Some(&real),
            false => outer.starts_with(&real).then_some(outer),
        });
        for common in common {
            if !shared.contains(common) {
                shared.push(common.clone());
            }
        }
    }
    shared
}

/// The parts that a host over fewer roots is made of.
pub(crate) struct RootNarrowing {
    pub(crate) settings: Settings,
    pub(crate) runner: Runner,
    pub(crate) sessions: SessionHandle,
    pub(crate) host: Host,
    pub(crate) caller: Caller,
    pub(crate) facts: Vec<ToolFacts<'static>>,
}

impl fmt::Debug for RootNarrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootNarrowing").field("host", &self.host).finish_non_exhaustive()
    }
}

impl RootNarrowing {
    /// Returns the host over what the server's roots and those of the client have in common. None if that is all of the
    /// server's, or nothing: then the operator has named other folders than the client has open.
    pub(crate) fn host(&self, offered: &[PathBuf]) -> Option<Host> {
        // A client may offer a folder that is not there any more, which then grants nothing.
        let real: Vec<PathBuf> = offered.iter().filter_map(|root| root.canonicalize().ok()).collect();
        let shared = shared_roots(&self.settings.roots, &real);
        if shared.is_empty() {
            tracing::warn!(
                "the client's roots lie in no root of this server, whose roots hold: {}",
                shown(offered)
            );
            return None;
        }
        let own: Vec<PathBuf> =
            self.settings.roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        if own == shared {
            return None;
        }
        match self.host_over(&shared) {
            Ok(host) => Some(host),
            Err(error) => {
                tracing::error!("the client's roots cannot be served: {}", chain(&*error));
                None
            }
        }
    }

    fn host_over(&self, roots: &[PathBuf]) -> Result<Host, Box<dyn std::error::Error>> {
        let workspace = Arc::new(workspace_of(&self.settings, roots)?);
        let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
        let current = self.host.policy();
        // Fewer roots may lead to the same files by other paths, so that the exclusions are checked again.
        policy::check_exclusions(&current, &self.caller, &workspace, &effects)?;
        let confine = confinement::confine(&self.settings, &workspace, &current, &self.caller, &self.facts)?;
        let environment =
            environment::for_caller(&self.settings, &self.runner, &current, &self.caller, &self.facts);
        let callers = ServedCallers::One(&self.sessions);
        let toolsets =
            toolsets::all(&self.settings, &workspace, &self.runner, confine, environment, callers)?;
        let roots = served_roots(&self.settings, &workspace);
        Ok(self.host.for_workspace(toolsets, effects_of(&self.settings, effects), roots)?)
    }
}

fn shown(roots: &[PathBuf]) -> String {
    roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the roots that a server shares with its session.
///
/// # Errors
/// There are none.
#[cfg_attr(not(all(feature = "sessions", unix)), allow(dead_code, reason = "only sessions have roots"))]
pub(crate) fn roots_of_session(roots: &[PathBuf], within: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    match shared_roots(roots, within) {
        shared if shared.is_empty() => Err(Error::NoSharedRoot { session_roots: within.to_vec() }),
        shared => Ok(shared),
    }
}
