//! What is asked of a supervisor and what it answers, in process and over its socket.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::classify::Reason;
use super::lock::Owner;
use super::log::LogLevel;
use process_runner::Confinement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The version of the protocol: the first line that either side sends, the client before the supervisor, is
/// `{"coretools_sessions":1}`.
pub const VERSION: u32 = 1;

/// What is asked. One line of JSON each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What follows on this connection is asked for one caller of a server for many: for it there are its own sessions
    /// and no others.
    For {
        /// Its name.
        principal: String,
    },
    /// How it goes.
    Status {},
    /// Do nothing by yourself.
    Pause {},
    /// Go on.
    Resume {},
    /// The sessions.
    List {
        /// Also those that are over.
        #[serde(default)]
        all: bool,
    },
    /// Start a session.
    New(Box<NewSession>),
    /// Tell a session something.
    Send {
        /// Which.
        session_id: String,
        /// What.
        text: String,
    },
    /// End a session.
    End {
        /// Which.
        session_id: String,
        /// What its processes get to end by themselves, in milliseconds.
        grace_ms: u64,
    },
    /// Lines of a log.
    Logs(LogRequest),
    /// Whose credential is this?
    Identify {
        /// The credential.
        credential: String,
    },
}

/// A session to start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// What its agent is told.
    pub prompt: Option<String>,
    /// Program and arguments. None: the agent, or the command that the supervisor was set up with.
    pub command: Option<Vec<String>>,
    /// Which agent it is, where the program does not tell.
    pub agent: Option<String>,
    /// The role that its marker names.
    pub role: String,
    /// All the roles that it is in.
    pub roles: Vec<String>,
    /// It may start and steer others.
    pub orchestrates: bool,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// The session that asks for it.
    pub parent: Option<String>,
    /// Whether it reads messages from standard input. None: those do that are no known agent with a prompt.
    pub input: Option<bool>,
    /// Whether it is given a terminal. None: as is known of its agent.
    pub pty: Option<bool>,
    /// The command of the agent from which its role was derived.
    pub agent_command: Option<String>,
    /// The fence that its processes are behind. None: they reach what the supervisor does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    /// The folders that its agent's own server may use. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<PathBuf>,
}

/// Lines that are wanted of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRequest {
    /// The most lines.
    pub lines: usize,
    /// Not before this: `10m` ago, or a time.
    pub since: Option<String>,
    /// Of at least this level; only of the supervisor's own log.
    pub level: Option<LogLevel>,
    /// The log of this session instead of the supervisor's.
    pub session: Option<String>,
    /// Go on from here.
    pub cursor: Option<u64>,
    /// Wait so long for the first line, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
}

/// How it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// There is a supervisor.
    pub running: bool,
    /// `paused`, `resuming` while a session is started again, `waiting` while one waits, else `monitoring`.
    pub state: String,
    /// Who hosts the supervisor. Sessions of a `daemon` outlive their clients; those of a `server` end with it.
    pub owner: Owner,
    /// Its process.
    pub pid: u32,
    /// Since it was started.
    pub uptime_seconds: u64,
    /// The session that was last heard of: an id, or the file of one that it did not start.
    pub current_session: Option<String>,
    /// Those that are not over, and the last ones that are.
    pub sessions: Vec<SessionInfo>,
    /// Session files in the watched folders.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub watched: Vec<WatchedSession>,
    /// What happens next, and when.
    pub next_action: Option<NextAction>,
    /// What is counted, over all restarts.
    pub stats: StatsInfo,
    /// What does not work.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub trouble: Vec<String>,
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatsInfo {
    /// Sessions that went on by themselves.
    pub saves_count: u64,
    /// Those of them that were resumed.
    pub total_resumes: u64,
    /// When one was last.
    pub last_resume: Option<String>,
    /// Seconds that nobody had to wait or work for that.
    pub time_saved_seconds: u64,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Its id.
    pub session_id: String,
    /// `starting`, `running`, `waiting`, `resuming`, `paused`, `stopped` or `failed`.
    pub state: String,
    /// Its role.
    pub role: String,
    /// The caller of a server for many whose it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub principal: Option<String>,
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// Since when it is in this state.
    pub since: String,
    /// When it was started first.
    pub started_at: String,
    /// Which agent, if a known one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<String>,
    /// Program and arguments, without the prompt.
    pub command: String,
    /// Why its last process ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_stop: Option<StopInfo>,
    /// What happens next.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_action: Option<NextAction>,
    /// Why it cannot go on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<String>,
    /// The session that started it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<String>,
    /// The session that goes on in its place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replaced_by: Option<String>,
    /// Its log.
    pub log: String,
}

/// Why a process ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopInfo {
    /// Why.
    #[schemars(with = "String")]
    pub reason: Reason,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// What speaks for it.
    pub evidence: Vec<String>,
    /// Where it was said when to go on: `header`, `json`, `words` or `reset`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_source: Option<String>,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextAction {
    /// `resume`, `new_session`, `restart` or `message`.
    pub action: String,
    /// With which session.
    pub session_id: String,
    /// When. Not before everything goes on, if it is paused.
    pub at: String,
    /// The how manieth attempt it is.
    pub attempt: u32,
}

/// A session that was not started here, as its file tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedSession {
    /// The file.
    pub path: String,
    /// What its front matter says.
    pub status: Option<String>,
    /// How many steps are done.
    pub steps_completed: usize,
    /// The last step.
    pub last_step: Option<u64>,
    /// It is done: the status says so, or the steps have reached the last.
    pub complete: bool,
    /// When the file was changed.
    pub changed_at: String,
}

/// What pause and resume did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Switched {
    /// It is as was asked.
    pub success: bool,
    /// It was not so before.
    pub changed: bool,
    /// As in `status`.
    pub state: String,
    /// In words.
    pub message: String,
}

/// A session whose process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// Its id.
    pub session_id: String,
    /// Its process.
    pub pid: u32,
    /// Its role.
    pub role: String,
    /// Its log.
    pub log: String,
    /// When its process was started.
    pub started_at: String,
    /// `daemon`: it outlives its clients. `server`: it ends with the server that answers.
    pub owner: Owner,
}

/// The sessions there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The oldest first.
    pub sessions: Vec<SessionInfo>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// To whom.
    pub session_id: String,
    /// `input`: it was written to the standard input of the process. `resume`: the session was over, and its agent was
    /// started again with it.
    pub delivered: String,
    /// The process that has it.
    pub pid: u32,
}

/// A session that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnded {
    /// Which.
    pub session_id: String,
    /// It was not over before.
    pub changed: bool,
    /// Its state.
    pub state: String,
    /// Processes of it that could not be ended.
    pub left: Vec<u32>,
}

/// Lines of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogAnswer {
    /// The lines, the oldest first.
    pub lines: Vec<String>,
    /// How many there are that fit, from the cursor on.
    pub total_available: u64,
    /// Where to read on.
    pub cursor: u64,
}

/// Whose credential it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The session.
    pub session_id: String,
    /// All its roles.
    pub roles: Vec<String>,
    /// The folders that its server may use. Empty: all.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Until when the credential is good, in milliseconds since 1970.
    pub expires: u64,
}
