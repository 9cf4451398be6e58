//! The actor of one session: the only owner of its record.

use super::handle::{SessionActorCommand, SessionRef};
use super::launch::{PreparedSessionLaunch, SessionLaunchError, SessionLaunchMode, credential_expiry};
use super::live::LiveSessionProcess;
use super::message;
use super::output::SessionOutput;
use super::owned_record::OwnedSessionRecord;
use super::recorder::{SessionOutputRecording, SessionOutputSource};
use super::stop;
use super::successor;
use super::waiters::{SessionEndWaiter, SessionStartWaiter};
use crate::catalog::AgentDefinition;
use crate::clock;
use crate::diagnosis::{SessionStopCause, SessionStopDiagnosis};
use crate::error::{Error, ErrorCode};
use crate::process_table::{self, ProcessIdentity};
use crate::protocol::{SessionEnded, SessionMessageDelivery, SessionStarted};
use crate::random::random_fraction;
use crate::record::SessionRecord;
use crate::restart_policy::SessionRestartDecision;
use crate::state::{ScheduledSessionAction, SessionAction, SessionEvent, SessionState};
use crate::supervisor_context::SupervisorContext;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The longest sleep before the clock is read again: it may be set meanwhile, and the machine may be suspended.
const MAX_SLEEP: Duration = Duration::from_secs(60);
/// The time between `SIGTERM` and `SIGKILL` for a process whose work another session continues.
const REPLACE_GRACE: Duration = Duration::from_secs(5);

/// The actor of one session.
///
/// It goes from state to state (see [`SessionState`]): each method that [`run`](Self::run) calls does the work of one
/// state and returns after a transition or a command. A change is stored before anybody is told of it.
pub(crate) struct SessionActor {
    context: Arc<SupervisorContext>,
    record: OwnedSessionRecord,
    commands: mpsc::UnboundedReceiver<SessionActorCommand>,
    output: Arc<SessionOutput>,
    /// The process and its recording, until [`supervise`](Self::supervise) takes them.
    live: Option<(LiveSessionProcess, SessionOutputRecording)>,
    /// The text with which the agent is started next, instead of its prompt.
    message: Option<String>,
    /// The agent's command from which the session's role was derived.
    agent_command: Option<String>,
    /// The one who waits until the process runs.
    start_waiter: Option<SessionStartWaiter>,
    /// The reason for which the process is being ended.
    end_reason: Option<String>,
    /// Those who wait until the session is over.
    end_waiters: Vec<SessionEndWaiter>,
    /// Tells that nothing is started any more: the supervisor is ending, or gone.
    closing: bool,
    /// Tells that no command can come any more.
    detached: bool,
}

impl SessionActor {
    /// Creates the actor of a session and the first reference to it. [`run`](Self::run) begins its work.
    pub(crate) fn new(
        context: Arc<SupervisorContext>,
        record: SessionRecord,
        output: Arc<SessionOutput>,
    ) -> (SessionRef, Self) {
        let (sender, commands) = mpsc::unbounded_channel();
        let record = OwnedSessionRecord::new(Arc::clone(&context), record);
        let reference = SessionRef::new(sender, record.subscribe(), Arc::clone(&output));
        let actor = Self {
            context,
            record,
            commands,
            output,
            live: None,
            message: None,
            agent_command: None,
            start_waiter: None,
            end_reason: None,
            end_waiters: Vec::new(),
            closing: false,
            detached: false,
        };
        (reference, actor)
    }

    /// Stores a session that was just created, and runs it. `waiter` learns whether its process runs.
    pub(crate) async fn run_new(
        mut self,
        agent_command: Option<String>,
        prompt: Option<String>,
        waiter: SessionStartWaiter,
    ) {
        (self.agent_command, self.message) = (agent_command, prompt);
        self.start_waiter = Some(waiter);
        self.record.note_creation();
        // Stored before the process starts: a supervisor that comes after a crash finds the session and can end what
        // was started.
        self.record.persist().await;
        self.run().await;
    }

    /// Runs the session until it is deleted, or it is over and nobody can send it a command any more.
    pub(crate) async fn run(mut self) {
        loop {
            // At the end of the supervisor only what has a process is seen to its end. The rest stays as it is stored,
            // and the next supervisor goes on with it.
            if self.closing && self.record.state.process().is_none() {
                return;
            }
            let flow = match self.record.state.clone() {
                SessionState::Starting => self.start().await,
                SessionState::Running { .. } => self.supervise().await,
                SessionState::Waiting { next } => self.wait_until_due(&next).await,
                SessionState::Resuming { next } => self.perform(&next).await,
                SessionState::Paused { .. } | SessionState::Stopped { .. } | SessionState::Failed { .. } => {
                    let command = self.commands.recv().await;
                    self.handle_command(command, None).await
                }
            };
            if flow.is_break() {
                return;
            }
        }
    }

    /// Starts the first process. A session whose first process does not start is deleted.
    async fn start(&mut self) -> ControlFlow<()> {
        match self.launch(SessionLaunchMode::Fresh).await {
            Ok(process) => {
                self.started(process, "its process runs").await;
                ControlFlow::Continue(())
            }
            Err(error) => {
                let why = error.explanation();
                self.record.apply_or_log(SessionEvent::NotStarted { why: why.clone(), next: None }, &why);
                // The requester gets the error, and nobody else has heard of the session.
                self.record.delete().await;
                if let Some(waiter) = self.start_waiter.take() {
                    waiter.resolve(Err(Error::new(ErrorCode::NotStarted, why)));
                }
                ControlFlow::Break(())
            }
        }
    }

    /// Follows the process to its end, and decides what is done then.
    async fn supervise(&mut self) -> ControlFlow<()> {
        let Some((live, mut recording)) = self.live.take() else {
            // A session never runs without a process: neither `launch` nor `recover` leaves it so.
            self.conclude(SessionStopDiagnosis::certain(SessionStopCause::Lost, "its process was lost"))
                .await;
            return ControlFlow::Continue(());
        };
        let id = self.record.id.clone();
        let exit = loop {
            tokio::select! {
                // Commands first: an end that was asked for before the exit is the reason for it.
                biased;
                command = self.commands.recv(), if !self.detached => {
                    // Nothing that is asked of a running session ends its actor before the process has ended.
                    let _ = self.handle_command(command, Some(&live)).await;
                }
                agent_session = recording.agent_session() => self.set_agent_session(agent_session).await,
                exit = live.exited(&id) => break exit,
            }
        };
        if let Some(agent_session) = recording.finish().await {
            self.set_agent_session(agent_session).await;
        }
        // The terminal hangs up when the last handle of it is dropped.
        drop(live);
        let end_reason = self.end_reason.take();
        let diagnosis = stop::diagnose(&self.context, &self.record, exit, &self.output.tail(), end_reason);
        self.conclude(diagnosis).await;
        ControlFlow::Continue(())
    }

    /// Waits until the scheduled action is due, or a command comes.
    async fn wait_until_due(&mut self, next: &ScheduledSessionAction) -> ControlFlow<()> {
        let remaining = Duration::from_millis(next.at.saturating_sub(clock::now_ms()));
        if remaining.is_zero() {
            let reason = format!("it is time to {}", next.action.describe());
            if self.record.apply_or_log(SessionEvent::Due, &reason) {
                self.record.persist().await;
            }
            return ControlFlow::Continue(());
        }
        tokio::select! {
            command = self.commands.recv() => self.handle_command(command, None).await,
            () = tokio::time::sleep(remaining.min(MAX_SLEEP)) => ControlFlow::Continue(()),
        }
    }

    /// Does the scheduled action.
    async fn perform(&mut self, next: &ScheduledSessionAction) -> ControlFlow<()> {
        if let Err(error) = self.try_perform(next).await {
            let why = error.explanation();
            let settings = self.context.settings();
            let is_retried =
                next.action != SessionAction::Message && next.attempt < settings.restart.max_attempts;
            let next_attempt = is_retried.then(|| {
                let wait = clock::as_millis(settings.restart.backoff(next.attempt, random_fraction()));
                ScheduledSessionAction {
                    at: clock::now_ms() + wait,
                    attempt: next.attempt + 1,
                    ..next.clone()
                }
            });
            self.record.apply_or_log(SessionEvent::NotStarted { why: why.clone(), next: next_attempt }, &why);
            self.record.persist().await;
            if let Some(waiter) = self.start_waiter.take() {
                waiter.resolve(Err(Error::new(ErrorCode::NotStarted, why)));
            }
            self.follow_pause().await;
        }
        ControlFlow::Continue(())
    }

    async fn try_perform(&mut self, next: &ScheduledSessionAction) -> Result<(), SessionLaunchError> {
        let mode = match next.action {
            SessionAction::NewSession => {
                // The successor runs before this session is marked as replaced, so that the work never has no
                // session.
                let successor = self.start_successor(next.attempt).await?;
                let reason = format!("session {successor} goes on in its place");
                self.record.apply_or_log(SessionEvent::Replaced, &reason);
                self.record.persist().await;
                self.count_save(next).await;
                return Ok(());
            }
            // An agent that had begun its conversation before it crashed refuses to begin another one of the same id; an
            // agent that had not has none to resume. Which is the case shows only by trying.
            SessionAction::Restart
                if next.attempt % 2 == 1
                    && self.agent_definition().is_some_and(|agent| agent.takes_session_id()) =>
            {
                SessionLaunchMode::Resume
            }
            SessionAction::Restart => SessionLaunchMode::Fresh,
            SessionAction::Resume | SessionAction::Message => SessionLaunchMode::Resume,
        };
        let process = self.launch(mode).await?;
        let reason = format!("{} after {}", next.action.describe(), next.stop.reason.as_str());
        self.started(process, &reason).await;
        // After a message the session goes on because somebody asked for it, and not on the supervisor's own.
        if next.action != SessionAction::Message {
            self.count_save(next).await;
        }
        Ok(())
    }

    /// Handles a command. `live` is the process, while there is one. No command means that none can come any more.
    async fn handle_command(
        &mut self,
        command: Option<SessionActorCommand>,
        live: Option<&LiveSessionProcess>,
    ) -> ControlFlow<()> {
        let Some(command) = command else {
            // The channel is closed, and to receive from it again would return at once for ever.
            (self.closing, self.detached) = (true, true);
            return ControlFlow::Continue(());
        };
        match command {
            SessionActorCommand::End { grace, reason, reply } => {
                self.end(grace, &reason, SessionEndWaiter::Ended(reply), live).await;
            }
            SessionActorCommand::Send { text, reply } => self.send(text, reply, live),
            SessionActorCommand::Replace { reply } => self.replace(reply, live).await,
            SessionActorCommand::UpdatePause { reply } => {
                self.follow_pause().await;
                let _ = reply.send(());
            }
            SessionActorCommand::Forget { reply } => {
                let is_over = self.record.state.is_over();
                if is_over {
                    self.record.delete().await;
                }
                let _ = reply.send(is_over);
                if is_over {
                    return ControlFlow::Break(());
                }
            }
            SessionActorCommand::Shutdown { grace, reply } => {
                self.closing = true;
                if live.is_some() {
                    self.end(grace, "the supervisor ended", SessionEndWaiter::ShutDown(reply), live).await;
                }
                // Without a process the reply is dropped with the actor, which ends now.
            }
        }
        ControlFlow::Continue(())
    }

    /// Ends the process, or cancels the scheduled action. The waiter is answered once the session is over.
    async fn end(
        &mut self,
        grace: Duration,
        reason: &str,
        waiter: SessionEndWaiter,
        live: Option<&LiveSessionProcess>,
    ) {
        if let Some(live) = live {
            // The first reason stands.
            self.end_reason.get_or_insert_with(|| reason.to_owned());
            self.end_waiters.push(waiter);
            live.terminate(&self.record.id, grace);
            return;
        }
        let changed = !self.record.state.is_over();
        if changed && self.record.apply_or_log(SessionEvent::Cancel, reason) {
            // The sender of a message learns that its agent will not be started.
            self.start_waiter = None;
            self.record.persist().await;
        }
        waiter.resolve(self.ended(changed).await);
    }

    /// Describes the session that is over, after whatever is left of its processes has been ended.
    async fn ended(&self, changed: bool) -> SessionEnded {
        let id = &self.record.id;
        process_table::end_tree(self.record.process, id, Duration::ZERO).await;
        let survivors = process_table::tree(None, id).into_iter().map(|process| process.pid).collect();
        let state = self.record.state.kind();
        SessionEnded { session_id: id.clone(), changed, state, left: survivors }
    }

    /// Delivers a message, or starts the agent again with it.
    fn send(
        &mut self,
        text: String,
        reply: oneshot::Sender<Result<SessionMessageDelivery, Error>>,
        live: Option<&LiveSessionProcess>,
    ) {
        let id = &self.record.id;
        let refusal = match (&self.record.state, live) {
            (SessionState::Running { process }, Some(live)) if self.record.input => {
                let (context, terminal) = (Arc::clone(&self.context), live.terminal.clone());
                return message::deliver(context, &self.record, terminal, text, *process, reply);
            }
            (SessionState::Running { .. }, _) => format!(
                "session {id} works on its prompt and reads no messages meanwhile; send it when the session is \
                 stopped, or start the agent without a prompt"
            ),
            (SessionState::Stopped { stop }, _) => match self.obstacle_to_resume() {
                None => {
                    let stop = stop.clone();
                    return self.revive(text, stop, reply);
                }
                Some(obstacle) => format!("session {id} is stopped, and {obstacle}"),
            },
            (state, _) => format!("session {id} is {}, and reads no messages", state.kind()),
        };
        let _ = reply.send(Err(Error::new(ErrorCode::State, refusal)));
    }

    /// Returns the reason why the agent of this session cannot be started again with a message, if there is one.
    fn obstacle_to_resume(&self) -> Option<String> {
        if let Some(successor) = &self.record.replaced_by {
            return Some(format!("session {successor} went on in its place"));
        }
        let can_resume = self.agent_definition().is_some_and(|agent| !agent.resume.is_empty());
        (!can_resume).then(|| "its command cannot be resumed; new_session starts another".to_owned())
    }

    fn revive(
        &mut self,
        text: String,
        stop: SessionStopDiagnosis,
        reply: oneshot::Sender<Result<SessionMessageDelivery, Error>>,
    ) {
        let now = clock::now_ms();
        let next =
            ScheduledSessionAction { action: SessionAction::Message, at: now, attempt: 1, since: now, stop };
        match self.record.apply(SessionEvent::Revived(next), "it was sent a message") {
            Ok(()) => {
                self.message = Some(text);
                self.start_waiter = Some(SessionStartWaiter::Delivered(reply));
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Starts a session that continues the work, and ends this one.
    async fn replace(
        &mut self,
        reply: oneshot::Sender<Result<(), Error>>,
        live: Option<&LiveSessionProcess>,
    ) {
        if self.record.state.is_over() {
            drop(reply.send(Err(Error::new(ErrorCode::NoSession, "No active session to replace"))));
            return;
        }
        match self.start_successor(0).await {
            Ok(successor) => {
                self.record.persist().await;
                let reason = format!("session {successor} goes on in its place");
                self.end(REPLACE_GRACE, &reason, SessionEndWaiter::Replaced(reply), live).await;
            }
            Err(error) => {
                let error = Error::new(ErrorCode::NotStarted, error.explanation());
                drop(reply.send(Err(error)));
            }
        }
    }

    /// Starts a session that continues the work of this one, and returns its id.
    async fn start_successor(&mut self, attempts: u32) -> Result<String, SessionLaunchError> {
        let agent_command = self.agent_command.clone();
        successor::start(&self.context, &mut self.record, agent_command, attempts).await
    }

    /// Starts a process.
    async fn launch(&mut self, mode: SessionLaunchMode) -> Result<ProcessIdentity, SessionLaunchError> {
        let agent_command = self.agent_command.as_deref();
        let prepared = PreparedSessionLaunch::new(
            &self.context,
            &self.record,
            self.message.as_deref(),
            agent_command,
            mode,
        )?;
        // Valid before the process runs, which may use it at once.
        let credential = (prepared.credential.hash.clone(), credential_expiry(&self.context));
        self.record.update(|record| {
            record.credential = Some(credential);
            record.started = clock::now_ms();
        });
        self.record.persist().await;
        self.output.begin_process();
        // A credential of a process that did not start would stay valid otherwise.
        let launched =
            prepared.start(&self.context).await.inspect_err(|_| self.record.revoke_credential())?;
        let process = process_table::identify(launched.pid);
        let terminal = launched.source.terminal();
        let recording = self.record_output(launched.source, Some(launched.secret));
        self.live = Some((LiveSessionProcess::started(launched.running, terminal), recording));
        // Only after the start has succeeded: the next attempt needs it too.
        self.message = None;
        Ok(process)
    }

    /// Takes over a process that an earlier supervisor started.
    pub(super) fn adopt(&mut self, process: ProcessIdentity, source: Option<SessionOutputSource>) {
        let recording = source.map(|source| self.record_output(source, None)).unwrap_or_default();
        self.live = Some((LiveSessionProcess::adopted(process), recording));
    }

    fn record_output(&self, source: SessionOutputSource, secret: Option<String>) -> SessionOutputRecording {
        let is_id_unknown = self.record.agent_session.is_none();
        let agent = self.agent_definition().filter(|_| is_id_unknown);
        SessionOutputRecording::start(&self.context, &self.output, source, agent, secret)
    }

    fn agent_definition(&self) -> Option<AgentDefinition> {
        let settings = self.context.settings();
        self.record.agent.as_deref().and_then(|name| settings.agents.by_name(name)).cloned()
    }

    async fn set_agent_session(&mut self, id: String) {
        self.record.update(|record| record.agent_session = Some(id));
        self.record.persist().await;
    }

    /// Records that a process runs, and tells the one who waits for it.
    async fn started(&mut self, process: ProcessIdentity, reason: &str) {
        self.record.apply_or_log(SessionEvent::Started(process), reason);
        self.record.persist().await;
        if let Some(waiter) = self.start_waiter.take() {
            waiter.resolve(Ok(SessionStarted {
                session_id: self.record.id.clone(),
                pid: process.pid,
                role: self.record.role.clone(),
                log: self.context.session_log_path(&self.record.id).display().to_string(),
                started_at: clock::rfc3339(self.record.started),
                owner: self.context.options.host,
            }));
        }
    }

    /// Records the end of the process, and schedules what the restart policy decides.
    pub(super) async fn conclude(&mut self, stop: SessionStopDiagnosis) {
        let now = clock::now_ms();
        let settings = self.context.settings();
        let policy = &settings.restart;
        let history = stop::history(policy, &self.record, &stop, now);
        let evidence = stop.evidence.first().map_or("", String::as_str);
        let cause = format!("{} ({evidence})", stop.reason.as_str());
        let (next, given_up, reason) = match policy.decide(&stop, &history, now, random_fraction()) {
            SessionRestartDecision::Schedule(next) => {
                let reason = format!("{cause}; {} at {}", next.action.describe(), clock::rfc3339(next.at));
                (Some(next), None, reason)
            }
            SessionRestartDecision::Rest => (None, None, cause),
            SessionRestartDecision::GiveUp(why) => (None, Some(why.clone()), format!("{cause}; {why}")),
        };
        let last_stop = stop.clone();
        self.record.update(|record| {
            // The process has ended, and nobody else may use it.
            record.credential = None;
            record.last_stop = Some(last_stop);
            record.attempts = next.as_ref().map_or(0, |next| next.attempt);
            record.crashes = history.crashes;
        });
        self.record.apply_or_log(SessionEvent::Ended { stop, next, given_up }, &reason);
        self.record.persist().await;
        // A pause may have begun while the process ran. It holds back what was just scheduled.
        self.follow_pause().await;
        for waiter in std::mem::take(&mut self.end_waiters) {
            waiter.resolve(self.ended(true).await);
        }
    }

    /// Holds back the scheduled action during a pause, and schedules it again afterwards.
    pub(super) async fn follow_pause(&mut self) {
        let is_paused = self.context.is_paused(self.record.principal.as_deref());
        let (event, reason) = match self.record.state {
            SessionState::Waiting { .. } if is_paused => (SessionEvent::Pause, "everything is paused"),
            SessionState::Paused { .. } if !is_paused => {
                (SessionEvent::Unpause, "nothing is paused any more")
            }
            _ => return,
        };
        if self.record.apply_or_log(event, reason) {
            self.record.persist().await;
        }
    }

    async fn count_save(&self, done: &ScheduledSessionAction) {
        self.context.count_save(self.record.principal.as_deref(), done).await;
    }

    pub(super) fn record(&self) -> &OwnedSessionRecord {
        &self.record
    }

    pub(super) fn record_mut(&mut self) -> &mut OwnedSessionRecord {
        &mut self.record
    }

    pub(super) fn context(&self) -> &SupervisorContext {
        &self.context
    }
}
