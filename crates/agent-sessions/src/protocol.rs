//! The requests to a supervisor and its answers, in process and over its socket.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use crate::diagnosis::{AgentRetrySource, SessionStopCause};
use crate::lock::SupervisorHostKind;
use crate::log::SessionLogLevel;
use crate::state::SessionAction;
use crate::state_kind::SessionStateKind;
use process_runner::{Confinement, ResourceLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The version of the protocol. The first line of either side, the client's first, is `{"coretools_sessions":1}`.
pub(crate) const PROTOCOL_VERSION: u32 = 1;

/// A request to a supervisor: one line of JSON on its socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum SupervisorRequest {
    /// Makes the following requests of this connection for one caller of a shared server, to whom only its own sessions
    /// exist.
    For {
        /// The caller's name.
        principal: String,
    },
    /// Asks for a [`SupervisorStatus`].
    Status {},
    /// Pauses resumes, renewals and restarts. Answered by a [`SupervisorPauseChange`].
    Pause {},
    /// Ends the pause. Answered by a [`SupervisorPauseChange`].
    Resume {},
    /// Asks for the [`SessionList`].
    List {
        /// Includes sessions that are over.
        #[serde(default)]
        all: bool,
    },
    /// Starts a session. Answered by [`SessionStarted`] once its process runs.
    New(Box<NewSession>),
    /// Sends a message to a session. Answered by a [`SessionMessageDelivery`].
    Send {
        /// The session.
        session_id: String,
        /// The message.
        text: String,
    },
    /// Ends a session. Answered by [`SessionEnded`].
    End {
        /// The session.
        session_id: String,
        /// The time between `SIGTERM` and `SIGKILL`, in milliseconds.
        grace_ms: u64,
    },
    /// Asks for lines of a log. Answered by a [`SessionLogLines`].
    Logs(SessionLogRequest),
    /// Asks to whom a credential belongs. Answered by a [`SessionIdentity`].
    Identify {
        /// The credential.
        credential: String,
    },
}

/// A session to start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NewSession {
    /// The prompt for its agent.
    pub prompt: Option<String>,
    /// The program and its arguments. None: the program of `agent`, or the command of the supervisor's options.
    pub command: Option<Vec<String>>,
    /// The name of the agent, where the program does not tell.
    pub agent: Option<String>,
    /// The role that its marker names.
    pub role: String,
    /// All roles of its agent, `role` among them.
    pub roles: Vec<String>,
    /// Tells that its agent may start and steer other sessions.
    pub orchestrates: bool,
    /// The folder in which its process runs.
    pub cwd: PathBuf,
    /// The session that starts it.
    pub parent: Option<String>,
    /// Tells whether it reads messages from standard input. None: it does unless it is a known agent with a prompt.
    pub input: Option<bool>,
    /// Tells whether it has a terminal. None: as the definition of its agent says.
    pub pty: Option<bool>,
    /// The agent's command, such as `/next-build`, from which its role was derived.
    pub agent_command: Option<String>,
    /// The confinement of its processes. None: they reach what the supervisor reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    /// The resources that its processes may use together. Nothing is limited by default.
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub resource_limits: ResourceLimits,
    /// The names of the variables that its processes inherit from the supervisor; a `*` at the end stands for any ending.
    /// None: they inherit all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_variables: Option<Vec<String>>,
    /// The folders that its agent's own server may use. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<PathBuf>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_unlimited(limits: &ResourceLimits) -> bool {
    limits.is_unlimited()
}

impl NewSession {
    /// Creates the description of a session that runs in `cwd` with one role.
    pub fn new(cwd: impl Into<PathBuf>, role: impl Into<String>) -> Self {
        let role = role.into();
        Self { cwd: cwd.into(), roles: vec![role.clone()], role, ..Self::default() }
    }

    /// Sets the program and its arguments.
    #[must_use]
    pub fn command<T: Into<String>>(mut self, command: impl IntoIterator<Item = T>) -> Self {
        self.command = Some(command.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the prompt for the agent.
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }
}

/// A request for lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SessionLogRequest {
    /// The number of lines, at most 10,000.
    pub lines: usize,
    /// The earliest time: `10m` ago, or a time.
    pub since: Option<String>,
    /// The lowest level; for the supervisor's own log only.
    pub level: Option<SessionLogLevel>,
    /// The session whose log is read. None: the supervisor's own log.
    pub session: Option<String>,
    /// The position from which to read on, instead of the last lines.
    pub cursor: Option<u64>,
    /// The time to wait for the first line, in milliseconds, at most 60,000.
    #[serde(default)]
    pub wait_ms: u64,
}

impl SessionLogRequest {
    /// Creates a request for the last lines of the supervisor's own log.
    pub fn new(lines: usize) -> Self {
        Self { lines, ..Self::default() }
    }
}

/// The state of a supervisor and its sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SupervisorStatus {
    /// True: a supervisor answers.
    pub running: bool,
    /// `paused`, `resuming` while a session is started again, `waiting` while one waits, else `monitoring`.
    pub state: SupervisorActivity,
    /// The host of the supervisor. Sessions of a `daemon` outlive their clients; those of a `server` end with it.
    pub owner: SupervisorHostKind,
    /// The process of the supervisor.
    pub pid: u32,
    /// The time since it was started.
    pub uptime_seconds: u64,
    /// The session in which something happened last: its id, or the file of a session that was not started here.
    pub current_session: Option<String>,
    /// The sessions that are not over, and the last ones that are.
    pub sessions: Vec<SessionInfo>,
    /// The session files in the watched folders.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub watched: Vec<WatchedSession>,
    /// The next scheduled action.
    pub next_action: Option<NextSessionAction>,
    /// The counters, over all restarts of the supervisor.
    pub stats: SupervisorStatsInfo,
    /// The problems that last at present.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub trouble: Vec<String>,
}

/// The activity of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SupervisorActivity {
    /// Nothing is resumed, renewed or restarted until the pause ends.
    Paused,
    /// A session is being started again.
    Resuming,
    /// A session waits for the time to be started again.
    Waiting,
    /// None of these.
    Monitoring,
}

impl SupervisorActivity {
    /// Returns the name that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Resuming => "resuming",
            Self::Waiting => "waiting",
            Self::Monitoring => "monitoring",
        }
    }
}

/// The counters of what the supervisor did on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SupervisorStatsInfo {
    /// The sessions that were resumed, renewed or restarted.
    pub saves_count: u64,
    /// Those of them that were resumed.
    pub total_resumes: u64,
    /// The time of the last resume.
    pub last_resume: Option<String>,
    /// The seconds that nobody had to wait or work for it.
    pub time_saved_seconds: u64,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The id of the session.
    pub session_id: String,
    /// `starting`, `running`, `waiting`, `resuming`, `paused`, `stopped` or `failed`.
    #[schemars(with = "String")]
    pub state: SessionStateKind,
    /// The role of its agent.
    pub role: String,
    /// The caller of a shared server to whom it belongs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub principal: Option<String>,
    /// The process, while it runs.
    pub pid: Option<u32>,
    /// The time since when it is in this state.
    pub since: String,
    /// The time at which it was created.
    pub started_at: String,
    /// The name of the agent, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<String>,
    /// The program and its arguments, without the prompt.
    pub command: String,
    /// The diagnosis of the last stop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_stop: Option<SessionStopInfo>,
    /// The scheduled action.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_action: Option<NextSessionAction>,
    /// The reason why it cannot go on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<String>,
    /// The session that started it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<String>,
    /// The session that continues its work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replaced_by: Option<String>,
    /// The path of its log.
    pub log: String,
}

/// The diagnosis of a stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionStopInfo {
    /// The cause.
    #[schemars(with = "String")]
    pub reason: SessionStopCause,
    /// The confidence in the cause, from 0 to 1.
    pub confidence: f64,
    /// The observations that support the cause.
    pub evidence: Vec<String>,
    /// The form in which the output named a time to go on: `header`, `json`, `words` or `reset`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<String>")]
    pub retry_source: Option<AgentRetrySource>,
}

/// A scheduled action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct NextSessionAction {
    /// `resume`, `new_session`, `restart` or `message`.
    #[schemars(with = "String")]
    pub action: SessionAction,
    /// The session.
    pub session_id: String,
    /// The time at which it is due. During a pause it is held back.
    pub at: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// A session that was not started here, as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WatchedSession {
    /// The path of the file.
    pub path: String,
    /// The `status` in its front matter.
    pub status: Option<String>,
    /// The number of completed steps.
    pub steps_completed: usize,
    /// The number of the last step.
    pub last_step: Option<u64>,
    /// Tells that it is done: its status says so, or the completed steps have reached the last.
    pub complete: bool,
    /// The time at which the file was changed.
    pub changed_at: String,
}

/// The effect of a pause or a resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SupervisorPauseChange {
    /// True: it is as was asked.
    pub success: bool,
    /// Tells that it was not so before.
    pub changed: bool,
    /// The activity of the supervisor, as in `status`.
    pub state: SupervisorActivity,
    /// The effect in words.
    pub message: String,
}

/// A session whose process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionStarted {
    /// The id of the session.
    pub session_id: String,
    /// The process.
    pub pid: u32,
    /// The role of its agent.
    pub role: String,
    /// The path of its log.
    pub log: String,
    /// The time at which its process was started.
    pub started_at: String,
    /// `daemon`: the session outlives its clients. `server`: it ends with the server that answers.
    pub owner: SupervisorHostKind,
}

/// The sessions of a supervisor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionList {
    /// The sessions, the oldest first.
    pub sessions: Vec<SessionInfo>,
}

/// The delivery of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionMessageDelivery {
    /// The session.
    pub session_id: String,
    /// The way by which it was delivered.
    pub delivered: MessageDeliveryMethod,
    /// The process that received it.
    pub pid: u32,
}

/// The way by which a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageDeliveryMethod {
    /// It was written to the standard input or the terminal of the process.
    Input,
    /// The session was over, and its agent was started again with it.
    Resume,
}

impl MessageDeliveryMethod {
    /// Returns the name that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Resume => "resume",
        }
    }
}

/// A session that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionEnded {
    /// The id of the session.
    pub session_id: String,
    /// Tells that it was not over before.
    pub changed: bool,
    /// The state of the session: `stopped` or `failed`.
    #[schemars(with = "String")]
    pub state: SessionStateKind,
    /// The processes that could not be ended.
    pub left: Vec<u32>,
}

/// Lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionLogLines {
    /// The lines, the oldest first.
    pub lines: Vec<String>,
    /// The number of lines that match, from the cursor on.
    pub total_available: u64,
    /// The position from which to read on.
    pub cursor: u64,
}

/// The session to which a credential belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionIdentity {
    /// The id of the session.
    pub session_id: String,
    /// All its roles.
    pub roles: Vec<String>,
    /// The folders that its server may use. Empty: all.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// The time until which the credential is valid, in milliseconds since 1970.
    pub expires: u64,
}
