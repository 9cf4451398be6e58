//! The messages between Codex and its executor, as they are on the wire: one JSON object on each line, JSON-RPC without the
//! member `jsonrpc`.
//!
//! Members that are not listed here are ignored, except where ignoring one could do more than Codex asked for
//! ([`StartProcess`]).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The release of Codex that this protocol was read from and is tested with.
pub const CODEX_VERSION: &str = "0.169.0";

/// The names of the methods and notifications.
pub mod method {
    /// The first request.
    pub const INITIALIZE: &str = "initialize";
    /// The notification after it.
    pub const INITIALIZED: &str = "initialized";
    /// Describes the executor again.
    pub const ENVIRONMENT_INFO: &str = "environment/info";
    /// Starts a process.
    pub const START: &str = "process/start";
    /// Reads the output that is kept of a process, and its state.
    pub const READ: &str = "process/read";
    /// Writes to the standard input or the terminal of a process.
    pub const WRITE: &str = "process/write";
    /// Sends a signal.
    pub const SIGNAL: &str = "process/signal";
    /// Ends a process.
    pub const TERMINATE: &str = "process/terminate";
    /// Notifies of output.
    pub const OUTPUT: &str = "process/output";
    /// Notifies that a process has ended.
    pub const EXITED: &str = "process/exited";
    /// Notifies that there will be no more about a process.
    pub const CLOSED: &str = "process/closed";
    /// Reads a file.
    pub const READ_FILE: &str = "fs/readFile";
    /// Opens a file to be read in blocks.
    pub const OPEN: &str = "fs/open";
    /// Reads a block of an open file.
    pub const READ_BLOCK: &str = "fs/readBlock";
    /// Closes an open file.
    pub const CLOSE: &str = "fs/close";
    /// Writes a file.
    pub const WRITE_FILE: &str = "fs/writeFile";
    /// Creates a folder.
    pub const CREATE_DIRECTORY: &str = "fs/createDirectory";
    /// Describes a path.
    pub const GET_METADATA: &str = "fs/getMetadata";
    /// Describes several paths.
    pub const GET_METADATA_BATCH: &str = "fs/getMetadataBatch";
    /// Returns a path without links.
    pub const CANONICALIZE: &str = "fs/canonicalize";
    /// Lists a folder.
    pub const READ_DIRECTORY: &str = "fs/readDirectory";
    /// Lists a tree of folders.
    pub const WALK: &str = "fs/walk";
    /// Removes a file or a folder.
    pub const REMOVE: &str = "fs/remove";
    /// Copies a file.
    pub const COPY: &str = "fs/copy";
}

/// The description of the executor. Capabilities that it does not name are absent, so that Codex does not use them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentInfo {
    /// The shell in which Codex has the lines of its agent run.
    pub shell: ShellInfo,
    /// The folder that the executor was started in, as a URI.
    pub cwd: String,
    /// The operating system.
    pub platform_os: &'static str,
}

/// A shell.
#[derive(Clone, Debug, Serialize)]
pub struct ShellInfo {
    /// Its name, such as `bash`.
    pub name: String,
    /// Its path.
    pub path: String,
}

/// The parameters of [`method::START`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartProcess {
    /// Codex's id of the process.
    pub process_id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The folder, as a URI.
    pub cwd: String,
    /// The part of the executor's variables that the process gets.
    pub env_policy: Option<ShellEnvironmentPolicy>,
    /// Further variables.
    pub env: BTreeMap<String, String>,
    /// True for a process with a terminal.
    pub tty: bool,
    /// True if standard input stays open.
    #[serde(default)]
    pub pipe_stdin: bool,
    /// The sandbox that Codex asks for: see [`SandboxLimits`](crate::SandboxLimits).
    #[serde(default)]
    pub sandbox: Value,
    /// The conversation and the call.
    #[serde(default)]
    pub metadata: CallMetadata,
    /// Every other member. A member with a value is refused, because it may ask for a restriction.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// The origin of a process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallMetadata {
    /// The conversation.
    pub thread_id: Option<String>,
}

/// The variables that a process inherits, as `shell_environment_policy` of Codex's configuration says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellEnvironmentPolicy {
    /// All, the usual few, or none.
    pub inherit: EnvInherit,
    /// False to leave out names that suggest a secret.
    pub ignore_default_excludes: bool,
    /// Patterns of names to leave out.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Variables to set.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Patterns of the only names that stay, if there are any.
    #[serde(default)]
    pub include_only: Vec<String>,
}

/// The variables that a process inherits before patterns apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EnvInherit {
    /// All.
    All,
    /// Home, search path, shell, user, temporary folder.
    Core,
    /// None.
    None,
}

/// The parameters of [`method::READ`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadProcess {
    /// The process.
    pub process_id: String,
    /// The number of the last event that is known.
    pub after_seq: Option<u64>,
    /// The most bytes to return.
    pub max_bytes: Option<usize>,
    /// The time to wait for something new, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// The parameters of [`method::WRITE`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteProcess {
    /// The process.
    pub process_id: String,
    /// The bytes, in base64.
    pub chunk: String,
}

/// The parameters of [`method::SIGNAL`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalProcess {
    /// The process.
    pub process_id: String,
    /// The signal.
    pub signal: ProcessSignal,
}

/// A signal that Codex sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessSignal {
    /// `SIGINT`.
    Interrupt,
}

/// The parameters of [`method::TERMINATE`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminateProcess {
    /// The process.
    pub process_id: String,
}

/// A piece of output.
#[derive(Clone, Debug, Serialize)]
pub struct OutputChunk {
    /// The number of the event; events of a process are counted from 1.
    pub seq: u64,
    /// The stream.
    pub stream: ExecOutputStream,
    /// The bytes, in base64.
    pub chunk: String,
}

/// A stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecOutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The terminal.
    Pty,
}

/// The answer to [`method::WRITE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WriteStatus {
    /// The bytes will be written.
    Accepted,
    /// There is no such process.
    UnknownProcess,
    /// The process has no open input.
    StdinClosed,
}

/// The parameters of the requests about one path.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathParams {
    /// The path, as a URI.
    pub path: String,
    /// The sandbox that Codex asks for.
    #[serde(default)]
    pub sandbox: Value,
    /// If a folder is created: together with its missing parents. If a folder is removed: together with its content.
    /// True by default.
    pub recursive: Option<bool>,
    /// For what is removed: nothing there is fine. True by default.
    pub force: Option<bool>,
    /// For a file that is written: its content, in base64.
    pub data_base64: Option<String>,
    /// For a file that is opened: Codex's id of the handle.
    pub handle_id: Option<String>,
    /// For a walk: its limits.
    pub options: Option<WalkOptions>,
}

/// The parameters of [`method::GET_METADATA_BATCH`].
#[derive(Clone, Debug, Deserialize)]
pub struct PathsParams {
    /// The paths, as URIs.
    pub paths: Vec<String>,
    /// The sandbox that Codex asks for.
    #[serde(default)]
    pub sandbox: Value,
}

/// The parameters of [`method::COPY`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyFile {
    /// The file, as a URI.
    pub source_path: String,
    /// Its copy, as a URI.
    pub destination_path: String,
    /// The sandbox that Codex asks for.
    #[serde(default)]
    pub sandbox: Value,
}

/// The parameters of [`method::READ_BLOCK`] and [`method::CLOSE`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileHandleParams {
    /// Codex's id of the handle.
    pub handle_id: String,
    /// The first byte.
    #[serde(default)]
    pub offset: u64,
    /// The number of bytes.
    #[serde(default)]
    pub len: usize,
}

/// The limits of a walk.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WalkOptions {
    /// The most folders between the start and an entry.
    pub max_depth: usize,
    /// The most folders that are read.
    pub max_directories: usize,
    /// The most entries.
    pub max_entries: usize,
    /// True to enter folders through links.
    #[serde(default)]
    pub follow_directory_symlinks: bool,
    /// True to leave out folders whose names begin with a dot.
    #[serde(default)]
    pub prune_hidden_directories: bool,
}

/// The description of a path.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileMetadata {
    /// True for a folder, or a link to one.
    pub is_directory: bool,
    /// True for a regular file, or a link to one.
    pub is_file: bool,
    /// True for a link.
    pub is_symlink: bool,
    /// The bytes of a file.
    pub size: u64,
    /// The time of its creation, in milliseconds since 1970; 0 where it is not known.
    pub created_at_ms: i64,
    /// The time of its last change, in milliseconds since 1970.
    pub modified_at_ms: i64,
}
