//! The questions that change nothing: status, list and logs.

use crate::clock;
use crate::error::{Error, ErrorCode};
use crate::journal::{JOURNAL_NAME, SupervisorJournal};
use crate::log::{RotatingSessionLog, SessionLogPage, SessionLogQuery};
use crate::protocol::{SessionList, SessionLogLines, SessionLogRequest, SupervisorStatus};
use crate::report::{self, SupervisorStatusInput};
use crate::supervisor::Supervisor;
use crate::supervisor_context::SESSION_LOG_NAME;
use std::path::PathBuf;
use std::time::Duration;

/// The number of lines of a log in one answer.
const MAX_LINES: usize = 10_000;
/// The longest wait for the first of them, in milliseconds.
const MAX_WAIT_MS: u64 = 60_000;

impl Supervisor {
    /// Returns the state of the supervisor and its sessions.
    pub fn status(&self) -> SupervisorStatus {
        self.status_for(None)
    }

    /// Returns the state of the supervisor and the sessions of one caller.
    pub(crate) fn status_for(&self, principal: Option<&str>) -> SupervisorStatus {
        let context = &self.0.context;
        // The watched folders belong to the user for whom the supervisor runs.
        let watched = if principal.is_none() { context.watcher.sessions() } else { Vec::new() };
        let input = SupervisorStatusInput {
            supervisor: context.record(),
            principal,
            sessions: self.0.registry.records(principal),
            latest: context.latest_session(),
            watched,
            host: context.options.host,
            uptime_seconds: self.0.started.elapsed().as_secs(),
            last_errors: context.last_errors(),
        };
        report::status(input, |id| context.session_log_path(id))
    }

    /// Returns the sessions that are not over, or all.
    pub fn list(&self, all: bool) -> SessionList {
        self.list_for(None, all)
    }

    /// Returns the sessions of one caller.
    pub(crate) fn list_for(&self, principal: Option<&str>, all: bool) -> SessionList {
        let records = self.0.registry.records(principal);
        report::session_list(&records, all, |id| self.0.context.session_log_path(id))
    }

    /// Returns lines of a log. Waits for the first new one if the request says so.
    ///
    /// # Errors
    /// There is no such session, or an argument is invalid.
    pub async fn logs(&self, request: &SessionLogRequest) -> Result<SessionLogLines, Error> {
        self.logs_for(None, request).await
    }

    /// Returns lines of a log as one caller may see it.
    pub(crate) async fn logs_for(
        &self,
        principal: Option<&str>,
        request: &SessionLogRequest,
    ) -> Result<SessionLogLines, Error> {
        let query = log_query(request)?;
        let context = &self.0.context;
        let broken = |error: std::io::Error| Error::broken("cannot read the log", &error);
        let (folder, name, output) = match &request.session {
            None => {
                let folder = SupervisorJournal::folder(context.lock.folder(), principal).map_err(broken)?;
                (folder, JOURNAL_NAME, None)
            }
            Some(id) => {
                let output = self.0.registry.get(id)?.output().clone();
                let path = context.session_log_path(id);
                (path.parent().map(PathBuf::from).unwrap_or_default(), SESSION_LOG_NAME, Some(output))
            }
        };
        let deadline = tokio::time::Instant::now() + Duration::from_millis(request.wait_ms.min(MAX_WAIT_MS));
        let mut journal = context.journal_changes();
        loop {
            // Listens before it reads, so that a line in between is not missed.
            let mut output_written =
                std::pin::pin!(output.as_ref().map(|output| output.written().notified()));
            if let Some(output_written) = output_written.as_mut().as_pin_mut() {
                output_written.enable();
            }
            journal.borrow_and_update();
            let (folder, query) = (folder.clone(), query.clone());
            // Reading may go through all files of the log.
            let read =
                tokio::task::spawn_blocking(move || RotatingSessionLog::read(&folder, name, &query)).await;
            let page = read.map_err(std::io::Error::other).and_then(|page| page).map_err(broken)?;
            if !page.lines.is_empty() || tokio::time::Instant::now() >= deadline {
                let SessionLogPage { lines, total_available, cursor } = page;
                return Ok(SessionLogLines { lines, total_available, cursor });
            }
            let changed = async {
                match output_written.as_mut().as_pin_mut() {
                    Some(output_written) => output_written.await,
                    // The journal lives as long as this supervisor.
                    None => drop(journal.changed().await),
                }
            };
            // Whether a line came or the time is over: the log is read once more.
            let _ = tokio::time::timeout_at(deadline, changed).await;
        }
    }
}

fn log_query(request: &SessionLogRequest) -> Result<SessionLogQuery, Error> {
    let invalid = |message: &str| Error::new(ErrorCode::Invalid, message);
    let since = match &request.since {
        None => None,
        Some(text) => Some(clock::parse_since(text, clock::now_ms()).ok_or_else(|| {
            invalid(
                "`since` is neither how long ago (90s, 10m, 2h, 1d) nor a time such as 2026-11-22T08:00:00Z (UTC)",
            )
        })?),
    };
    if request.level.is_some() && request.session.is_some() {
        return Err(invalid("`level` is for the supervisor's own log; what a session prints has no levels"));
    }
    Ok(SessionLogQuery {
        lines: request.lines.min(MAX_LINES),
        since,
        level: request.level,
        cursor: request.cursor,
    })
}
