//! The record of a session in the hands of its owner: changed, published and stored.

use crate::change::SessionChange;
use crate::clock;
use crate::error::{Error, ErrorCode};
use crate::log::SessionLogLevel;
use crate::record::SessionRecord;
use crate::state::{SessionEvent, SessionState, SessionStateMachine, SessionStateTransition};
use crate::supervisor_context::SupervisorContext;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::watch;

/// The record of a session, which only its owner changes. Readers have the copy that was published last.
///
/// A change is published at once and stored by [`persist`](Self::persist), before anybody is told of it.
pub(crate) struct OwnedSessionRecord {
    context: Arc<SupervisorContext>,
    record: SessionRecord,
    published: watch::Sender<Arc<SessionRecord>>,
    /// The transitions that are not stored yet.
    unsaved: Vec<SessionStateTransition>,
    /// The reason of the last transition, until observers are told of it.
    untold: Option<String>,
}

impl Deref for OwnedSessionRecord {
    type Target = SessionRecord;

    fn deref(&self) -> &SessionRecord {
        &self.record
    }
}

impl OwnedSessionRecord {
    pub(super) fn new(context: Arc<SupervisorContext>, record: SessionRecord) -> Self {
        let published = watch::Sender::new(Arc::new(record.clone()));
        Self { context, record, published, unsaved: Vec::new(), untold: None }
    }

    /// Returns the copy that readers have, and its changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<SessionRecord>> {
        self.published.subscribe()
    }

    /// Notes the first transition of a session that was just created.
    pub(super) fn note_creation(&mut self) {
        let reason = "it was asked for".to_owned();
        self.untold = Some(reason.clone());
        self.unsaved.push(SessionStateTransition {
            at: clock::now_ms(),
            from: None,
            to: self.record.state.kind(),
            reason,
        });
    }

    /// Changes the record, and publishes it.
    pub(super) fn update(&mut self, change: impl FnOnce(&mut SessionRecord)) {
        change(&mut self.record);
        self.published.send_replace(Arc::new(self.record.clone()));
    }

    pub(super) fn revoke_credential(&mut self) {
        self.update(|record| record.credential = None);
    }

    /// Applies an event to the state, and writes the transition to the log.
    pub(super) fn apply(&mut self, event: SessionEvent, reason: &str) -> Result<(), Error> {
        let mut machine = SessionStateMachine::restored(self.record.state.clone(), self.record.since);
        let transition = machine
            .apply(event, clock::now_ms(), reason)
            .map_err(|error| Error::new(ErrorCode::State, format!("session {}: {error}", self.record.id)))?;
        self.update(|record| {
            (record.state, record.since) = (machine.state().clone(), machine.since());
            if let Some(process) = machine.state().process() {
                record.process = Some(process);
            }
        });
        self.context.set_latest_session(&self.record.id);
        let failed = matches!(self.record.state, SessionState::Failed { .. });
        let level = if failed { SessionLogLevel::Error } else { SessionLogLevel::Info };
        self.log(level, &transition.to_string());
        self.untold = Some(reason.to_owned());
        self.unsaved.push(transition);
        Ok(())
    }

    /// Applies an event that must be possible. That it is not is a fault of this program, which the log reports.
    pub(super) fn apply_or_log(&mut self, event: SessionEvent, reason: &str) -> bool {
        let applied = self.apply(event, reason);
        if let Err(error) = &applied {
            self.context.log(None, SessionLogLevel::Error, &error.message);
        }
        applied.is_ok()
    }

    /// Stores the record and the new transitions. What cannot be stored is stored with the next change.
    pub(super) async fn persist(&mut self) {
        let written = self.context.store.write_session(&self.record, &self.unsaved).await;
        if written.is_ok() {
            self.unsaved.clear();
        }
        self.context.report_store(written);
        if let Some(reason) = self.untold.take() {
            self.context.options.observer.changed(&SessionChange {
                session_id: self.record.id.clone(),
                principal: self.record.principal.clone(),
                state: self.record.state.kind(),
                reason,
            });
        }
    }

    /// Deletes what is stored of the session, and its folder.
    pub(super) async fn delete(&self) {
        self.context.report_store(self.context.store.delete_session(&self.record.id).await);
        // A folder that cannot be removed is no reason to keep the session.
        let _ = self.context.lock.folder().remove_session(&self.record.id);
    }

    /// Writes a line about this session to the log of the supervisor.
    pub(super) fn log(&self, level: SessionLogLevel, text: &str) {
        let line = format!("session {}: {text}", self.record.id);
        self.context.log(self.record.principal.as_deref(), level, &line);
    }
}
