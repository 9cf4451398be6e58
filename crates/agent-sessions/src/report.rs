//! Reports the state of a supervisor and its sessions.

use crate::clock;
use crate::diagnosis::SessionStopDiagnosis;
use crate::protocol::{
    NextSessionAction, SessionInfo, SessionList, SessionStopInfo, SupervisorActivity, SupervisorStatsInfo,
    SupervisorStatus,
};
use crate::record::{SessionRecord, SupervisorRecord};
use crate::state::{ScheduledSessionAction, SessionState};
use std::path::Path;
use std::sync::Arc;

/// The number of sessions that are over which the status shows: the last ones.
pub(crate) const MAX_SHOWN_ENDED: usize = 5;
/// The longest command that is shown, in characters.
const MAX_COMMAND_CHARS: usize = 200;

/// Returns what a supervisor is doing for a caller whose sessions are `sessions`.
pub(crate) fn activity(
    supervisor: &SupervisorRecord,
    principal: Option<&str>,
    sessions: &[Arc<SessionRecord>],
) -> SupervisorActivity {
    let any_session =
        |predicate: fn(&SessionState) -> bool| sessions.iter().any(|record| predicate(&record.state));
    if supervisor.is_paused(principal) {
        SupervisorActivity::Paused
    } else if any_session(|state| matches!(state, SessionState::Resuming { .. })) {
        SupervisorActivity::Resuming
    } else if any_session(|state| matches!(state, SessionState::Waiting { .. })) {
        SupervisorActivity::Waiting
    } else {
        SupervisorActivity::Monitoring
    }
}

/// The supervisor's part of a [`SupervisorStatus`].
pub(crate) struct SupervisorStatusInput<'a> {
    pub(crate) supervisor: SupervisorRecord,
    pub(crate) principal: Option<&'a str>,
    /// The sessions of the caller, the oldest first.
    pub(crate) sessions: Vec<Arc<SessionRecord>>,
    /// The session in which something happened last.
    pub(crate) latest: Option<String>,
    pub(crate) watched: Vec<crate::protocol::WatchedSession>,
    pub(crate) host: crate::lock::SupervisorHostKind,
    pub(crate) uptime_seconds: u64,
    pub(crate) last_errors: Vec<String>,
}

/// Makes the status for a caller. `log_path` returns the path of the log of a session.
pub(crate) fn status<P: AsRef<Path>>(
    input: SupervisorStatusInput<'_>,
    log_path: impl Fn(&str) -> P,
) -> SupervisorStatus {
    let SupervisorStatusInput { supervisor, principal, sessions, latest, watched, .. } = input;
    let open = || sessions.iter().filter(|record| !record.state.is_over()).map(|record| &record.id);
    // The latest session may be over by now; the youngest that is open is then the best guess.
    let latest = latest.filter(|latest| open().any(|id| id == latest));
    let current = latest.or_else(|| open().next_back().cloned());
    let ended = sessions.iter().filter(|record| record.state.is_over()).count();
    // The first of those that are over are hidden.
    let mut hidden = ended.saturating_sub(MAX_SHOWN_ENDED);
    let shown = sessions.iter().filter(|record| {
        let hide = record.state.is_over() && hidden > 0;
        hidden -= usize::from(hide);
        !hide
    });
    let shown = shown.map(|record| session_info(record, log_path(&record.id).as_ref())).collect();
    let scheduled = sessions.iter().filter_map(|record| Some((record.state.next()?, &record.id)));
    let stats = supervisor.statistics(principal);
    SupervisorStatus {
        running: true,
        state: activity(&supervisor, principal, &sessions),
        owner: input.host,
        pid: std::process::id(),
        uptime_seconds: input.uptime_seconds,
        current_session: current.or_else(|| watched.last().map(|session| session.path.clone())),
        sessions: shown,
        watched,
        next_action: scheduled.min_by_key(|(next, _)| next.at).map(|(next, id)| next_action(next, id)),
        stats: SupervisorStatsInfo {
            saves_count: stats.saves_count,
            total_resumes: stats.total_resumes,
            last_resume: stats.last_resume.map(clock::rfc3339),
            time_saved_seconds: stats.time_saved_seconds,
        },
        trouble: input.last_errors,
    }
}

/// Makes the list of those of `sessions` that are not over, or of all.
pub(crate) fn session_list<P: AsRef<Path>>(
    sessions: &[Arc<SessionRecord>],
    all: bool,
    log_path: impl Fn(&str) -> P,
) -> SessionList {
    let shown = sessions.iter().filter(|record| all || !record.state.is_over());
    SessionList {
        sessions: shown.map(|record| session_info(record, log_path(&record.id).as_ref())).collect(),
    }
}

fn next_action(next: &ScheduledSessionAction, id: &str) -> NextSessionAction {
    NextSessionAction {
        action: next.action,
        session_id: id.to_owned(),
        at: clock::rfc3339(next.at),
        attempt: next.attempt,
    }
}

fn stop_info(stop: &SessionStopDiagnosis) -> SessionStopInfo {
    SessionStopInfo {
        reason: stop.reason,
        confidence: stop.confidence,
        evidence: stop.evidence.clone(),
        retry_source: stop.retry.as_ref().map(|retry| retry.source),
    }
}

fn session_info(record: &SessionRecord, log: &Path) -> SessionInfo {
    let command = record.command.join(" ");
    // By characters, so that none is cut in two.
    let command = match command.char_indices().nth(MAX_COMMAND_CHARS) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command,
    };
    SessionInfo {
        session_id: record.id.clone(),
        state: record.state.kind(),
        role: record.role.clone(),
        principal: record.principal.clone(),
        pid: record.state.process().map(|process| process.pid),
        since: clock::rfc3339(record.since),
        started_at: clock::rfc3339(record.created),
        agent: record.agent.clone(),
        command,
        last_stop: record.last_stop.as_ref().map(stop_info),
        next_action: record.state.next().map(|next| next_action(next, &record.id)),
        failure: match &record.state {
            SessionState::Failed { why, .. } => Some(why.clone()),
            _ => None,
        },
        parent: record.parent.clone(),
        replaced_by: record.replaced_by.clone(),
        log: log.display().to_string(),
    }
}
