//! What is told of the sessions.

use super::classify::Stop;
use super::clock;
use super::protocol::{NextAction, SessionInfo, SessionList, StatsInfo, Status, StopInfo};
use super::state::{Next, State};
use super::store::Record;
use super::supervisor::{Entry, SESSION_LOG, Supervisor, Table};

/// Sessions that are over which are shown with the status: the last so many.
const SHOWN_OVER: usize = 5;

impl Supervisor {
    /// How it goes.
    pub fn status(&self) -> Status {
        self.status_for(None)
    }

    /// How it goes with what is a caller's own.
    pub(super) fn status_for(&self, principal: Option<&str>) -> Status {
        // Folders are the user's that the supervisor runs for.
        let watched = if principal.is_none() { self.0.monitor.sessions() } else { Vec::new() };
        let table = self.table();
        let sessions = of(&table, principal);
        let over: Vec<_> = sessions.iter().filter(|entry| entry.record.state.is_over()).collect();
        let hidden = over.len().saturating_sub(SHOWN_OVER);
        let hidden: Vec<_> = over.iter().take(hidden).map(|entry| entry.record.id.clone()).collect();
        let shown = sessions.iter().filter(|entry| !hidden.contains(&entry.record.id));
        let next = sessions.iter().filter_map(|entry| Some((entry.record.state.next()?, &entry.record.id)));
        let mut live =
            sessions.iter().filter(|entry| !entry.record.state.is_over()).map(|entry| &entry.record.id);
        let latest = table.latest.as_ref().filter(|latest| live.clone().any(|id| id == *latest));
        let current = latest.or_else(|| live.next_back()).cloned();
        let stats = match principal {
            None => table.kept.stats,
            Some(name) => table.kept.callers.get(name).copied().unwrap_or_default().stats,
        };
        Status {
            running: true,
            state: state_name(&table, principal).to_owned(),
            owner: self.0.options.owner,
            pid: std::process::id(),
            uptime_seconds: self.0.started.elapsed().as_secs(),
            current_session: current.or_else(|| watched.last().map(|session| session.path.clone())),
            sessions: shown.map(|entry| info(&entry.record, &self.log_of(&entry.record.id))).collect(),
            watched,
            next_action: next.min_by_key(|(next, _)| next.at).map(|(next, id)| next_action(next, id)),
            stats: StatsInfo {
                saves_count: stats.saves_count,
                total_resumes: stats.total_resumes,
                last_resume: stats.last_resume.map(clock::text),
                time_saved_seconds: stats.time_saved_seconds,
            },
            trouble: table.trouble.values().cloned().collect(),
        }
    }

    pub(super) fn log_of(&self, id: &str) -> String {
        let sessions = self.0.lock.folder().path().join("sessions");
        sessions.join(super::directory::safe_name(id)).join(SESSION_LOG).display().to_string()
    }

    /// The sessions: those that are not over, or all.
    pub fn list(&self, all: bool) -> SessionList {
        self.list_for(None, all)
    }

    pub(super) fn list_for(&self, principal: Option<&str>, all: bool) -> SessionList {
        let table = self.table();
        let shown = of(&table, principal).into_iter().filter(|entry| all || !entry.record.state.is_over());
        SessionList {
            sessions: shown.map(|entry| info(&entry.record, &self.log_of(&entry.record.id))).collect(),
        }
    }
}

/// The sessions of a caller, the oldest first.
fn of<'a>(table: &'a Table, principal: Option<&str>) -> Vec<&'a Entry> {
    let mut sessions: Vec<&Entry> =
        table.sessions.values().filter(|entry| entry.record.is_of(principal)).collect();
    sessions.sort_by_key(|entry| entry.record.created);
    sessions
}

/// What a supervisor is doing, for a caller.
pub(super) fn state_name(table: &Table, principal: Option<&str>) -> &'static str {
    let sessions = of(table, principal);
    let any = |wanted: &str| sessions.iter().any(|entry| entry.record.state.name() == wanted);
    match () {
        () if table.kept.is_paused(principal) => "paused",
        () if any("resuming") => "resuming",
        () if any("waiting") => "waiting",
        () => "monitoring",
    }
}

fn next_action(next: &Next, id: &str) -> NextAction {
    NextAction {
        action: next.action.as_str().to_owned(),
        session_id: id.to_owned(),
        at: clock::text(next.at),
        attempt: next.attempt,
    }
}

fn info(record: &Record, log: &str) -> SessionInfo {
    let command = record.command.join(" ");
    let command = match command.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command,
    };
    let stop = |stop: &Stop| StopInfo {
        reason: stop.reason,
        confidence: stop.confidence,
        evidence: stop.evidence.clone(),
        retry_source: stop
            .retry
            .as_ref()
            .and_then(|retry| serde_json::to_value(retry.source).ok()?.as_str().map(str::to_owned)),
    };
    SessionInfo {
        session_id: record.id.clone(),
        state: record.state.name().to_owned(),
        role: record.role.clone(),
        principal: record.principal.clone(),
        pid: record.state.process().map(|process| process.pid),
        since: clock::text(record.since),
        started_at: clock::text(record.created),
        agent: record.agent.clone(),
        command,
        last_stop: record.last_stop.as_ref().map(stop),
        next_action: record.state.next().map(|next| next_action(next, &record.id)),
        failure: match &record.state {
            State::Failed { why, .. } => Some(why.clone()),
            _ => None,
        },
        parent: record.parent.clone(),
        replaced_by: record.replaced_by.clone(),
        log: log.to_owned(),
    }
}
