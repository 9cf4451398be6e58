//! The life of one session: a task that starts its process, waits for its end, and does what is to be done then.

use super::agent::Filling;
use super::classify::{Ending, Reason, RetrySource, Stop, When, classify};
use super::clock;
use super::directory::Markers;
use super::error::{Code, Error, chain};
use super::log::LogLevel;
use super::plan::{Decision, Past};
use super::process;
use super::protocol::Started;
use super::random::{chance, new_credential, new_id};
use super::recorder::{Source, receiver};
use super::state::{Action, Event, Next, Process, State};
use super::store::Record;
use super::supervisor::{Live, Supervisor, ended};
use super::terminal::{Line, Terminal};
use process_runner::{Command, Confinement, ExitStatus, Leftovers, Limits, Stdin};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How often one looks whether a process lives that somebody else has started.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long the last output is waited for once everything that could print has been ended.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// How a process is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As it was asked for.
    First,
    /// To go on where it was.
    Resume,
}

impl Supervisor {
    /// Drives a session, if nobody does.
    pub(super) fn drive(&self, id: &str) {
        let mut table = self.table();
        let Some(entry) = table.sessions.get_mut(id) else { return };
        if std::mem::replace(&mut entry.driven, true) {
            entry.nudge.notify_one();
            return;
        }
        tokio::spawn(self.clone().driven(id.to_owned()));
    }

    async fn driven(self, id: String) {
        loop {
            let (state, nudge) = {
                let mut table = self.table();
                let ending = table.ending;
                let Some(entry) = table.sessions.get_mut(&id) else { return };
                // Of a supervisor that is ending, only what has a process is seen to its end.
                let idle = ending && entry.record.state.process().is_none();
                if idle || entry.record.state.is_over() {
                    // Under the same lock as the look: who makes it begin again starts a task of its own.
                    (entry.driven, entry.told) = (false, None);
                    return;
                }
                (entry.record.state.clone(), Arc::clone(&entry.nudge))
            };
            match state {
                State::Starting => self.begin_running(&id).await,
                State::Running { process } => self.follow(&id, process).await,
                State::Waiting { next } => self.wait(&id, &next, &nudge).await,
                State::Resuming { next } => self.act(&id, &next).await,
                State::Paused { .. } => nudge.notified().await,
                State::Stopped { .. } | State::Failed { .. } => {}
            }
        }
    }

    async fn begin_running(&self, id: &str) {
        match self.launch(id, Mode::First).await {
            Ok(process) => self.runs(id, process, "its process runs").await,
            Err(why) => {
                let _ = self.apply(id, Event::NotStarted { why: why.clone(), next: None }, &why);
                let told = self.table().sessions.get_mut(id).and_then(|entry| entry.told.take());
                // What never ran is no session.
                self.discard(id).await;
                if let Some(told) = told {
                    let _ = told.send(Err(Error::new(Code::NotStarted, why)));
                }
            }
        }
    }

    /// Its process runs: that is written down before anybody is told.
    async fn runs(&self, id: &str, process: Process, reason: &str) {
        if let Err(error) = self.apply(id, Event::Started(process), reason) {
            self.say(LogLevel::Error, &error.message);
        }
        self.write(id).await;
        let told = self.table().sessions.get_mut(id).and_then(|entry| entry.told.take());
        if let (Some(told), Ok(record)) = (told, self.record_of(id)) {
            // Whoever asked may have gone away.
            let _ = told.send(Ok(Started {
                session_id: id.to_owned(),
                pid: process.pid,
                role: record.role,
                log: self.log_of(id),
                started_at: clock::text(record.started),
                owner: self.0.options.owner,
            }));
        }
    }

    /// Waits until its time has come, or something is asked of it.
    async fn wait(&self, id: &str, next: &Next, nudge: &tokio::sync::Notify) {
        // Looked at again every minute: the clock of the machine may be set, and the machine may sleep.
        const LONGEST: Duration = Duration::from_secs(60);
        let left = Duration::from_millis(next.at.saturating_sub(clock::now()));
        if !left.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(left.min(LONGEST)) => {}
                () = nudge.notified() => {}
            }
            return;
        }
        // Cancelled or paused in the same moment, it is not due.
        if self.apply(id, Event::Due, &format!("it is time to {}", words(next.action))).is_ok() {
            self.write(id).await;
        }
    }

    /// Does what is to be done.
    async fn act(&self, id: &str, next: &Next) {
        let mode = if next.action == Action::Restart { Mode::First } else { Mode::Resume };
        let failed = match next.action {
            Action::NewSession => match self.renew(id, next).await {
                Ok(()) => return,
                Err(why) => why,
            },
            Action::Resume | Action::Restart | Action::Message => match self.launch(id, mode).await {
                Ok(process) => {
                    let reason = format!("{} after {}", words(next.action), next.stop.reason.as_str());
                    self.runs(id, process, &reason).await;
                    if next.action != Action::Message {
                        self.count_save(id, next).await;
                    }
                    return;
                }
                Err(why) => why,
            },
        };
        let tuned = self.tuned();
        let plan = &tuned.plan;
        let again = (next.action != Action::Message && next.attempt < plan.attempts).then(|| {
            let wait = clock::millis(plan.backoff(next.attempt, chance()));
            Next { at: clock::now() + wait, attempt: next.attempt + 1, ..next.clone() }
        });
        let _ = self.apply(id, Event::NotStarted { why: failed.clone(), next: again }, &failed);
        self.write(id).await;
        let told = self.table().sessions.get_mut(id).and_then(|entry| entry.told.take());
        if let Some(told) = told {
            let _ = told.send(Err(Error::new(Code::NotStarted, failed)));
        }
        self.pause_if_paused(id).await;
    }

    /// Goes on in a new session: with a copy of the session's file, and the next step as the prompt.
    async fn renew(&self, id: &str, next: &Next) -> Result<(), String> {
        let fresh_id = self.begin_in_place_of(id, next.attempt).await?;
        let _ = self.apply(id, Event::Replaced, &format!("session {fresh_id} goes on in its place"));
        self.write(id).await;
        self.count_save(id, next).await;
        Ok(())
    }

    /// The same for one that runs or waits, which then ends.
    pub(super) async fn replace(&self, id: &str) -> Result<(), Error> {
        let failed = |why| Error::new(Code::NotStarted, why);
        let fresh_id = self.begin_in_place_of(id, 0).await.map_err(failed)?;
        self.write(id).await;
        let why = format!("session {fresh_id} goes on in its place");
        self.end_because(id, Duration::from_secs(5), &why).await.map(|_| ())
    }

    async fn begin_in_place_of(&self, id: &str, attempts: u32) -> Result<String, String> {
        let record = self.record_of(id).map_err(|error| error.message)?;
        // The watched folders are the user's that the supervisor runs for.
        let file = record.principal.is_none().then(|| self.0.monitor.file_of(&record)).flatten();
        if let Some(file) = &file {
            match super::monitor::back_up(file, clock::now()) {
                Ok(copy) => {
                    self.say_of(id, LogLevel::Info, &format!("its file was copied to {}", copy.display()));
                }
                // The work goes on without.
                Err(error) => {
                    self.say_of(id, LogLevel::Warn, &format!("its file was not copied: {}", chain(&error)));
                }
            }
        }
        let prompt = super::monitor::next_prompt(file.as_deref(), &record);
        let mut fresh = record.clone();
        let unlucky = |error: io::Error| error.to_string();
        fresh.id = new_id().map_err(unlucky)?;
        let now = clock::now();
        (fresh.created, fresh.since, fresh.started) = (now, now, now);
        (fresh.state, fresh.replaces) = (State::Starting, Some(id.to_owned()));
        (fresh.agent_session, fresh.process, fresh.credential) = (None, None, None);
        (fresh.attempts, fresh.crashes) = (attempts, Vec::new());
        fresh.prompt.clone_from(&prompt);
        let fresh_id = fresh.id.clone();
        let agent_command = self.table().sessions.get(id).and_then(|entry| entry.agent_command.clone());
        Box::pin(self.begin(fresh, agent_command, prompt)).await.map_err(|error| error.message)?;
        if let Some(entry) = self.table().sessions.get_mut(id) {
            entry.record.replaced_by = Some(fresh_id.clone());
        }
        Ok(fresh_id)
    }

    /// Starts its process.
    async fn launch(&self, id: &str, mode: Mode) -> Result<Process, String> {
        let (record, message, agent_command) = {
            let table = self.table();
            let entry = table.sessions.get(id).ok_or("the session is gone")?;
            (entry.record.clone(), entry.message.clone(), entry.agent_command.clone())
        };
        let options = &self.0.options;
        let text = |error: io::Error| format!("cannot use the session's folder: {error}");
        let folder = self.0.lock.folder().existing(id).map_err(text)?;
        let lifetime = options.credential_lifetime;
        let key = options.marker_key.as_deref().map(|key| (key, lifetime.min(Duration::from_secs(86_400))));
        folder.mark(&Markers { session: id, role: &record.role, key }).map_err(text)?;
        let (credential, hash) = new_credential().map_err(text)?;
        let (program, arguments) = self.arguments(&record, message.as_deref(), mode)?;
        let (print, source, line) = match record.pty {
            false => {
                let print = folder.pipe("out").map_err(text)?;
                (print, Source::Pipe(receiver(&folder).map_err(text)?), None)
            }
            true => {
                let opened = Terminal::open().map_err(|error| format!("cannot make a terminal: {error}"))?;
                let (terminal, Line { path, file }) = opened;
                (file, Source::Terminal(terminal), Some(path))
            }
        };
        let mut command = Command::new(program, &record.cwd)
            .args(arguments)
            .env("TMPDIR", folder.temporary())
            .env(super::SESSION_VARIABLE, id)
            .env(super::CREDENTIAL_VARIABLE, &credential)
            .env(super::STATE_VARIABLE, self.0.lock.folder().path())
            .label(format!("session {id}"))
            // Nothing that it leaves behind has an owner.
            .limits(Limits::unlimited().leftovers(Leftovers::KillAll).capture(4096))
            .merge_stderr()
            .stdout(print);
        if let Some(confinement) = &record.confinement {
            // Its own folder for temporary files, instead of the server's.
            let tmp = folder.temporary();
            let confinement = confinement.clone().write(&tmp);
            let confinement = line.iter().fold(confinement, Confinement::write);
            command = command.confined(confinement).env("TMPDIR", tmp);
        }
        command = match &agent_command {
            Some(agent_command) => command.env(super::AGENT_COMMAND_VARIABLE, agent_command),
            None => command.env_remove(super::AGENT_COMMAND_VARIABLE),
        };
        if let Some(line) = line {
            command = command.env("TERM", "xterm-256color").stdin(Stdin::Terminal(line));
        } else if record.input {
            command = command.stdin(Stdin::File(Arc::new(folder.pipe("in").map_err(text)?)));
        }
        // Good from the moment that there is somebody to have it.
        if let Some(entry) = self.table().sessions.get_mut(id) {
            entry.record.credential = Some((hash, clock::now() + clock::millis(lifetime)));
            entry.record.started = clock::now();
        }
        self.write(id).await;
        if let Some(entry) = self.table().sessions.get(id) {
            entry.output.begin();
        }
        let started = options.runner.start(command).await;
        let running = match started {
            Ok(running) => running,
            Err(error) => {
                self.revoke(id);
                let hint = error.hint().map(|hint| format!(". {hint}")).unwrap_or_default();
                return Err(format!("{}{hint}", chain(&error)));
            }
        };
        let pid = running.pid().ok_or("it was cancelled before it could start")?;
        let process = process::of(pid);
        let terminal = source.terminal();
        let recorder = self.record_output(id, &record, source, Some(credential));
        let mut table = self.table();
        let Some(entry) = table.sessions.get_mut(id) else { return Err("the session is gone".to_owned()) };
        (entry.live, entry.recorder) = (Some(Live::Own(Arc::new(running))), Some(recorder));
        (entry.message, entry.terminal) = (None, terminal);
        Ok(process)
    }

    pub(super) fn revoke(&self, id: &str) {
        if let Some(entry) = self.table().sessions.get_mut(id) {
            entry.record.credential = None;
        }
    }

    /// The program, and its arguments with what stands for the prompt.
    fn arguments(
        &self,
        record: &Record,
        message: Option<&str>,
        mode: Mode,
    ) -> Result<(String, Vec<String>), String> {
        let (program, given) = record.command.split_first().ok_or("the session has no command")?;
        let tuned = self.tuned();
        let agent = record.agent.as_deref().and_then(|name| tuned.agents.named(name));
        let mut arguments = given.to_vec();
        let resumed = agent.filter(|agent| mode == Mode::Resume && !agent.resume.is_empty());
        let (form, prompt) = match (resumed, agent) {
            (Some(agent), _) => {
                let by_id = record.agent_session.is_some()
                    || !agent.resume.iter().any(|argument| argument.contains("{agent_session}"));
                let form = if by_id { &agent.resume } else { &agent.resume_last };
                (form.clone(), Some(message.unwrap_or(&agent.resume_prompt)))
            }
            (None, Some(agent)) => (agent.start.clone(), message.or(record.prompt.as_deref())),
            // A script is given its prompt as its last argument, again each time.
            (None, None) => (vec!["{prompt}".to_owned()], message.or(record.prompt.as_deref())),
        };
        if let Some(prompt) = prompt {
            let agent_session = record.agent_session.as_deref().unwrap_or_default();
            let filling = Filling { prompt, session: &record.id, agent_session };
            arguments.extend(filling.fill(&form));
        }
        Ok((program.clone(), arguments))
    }

    /// Waits until its process has ended, finds out why, and decides what is done.
    async fn follow(&self, id: &str, process: Process) {
        let (live, recorder) = {
            let mut table = self.table();
            let Some(entry) = table.sessions.get_mut(id) else { return };
            (entry.live.clone(), entry.recorder.take())
        };
        let ending = match &live {
            Some(Live::Own(running)) => {
                running.finished().await;
                match running.output().and_then(|output| output.status) {
                    Some(ExitStatus::Exited { code }) => Ending { code: Some(code), signal: None },
                    Some(ExitStatus::Signaled { signal, .. }) => Ending { code: None, signal: Some(signal) },
                    _ => Ending::default(),
                }
            }
            Some(Live::Adopted(_)) | None => {
                while process::is_alive(process) {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                process::end_tree(None, id, Duration::ZERO).await;
                Ending::default()
            }
        };
        if let Some(mut recorder) = recorder {
            // Somebody whom nobody may end can hold the pipe for ever.
            if tokio::time::timeout(LAST_OUTPUT, &mut recorder).await.is_err() {
                recorder.abort();
            }
        }
        let (ended_by, lines, record) = {
            let mut table = self.table();
            let Some(entry) = table.sessions.get_mut(id) else { return };
            (entry.live, entry.terminal) = (None, None);
            let lines: Vec<String> =
                entry.output.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
            (entry.ending.take(), lines, entry.record.clone())
        };
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut stop = classify(&self.tuned().agents, record.agent.as_deref(), ending, &lines);
        if let Some(why) = &ended_by {
            stop = Stop { exit_code: stop.exit_code, signal: stop.signal, ..ended(why) };
        }
        for evidence in &mut stop.evidence {
            *evidence = self.0.options.redactor.redact(evidence).into_owned();
        }
        self.read_clock(&mut stop).await;
        self.decide(id, record, stop).await;
    }

    pub(super) async fn decide(&self, id: &str, record: Record, stop: Stop) {
        let now = clock::now();
        let tuned = self.tuned();
        let plan = &tuned.plan;
        let settled = now.saturating_sub(record.started) >= clock::millis(plan.settled);
        let mut past = Past { attempts: if settled { 0 } else { record.attempts }, crashes: record.crashes };
        if stop.reason == Reason::Crash {
            past.crashes.push(now);
            let kept = past.crashes.len().saturating_sub(plan.crash_limit.max(1));
            past.crashes.drain(..kept);
        }
        let decision = plan.decide(&stop, &past, now, chance());
        let because =
            format!("{} ({})", stop.reason.as_str(), stop.evidence.first().map_or("", String::as_str));
        let (next, given_up, reason) = match decision {
            Decision::Do(next) => {
                let reason = format!("{because}; {} at {}", words(next.action), clock::text(next.at));
                (Some(next), None, reason)
            }
            Decision::Nothing => (None, None, because),
            Decision::GiveUp(why) => (None, Some(why.clone()), format!("{because}; {why}")),
        };
        if let Some(entry) = self.table().sessions.get_mut(id) {
            entry.record.credential = None;
            entry.record.last_stop = Some(stop.clone());
            entry.record.attempts = next.as_ref().map_or(0, |next| next.attempt);
            entry.record.crashes = past.crashes;
        }
        if let Err(error) = self.apply(id, Event::Ended { stop, next, given_up }, &reason) {
            self.say(LogLevel::Error, &error.message);
        }
        self.write(id).await;
        self.pause_if_paused(id).await;
    }

    pub(super) async fn pause_if_paused(&self, id: &str) {
        let Ok(record) = self.record_of(id) else { return };
        let waits = matches!(record.state, State::Waiting { .. });
        if waits && self.is_paused(&record) && self.apply(id, Event::Pause, "everything is paused").is_ok() {
            self.write(id).await;
        }
    }

    /// Turns a time on a clock into a time: that of the next such moment in its zone. The rules of zones are the
    /// system's, so its own program is asked; where it does not know, the wait is as if nobody had said a time.
    async fn read_clock(&self, stop: &mut Stop) {
        let Some(retry) = &mut stop.retry else { return };
        let When::Clock { time, zone } = &retry.when else { return };
        let plain = |c: char| c.is_ascii_alphanumeric() || "_/+-".contains(c);
        // One that the system does not know it would take for UTC (tzset(3)).
        let known = |zone: &str| {
            zone.chars().all(plain) && std::path::Path::new("/usr/share/zoneinfo").join(zone).is_file()
        };
        if zone.as_deref().is_some_and(|zone| !known(zone)) {
            stop.retry = None;
            return;
        }
        let mut date = Command::new("date", "/")
            .args(["--date", time, "+%s"])
            .limits(Limits::default().timeout(Duration::from_secs(5)).capture(64));
        if let Some(zone) = zone.as_deref() {
            date = date.env("TZ", zone);
        }
        let told = self.0.options.runner.run(date).await.ok().filter(process_runner::Output::success);
        let seconds = told.and_then(|output| output.stdout_text().trim().parse::<u64>().ok());
        const DAY: u64 = 86_400_000;
        match seconds {
            Some(seconds) => {
                let at = seconds.saturating_mul(1000);
                let at = if at <= clock::now() { at + DAY } else { at };
                (retry.source, retry.when) = (RetrySource::Reset, When::At(at));
            }
            None => stop.retry = None,
        }
    }
}

fn words(action: Action) -> &'static str {
    match action {
        Action::Resume => "resume",
        Action::NewSession => "go on in a new session",
        Action::Restart => "restart",
        Action::Message => "go on with a message",
    }
}
