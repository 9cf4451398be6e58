//! The supervisor with real processes: scripts that print what agents print.
#![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]

use super::*;
use crate::redact::{self, Redactor};
use process_runner::Runner;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// A script that is called like an agent.
    fn agent(&self, name: &str, script: &str) -> Vec<String> {
        let path = self.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        vec![path.display().to_string()]
    }

    fn options(&self) -> Options {
        let redactor = Redactor::new(redact::Options::default()).unwrap();
        let runner = Runner::builder().max_concurrent(1000).build();
        let mut options = Options::new(Owner::Daemon, runner, redactor, Agents::builtin().unwrap());
        options.plan.base = Duration::from_millis(100);
        options.plan.crash_delay = Duration::from_millis(50);
        options.plan.crash_pause = Duration::from_millis(1500);
        options.watched = vec![self.path().to_owned()];
        options
    }

    async fn supervisor(&self) -> Supervisor {
        Supervisor::host(&self.state(), self.options()).await.unwrap()
    }

    fn plan(&self, command: Vec<String>, prompt: Option<&str>) -> NewSession {
        NewSession {
            command: Some(command),
            prompt: prompt.map(str::to_owned),
            role: "worker".to_owned(),
            roles: vec!["worker".to_owned()],
            cwd: self.path().to_owned(),
            ..NewSession::default()
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script, "sh"].map(str::to_owned).to_vec()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn session(supervisor: &Supervisor, id: &str) -> SessionInfo {
    supervisor.list(true).sessions.into_iter().find(|session| session.session_id == id).unwrap()
}

async fn until_state(supervisor: &Supervisor, id: &str, state: &str) -> SessionInfo {
    until(&format!("{id} is {state}"), || session(supervisor, id).state == state).await;
    session(supervisor, id)
}

async fn said(supervisor: &Supervisor, session: Option<&str>) -> String {
    let request = LogRequest {
        lines: 1000,
        since: None,
        level: None,
        session: session.map(str::to_owned),
        cursor: None,
        wait_ms: 0,
    };
    supervisor.logs(&request).await.unwrap().lines.join("\n")
}

const GRACE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_session_is_a_process_that_knows_who_it_is_before_it_runs() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let script = "cat \"$TMPDIR/coretools_role\" \"$TMPDIR/teleclaude_session_id\"; echo $CORETOOLS_SESSION_ID; echo $1; \
                  pwd; echo ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5; sleep 60";
    let started = supervisor.new_session(place.plan(shell(script), Some("do it"))).await.unwrap();
    assert!(process::find(started.pid).is_some(), "it runs when the answer comes");
    assert_eq!((started.role.as_str(), started.owner), ("worker", Owner::Daemon));
    let log = PathBuf::from(&started.log);
    until("it has printed all", || fs::read_to_string(&log).unwrap().contains("redacted")).await;
    let text = fs::read_to_string(&log).unwrap();
    let printed: Vec<&str> = text.lines().skip(1).map(|line| line.split_once(' ').unwrap().1).collect();
    let id = started.session_id.as_str();
    let cwd = place.path().canonicalize().unwrap();
    assert_eq!(printed, ["worker", id, id, "do it", cwd.to_str().unwrap(), "[redacted:github-token]"]);
    let status = supervisor.status();
    assert_eq!((status.state.as_str(), status.current_session.as_deref()), ("monitoring", Some(id)));
    assert_eq!(status.sessions[0].pid, Some(started.pid));
    supervisor.shutdown(GRACE).await;
    assert!(process::find(started.pid).is_none());
    assert_eq!(session(&supervisor, id).last_stop.unwrap().reason, Reason::Ended);
}

#[tokio::test]
async fn what_cannot_start_is_an_error_and_no_session() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    for (new, says) in [
        (place.plan(vec!["no-such-program-at-all".to_owned()], None), "no-such-program-at-all"),
        (NewSession { cwd: "/no/such/folder".into(), ..place.plan(shell("true"), None) }, "/no/such/folder"),
        (place.plan(vec![], None), "no agent to start"),
        (NewSession { command: None, ..place.plan(vec![], None) }, "sessions.command"),
        (
            NewSession { agent: Some("cloud".to_owned()), ..place.plan(vec![], None) },
            "known are claude, codex",
        ),
        (NewSession { role: "x".to_owned(), ..place.plan(shell("true"), None) }, "role"),
    ] {
        let error = supervisor.new_session(new).await.unwrap_err();
        assert!(error.message.contains(says), "{error}");
    }
    assert!(supervisor.list(true).sessions.is_empty());
    let folders = fs::read_dir(place.state().join("sessions")).unwrap().count();
    assert_eq!(folders, 0, "no folder is left behind");
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_and_the_same_session_resumed() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    // As claude does: it says so, with the time, and fails. Resumed, it does its work.
    let agent = place.agent(
        "claude",
        "echo \"$@\" >> args\nif [ \"$1\" = --resume ]; then echo resumed; sleep 0.5; exit 0; fi\n\
         echo working; echo 'API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}'; \
         echo 'retry-after: 2'; exit 1",
    );
    let started = supervisor.new_session(place.plan(agent, Some("build it"))).await.unwrap();
    let id = started.session_id.as_str();
    let waiting = until_state(&supervisor, id, "waiting").await;
    let stop = waiting.last_stop.unwrap();
    assert_eq!((stop.reason, stop.retry_source.as_deref()), (Reason::RateLimit, Some("header")));
    assert!(stop.evidence[0].contains("API Error: 429"), "{stop:?}");
    assert_eq!(waiting.next_action.as_ref().unwrap().action, "resume");
    assert_eq!((supervisor.status().state.as_str(), waiting.pid), ("waiting", None));
    assert_eq!(supervisor.status().next_action, waiting.next_action);
    let over = until_state(&supervisor, id, "stopped").await;
    assert_eq!(over.last_stop.unwrap().reason, Reason::Completed);
    let first = format!("--session-id {id} -p build it");
    assert_eq!(place.read("args"), format!("{first}\n--resume {id} -p Continue where you left off.\n"));
    let stats = supervisor.status().stats;
    assert_eq!((stats.saves_count, stats.total_resumes), (1, 1));
    assert!(stats.time_saved_seconds >= 301 && stats.last_resume.is_some(), "{stats:?}");
    let store = supervisor.transitions_of(id).await;
    let states: Vec<_> = store.iter().map(|transition| transition.to.as_str()).collect();
    assert_eq!(states, ["starting", "running", "waiting", "resuming", "running", "stopped"]);
    assert!(store.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].to == pair[1].from));
    let log = said(&supervisor, None).await;
    assert!(log.contains("running → waiting: rate_limit (it printed: API Error: 429"), "{log}");
}

#[tokio::test]
async fn an_exhausted_context_goes_on_in_a_new_session_with_the_next_step() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let agent = place.agent(
        "codex",
        "echo \"$@\" >> args\ncase \"$2\" in *'step 3'*) sleep 60;; esac\n\
         printf -- '---\\nstepsCompleted: [1, 2]\\nlastStep: 5\\n---\\n' > work.md\n\
         echo 'ERROR: Codex ran out of room in the model'\"'\"'s context window. Start a new thread.'; exit 1",
    );
    let started = supervisor.new_session(place.plan(agent, Some("all of it"))).await.unwrap();
    let old = until_state(&supervisor, &started.session_id, "stopped").await;
    assert_eq!(old.last_stop.unwrap().reason, Reason::ContextExhausted);
    let new = old.replaced_by.unwrap();
    assert_ne!(new, started.session_id);
    assert!(process::find(session(&supervisor, &new).pid.unwrap()).is_some());
    until("it has been told", || place.read("args").lines().count() == 2).await;
    assert!(
        place.read("args").lines().last().unwrap().starts_with("exec Continue with step 3 of the work that ")
    );
    let copies = fs::read_dir(place.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("work-backup-"));
    assert_eq!(copies.count(), 1);
    // Counted once the new one runs.
    until("a new session is saved work", || supervisor.status().stats.saves_count == 1).await;
    assert_eq!(supervisor.status().stats.total_resumes, 0, "none was resumed");
    supervisor.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_crash_is_restarted_a_loop_of_crashes_backs_off_and_the_attempts_end() {
    let place = Place::new();
    let mut options = place.options();
    options.plan.attempts = 4;
    let supervisor = Supervisor::host(&place.state(), options).await.unwrap();
    let script = "date +%s%N >> starts; echo Segmentation fault; kill -SEGV $$";
    let started = supervisor.new_session(place.plan(shell(script), None)).await.unwrap();
    let failed = until_state(&supervisor, &started.session_id, "failed").await;
    assert_eq!(failed.failure.unwrap(), "4 attempts in a row led to nothing; the last end: crash");
    assert_eq!(failed.last_stop.unwrap().evidence[0], "ended by SIGSEGV");
    let starts: Vec<u128> = place.read("starts").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(starts.len(), 5, "the first, and four restarts");
    let gaps: Vec<u128> = starts.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    assert!(gaps[0] < 1500, "{gaps:?}");
    assert!(gaps[2] >= 1500 && gaps[3] >= 1500, "from the third crash on it waits: {gaps:?}");
}

#[tokio::test]
async fn nothing_happens_by_itself_while_everything_is_paused_also_after_a_restart() {
    let place = Place::new();
    let agent = place.agent(
        "claude",
        "[ \"$1\" = --resume ] && { echo again >> resumed; exit 0; }\n\
         echo 'API Error: Repeated 529 Overloaded errors'; echo 'retry-after: 0.3'; exit 1",
    );
    let id = {
        let supervisor = place.supervisor().await;
        assert!(supervisor.pause().await.changed);
        let again = supervisor.pause().await;
        assert!(again.success && !again.changed && again.state == "paused");
        let started = supervisor.new_session(place.plan(agent, Some("x"))).await.unwrap();
        until_state(&supervisor, &started.session_id, "paused").await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(session(&supervisor, &started.session_id).state, "paused");
        supervisor.shutdown(GRACE).await;
        started.session_id
    };
    let supervisor = place.again().await;
    assert_eq!(supervisor.status().state, "paused", "it is remembered");
    assert_eq!(session(&supervisor, &id).state, "paused");
    assert_eq!(place.read("resumed"), "");
    let on = supervisor.resume().await;
    assert!(on.changed && on.state != "paused");
    assert_eq!(supervisor.status().stats.total_resumes, 0, "to go on is no resume of a session");
    until_state(&supervisor, &id, "stopped").await;
    assert_eq!((place.read("resumed").as_str(), supervisor.status().stats.total_resumes), ("again\n", 1));
}

#[tokio::test]
async fn a_wait_can_be_cancelled() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let agent = place.agent("claude", "echo 'Claude AI usage limit reached|4102444800'; exit 1");
    let mut options = place.options();
    options.plan.longest = Duration::MAX;
    let started = supervisor.new_session(place.plan(agent.clone(), Some("x"))).await.unwrap();
    let failed = until_state(&supervisor, &started.session_id, "failed").await;
    assert!(failed.failure.unwrap().contains("the longest wait is 168 h"));
    let agent = place.agent("claude", "echo 'API Error: Repeated 529'; echo 'try again in 2 hours'; exit 1");
    let started = supervisor.new_session(place.plan(agent, Some("x"))).await.unwrap();
    until_state(&supervisor, &started.session_id, "waiting").await;
    let ended = supervisor.end(&started.session_id, GRACE).await.unwrap();
    assert!(ended.changed && ended.state == "stopped" && ended.left.is_empty());
    let again = supervisor.end(&started.session_id, GRACE).await.unwrap();
    assert!(!again.changed);
    assert_eq!(supervisor.end("nothing", GRACE).await.unwrap_err().code, Code::NoSession);
}

#[tokio::test]
async fn a_time_on_a_clock_is_the_next_such_moment_in_its_zone() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let mut waits = Vec::new();
    for zone in ["Asia/Dhaka", "No/Where"] {
        let said = format!("You've hit your session limit · resets 3:30pm ({zone})");
        let agent = place.agent("claude", &format!("echo \"{said}\"; sleep 0.1; exit 1"));
        let started = supervisor.new_session(place.plan(agent, Some("x"))).await.unwrap();
        until("it waits", || session(&supervisor, &started.session_id).last_stop.is_some()).await;
        let waiting = session(&supervisor, &started.session_id);
        waits.push((waiting.next_action.map(|next| next.at), waiting.last_stop.unwrap().retry_source));
        supervisor.end(&started.session_id, GRACE).await.unwrap();
    }
    let zones_are_known = Path::new("/usr/share/zoneinfo/Asia/Dhaka").exists();
    if zones_are_known {
        let (at, source) = &waits[0];
        assert!(at.as_ref().unwrap().contains("T09:30:00"), "half past three in Dhaka: {waits:?}");
        assert_eq!(source.as_deref(), Some("reset"));
    }
    assert_eq!(waits[1].1, None, "a zone that nobody knows says nothing");
}

#[tokio::test]
async fn the_end_of_a_session_is_the_end_of_its_tree() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let script = "trap '' TERM; setsid sleep 200 & (trap '' TERM; sleep 200) & echo ready; sleep 200";
    let started = supervisor.new_session(place.plan(shell(script), None)).await.unwrap();
    let id = started.session_id.as_str();
    until("its tree is there", || process::tree(Some(started.pid), id).len() >= 4).await;
    let ended = supervisor.end(id, Duration::from_millis(200)).await.unwrap();
    assert_eq!((ended.state.as_str(), ended.left.len()), ("stopped", 0));
    assert!(process::tree(Some(started.pid), id).is_empty());
    // And what a process leaves behind that ends by itself.
    let started =
        supervisor.new_session(place.plan(shell("setsid sleep 200 & echo bye"), None)).await.unwrap();
    until_state(&supervisor, &started.session_id, "stopped").await;
    assert!(process::tree(None, &started.session_id).is_empty());
}

#[tokio::test]
async fn a_message_reaches_a_session_that_reads_and_resumes_one_that_is_over() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let script = "while read line; do echo \"heard $line\"; done";
    let reader = supervisor.new_session(place.plan(shell(script), None)).await.unwrap();
    let sent = supervisor.send(&reader.session_id, "hello there").await.unwrap();
    assert_eq!((sent.delivered.as_str(), sent.pid), ("input", reader.pid));
    let log = PathBuf::from(&reader.log);
    until("it has heard", || fs::read_to_string(&log).unwrap().contains("heard hello there")).await;
    supervisor.end(&reader.session_id, GRACE).await.unwrap();
    let refused = supervisor.send(&reader.session_id, "still there?").await.unwrap_err();
    assert!(refused.message.contains("cannot be resumed"), "{refused}");

    let agent = place.agent(
        "codex",
        "echo \"$@\" >> args; echo 'session id: 019c2470-729c-7dc1-b60a-365dad515395'; sleep 0.3; exit 0",
    );
    let worker = supervisor.new_session(place.plan(agent, Some("first"))).await.unwrap();
    let busy = supervisor.send(&worker.session_id, "quick").await.unwrap_err();
    assert!(busy.message.contains("works on its prompt"), "{busy}");
    until_state(&supervisor, &worker.session_id, "stopped").await;
    let sent = supervisor.send(&worker.session_id, "second").await.unwrap();
    assert_eq!(sent.delivered, "resume");
    until_state(&supervisor, &worker.session_id, "stopped").await;
    assert_eq!(place.read("args"), "exec first\nexec resume 019c2470-729c-7dc1-b60a-365dad515395 second\n");
    assert_eq!(supervisor.status().stats.saves_count, 0, "somebody asked for it");
}

#[tokio::test]
async fn a_session_with_a_terminal_sees_one_is_typed_to_and_hung_up() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three; tty; stty size; \
                  (: < /dev/tty) && echo it controls; printf '\\033[31mred\\033[0m\\n'; \
                  read line; echo \"heard $line\"; sleep 60";
    let new = NewSession { pty: Some(true), ..place.plan(shell(script), None) };
    let started = supervisor.new_session(new).await.unwrap();
    let id = started.session_id.as_str();
    let said = || fs::read_to_string(&started.log).unwrap();
    until("it has looked", || said().contains("red")).await;
    assert!(
        said().contains("all three") && said().contains("/dev/pts/") && said().contains("40 120"),
        "{}",
        said()
    );
    assert!(said().contains("it controls"), "{}", said());
    let sent = supervisor.send(id, "hello there").await.unwrap();
    assert_eq!((sent.delivered.as_str(), sent.pid), ("input", started.pid));
    until("it has heard", || said().contains("heard hello there")).await;
    let ended = supervisor.end(id, Duration::from_millis(200)).await.unwrap();
    assert!(ended.state == "stopped" && ended.left.is_empty());
    assert!(process::tree(Some(started.pid), id).is_empty());
    // Why one stopped is told from its words, without what paints them.
    let script = "printf '\\033[31mAPI Error: Repeated 529 Overloaded errors\\033[0m\\r\\n'; exit 1";
    let agent = place.agent("claude", script);
    let new = NewSession { pty: Some(true), ..place.plan(agent, Some("x")) };
    let started = supervisor.new_session(new).await.unwrap();
    until("it has an end", || session(&supervisor, &started.session_id).last_stop.is_some()).await;
    let stop = session(&supervisor, &started.session_id).last_stop.unwrap();
    assert_eq!(
        (stop.reason, stop.evidence[0].as_str()),
        (Reason::RateLimit, "it printed: API Error: Repeated 529 Overloaded errors")
    );
    supervisor.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_credential_is_good_while_its_session_runs() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let script = "echo $CORETOOLS_SESSION_TOKEN > token; env; echo done; sleep 60";
    let mut new = place.plan(shell(script), None);
    new.roles = vec!["orchestrator".to_owned(), "worker".to_owned()];
    let started = supervisor.new_session(new).await.unwrap();
    until("it has written", || place.read("token").len() > 60).await;
    let token = place.read("token").trim().to_owned();
    let identity = supervisor.identify(&token).unwrap();
    assert_eq!((identity.session_id.as_str(), identity.roles.len()), (started.session_id.as_str(), 2));
    assert_eq!(supervisor.identify(&format!("{token}0")).unwrap_err().code, Code::Refused);
    assert!(!said(&supervisor, None).await.contains(&token));
    let log = PathBuf::from(&started.log);
    until("it has said all", || fs::read_to_string(&log).unwrap().ends_with("done\n")).await;
    assert!(!fs::read_to_string(&log).unwrap().contains(&token), "also where the agent prints it");
    supervisor.end(&started.session_id, GRACE).await.unwrap();
    assert_eq!(supervisor.identify(&token).unwrap_err().code, Code::Refused);
    let database = fs::read(place.state().join("sessions.db")).unwrap();
    assert!(
        !database.windows(20).any(|window| window == &token.as_bytes()[..20]),
        "what is kept is no credential"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sessions_run_at_once_and_all_end() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let mut starting = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (supervisor, new) =
            (supervisor.clone(), place.plan(shell(&format!("echo I am {number}; sleep 300")), None));
        starting.spawn(async move { (number, supervisor.new_session(new).await.unwrap()) });
    }
    let started = starting.join_all().await;
    let pids: std::collections::BTreeSet<u32> = started.iter().map(|(_, started)| started.pid).collect();
    assert_eq!(pids.len(), 200);
    assert!(pids.iter().all(|pid| process::find(*pid).is_some()));
    for (number, session) in &started {
        until("it has said who it is", || {
            fs::read_to_string(&session.log).unwrap().contains(&format!("I am {number}\n"))
        })
        .await;
    }
    assert_eq!(supervisor.status().sessions.len(), 200);
    supervisor.shutdown(Duration::from_secs(2)).await;
    assert!(pids.iter().all(|pid| process::find(*pid).is_none()));
    assert!(supervisor.list(true).sessions.iter().all(|session| session.state == "stopped"));
}

#[tokio::test]
async fn one_supervisor_answers_all_who_ask_by_its_socket() {
    let place = Place::new();
    let client = Client::new(place.state());
    assert_eq!(client.ask(&Request::Status {}).await.unwrap_err().code, Code::NotRunning);
    let supervisor = place.supervisor().await;
    let second = Supervisor::host(&place.state(), place.options()).await.unwrap_err();
    assert!(second.message.contains("supervises there already"), "{second}");
    let mode = fs::metadata(place.state().join("socket")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let started = client.ask(&Request::New(Box::new(place.plan(shell("sleep 60"), None)))).await.unwrap();
    let id = started["session_id"].as_str().unwrap();
    assert_eq!(session(&supervisor, id).state, "running");
    let switched = client.ask(&Request::Pause {}).await.unwrap();
    assert_eq!((switched["changed"].clone(), supervisor.status().state.as_str()), (true.into(), "paused"));
    // Another way to the same, which does not start a rival.
    let made = place.options();
    let sessions = Sessions::new(place.state(), move || Ok(made.clone()));
    let status = sessions.ask(Request::Status {}).await.unwrap();
    assert_eq!((status["state"].as_str(), sessions.are_own().await), (Some("paused"), false));
    let ended = sessions.ask(Request::End { session_id: id.to_owned(), grace_ms: 100 }).await.unwrap();
    assert_eq!(ended["state"], "stopped");
    supervisor.close();
    supervisor.shutdown(GRACE).await;
}

#[tokio::test]
async fn the_protocol_answers_what_it_does_not_understand() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let place = Place::new();
    let _supervisor = place.supervisor().await;
    let lines = async |sent: &str| {
        let stream = tokio::net::UnixStream::connect(place.state().join("socket")).await.unwrap();
        let (reader, mut writer) = stream.into_split();
        writer.write_all(sent.as_bytes()).await.unwrap();
        writer.shutdown().await.unwrap();
        let mut lines = BufReader::new(reader).lines();
        let mut all = Vec::new();
        while let Ok(Some(line)) = lines.next_line().await {
            all.push(line);
        }
        all
    };
    let hello = r#"{"coretools_sessions":1}"#;
    let answers =
        lines(&format!("{hello}\n{{\"op\":\"dance\"}}\nno json\n{{\"op\":\"pause\",\"x\":1}}\n")).await;
    assert_eq!(answers[0], hello);
    assert!(answers[1].contains("invalid") && answers[1].contains("dance"), "{answers:?}");
    assert!(answers[2].contains("invalid") && answers[3].contains("invalid"), "{answers:?}");
    let other = lines("{\"coretools_sessions\":2}\n{\"op\":\"status\"}\n").await;
    assert!(other.len() == 2 && other[1].contains("speaks version 1"), "{other:?}");
    assert_eq!(lines("").await, [""; 0]);
}

#[tokio::test]
async fn an_agent_that_goes_to_the_socket_itself_gets_no_more_than_its_session_has() {
    let place = Place::new();
    let supervisor = place.supervisor().await;
    let mut worker = place.plan(shell("sleep 60"), None);
    worker.roles = vec!["orchestrator".to_owned(), "worker".to_owned()];
    let worker = supervisor.new_session(worker).await.unwrap();
    let other = supervisor.new_session(place.plan(shell("sleep 60"), None)).await.unwrap();
    let as_worker = supervisor.asker(Some(worker.pid), None).unwrap();
    for request in [
        Request::Pause {},
        Request::Resume {},
        Request::New(Box::new(place.plan(shell("sleep 60"), None))),
        Request::Send { session_id: other.session_id.clone(), text: "x".to_owned() },
        Request::End { session_id: other.session_id.clone(), grace_ms: 0 },
        Request::Logs(LogRequest {
            lines: 5,
            since: None,
            level: None,
            session: Some(other.session_id.clone()),
            cursor: None,
            wait_ms: 0,
        }),
    ] {
        let refused = supervisor.answer(request.clone(), &as_worker).await.unwrap_err();
        assert_eq!(refused.code, Code::Refused, "{request:?}");
    }
    assert!(supervisor.answer(Request::Status {}, &as_worker).await.is_ok());
    // One that may steer others cannot give more than it has.
    let mut lead = place.plan(shell("sleep 60"), None);
    (lead.role, lead.roles, lead.orchestrates) = ("lead".to_owned(), vec!["lead".to_owned()], true);
    let lead = supervisor.new_session(lead).await.unwrap();
    let mut wish = place.plan(shell("sleep 60"), None);
    (wish.role, wish.roles, wish.orchestrates) =
        ("orchestrator".to_owned(), vec!["orchestrator".to_owned()], true);
    let as_lead = supervisor.asker(Some(lead.pid), None).unwrap();
    let child = supervisor.answer(Request::New(Box::new(wish)), &as_lead).await.unwrap();
    let record = supervisor.record_of(child["session_id"].as_str().unwrap()).unwrap();
    assert_eq!(
        (record.roles, record.parent),
        (vec!["orchestrator".to_owned(), "lead".to_owned()], Some(lead.session_id))
    );
    supervisor.shutdown(GRACE).await;
}

impl Place {
    /// A supervisor after the one before is gone.
    async fn again(&self) -> Supervisor {
        let started = Instant::now();
        loop {
            match Supervisor::host(&self.state(), self.options()).await {
                Ok(supervisor) => return supervisor,
                Err(error) => assert!(started.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
