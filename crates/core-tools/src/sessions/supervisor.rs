//! The supervisor: what it holds, and what can be asked of it.

use super::classify::{Reason, Stop};
use super::clock;
use super::error::{Code, Error, chain};
use super::lock::StateLock;
use super::log::{Log, LogLevel, LogQuery};
use super::monitor::Monitor;
use super::options::{Options, Tuned};
use super::process;
use super::protocol::{Identity, LogAnswer, LogRequest, NewSession, SessionEnded, Started, Switched};
use super::random::{hash, new_id};
use super::report::state_name;
use super::state::{Event, Machine, Next, Process, State, Transition};
use super::store::{Kept, Record, Stats, Store};
use super::terminal::Terminal;
use process_runner::Running;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

/// One supervisor: it owns the sessions of a state directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Supervisor(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: Options,
    tuned: Mutex<Arc<Tuned>>,
    pub(super) lock: StateLock,
    store: Store,
    table: Mutex<Table>,
    /// Held while something is written down, so that the latest is written last.
    writing: tokio::sync::Mutex<()>,
    logs: Mutex<Logs>,
    /// Tells of every change.
    changes: watch::Sender<u64>,
    pub(super) monitor: Monitor,
    pub(super) started: Instant,
}

/// What a supervisor writes of what it does.
#[derive(Debug)]
struct Logs {
    /// All of it.
    own: Log,
    /// What is about the sessions of a caller.
    callers: HashMap<String, Log>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) kept: Kept,
    pub(super) sessions: BTreeMap<String, Entry>,
    /// Nothing starts any more.
    pub(super) ending: bool,
    pub(super) trouble: BTreeMap<&'static str, String>,
    /// The session in which something happened last.
    pub(super) latest: Option<String>,
}

/// A session, and what of it is not written down.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) record: Record,
    unwritten: Vec<Transition>,
    pub(super) live: Option<Live>,
    /// Its terminal, if it has one.
    pub(super) terminal: Option<Terminal>,
    /// Wakes the task that drives it.
    pub(super) nudge: Arc<Notify>,
    /// Why it is being ended.
    pub(super) ending: Option<String>,
    /// What it is told when it is started next.
    pub(super) message: Option<String>,
    /// The command from which its role was derived.
    pub(super) agent_command: Option<String>,
    pub(super) output: Arc<Output>,
    /// Records what it prints, until nothing can print any more.
    pub(super) recorder: Option<JoinHandle<()>>,
    /// There is a task that drives it.
    pub(super) driven: bool,
    /// Who waits for its process to run, or to fail to.
    pub(super) told: Option<oneshot::Sender<Result<Started, Error>>>,
}

/// A process that runs.
#[derive(Clone, Debug)]
pub(super) enum Live {
    /// We started it.
    Own(Arc<Running>),
    /// An earlier supervisor did.
    Adopted(Process),
}

/// What a session has printed.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) log: Mutex<Log>,
    /// The last lines as they were printed. They do not leave the process.
    pub(super) tail: Mutex<VecDeque<String>>,
    pub(super) written: Notify,
}

/// The lines by which it is judged why a process ended.
pub(super) const TAIL: usize = 100;
/// Sessions that are over and can still be asked about.
const KEPT_OVER: usize = 200;
/// A message, a prompt or an argument may have so many bytes: a line of the protocol holds it, and so does a command
/// line (execve(2)).
const LONGEST_TEXT: usize = 100_000;
/// Lines of a log in one answer.
const MOST_LINES: usize = 10_000;
/// How long one waits for the first of them, in milliseconds.
const LONGEST_WAIT: u64 = 60_000;
/// The name of the log of a session.
pub(super) const SESSION_LOG: &str = "session.log";
/// The name of the supervisor's own.
const LOG: &str = "supervisor.log";

impl Supervisor {
    /// Takes up the work in the state directory of `lock`: what still runs is adopted, what does not is reported as
    /// lost, what waited goes on waiting.
    ///
    /// # Errors
    /// The database or the log cannot be opened, or this is not Linux.
    pub async fn start(lock: StateLock, options: Options) -> Result<Self, Error> {
        process::check_supported()?;
        let folder = lock.folder();
        let log = Log::open(folder.path(), LOG, options.logs)
            .map_err(|error| Error::broken("cannot open the log", &error))?;
        // Its own file first, for its mode: SQLite makes those beside it alike.
        folder.file(super::store::NAME).map_err(|error| Error::broken("cannot open the database", &error))?;
        let broken = |error: sqlx::Error| Error::broken("cannot use the database of sessions", &error);
        let store = Store::open(&folder.path().join(super::store::NAME)).await.map_err(broken)?;
        let mut kept = store.kept().await.map_err(broken)?;
        let records = store.sessions().await.map_err(broken)?;
        let boot = process::boot();
        let same_boot = kept.boot == boot;
        kept.boot = boot;
        let monitor = Monitor::new(options.watched.clone());
        let supervisor = Self(Arc::new(Inner {
            tuned: Mutex::new(Tuned::of(&options)),
            options,
            lock,
            store,
            table: Mutex::new(Table { kept, ..Table::default() }),
            writing: tokio::sync::Mutex::default(),
            logs: Mutex::new(Logs { own: log, callers: HashMap::new() }),
            changes: watch::Sender::new(0),
            monitor,
            started: Instant::now(),
        }));
        supervisor.keep().await;
        let owner = supervisor.0.options.owner.as_str();
        supervisor.say(LogLevel::Info, &format!("supervising as {owner}, process {}", std::process::id()));
        for record in records {
            supervisor.restore(record, same_boot).await;
        }
        super::monitor::watch(&supervisor);
        Ok(supervisor)
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What of the options can change, as it is now.
    pub(super) fn tuned(&self) -> Arc<Tuned> {
        Arc::clone(&self.0.tuned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads again what is known of agents, what is done when they stop, the command, and how many sessions there may
    /// be. What runs goes on. Settings that cannot be used change nothing.
    ///
    /// # Errors
    /// They cannot be used, or were given once for all.
    pub fn reload(&self) -> Result<(), Error> {
        let Some(again) = &self.0.options.again else {
            return Err(Error::new(
                Code::State,
                "the settings are read when this supervisor starts, and not again",
            ));
        };
        match (again.0)() {
            Ok(options) => {
                *self.0.tuned.lock().unwrap_or_else(PoisonError::into_inner) = Tuned::of(&options);
                self.say(LogLevel::Info, "the settings were read again");
                Ok(())
            }
            Err(why) => {
                let why = format!("the changed settings are not used, and those before stay: {why}");
                self.say(LogLevel::Error, &why);
                Err(Error::new(Code::Invalid, why))
            }
        }
    }

    /// Writes a line to the supervisor's log.
    pub(super) fn say(&self, level: LogLevel, text: &str) {
        self.say_to(None, level, text);
    }

    /// The same of a session, of which its owner has a log as well.
    pub(super) fn say_of(&self, id: &str, level: LogLevel, text: &str) {
        let principal = self.record_of(id).ok().and_then(|record| record.principal);
        self.say_to(principal.as_deref(), level, &format!("session {id}: {text}"));
    }

    fn say_to(&self, principal: Option<&str>, level: LogLevel, text: &str) {
        let text = self.0.options.redactor.redact(text);
        let trouble = {
            let mut logs = self.0.logs.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(principal) = principal
                && let Ok(log) = self.log_for(&mut logs, principal)
            {
                log.write(Some(level), &text);
            }
            logs.own.write(Some(level), &text);
            logs.own.trouble()
        };
        self.trouble("log", trouble);
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// The log of what happens to the sessions of a caller.
    fn log_for<'a>(&self, logs: &'a mut Logs, principal: &str) -> std::io::Result<&'a mut Log> {
        if !logs.callers.contains_key(principal) {
            let folder = self.0.lock.folder().caller(principal)?;
            logs.callers.insert(principal.to_owned(), Log::open(&folder, LOG, self.0.options.logs)?);
        }
        logs.callers.get_mut(principal).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    pub(super) fn trouble(&self, what: &'static str, trouble: Option<String>) {
        let mut table = self.table();
        match trouble {
            Some(trouble) => table.trouble.insert(what, trouble),
            None => table.trouble.remove(what),
        };
    }

    /// Keeps what is kept beside the sessions.
    pub(super) async fn keep(&self) {
        let _turn = self.0.writing.lock().await;
        let kept = self.table().kept.clone();
        let kept = self.0.store.keep(&kept).await;
        self.trouble(
            "database",
            kept.err().map(|error| format!("changes cannot be saved: {}", chain(&error))),
        );
    }

    /// Writes a session down. What cannot be written is written with the next change.
    pub(super) async fn write(&self, id: &str) {
        let _turn = self.0.writing.lock().await;
        let (record, transitions) = match self.table().sessions.get_mut(id) {
            Some(entry) => (entry.record.clone(), std::mem::take(&mut entry.unwritten)),
            None => return,
        };
        let written = self.0.store.write(&record, &transitions).await;
        let trouble = written.err().map(|error| format!("changes cannot be saved: {}", chain(&error)));
        if trouble.is_some()
            && let Some(entry) = self.table().sessions.get_mut(id)
        {
            entry.unwritten.splice(0..0, transitions);
        }
        self.trouble("database", trouble);
    }

    /// Changes the state of a session, in memory and in the log. [`write`](Self::write) makes it last.
    pub(super) fn apply(&self, id: &str, event: Event, reason: &str) -> Result<State, Error> {
        let transition = {
            let mut table = self.table();
            let entry = table.sessions.get_mut(id).ok_or_else(|| Error::no_session(id))?;
            let mut machine = Machine::restored(entry.record.state.clone(), entry.record.since);
            let transition = machine
                .apply(event, clock::now(), reason)
                .map_err(|error| Error::new(Code::State, format!("session {id}: {error}")))?;
            (entry.record.state, entry.record.since) = (machine.state().clone(), machine.since());
            if let Some(process) = machine.state().process() {
                entry.record.process = Some(process);
            }
            entry.unwritten.push(transition.clone());
            table.latest = Some(id.to_owned());
            transition
        };
        let Transition { from, to, reason, .. } = transition;
        let level = if to == "failed" { LogLevel::Error } else { LogLevel::Info };
        self.say_of(id, level, &format!("{from} → {to}: {reason}"));
        self.record_of(id).map(|record| record.state)
    }

    pub(super) fn record_of(&self, id: &str) -> Result<Record, Error> {
        let table = self.table();
        table.sessions.get(id).map(|entry| entry.record.clone()).ok_or_else(|| Error::no_session(id))
    }

    pub(super) fn is_paused(&self, record: &Record) -> bool {
        self.table().kept.is_paused(record.principal.as_deref())
    }

    /// Counts a session that went on by itself.
    pub(super) async fn count_save(&self, id: &str, next: &Next) {
        let now = clock::now();
        let saved = now.saturating_sub(next.since) / 1000 + self.tuned().manual_restart.as_secs();
        let resumed = next.action == super::state::Action::Resume;
        let count = |stats: &mut Stats| {
            stats.saves_count += 1;
            if resumed {
                stats.total_resumes += 1;
                stats.last_resume = Some(now);
            }
            stats.time_saved_seconds += saved;
        };
        {
            let mut table = self.table();
            let principal = table.sessions.get(id).and_then(|entry| entry.record.principal.clone());
            count(&mut table.kept.stats);
            if let Some(principal) = principal {
                count(&mut table.kept.callers.entry(principal).or_default().stats);
            }
        }
        self.keep().await;
    }

    /// Makes an entry for a session.
    pub(super) fn entry(&self, record: Record) -> Result<Entry, Error> {
        let broken = |error| Error::broken("cannot make the session's folder", &error);
        let folder = self.0.lock.folder().existing(&record.id).map_err(broken)?;
        let log = Log::open(folder.path(), SESSION_LOG, self.0.options.logs).map_err(broken)?;
        let tail = super::log::last_printed(folder.path(), SESSION_LOG, TAIL);
        Ok(Entry {
            record,
            unwritten: Vec::new(),
            live: None,
            terminal: None,
            nudge: Arc::default(),
            ending: None,
            message: None,
            agent_command: None,
            recorder: None,
            driven: false,
            told: None,
            output: Arc::new(Output {
                log: Mutex::new(log),
                tail: Mutex::new(tail.into()),
                written: Notify::new(),
            }),
        })
    }

    /// Does nothing by itself from now on, also after a restart.
    pub async fn pause(&self) -> Switched {
        self.switch(None, true).await
    }

    /// Goes on with what it did by itself. Sessions whose time has come meanwhile go on at once.
    pub async fn resume(&self) -> Switched {
        self.switch(None, false).await
    }

    /// Pauses everything, or the sessions of one caller.
    pub(super) async fn switch(&self, principal: Option<&str>, paused: bool) -> Switched {
        let changed = self.table().kept.pause(principal, paused);
        if changed {
            self.keep().await;
            self.say_to(principal, LogLevel::Info, if paused { "paused" } else { "monitoring again" });
            let ids: Vec<String> = self.table().sessions.keys().cloned().collect();
            for id in ids {
                // Most have nothing to be paused.
                let Ok(record) = self.record_of(&id) else { continue };
                let is_paused = self.is_paused(&record);
                let (event, reason) = match record.state {
                    State::Waiting { .. } if is_paused => (Event::Pause, "everything is paused"),
                    State::Paused { .. } if !is_paused => (Event::Unpause, "nothing is paused any more"),
                    _ => continue,
                };
                if self.apply(&id, event, reason).is_ok() {
                    self.write(&id).await;
                    self.nudge(&id);
                }
            }
        }
        let table = self.table();
        let state = state_name(&table, principal).to_owned();
        let message = match (paused, changed) {
            (false, _) if table.kept.paused && principal.is_some() => {
                "yours go on once everybody's do: the server's user has paused everything"
            }
            (true, true) => "paused: sessions that run go on, and nothing is resumed or restarted",
            (true, false) => "it was paused already",
            (false, true) => "monitoring again",
            (false, false) => "it was not paused",
        };
        let message = match table.trouble.get("database") {
            Some(trouble) => format!("{message}; a restart will not know of it: {trouble}"),
            None => message.to_owned(),
        };
        Switched { success: true, changed, state, message }
    }

    pub(super) fn nudge(&self, id: &str) {
        if let Some(entry) = self.table().sessions.get(id) {
            entry.nudge.notify_one();
        }
    }

    /// Starts a session, and answers once its process runs.
    ///
    /// # Errors
    /// It does not run, and why. There is then no session.
    pub async fn new_session(&self, new: NewSession) -> Result<Started, Error> {
        self.new_session_for(None, new).await
    }

    /// The same for a caller, whose it is.
    pub(super) async fn new_session_for(
        &self,
        principal: Option<&str>,
        new: NewSession,
    ) -> Result<Started, Error> {
        let record = self.plan_session(principal, new.clone())?;
        self.begin(record, new.agent_command, new.prompt).await
    }

    /// Starts what a record describes.
    pub(super) async fn begin(
        &self,
        record: Record,
        agent_command: Option<String>,
        prompt: Option<String>,
    ) -> Result<Started, Error> {
        let id = record.id.clone();
        let broken = |error| Error::broken("cannot make the session's folder", &error);
        self.0.lock.folder().session(&id).map_err(broken)?;
        let mut entry = self.entry(record)?;
        let (told, tell) = oneshot::channel();
        (entry.agent_command, entry.message, entry.told) = (agent_command, prompt, Some(told));
        entry.unwritten.push(Transition {
            at: clock::now(),
            from: String::new(),
            to: "starting".to_owned(),
            reason: "it was asked for".to_owned(),
        });
        {
            let mut table = self.table();
            let live = |entry: &&Entry| !entry.record.state.is_over();
            let all = table.sessions.values().filter(live);
            let principal = entry.record.principal.as_deref();
            let own = all.clone().filter(|entry| entry.record.is_of(principal)).count();
            let tuned = self.tuned();
            let full = |most: usize, whose: &str| {
                let message = format!(
                    "{most} {whose}sessions are not over, which is the most there may be; end one first"
                );
                Some(Error::new(Code::Full, message))
            };
            let refused = match all.count() {
                _ if table.ending => Some(Error::new(Code::NotRunning, "the supervisor is ending")),
                // One that goes on in the place of another takes its place.
                _ if entry.record.replaces.is_some() => None,
                _ if principal.is_some() && own >= tuned.max_per_caller => {
                    full(tuned.max_per_caller, "of your ")
                }
                count if count >= tuned.max_sessions => full(tuned.max_sessions, ""),
                _ => None,
            };
            if let Some(refused) = refused {
                drop(table);
                let _ = self.0.lock.folder().remove_session(&id);
                return Err(refused);
            }
            table.sessions.insert(id.clone(), entry);
        }
        self.forget_the_oldest().await;
        self.write(&id).await;
        // A task of its own: whoever asks may go away, and the session is started whole or not at all.
        self.drive(&id);
        tell.await.unwrap_or_else(|_| Err(Error::new(Code::NotRunning, "the supervisor is ending")))
    }

    /// Removes what never ran.
    pub(super) async fn discard(&self, id: &str) {
        self.table().sessions.remove(id);
        let _turn = self.0.writing.lock().await;
        let forgotten = self.0.store.forget(id).await;
        self.trouble(
            "database",
            forgotten.err().map(|error| format!("changes cannot be saved: {}", chain(&error))),
        );
        let _ = self.0.lock.folder().remove_session(id);
    }

    async fn forget_the_oldest(&self) {
        let mut over: Vec<(u64, String)> = {
            let table = self.table();
            let over = table.sessions.values().filter(|entry| entry.record.state.is_over());
            over.map(|entry| (entry.record.since, entry.record.id.clone())).collect()
        };
        over.sort();
        for (_, id) in over.iter().take(over.len().saturating_sub(KEPT_OVER)) {
            self.discard(id).await;
        }
    }

    fn plan_session(&self, principal: Option<&str>, new: NewSession) -> Result<Record, Error> {
        let invalid = |why: String| Error::new(Code::Invalid, why);
        let tuned = self.tuned();
        let named = match &new.agent {
            None => None,
            Some(name) => Some(tuned.agents.named(name).ok_or_else(|| {
                let known: Vec<_> = tuned.agents.names().collect();
                invalid(format!("no agent is called `{name}`; known are {}", known.join(", ")))
            })?),
        };
        let command = match (new.command, named) {
            (Some(command), _) => command,
            (None, Some(agent)) => agent.programs.iter().take(1).cloned().collect(),
            (None, None) => tuned.command.clone(),
        };
        let Some(program) = command.first().filter(|program| !program.is_empty()) else {
            return Err(invalid(
                "no agent to start: name it by `agent` or its command, or set sessions.command in the configuration".to_owned(),
            ));
        };
        let agent = named.or_else(|| tuned.agents.of_program(program));
        let pty = new.pty.unwrap_or_else(|| agent.is_some_and(|agent| agent.pty));
        let agent = agent.map(|agent| agent.name.clone());
        for text in command.iter().chain(&new.prompt) {
            if text.len() > LONGEST_TEXT || text.contains('\0') {
                return Err(invalid(format!(
                    "a text of the session is longer than {LONGEST_TEXT} bytes, or has a NUL"
                )));
            }
        }
        if new.roles.is_empty() || !new.roles.contains(&new.role) {
            return Err(invalid("a session has a role".to_owned()));
        }
        let now = clock::now();
        Ok(Record {
            id: new_id().map_err(|error| Error::broken("no random numbers", &error))?,
            created: now,
            state: State::Starting,
            since: now,
            // What has a terminal reads it.
            input: pty || new.input.unwrap_or(agent.is_none() || new.prompt.is_none()),
            pty,
            principal: principal.map(str::to_owned),
            role: new.role,
            roles: new.roles,
            orchestrates: new.orchestrates,
            confinement: new.confinement,
            roots: new.roots,
            command,
            agent,
            agent_session: None,
            prompt: new.prompt,
            cwd: new.cwd,
            parent: new.parent,
            replaces: None,
            replaced_by: None,
            credential: None,
            process: None,
            started: now,
            attempts: 0,
            crashes: Vec::new(),
            last_stop: None,
        })
    }

    /// Ends a session: its processes, or what it waits for.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn end(&self, id: &str, grace: Duration) -> Result<SessionEnded, Error> {
        self.end_because(id, grace, "somebody ended it").await
    }

    pub(super) async fn end_because(
        &self,
        id: &str,
        grace: Duration,
        why: &str,
    ) -> Result<SessionEnded, Error> {
        let mut changes = self.0.changes.subscribe();
        let mut changed = false;
        let mut asked = false;
        loop {
            changes.borrow_and_update();
            let record = self.record_of(id)?;
            match record.state {
                State::Stopped { .. } | State::Failed { .. } => {
                    let leader = record.process;
                    // Also what it left behind.
                    process::end_tree(leader, id, Duration::ZERO).await;
                    let left = process::tree(None, id).into_iter().map(|process| process.pid).collect();
                    let state = record.state.name().to_owned();
                    return Ok(SessionEnded { session_id: id.to_owned(), changed, state, left });
                }
                State::Waiting { .. } | State::Paused { .. } => {
                    changed = true;
                    if self.apply(id, Event::Cancel, why).is_ok() {
                        self.write(id).await;
                        self.nudge(id);
                    }
                    continue;
                }
                State::Running { .. } if !asked => {
                    (changed, asked) = (true, true);
                    let live = self.table().sessions.get_mut(id).and_then(|entry| {
                        entry.ending.get_or_insert_with(|| why.to_owned());
                        entry.live.clone()
                    });
                    match live {
                        Some(Live::Own(running)) => running.terminate_within(grace),
                        Some(Live::Adopted(process)) => {
                            process::end_tree(Some(process), id, grace).await;
                        }
                        None => {}
                    }
                }
                State::Running { .. } | State::Starting | State::Resuming { .. } => {}
            }
            // Its task says when its process has ended, and when one that was about to start runs.
            let _ = tokio::time::timeout(Duration::from_secs(1), changes.changed()).await;
        }
    }

    /// How the state of a session changed.
    #[cfg(test)]
    pub(super) async fn transitions_of(&self, id: &str) -> Vec<Transition> {
        self.0.store.transitions(id).await.unwrap()
    }

    /// Lines of a log. Waits for the first new one, where that is asked for.
    ///
    /// # Errors
    /// There is no such session, or an argument cannot be understood.
    pub async fn logs(&self, request: &LogRequest) -> Result<LogAnswer, Error> {
        self.logs_for(None, request).await
    }

    pub(super) async fn logs_for(
        &self,
        principal: Option<&str>,
        request: &LogRequest,
    ) -> Result<LogAnswer, Error> {
        let invalid = |why: &str| Error::new(Code::Invalid, why);
        let since = match &request.since {
            None => None,
            Some(text) => Some(clock::since(text, clock::now()).ok_or_else(|| {
                invalid("`since` is neither how long ago (90s, 10m, 2h, 1d) nor a time such as 2026-11-22T08:00:00Z (UTC)")
            })?),
        };
        if request.level.is_some() && request.session.is_some() {
            return Err(invalid(
                "`level` is for the supervisor's own log; what a session prints has no levels",
            ));
        }
        let (folder, name, output) = match &request.session {
            None => {
                let folder = self.0.lock.folder();
                let folder = match principal {
                    None => Ok(folder.path().to_owned()),
                    Some(principal) => folder.caller(principal),
                };
                (folder.map_err(|error| Error::broken("cannot read the log", &error))?, LOG, None)
            }
            Some(id) => {
                let table = self.table();
                let entry = table.sessions.get(id).ok_or_else(|| Error::no_session(id))?;
                let path = PathBuf::from(self.log_of(id));
                (
                    path.parent().map(PathBuf::from).unwrap_or_default(),
                    SESSION_LOG,
                    Some(Arc::clone(&entry.output)),
                )
            }
        };
        let query = LogQuery {
            lines: request.lines.min(MOST_LINES),
            since,
            level: request.level,
            cursor: request.cursor,
        };
        let until = tokio::time::Instant::now() + Duration::from_millis(request.wait_ms.min(LONGEST_WAIT));
        let mut changes = self.0.changes.subscribe();
        loop {
            let written = output.as_ref().map(|output| output.written.notified());
            let mut written = std::pin::pin!(written);
            if let Some(written) = written.as_mut().as_pin_mut() {
                written.enable();
            }
            changes.borrow_and_update();
            let (folder, query) = (folder.clone(), query.clone());
            let read = tokio::task::spawn_blocking(move || Log::read(&folder, name, &query)).await;
            let page = read
                .map_err(std::io::Error::other)
                .and_then(|page| page)
                .map_err(|error| Error::broken("cannot read the log", &error))?;
            if !page.lines.is_empty() || tokio::time::Instant::now() >= until {
                let super::log::LogPage { lines, total_available, cursor } = page;
                return Ok(LogAnswer { lines, total_available, cursor });
            }
            tokio::select! {
                () = async { match written.as_mut().as_pin_mut() {
                    Some(written) => written.await,
                    None => { let _ = changes.changed().await; }
                } } => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Whose credential it is.
    ///
    /// # Errors
    /// Nobody's, or no longer.
    pub fn identify(&self, credential: &str) -> Result<Identity, Error> {
        let hash = hash(credential);
        let table = self.table();
        let found = table.sessions.values().find_map(|entry| {
            let (known, expires) = entry.record.credential.as_ref()?;
            (*known == hash).then_some((&entry.record, *expires))
        });
        match found {
            Some((record, expires)) if expires > clock::now() => Ok(Identity {
                session_id: record.id.clone(),
                roles: record.roles.clone(),
                roots: record.roots.clone(),
                expires,
            }),
            Some(_) => Err(Error::new(Code::Refused, "the session's credential has expired")),
            None => Err(Error::new(Code::Refused, "no session that runs has this credential")),
        }
    }

    /// Ends all sessions that run, keeps the others as they are, and starts nothing more.
    pub async fn shutdown(&self, grace: Duration) {
        let running: Vec<String> = {
            let mut table = self.table();
            table.ending = true;
            // Those that wait have nothing more to wait for.
            table.sessions.values().for_each(|entry| entry.nudge.notify_one());
            let live = table.sessions.iter().filter(|(_, entry)| !entry.record.state.is_over());
            let held = live.filter(|(_, entry)| entry.record.state.process().is_some());
            held.map(|(id, _)| id.clone()).collect()
        };
        self.say(LogLevel::Info, &format!("ending, with {} sessions that run", running.len()));
        let mut ends = tokio::task::JoinSet::new();
        for id in running {
            let supervisor = self.clone();
            ends.spawn(async move {
                supervisor.end_because(&id, grace, "the supervisor ended").await.map(|_| ())
            });
        }
        while ends.join_next().await.is_some() {}
        self.keep().await;
    }
}

/// That a session's process was ended by somebody.
pub(super) fn ended(why: &str) -> Stop {
    Stop::plain(Reason::Ended, why)
}
