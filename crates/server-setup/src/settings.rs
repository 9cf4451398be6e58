//! [`Settings`]: the result of reading flags, environment and configuration.

use crate::broad_root::BroadRoot;
use crate::config::Config;
use crate::error::Error;
use crate::program::Program;
use core_tools::redact::Redactor;
use process_runner::SecretValues;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of one server, from flags, environment and configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The server that is set up.
    pub program: Program,
    /// The configuration.
    pub config: Config,
    /// The folders that tools may use.
    pub roots: Vec<PathBuf>,
    /// The folder that is served only because the server was started there, if it is too much to change.
    pub broad_root: Option<BroadRoot>,
    /// The redactor that masks secrets in everything that leaves.
    pub redactor: Redactor,
    /// Values that must not leave, which the runner hides before any output is cut.
    pub secrets: SecretValues,
    /// `$TMPDIR`: a session may have one of its own.
    pub temporary_folder: Option<PathBuf>,
    /// The command that the agent was started with.
    pub agent_command: Option<String>,
    /// The session that this server runs in, or the reason why its credential is not valid.
    pub session: Option<Result<SessionIdentity, Arc<Error>>>,
    /// The text of the policy that the server in front has sent. Used in place of a file, at the far end of a remote alone.
    pub policy_text: Option<String>,
    /// The policy of the operator of the far end of a remote, which narrows the one that the server in front has sent.
    pub operator_limit: Option<OperatorLimit>,
    /// The server that has asked persons about calls before it passes them on, at the far end of a remote.
    pub asked_by: Option<&'static str>,
    /// The remote on which tools work. None: this machine.
    #[cfg(all(feature = "remotes", unix))]
    pub remote: Option<remotes::RemoteSettings>,
    /// The remotes on which callers work beside the roots, by the paths that they give.
    #[cfg(all(feature = "remotes", unix))]
    pub chosen_remotes: Option<crate::remote::ChosenRemotes>,
    /// The remotes that are made ahead.
    #[cfg(all(feature = "remotes", unix))]
    pub warm_remotes: remotes::WarmRemotes,
    /// The registry of leases, once it is open. Not set: the folder of the user.
    #[cfg(all(feature = "remotes", unix))]
    pub leases: Arc<std::sync::OnceLock<remotes::LeaseRegistry>>,
    /// The id of the first background command; 0 and 1 are the same. The server in front of a remote sets it, so that the
    /// ids of its machines are different.
    pub first_command_id: u32,
    /// Variables of this process that are meant for the server alone, so that no program gets them. None by default.
    pub withheld: Vec<String>,
}

/// The limits that the operator of the far end of a remote sets, by policies of that machine alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorLimit {
    /// The policy file. None: the built-in policy.
    pub policy: Option<PathBuf>,
    /// The role by which every call is judged. None: the roles that the server in front names.
    pub role: Option<String>,
}

impl Settings {
    /// Uses `folder` in place of the folder that the program was started in, if no root is named.
    #[must_use]
    pub fn with_default_root(mut self, folder: PathBuf) -> Self {
        if self.config.roots.is_empty() && self.session.is_none() {
            self.broad_root = BroadRoot::of(&folder);
            self.roots = vec![folder];
        }
        self
    }
}

/// The identity of a session, as its supervisor reports it.
#[cfg(all(feature = "sessions", unix))]
pub type SessionIdentity = core_tools::sessions::SessionIdentity;

/// The identity of a session. No server built without sessions has one.
#[cfg(not(all(feature = "sessions", unix)))]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionIdentity {
    /// Its roles.
    pub roles: Vec<String>,
    /// Its id.
    pub session_id: String,
}
