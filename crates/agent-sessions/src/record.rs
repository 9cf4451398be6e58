//! The records that survive a restart of the supervisor. They are stored as JSON, so that the names of their fields
//! stay as they are.

use crate::diagnosis::SessionStopDiagnosis;
use crate::process_table::ProcessIdentity;
use crate::state::SessionState;
use process_runner::{Confinement, ResourceLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The record of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// The id of the session.
    pub(crate) id: String,
    /// The time at which the session was created, in milliseconds since 1970.
    pub(crate) created: u64,
    /// The state of the session.
    pub(crate) state: SessionState,
    /// The time since when it is in this state, in milliseconds since 1970.
    pub(crate) since: u64,
    /// The caller of a shared server to whom it belongs. None: the user for whom the supervisor runs.
    #[serde(default)]
    pub(crate) principal: Option<String>,
    /// The role that its marker names.
    pub(crate) role: String,
    /// All roles of its agent: an action is allowed only if each of them allows it.
    pub(crate) roles: Vec<String>,
    /// Tells that its agent may start and steer other sessions.
    pub(crate) orchestrates: bool,
    /// The confinement of its processes.
    #[serde(default)]
    pub(crate) confinement: Option<Confinement>,
    /// The resources that its processes may use together.
    #[serde(default, skip_serializing_if = "crate::protocol::is_unlimited")]
    pub(crate) resource_limits: ResourceLimits,
    /// The names of the variables that its processes inherit. None: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inherited_variables: Option<Vec<String>>,
    /// The folders that the agent's own server may use. Empty: all.
    #[serde(default)]
    pub(crate) roots: Vec<PathBuf>,
    /// The program and its arguments, without those for the prompt.
    pub(crate) command: Vec<String>,
    /// The name of the agent, if it is in the catalog.
    pub(crate) agent: Option<String>,
    /// The agent's own id of the session.
    pub(crate) agent_session: Option<String>,
    /// The prompt with which it was started.
    pub(crate) prompt: Option<String>,
    /// The folder in which its process runs.
    pub(crate) cwd: PathBuf,
    /// The session that started it.
    pub(crate) parent: Option<String>,
    /// The session whose work it continues.
    pub(crate) replaces: Option<String>,
    /// The session that continues its work.
    pub(crate) replaced_by: Option<String>,
    /// Tells that it reads messages from its standard input.
    pub(crate) input: bool,
    /// Tells that it has a terminal.
    #[serde(default)]
    pub(crate) pty: bool,
    /// The hash of its credential, and the time until which that is valid; none if it is revoked.
    pub(crate) credential: Option<(String, u64)>,
    /// The last process.
    pub(crate) process: Option<ProcessIdentity>,
    /// The time at which the last process was started, in milliseconds since 1970.
    pub(crate) started: u64,
    /// The number of attempts in a row that failed.
    pub(crate) attempts: u32,
    /// The times of its crashes, in milliseconds since 1970.
    pub(crate) crashes: Vec<u64>,
    /// The diagnosis of the last stop.
    pub(crate) last_stop: Option<SessionStopDiagnosis>,
}

impl SessionRecord {
    /// Tells whether the session belongs to a caller. To the user for whom the supervisor runs all sessions belong.
    pub(crate) fn belongs_to(&self, principal: Option<&str>) -> bool {
        principal.is_none_or(|principal| self.principal.as_deref() == Some(principal))
    }
}

/// The counters of what the supervisor did on its own. They go on after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SupervisorStatistics {
    /// The sessions that were resumed, renewed or restarted.
    pub(crate) saves_count: u64,
    /// Those of them that were resumed.
    pub(crate) total_resumes: u64,
    /// The time of the last resume, in milliseconds since 1970.
    pub(crate) last_resume: Option<u64>,
    /// The seconds that nobody had to wait or work for it.
    pub(crate) time_saved_seconds: u64,
}

/// The record of a supervisor: what is stored beside its sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SupervisorRecord {
    /// Tells that no session is resumed, renewed or restarted.
    pub(crate) paused: bool,
    /// The counters.
    pub(crate) stats: SupervisorStatistics,
    /// The id of the system's start at which processes were last recorded.
    pub(crate) boot: String,
    /// The record of each caller of a shared server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) callers: BTreeMap<String, CallerRecord>,
}

/// The record of a caller of a shared server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallerRecord {
    /// Tells that none of its sessions is resumed, renewed or restarted.
    pub(crate) paused: bool,
    /// The counters of its sessions.
    pub(crate) stats: SupervisorStatistics,
}

impl SupervisorRecord {
    /// Tells whether the sessions of a caller are paused: by its own pause, or by that of the user.
    pub(crate) fn is_paused(&self, principal: Option<&str>) -> bool {
        let caller = principal.and_then(|principal| self.callers.get(principal));
        self.paused || caller.is_some_and(|caller| caller.paused)
    }

    /// Sets the pause of everything, or of one caller's sessions. Tells whether that changes it.
    pub(crate) fn set_paused(&mut self, principal: Option<&str>, paused: bool) -> bool {
        let current = match principal {
            None => &mut self.paused,
            Some(principal) => &mut self.callers.entry(principal.to_owned()).or_default().paused,
        };
        std::mem::replace(current, paused) != paused
    }

    /// Returns the counters of a caller, or those of all sessions.
    pub(crate) fn statistics(&self, principal: Option<&str>) -> SupervisorStatistics {
        match principal {
            None => self.stats,
            Some(name) => self.callers.get(name).copied().unwrap_or_default().stats,
        }
    }
}
