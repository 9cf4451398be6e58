//! Recovers a session that an earlier supervisor left: adopts its process, or finds out what became of it.

use super::actor::SessionActor;
use super::recorder::SessionOutputSource;
use crate::diagnosis::{SessionStopCause, SessionStopDiagnosis};
use crate::log::SessionLogLevel;
use crate::process_table;
use crate::state::{SessionAction, SessionEvent, SessionState};
use std::time::Duration;

/// The time between `SIGTERM` and `SIGKILL` for processes without an owner.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

/// Recovers a session. `same_boot` tells that process ids still mean what they meant when they were recorded.
pub(crate) async fn recover(session: &mut SessionActor, same_boot: bool) {
    match session.record().state.clone() {
        SessionState::Running { process } if same_boot && process_table::is_alive(process) => {
            session
                .record()
                .log(SessionLogLevel::Info, &format!("process {} runs, and was adopted", process.pid));
            let folder = session.context().lock.folder().existing(&session.record().id);
            // Without its pipe the session goes on unrecorded.
            let source = folder.and_then(|folder| SessionOutputSource::open_pipe(&folder)).ok();
            session.adopt(process, source);
        }
        SessionState::Running { process } => {
            end_orphans(session).await;
            let evidence = format!("process {} was gone when the supervisor came back", process.pid);
            session.conclude(SessionStopDiagnosis::certain(SessionStopCause::Lost, evidence)).await;
        }
        SessionState::Starting => {
            end_orphans(session).await;
            session.fail_unknown_start(None).await;
        }
        SessionState::Resuming { next } => {
            end_orphans(session).await;
            // A message is not tried again: its sender has got an error by now, or has no supervisor to answer.
            let next_attempt = (next.action != SessionAction::Message).then_some(next);
            session.fail_unknown_start(next_attempt).await;
            session.follow_pause().await;
        }
        SessionState::Waiting { .. } | SessionState::Paused { .. } => session.follow_pause().await,
        SessionState::Stopped { .. } | SessionState::Failed { .. } => {}
    }
}

impl SessionActor {
    /// Records that the supervisor ended while it was starting the process.
    async fn fail_unknown_start(&mut self, next: Option<crate::state::ScheduledSessionAction>) {
        let why = "the supervisor ended before its process was known to run".to_owned();
        let record = self.record_mut();
        record.apply_or_log(SessionEvent::NotStarted { why: why.clone(), next }, &why);
        record.revoke_credential();
        record.persist().await;
    }
}

/// Ends the processes of a session that has no process any more.
async fn end_orphans(session: &SessionActor) {
    let orphans = process_table::tree(None, &session.record().id).len();
    if orphans > 0 {
        session
            .record()
            .log(SessionLogLevel::Warn, &format!("{orphans} processes without an owner were ended"));
        process_table::end_tree(None, &session.record().id, ORPHAN_GRACE).await;
    }
}
