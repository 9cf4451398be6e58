//! The part of a workspace that one caller's commands may reach.

use crate::ci::egress::EgressLog;
use crate::workspace::Workspace;
use egress_proxy::{CredentialRule, NetworkAccess};
use process_runner::{ResourceLimits, SystemCallPermission};
use std::path::PathBuf;
use std::sync::Arc;

/// The part of the roots that one caller's commands may reach.
///
/// Its paths only ever take away from what the server's commands may reach: a path outside the roots gains nothing by
/// being named here.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CommandScope {
    /// Paths that commands may read and execute. `None`: all roots.
    pub read: Option<Vec<PathBuf>>,
    /// Paths that commands may read and write. `None`: all roots, or the paths of `read`.
    pub write: Option<Vec<PathBuf>>,
    /// The workspace as far as the caller may use it, for the folder that a command runs in. `None`: the
    /// server's.
    pub workspace: Option<Arc<Workspace>>,
    /// The network that commands may reach. All of it by default.
    pub network: NetworkAccess,
    /// The credentials that the proxy puts into the requests of commands to the named hosts of `network`.
    pub credentials: Vec<Arc<CredentialRule>>,
    /// Receives the connections that are refused while the caller's commands run.
    pub egress_log: Option<EgressLog>,
    /// The principal of the caller. No other principal shares its network. `None` for the one caller of a local server.
    pub principal: Option<String>,
    /// System calls that commands may make beside the usual ones.
    pub system_calls: Vec<SystemCallPermission>,
    /// The memory, processes and processor time that the programs of the caller may use together. No limit by default.
    pub resource_limits: ResourceLimits,
}
