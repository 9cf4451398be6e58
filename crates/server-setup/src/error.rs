//! The errors of the setup.

use core_tools::ci::EgressError;
use core_tools::mcp::HostError;
use role_policy::source::MarkerError;
use std::io;
use std::path::PathBuf;

/// The reason why a server cannot be set up. For the operator: it shows paths in full.
///
/// A message does not repeat its causes; [`error_causes::chain`] adds them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The current folder cannot be found.
    #[error("cannot find the current folder")]
    CurrentFolder(#[source] io::Error),
    /// The executable of this process cannot be found, which has to be started again as the guardian.
    #[error("cannot find out which file this program was started from")]
    CurrentExecutable(#[source] io::Error),
    /// There is no folder in which an approval is safe from the commands that it is for.
    #[error(
        "no approval can be kept: the folder for approvals (`coretools/approvals` in XDG_STATE_HOME, by default ~/.local/state) lies \
         in a root, or neither variable is set"
    )]
    NoApprovalFolder,
    /// A grant for a command cannot be written or used.
    #[error(transparent)]
    Approval(#[from] core_tools::mcp::ApprovalError),
    /// A variable that configures the server is not text. To go on without it could lift what it was to narrow.
    #[error("environment variable {name} is not valid UTF-8")]
    VariableNotUtf8 {
        /// The name of the variable.
        name: String,
    },
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] crate::config::Error),
    /// The redactor cannot be built.
    #[error(transparent)]
    Redaction(#[from] core_tools::redact::Error),
    /// The flag `--remote` names no remote that could be used.
    #[cfg(all(feature = "remotes", unix))]
    #[error("--remote")]
    Remote(#[from] remotes::RemoteNameError),
    /// A root on a remote names no remote that could be used.
    #[cfg(all(feature = "remotes", unix))]
    #[error("--root")]
    RemoteRoot(#[source] remotes::RemoteNameError),
    /// A root is neither a folder here nor a root on a remote.
    #[cfg(all(feature = "remotes", unix))]
    #[error(
        "--root {root}: there is no such folder here, and no remote of that name; give NAME:/FOLDER of a [remotes.NAME] in the configuration, or KIND:TARGET:/FOLDER"
    )]
    NoSuchRoot {
        /// The text, or its beginning.
        root: String,
    },
    /// There are no remotes in this program.
    #[cfg(not(all(feature = "remotes", unix)))]
    #[error("--remote: this program is built without remotes")]
    NoRemotes,
    /// An option of a remote is given without a remote, or without a value.
    #[cfg(all(feature = "remotes", unix))]
    #[error("--remote-option {option:?}: expected NAME=VALUE, together with --remote")]
    RemoteOption {
        /// The option.
        option: String,
    },
    /// A root of this machine is given for a remote.
    #[cfg(all(feature = "remotes", unix))]
    #[error("--root names a folder of this machine; name the one there as in --remote KIND:TARGET:/ROOT")]
    RootWithRemote,
    /// The server in front demands a root that is not here, or that the operator here does not allow.
    #[cfg(all(feature = "remotes", unix))]
    #[error("the root {} is not here, or not one that this far end may serve", .root.display())]
    RootNotAllowed {
        /// The root.
        root: PathBuf,
    },
    /// The server in front demands less protection than the operator of this far end has set.
    #[cfg(all(feature = "remotes", unix))]
    #[error("`{key}` of the server in front is weaker than the operator of this far end allows")]
    WeakerThanAllowed {
        /// The key of the configuration.
        key: &'static str,
    },
    /// The operator of this far end names a role that the policy of this far end has not.
    #[error("the policy of this far end has no role `{role}`")]
    NoSuchRole {
        /// The role.
        role: String,
    },
    /// The server in front names no role.
    #[cfg(all(feature = "remotes", unix))]
    #[error("the server in front names no role")]
    NoRole,
    /// A root cannot be opened.
    #[error(transparent)]
    Workspace(#[from] core_tools::workspace::Error),
    /// The roots of the server and those of its session have nothing in common.
    #[error("this session may use {}, and no root lies there", list(.session_roots))]
    NoSharedRoot {
        /// The roots of the session.
        session_roots: Vec<PathBuf>,
    },
    /// A file that decides what may be done cannot be read or trusted.
    #[error("cannot use {role} {}", .path.display())]
    File {
        /// The role of the file, such as the key of the configuration that names it.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason why it is not used.
        source: trusted_file::Error,
    },
    /// The policy has errors.
    #[error(transparent)]
    Policy(#[from] role_policy::LoadError),
    /// An exclusion of the policy (`not_within`) could be evaded by another path, because one root lies in another.
    #[error(
        "the root {} lies in the root {}, so that `not_within` could be gone around; give one of them",
        .inner.display(),
        .outer.display()
    )]
    NestedRoots {
        /// The root that lies in the other.
        inner: PathBuf,
        /// The other root.
        outer: PathBuf,
    },
    /// Exclusions of the policy (`not_within`) do not hold.
    #[error("{}", .0.join("\n"))]
    UnresolvedExclusions(
        /// Each exclusion, with its rule and the reason.
        Vec<String>,
    ),
    /// The key of markers cannot be used.
    #[error("cannot use policy.marker_key {}: {problem}", .path.display())]
    MarkerKey {
        /// The file of the key.
        path: PathBuf,
        /// The reason, whose message has its own causes.
        problem: MarkerError,
    },
    /// The key of markers lies where tools can read it, so that a caller could sign any role.
    #[error("policy.marker_key {} lies in a root, where tools can read it; keep it elsewhere", .path.display())]
    MarkerKeyInRoot {
        /// The file of the key.
        path: PathBuf,
    },
    /// The key of markers lies in a folder of the system, which confined programs may read.
    #[error(
        "policy.marker_key {} lies where programs that tools run can read it; keep it elsewhere",
        .path.display()
    )]
    MarkerKeyReadable {
        /// The file of the key.
        path: PathBuf,
    },
    /// The audit cannot be written.
    #[error("cannot write the audit {}", .path.display())]
    Audit {
        /// The file of the audit.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Programs must be confined, and no temporary folder can be made for them.
    #[error("cannot make a temporary folder for commands")]
    TemporaryFolder(#[source] io::Error),
    /// The network of the caller's role cannot be limited.
    #[error("nothing was run")]
    Network(#[from] EgressError),
    /// The tools do not make up a host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The catalogue of context roles cannot be used.
    #[cfg(feature = "context")]
    #[error("cannot use context.catalogue {}", .path.display())]
    Catalogue {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: CatalogueFileError,
    },
    /// The port of an inspector is none.
    #[error("NODE_INSPECT_PORT is {port:?}, and must be a port from 1 to 65535")]
    InspectPort {
        /// The value of the variable.
        port: String,
    },
    /// The URL of the application's state cannot be used.
    #[cfg(feature = "introspection")]
    #[error(transparent)]
    StateUrl(#[from] core_tools::inspect::InvalidStateUrl),
    /// The process to look into is named in a form that is not known.
    #[cfg(feature = "introspection")]
    #[error("{setting}")]
    InspectTarget {
        /// The variable or the key that names it.
        setting: &'static str,
        /// The reason.
        source: core_tools::inspect::InvalidTarget,
    },
    /// There is no folder to keep sessions in.
    #[error("nowhere to keep sessions: set sessions.state_dir, XDG_STATE_HOME or HOME")]
    NoStateFolder,
    /// The catalog of agents cannot be used.
    #[cfg(all(feature = "sessions", unix))]
    #[error(transparent)]
    AgentCatalog(#[from] core_tools::sessions::AgentCatalogError),
    /// The supervisor of sessions cannot be set up, or does not know the credential of this session.
    #[cfg(all(feature = "sessions", unix))]
    #[error(transparent)]
    Sessions(#[from] core_tools::sessions::Error),
    /// The answer of the supervisor cannot be read.
    #[cfg(all(feature = "sessions", unix))]
    #[error(transparent)]
    SessionAnswer(#[from] serde_json::Error),
    /// The runtime that asks the supervisor cannot be started.
    #[cfg(all(feature = "sessions", unix))]
    #[error(transparent)]
    SessionRuntime(io::Error),
    /// The thread that asks the supervisor ended by a panic.
    #[cfg(all(feature = "sessions", unix))]
    #[error("it could not be asked about")]
    SessionNotAsked,
    /// The level of the log is none.
    #[error("--log {level:?} is no level: expected off, error, warn, info, debug or trace")]
    LogLevel {
        /// The level that was given.
        level: String,
    },
    /// There is a log already.
    #[error("{0}")]
    LogStarted(
        /// The reason. Its message is that of its own cause, so it is not passed on as one.
        tracing_subscriber::util::TryInitError,
    ),
    /// The manual cannot be made.
    #[error("cannot make the manual")]
    Manual(#[source] io::Error),
    /// The manual cannot be written.
    #[error("cannot write to {}", .folder.display())]
    ManualFolder {
        /// The folder that was named.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The reason why the catalogue of context roles cannot be used.
#[cfg(feature = "context")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueFileError {
    /// The file cannot be opened beneath the roots.
    #[error(transparent)]
    Open(#[from] core_tools::workspace::Error),
    /// The file is too large.
    #[error("it has more than {max_bytes} bytes")]
    TooLarge {
        /// The largest size that is read.
        max_bytes: u64,
    },
    /// The file cannot be read, or is not UTF-8.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The file is no catalogue.
    #[error(transparent)]
    Content(#[from] core_tools::context::CatalogueError),
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
