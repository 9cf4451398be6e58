//! The supervisor: it starts sessions, and routes what is asked to them.

use crate::clock;
use crate::error::{Error, ErrorCode};
use crate::lock::SupervisorLock;
use crate::log::SessionLogLevel;
use crate::new_session::{MAX_TEXT_BYTES, new_record};
use crate::options::SupervisorOptions;
use crate::process_table;
use crate::protocol::{
    NewSession, SessionEnded, SessionIdentity, SessionMessageDelivery, SessionStarted, SupervisorPauseChange,
};
use crate::random::hash_credential;
use crate::record::SessionRecord;
use crate::registry::SessionRegistry;
use crate::report::activity;
use crate::session::{SessionActor, SessionOutput, SessionStartWaiter, recover};
use crate::state::SessionState;
use crate::supervisor_context::{
    OpenedSupervisor, SuccessorSessionRequest, SupervisorComponent, SupervisorContext,
};
use error_causes::chain;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The number of sessions that are over and can still be asked about.
const MAX_ENDED_SESSIONS: usize = 200;
/// The interval at which the watched folders are read.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The supervisor of the sessions in a state directory. Cheap to clone.
///
/// [`shutdown`](Self::shutdown) ends its sessions. Without it, sessions whose process runs are followed to its end
/// after the last clone is dropped; the others are left to the next supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor(pub(crate) Arc<SupervisorInner>);

#[derive(Debug)]
pub(crate) struct SupervisorInner {
    pub(crate) context: Arc<SupervisorContext>,
    pub(crate) registry: SessionRegistry,
    pub(crate) started: Instant,
}

impl Supervisor {
    /// Recovers the sessions in the state directory of `lock`: what still runs is adopted, what does not is reported as
    /// lost, what waited goes on waiting.
    ///
    /// # Errors
    /// The database or the log cannot be opened, or this is not Linux.
    pub(crate) async fn start(lock: SupervisorLock, options: SupervisorOptions) -> Result<Self, Error> {
        process_table::check_supported()?;
        let OpenedSupervisor { context, sessions, same_boot, successors } =
            SupervisorContext::open(lock, options).await?;
        let registry = SessionRegistry::default();
        let supervisor = Self(Arc::new(SupervisorInner { context, registry, started: Instant::now() }));
        let host = supervisor.0.context.options.host.as_str();
        supervisor
            .log(SessionLogLevel::Info, &format!("supervising as {host}, process {}", std::process::id()));
        for record in sessions {
            supervisor.recover(record, same_boot).await;
        }
        tokio::spawn(start_successors(Arc::downgrade(&supervisor.0), successors));
        if supervisor.0.context.watcher.is_active() {
            tokio::spawn(watch_folders(Arc::downgrade(&supervisor.0)));
        }
        Ok(supervisor)
    }

    /// Takes up a session that an earlier supervisor left.
    async fn recover(&self, record: SessionRecord, same_boot: bool) {
        let (context, id) = (&self.0.context, record.id.clone());
        let output = SessionOutput::open(context, &id).or_else(|error| {
            // The folder is gone, and the log with it. What is left of the session still needs an end.
            let _ = context.lock.folder().session(&id);
            SessionOutput::open(context, &id).map_err(|_| error)
        });
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                let error = Error::broken("cannot make the session's folder", &error);
                self.log(SessionLogLevel::Error, &format!("session {id} cannot be taken up: {error}"));
                return;
            }
        };
        let (session, mut actor) = SessionActor::new(Arc::clone(context), record, output);
        self.0.registry.insert(session);
        // Before the actor runs and takes commands, so that none meets a state that is out of date.
        recover(&mut actor, same_boot).await;
        tokio::spawn(actor.run());
    }

    /// Writes a line to the supervisor's log.
    pub(crate) fn log(&self, level: SessionLogLevel, text: &str) {
        self.0.context.log(None, level, text);
    }

    /// Reads again the options that can change: agents, restart policy, command, and the number of sessions. What runs
    /// goes on. Options that cannot be used change nothing.
    ///
    /// # Errors
    /// The options cannot be used, or there is no [`SupervisorOptionsLoader`](crate::SupervisorOptionsLoader).
    pub fn reload(&self) -> Result<(), Error> {
        let context = &self.0.context;
        let Some(loader) = &context.options.loader else {
            return Err(Error::new(
                ErrorCode::State,
                "the settings are read when this supervisor starts, and not again",
            ));
        };
        match loader.load() {
            Ok(options) => {
                context.set_settings(&options);
                self.log(SessionLogLevel::Info, "the settings were read again");
                Ok(())
            }
            Err(error) => {
                let message =
                    format!("the changed settings are not used, and those before stay: {}", chain(&*error));
                self.log(SessionLogLevel::Error, &message);
                Err(Error::new(ErrorCode::Invalid, message))
            }
        }
    }

    /// Pauses resumes, renewals and restarts until [`resume`](Self::resume), also after a restart of the supervisor.
    pub async fn pause(&self) -> SupervisorPauseChange {
        self.set_paused(None, true).await
    }

    /// Ends the pause. Actions that became due meanwhile are done at once.
    pub async fn resume(&self) -> SupervisorPauseChange {
        self.set_paused(None, false).await
    }

    /// Pauses everything or the sessions of one caller, or ends that pause.
    pub(crate) async fn set_paused(&self, principal: Option<&str>, paused: bool) -> SupervisorPauseChange {
        let context = &self.0.context;
        let changed = context.set_paused(principal, paused).await;
        if changed {
            context.log(principal, SessionLogLevel::Info, if paused { "paused" } else { "monitoring again" });
            for session in self.0.registry.all() {
                // The others follow the pause when they have an action to hold back.
                if matches!(
                    session.record().state,
                    SessionState::Waiting { .. } | SessionState::Paused { .. }
                ) {
                    session.update_pause().await;
                }
            }
        }
        let record = context.record();
        let message = match (paused, changed) {
            (false, _) if record.paused && principal.is_some() => {
                "yours go on once everybody's do: the server's user has paused everything"
            }
            (true, true) => "paused: sessions that run go on, and nothing is resumed or restarted",
            (true, false) => "it was paused already",
            (false, true) => "monitoring again",
            (false, false) => "it was not paused",
        };
        let message = match context.last_error(SupervisorComponent::Database) {
            Some(error) => format!("{message}; a restart will not know of it: {error}"),
            None => message.to_owned(),
        };
        let state = activity(&record, principal, &self.0.registry.records(principal));
        SupervisorPauseChange { success: true, changed, state, message }
    }

    /// Starts a session, and answers once its process runs.
    ///
    /// # Errors
    /// The process does not run. There is then no session.
    pub async fn new_session(&self, new: NewSession) -> Result<SessionStarted, Error> {
        self.new_session_for(None, new).await
    }

    /// Starts a session that belongs to a caller of a shared server.
    pub(crate) async fn new_session_for(
        &self,
        principal: Option<&str>,
        new: NewSession,
    ) -> Result<SessionStarted, Error> {
        let (agent_command, prompt) = (new.agent_command.clone(), new.prompt.clone());
        let record = new_record(&self.0.context.settings(), principal, new)?;
        self.begin(record, agent_command, prompt).await
    }

    /// Starts the session that a record describes, and answers once its process runs.
    async fn begin(
        &self,
        record: SessionRecord,
        agent_command: Option<String>,
        prompt: Option<String>,
    ) -> Result<SessionStarted, Error> {
        let supervisor = self.clone();
        // A task of its own: the requester may go away, and the session is started whole or not at all.
        let start_task = tokio::spawn(async move {
            let id = record.id.clone();
            let started = supervisor.admit(record, agent_command, prompt).await?;
            let started = started.await.unwrap_or_else(|_| Err(Error::ending()));
            if started.is_err() {
                // What never ran is no session.
                supervisor.0.registry.remove(&id);
            }
            started
        });
        start_task.await.unwrap_or_else(|_| Err(Error::ending()))
    }

    /// Admits a session and starts its actor. The answer comes once its process runs.
    async fn admit(
        &self,
        record: SessionRecord,
        agent_command: Option<String>,
        prompt: Option<String>,
    ) -> Result<oneshot::Receiver<Result<SessionStarted, Error>>, Error> {
        let (context, id) = (&self.0.context, record.id.clone());
        let broken = |error| Error::broken("cannot make the session's folder", &error);
        context.lock.folder().session(&id).map_err(broken)?;
        let output = SessionOutput::open(context, &id).map_err(broken)?;
        let (session, actor) = SessionActor::new(Arc::clone(context), record, output);
        if let Err(refused) = self.0.registry.admit(session, &context.settings()) {
            let _ = context.lock.folder().remove_session(&id);
            return Err(refused);
        }
        self.forget_oldest().await;
        let (reply, started) = oneshot::channel();
        tokio::spawn(actor.run_new(agent_command, prompt, SessionStartWaiter::Started(reply)));
        Ok(started)
    }

    /// Deletes the sessions that have been over for longest, so that only so many are kept.
    async fn forget_oldest(&self) {
        let mut ended: Vec<_> =
            self.0.registry.all().into_iter().filter(|session| session.record().state.is_over()).collect();
        ended.sort_by_key(|session| {
            let record = session.record();
            (record.since, record.id.clone())
        });
        let excess = ended.len().saturating_sub(MAX_ENDED_SESSIONS);
        for session in ended.into_iter().take(excess) {
            if session.forget().await {
                self.0.registry.remove(&session.record().id);
            }
        }
    }

    /// Sends a message to a session: by its standard input while it runs, or by starting its agent again with it.
    ///
    /// # Errors
    /// The message was not delivered.
    pub async fn send(&self, id: &str, text: &str) -> Result<SessionMessageDelivery, Error> {
        if text.is_empty() || text.len() > MAX_TEXT_BYTES || text.contains('\0') {
            return Err(Error::new(
                ErrorCode::Invalid,
                format!("a message has 1 to {MAX_TEXT_BYTES} bytes, and no NUL"),
            ));
        }
        self.0.registry.get(id)?.send(text).await
    }

    /// Ends a session: its processes, or its scheduled action.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn end(&self, id: &str, grace: Duration) -> Result<SessionEnded, Error> {
        self.0.registry.get(id)?.end(grace, "somebody ended it").await
    }

    /// Returns the session to which a credential belongs.
    ///
    /// # Errors
    /// The credential belongs to no session that runs, or has expired.
    pub fn identify(&self, credential: &str) -> Result<SessionIdentity, Error> {
        // Hashes are compared, so the time of the comparison says nothing about the credential.
        let hash = hash_credential(credential);
        let owner = self.0.registry.records(None).into_iter().find_map(|record| {
            let (known, expires) = record.credential.as_ref()?;
            (*known == hash).then_some((Arc::clone(&record), *expires))
        });
        match owner {
            Some((record, expires)) if expires > clock::now_ms() => Ok(SessionIdentity {
                session_id: record.id.clone(),
                roles: record.roles.clone(),
                roots: record.roots.clone(),
                expires,
            }),
            Some(_) => Err(Error::new(ErrorCode::Refused, "the session's credential has expired")),
            None => Err(Error::new(ErrorCode::Refused, "no session that runs has this credential")),
        }
    }

    /// Ends all sessions that run, leaves the others to the next supervisor, and starts nothing more.
    pub async fn shutdown(&self, grace: Duration) {
        let sessions = self.0.registry.close();
        let running = sessions.iter().filter(|session| session.record().state.process().is_some()).count();
        self.log(SessionLogLevel::Info, &format!("ending, with {running} sessions that run"));
        // At once, as each may use up its grace time.
        let mut ends = tokio::task::JoinSet::new();
        for session in sessions {
            ends.spawn(async move { session.shut_down(grace).await });
        }
        ends.join_all().await;
        self.0.context.save().await;
    }

    /// Returns the transitions of a session.
    #[cfg(test)]
    pub(crate) async fn transitions_of(&self, id: &str) -> Vec<crate::state::SessionStateTransition> {
        self.0.context.store.transitions(id).await.unwrap()
    }

    /// Returns the record of a session.
    pub(crate) fn record_of(&self, id: &str) -> Result<Arc<SessionRecord>, Error> {
        Ok(self.0.registry.get(id)?.record())
    }
}

/// Starts the sessions that continue the work of others, for as long as the supervisor lives.
async fn start_successors(
    supervisor: Weak<SupervisorInner>,
    mut requests: mpsc::UnboundedReceiver<SuccessorSessionRequest>,
) {
    while let Some(request) = requests.recv().await {
        let Some(inner) = supervisor.upgrade() else { return };
        // Each in a task of its own: one that starts slowly keeps no other waiting.
        tokio::spawn(async move {
            let SuccessorSessionRequest { record, agent_command, prompt, reply } = request;
            let _ = reply.send(Supervisor(inner).begin(record, agent_command, prompt).await);
        });
    }
}

/// Reads the watched folders for as long as the supervisor lives, and reports what has changed.
async fn watch_folders(supervisor: Weak<SupervisorInner>) {
    loop {
        let Some(inner) = supervisor.upgrade() else { return };
        let context = Arc::clone(&inner.context);
        let changes = tokio::task::spawn_blocking(move || context.watcher.scan()).await.unwrap_or_default();
        changes.iter().for_each(|change| inner.context.log(None, SessionLogLevel::Info, change));
        // Not held while it sleeps, or it would keep the supervisor alive.
        drop(inner);
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}
