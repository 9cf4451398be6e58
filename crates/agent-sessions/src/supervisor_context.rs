//! The part of a supervisor that its sessions use too: options, store, journal, pause and counters.
//!
//! No state of a session is here: each session's actor owns its own.

use crate::clock;
use crate::error::Error;
use crate::journal::SupervisorJournal;
use crate::lock::SupervisorLock;
use crate::log::{RotatingSessionLog, SessionLogLevel};
use crate::options::{EffectiveSupervisorOptions, SupervisorOptions};
use crate::process_table;
use crate::protocol::SessionStarted;
use crate::record::{SessionRecord, SupervisorRecord, SupervisorStatistics};
use crate::session_store::{DATABASE_NAME, SessionStore, SessionStoreError};
use crate::state::{ScheduledSessionAction, SessionAction};
use crate::watcher::SessionFileWatcher;
use error_causes::chain;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};

/// The file name of the log of a session, in its folder.
pub(crate) const SESSION_LOG_NAME: &str = "session.log";

/// A part of the supervisor that may fail for a while without ending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SupervisorComponent {
    Database,
    Journal,
    SessionLogs,
}

/// A session that continues the work of another, for the supervisor to start.
#[derive(Debug)]
pub(crate) struct SuccessorSessionRequest {
    pub(crate) record: SessionRecord,
    pub(crate) agent_command: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) reply: oneshot::Sender<Result<SessionStarted, Error>>,
}

/// The context of a supervisor and its sessions.
#[derive(Debug)]
pub(crate) struct SupervisorContext {
    pub(crate) options: SupervisorOptions,
    pub(crate) lock: SupervisorLock,
    pub(crate) store: SessionStore,
    pub(crate) watcher: SessionFileWatcher,
    settings: watch::Sender<Arc<EffectiveSupervisorOptions>>,
    journal: SupervisorJournal,
    record: Mutex<SupervisorRecord>,
    /// Held while the record is written, so that the latest is written last.
    saving: tokio::sync::Mutex<()>,
    last_errors: Mutex<BTreeMap<SupervisorComponent, String>>,
    /// The session in which something happened last.
    latest_session: Mutex<Option<String>>,
    /// The way to the supervisor, for sessions that need a successor. A sender only: the supervisor owns the sessions,
    /// and a reference back would keep both alive for ever.
    successors: mpsc::UnboundedSender<SuccessorSessionRequest>,
}

/// The context, with what the supervisor needs to begin its work.
pub(crate) struct OpenedSupervisor {
    pub(crate) context: Arc<SupervisorContext>,
    /// The sessions of the last supervisor.
    pub(crate) sessions: Vec<SessionRecord>,
    /// Tells that the system has not been restarted since they were recorded.
    pub(crate) same_boot: bool,
    pub(crate) successors: mpsc::UnboundedReceiver<SuccessorSessionRequest>,
}

impl SupervisorContext {
    /// Opens the journal and the database in the state directory of `lock`.
    pub(crate) async fn open(
        lock: SupervisorLock,
        options: SupervisorOptions,
    ) -> Result<OpenedSupervisor, Error> {
        let folder = lock.folder();
        let journal = SupervisorJournal::open(folder, options.logs, options.redactor.clone())
            .map_err(|error| Error::broken("cannot open the log", &error))?;
        // Created here for its mode: SQLite gives the files beside it the same one.
        folder.file(DATABASE_NAME).map_err(|error| Error::broken("cannot open the database", &error))?;
        let database_error =
            |error: SessionStoreError| Error::broken("cannot use the database of sessions", &error);
        let store = SessionStore::open(&folder.path().join(DATABASE_NAME)).await.map_err(database_error)?;
        let mut record = store.supervisor().await.map_err(database_error)?;
        let sessions = store.sessions().await.map_err(database_error)?;
        let boot = process_table::boot_id();
        // Process ids and start times of another boot mean other processes.
        let same_boot = record.boot == boot;
        record.boot = boot;
        let (sender, successors) = mpsc::unbounded_channel();
        let context = Arc::new(Self {
            watcher: SessionFileWatcher::new(options.watched_folders.clone()),
            settings: watch::Sender::new(EffectiveSupervisorOptions::of(&options)),
            options,
            lock,
            store,
            journal,
            record: Mutex::new(record),
            saving: tokio::sync::Mutex::default(),
            last_errors: Mutex::default(),
            latest_session: Mutex::default(),
            successors: sender,
        });
        context.save().await;
        Ok(OpenedSupervisor { context, sessions, same_boot, successors })
    }

    /// Returns the settings in effect.
    pub(crate) fn settings(&self) -> Arc<EffectiveSupervisorOptions> {
        Arc::clone(&self.settings.borrow())
    }

    pub(crate) fn set_settings(&self, options: &SupervisorOptions) {
        self.settings.send_replace(EffectiveSupervisorOptions::of(options));
    }

    /// Writes a line to the journal, also to the extract of `principal`.
    pub(crate) fn log(&self, principal: Option<&str>, level: SessionLogLevel, text: &str) {
        let last_error = self.journal.write(self.lock.folder(), principal, level, text);
        self.report(SupervisorComponent::Journal, last_error);
    }

    /// Returns a receiver that changes with each line of the journal.
    pub(crate) fn journal_changes(&self) -> watch::Receiver<u64> {
        self.journal.subscribe()
    }

    /// Sets the error that lasts in a component, or clears it.
    pub(crate) fn report(&self, component: SupervisorComponent, error: Option<String>) {
        let mut errors = locked(&self.last_errors);
        match error {
            Some(error) => errors.insert(component, error),
            None => errors.remove(&component),
        };
    }

    /// Sets or clears the error of the database after an operation.
    pub(crate) fn report_store(&self, result: Result<(), SessionStoreError>) {
        let error = result.err().map(|error| format!("changes cannot be saved: {}", chain(&error)));
        self.report(SupervisorComponent::Database, error);
    }

    pub(crate) fn last_error(&self, component: SupervisorComponent) -> Option<String> {
        locked(&self.last_errors).get(&component).cloned()
    }

    pub(crate) fn last_errors(&self) -> Vec<String> {
        locked(&self.last_errors).values().cloned().collect()
    }

    pub(crate) fn latest_session(&self) -> Option<String> {
        locked(&self.latest_session).clone()
    }

    pub(crate) fn set_latest_session(&self, id: &str) {
        *locked(&self.latest_session) = Some(id.to_owned());
    }

    /// Returns a copy of the supervisor's record.
    pub(crate) fn record(&self) -> SupervisorRecord {
        locked(&self.record).clone()
    }

    /// Tells whether the sessions of a caller are paused.
    pub(crate) fn is_paused(&self, principal: Option<&str>) -> bool {
        locked(&self.record).is_paused(principal)
    }

    /// Pauses everything or one caller's sessions, or ends that pause. Tells whether that changes anything.
    pub(crate) async fn set_paused(&self, principal: Option<&str>, paused: bool) -> bool {
        let changed = locked(&self.record).set_paused(principal, paused);
        if changed {
            self.save().await;
        }
        changed
    }

    /// Counts a session that went on without help.
    pub(crate) async fn count_save(&self, principal: Option<&str>, done: &ScheduledSessionAction) {
        // An estimate: the wait that nobody had to sit through, and the restart that nobody had to do.
        let now = clock::now_ms();
        let saved_seconds = now.saturating_sub(done.since) / 1000 + self.settings().manual_restart.as_secs();
        let count = |stats: &mut SupervisorStatistics| {
            stats.saves_count += 1;
            if done.action == SessionAction::Resume {
                stats.total_resumes += 1;
                stats.last_resume = Some(now);
            }
            stats.time_saved_seconds += saved_seconds;
        };
        {
            let mut record = locked(&self.record);
            count(&mut record.stats);
            if let Some(principal) = principal {
                count(&mut record.callers.entry(principal.to_owned()).or_default().stats);
            }
        }
        self.save().await;
    }

    /// Writes the supervisor's record to the database.
    pub(crate) async fn save(&self) {
        let _guard = self.saving.lock().await;
        // Copied under the guard, so that no older copy is written after a newer one.
        let record = self.record();
        self.report_store(self.store.write_supervisor(&record).await);
    }

    /// Has the supervisor start a session, and waits until its process runs.
    pub(crate) async fn start_successor(
        &self,
        record: SessionRecord,
        agent_command: Option<String>,
        prompt: Option<String>,
    ) -> Result<SessionStarted, Error> {
        let (reply, started) = oneshot::channel();
        let request = SuccessorSessionRequest { record, agent_command, prompt, reply };
        self.successors.send(request).map_err(|_| Error::ending())?;
        started.await.unwrap_or_else(|_| Err(Error::ending()))
    }

    /// Returns the path of the log of a session.
    pub(crate) fn session_log_path(&self, id: &str) -> PathBuf {
        self.lock.folder().session_path(id).join(SESSION_LOG_NAME)
    }

    /// Opens the log of a session whose folder exists.
    pub(crate) fn open_session_log(&self, id: &str) -> std::io::Result<RotatingSessionLog> {
        let folder = self.lock.folder().existing(id)?;
        RotatingSessionLog::open(folder.path(), SESSION_LOG_NAME, self.options.logs)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // None of these values is left half changed by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
