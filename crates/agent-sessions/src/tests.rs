//! The supervisor with real processes: scripts that print what agents print.
#![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]

use super::*;
use process_runner::Runner;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time that anything may take on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(60);

struct SupervisorFixture {
    folder: tempfile::TempDir,
}

impl SupervisorFixture {
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

    fn options(&self) -> SupervisorOptions {
        let mut options = SupervisorOptions::new(SupervisorHostKind::Daemon).unwrap();
        options.runner = Runner::builder().max_concurrent(1000).build();
        options.restart.backoff_base = Duration::from_millis(100);
        options.restart.crash_delay = Duration::from_millis(50);
        options.restart.crash_loop_delay = Duration::from_millis(1500);
        options.watched_folders = vec![self.path().to_owned()];
        options
    }

    async fn supervisor(&self) -> Supervisor {
        Supervisor::host(&self.state(), self.options()).await.unwrap()
    }

    fn session(&self, command: Vec<String>, prompt: Option<&str>) -> NewSession {
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

async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn session_info(supervisor: &Supervisor, id: &str) -> SessionInfo {
    supervisor.list(true).sessions.into_iter().find(|session| session.session_id == id).unwrap()
}

async fn wait_for_state(supervisor: &Supervisor, id: &str, state: &str) -> SessionInfo {
    wait_until(&format!("{id} is {state}"), || session_info(supervisor, id).state.as_str() == state).await;
    session_info(supervisor, id)
}

async fn log_text(supervisor: &Supervisor, session: Option<&str>) -> String {
    let request = SessionLogRequest {
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
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let script = "cat \"$TMPDIR/coretools_role\" \"$TMPDIR/teleclaude_session_id\"; echo $CORETOOLS_SESSION_ID; echo $1; \
                  pwd; echo ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5; sleep 60";
    let started = supervisor.new_session(fixture.session(shell(script), Some("do it"))).await.unwrap();
    assert!(process_table::find(started.pid).is_some(), "it runs when the answer comes");
    assert_eq!((started.role.as_str(), started.owner), ("worker", SupervisorHostKind::Daemon));
    let log = PathBuf::from(&started.log);
    wait_until("it has printed all", || fs::read_to_string(&log).unwrap().contains("redacted")).await;
    let text = fs::read_to_string(&log).unwrap();
    let printed: Vec<&str> = text.lines().skip(1).map(|line| line.split_once(' ').unwrap().1).collect();
    let id = started.session_id.as_str();
    let cwd = fixture.path().canonicalize().unwrap();
    assert_eq!(printed, ["worker", id, id, "do it", cwd.to_str().unwrap(), "[redacted:github-token]"]);
    let status = supervisor.status();
    assert_eq!((status.state.as_str(), status.current_session.as_deref()), ("monitoring", Some(id)));
    assert_eq!(status.sessions[0].pid, Some(started.pid));
    supervisor.shutdown(GRACE).await;
    assert!(process_table::find(started.pid).is_none());
    assert_eq!(session_info(&supervisor, id).last_stop.unwrap().reason, SessionStopCause::Ended);
}

#[tokio::test]
async fn what_cannot_start_is_an_error_and_no_session() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    for (new, says) in [
        (fixture.session(vec!["no-such-program-at-all".to_owned()], None), "no-such-program-at-all"),
        (
            NewSession { cwd: "/no/such/folder".into(), ..fixture.session(shell("true"), None) },
            "/no/such/folder",
        ),
        (fixture.session(vec![], None), "no agent to start"),
        (NewSession { command: None, ..fixture.session(vec![], None) }, "sessions.command"),
        (
            NewSession { agent: Some("cloud".to_owned()), ..fixture.session(vec![], None) },
            "known are claude, codex",
        ),
        (NewSession { role: "x".to_owned(), ..fixture.session(shell("true"), None) }, "role"),
    ] {
        let error = supervisor.new_session(new).await.unwrap_err();
        assert!(error.message.contains(says), "{error}");
    }
    assert!(supervisor.list(true).sessions.is_empty());
    let folders = fs::read_dir(fixture.state().join("sessions")).unwrap().count();
    assert_eq!(folders, 0, "no folder is left behind");
}

#[tokio::test]
async fn an_agent_that_needs_a_login_or_trust_is_stopped_and_not_started_again() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    // As these programs say it without an account: Claude Code 2.1.197, Codex 0.169.0, Gemini CLI 0.61.0.
    for (name, script, words) in [
        ("claude", "echo 'Not logged in · Please run /login'; exit 1", "Not logged in"),
        (
            "codex",
            "echo 'Reading additional input from stdin...' >&2; \
             echo 'Not inside a trusted directory and --skip-git-repo-check was not specified.' >&2; exit 1",
            "Not inside a trusted directory",
        ),
        (
            "gemini",
            "echo 'Please set an Auth method in your settings' >&2; exit 41",
            "Please set an Auth method",
        ),
        ("gemini", "echo 'in the words of a later version'; exit 41", "in the words of a later version"),
    ] {
        let agent = fixture.agent(name, &format!("echo started >> started-{name}\n{script}"));
        let started = supervisor.new_session(fixture.session(agent, Some("build it"))).await.unwrap();
        let over = wait_for_state(&supervisor, &started.session_id, "stopped").await;
        let stop = over.last_stop.unwrap();
        assert_eq!(stop.reason, SessionStopCause::NeedsAttention, "{name}: {stop:?}");
        assert!(stop.evidence.iter().any(|seen| seen.contains(words)), "{name}: {stop:?}");
        assert_eq!(over.next_action, None, "{name}");
        assert_eq!(fixture.read(&format!("started-{name}")), "started\n", "{name}");
        fs::remove_file(fixture.folder.path().join(format!("started-{name}"))).unwrap();
    }
}

#[tokio::test]
async fn the_quota_of_gemini_is_waited_for() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let agent = fixture.agent(
        "gemini",
        "echo '[API Error: You have exhausted your capacity on this model. Your quota will reset after 3h12m5s.]' >&2; \
         exit 1",
    );
    let started = supervisor.new_session(fixture.session(agent, Some("build it"))).await.unwrap();
    let waiting = wait_for_state(&supervisor, &started.session_id, "waiting").await;
    let stop = waiting.last_stop.unwrap();
    assert_eq!(
        (stop.reason, stop.retry_source),
        (SessionStopCause::RateLimit, Some(AgentRetrySource::Words)),
        "{stop:?}"
    );
    assert_eq!(waiting.next_action.unwrap().action, SessionAction::Resume);
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_and_the_same_session_resumed() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    // As claude does: it says so, with the time, and fails. Resumed, it does its work.
    let agent = fixture.agent(
        "claude",
        "echo \"$@\" >> args\nif [ \"$1\" = --resume ]; then echo resumed; sleep 0.5; exit 0; fi\n\
         echo working; echo 'API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}'; \
         echo 'retry-after: 2'; exit 1",
    );
    let started = supervisor.new_session(fixture.session(agent, Some("build it"))).await.unwrap();
    let id = started.session_id.as_str();
    let waiting = wait_for_state(&supervisor, id, "waiting").await;
    let stop = waiting.last_stop.unwrap();
    assert_eq!(
        (stop.reason, stop.retry_source),
        (SessionStopCause::RateLimit, Some(AgentRetrySource::Header))
    );
    assert!(stop.evidence[0].contains("API Error: 429"), "{stop:?}");
    assert_eq!(waiting.next_action.as_ref().unwrap().action, SessionAction::Resume);
    assert_eq!((supervisor.status().state.as_str(), waiting.pid), ("waiting", None));
    assert_eq!(supervisor.status().next_action, waiting.next_action);
    let over = wait_for_state(&supervisor, id, "stopped").await;
    assert_eq!(over.last_stop.unwrap().reason, SessionStopCause::Completed);
    let first = format!("--session-id {id} -p build it");
    assert_eq!(fixture.read("args"), format!("{first}\n--resume {id} -p Continue where you left off.\n"));
    let stats = supervisor.status().stats;
    assert_eq!((stats.saves_count, stats.total_resumes), (1, 1));
    assert!(stats.time_saved_seconds >= 301 && stats.last_resume.is_some(), "{stats:?}");
    let store = supervisor.transitions_of(id).await;
    let states: Vec<_> = store.iter().map(|transition| transition.to.as_str()).collect();
    assert_eq!(states, ["starting", "running", "waiting", "resuming", "running", "stopped"]);
    assert!(store.windows(2).all(|pair| pair[0].at <= pair[1].at && Some(pair[0].to) == pair[1].from));
    let log = log_text(&supervisor, None).await;
    assert!(log.contains("running → waiting: rate_limit (it printed: API Error: 429"), "{log}");
}

#[tokio::test]
async fn an_exhausted_context_goes_on_in_a_new_session_with_the_next_step() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let agent = fixture.agent(
        "codex",
        "echo \"$@\" >> args\ncase \"$2\" in *'step 3'*) sleep 60;; esac\n\
         printf -- '---\\nstepsCompleted: [1, 2]\\nlastStep: 5\\n---\\n' > work.md\n\
         echo 'ERROR: Codex ran out of room in the model'\"'\"'s context window. Start a new thread.'; exit 1",
    );
    let started = supervisor.new_session(fixture.session(agent, Some("all of it"))).await.unwrap();
    let old = wait_for_state(&supervisor, &started.session_id, "stopped").await;
    assert_eq!(old.last_stop.unwrap().reason, SessionStopCause::ContextExhausted);
    let new = old.replaced_by.unwrap();
    assert_ne!(new, started.session_id);
    assert!(process_table::find(session_info(&supervisor, &new).pid.unwrap()).is_some());
    wait_until("it has been told", || fixture.read("args").lines().count() == 2).await;
    assert!(
        fixture
            .read("args")
            .lines()
            .last()
            .unwrap()
            .starts_with("exec Continue with step 3 of the work that ")
    );
    let copies = fs::read_dir(fixture.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("work-backup-"));
    assert_eq!(copies.count(), 1);
    // Counted once the new one runs.
    wait_until("a new session is saved work", || supervisor.status().stats.saves_count == 1).await;
    assert_eq!(supervisor.status().stats.total_resumes, 0, "none was resumed");
    supervisor.shutdown(GRACE).await;
}

#[tokio::test]
async fn an_agent_that_crashed_goes_on_in_its_conversation_or_begins_it() {
    // As claude does: a conversation of this id is begun once, and resumed only if it was begun.
    let claude = |before: &str| {
        format!(
            "echo \"$1\" >> modes\nif [ ! -e crashed ]; then touch crashed; {before} exit 1; fi\n\
             if [ \"$1\" = --resume ]; then [ -e begun ] || {{ echo 'No conversation found'; exit 1; }}; exit 0; fi\n\
             [ -e begun ] && {{ echo 'Error: Session ID is already in use.'; exit 1; }}\ntouch begun; exit 0"
        )
    };
    for (before, modes) in
        [("touch begun;", "--session-id\n--resume\n"), ("", "--session-id\n--resume\n--session-id\n")]
    {
        let fixture = SupervisorFixture::new();
        let supervisor = fixture.supervisor().await;
        let agent = fixture.agent("claude", &claude(before));
        let started = supervisor.new_session(fixture.session(agent, Some("build it"))).await.unwrap();
        let over = wait_for_state(&supervisor, &started.session_id, "stopped").await;
        assert_eq!(over.last_stop.unwrap().reason, SessionStopCause::Completed);
        assert_eq!(fixture.read("modes"), modes);
    }
}

#[tokio::test]
async fn a_crash_is_restarted_a_loop_of_crashes_backs_off_and_the_attempts_end() {
    let fixture = SupervisorFixture::new();
    let mut options = fixture.options();
    options.restart.max_attempts = 4;
    let supervisor = Supervisor::host(&fixture.state(), options).await.unwrap();
    let script = "date +%s%N >> starts; echo Segmentation fault; kill -SEGV $$";
    let started = supervisor.new_session(fixture.session(shell(script), None)).await.unwrap();
    let failed = wait_for_state(&supervisor, &started.session_id, "failed").await;
    assert_eq!(failed.failure.unwrap(), "4 attempts in a row led to nothing; the last end: crash");
    assert_eq!(failed.last_stop.unwrap().evidence[0], "ended by SIGSEGV");
    let starts: Vec<u128> = fixture.read("starts").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(starts.len(), 5, "the first, and four restarts");
    let gaps: Vec<u128> = starts.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    assert!(gaps[0] < 1500, "{gaps:?}");
    assert!(gaps[2] >= 1500 && gaps[3] >= 1500, "from the third crash on it waits: {gaps:?}");
}

#[tokio::test]
async fn nothing_happens_by_itself_while_everything_is_paused_also_after_a_restart() {
    let fixture = SupervisorFixture::new();
    let agent = fixture.agent(
        "claude",
        "[ \"$1\" = --resume ] && { echo again >> resumed; exit 0; }\n\
         echo 'API Error: Repeated 529 Overloaded errors'; echo 'retry-after: 0.3'; exit 1",
    );
    let id = {
        let supervisor = fixture.supervisor().await;
        assert!(supervisor.pause().await.changed);
        let again = supervisor.pause().await;
        assert!(again.success && !again.changed && again.state == SupervisorActivity::Paused);
        let started = supervisor.new_session(fixture.session(agent, Some("x"))).await.unwrap();
        wait_for_state(&supervisor, &started.session_id, "paused").await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(session_info(&supervisor, &started.session_id).state, SessionStateKind::Paused);
        supervisor.shutdown(GRACE).await;
        started.session_id
    };
    let supervisor = fixture.next_supervisor().await;
    assert_eq!(supervisor.status().state, SupervisorActivity::Paused, "it is remembered");
    assert_eq!(session_info(&supervisor, &id).state, SessionStateKind::Paused);
    assert_eq!(fixture.read("resumed"), "");
    let on = supervisor.resume().await;
    assert!(on.changed && on.state != SupervisorActivity::Paused);
    assert_eq!(supervisor.status().stats.total_resumes, 0, "to go on is no resume of a session");
    wait_for_state(&supervisor, &id, "stopped").await;
    assert_eq!((fixture.read("resumed").as_str(), supervisor.status().stats.total_resumes), ("again\n", 1));
}

#[tokio::test]
async fn a_supervisor_that_is_dropped_leaves_what_waits_to_the_next() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let agent =
        fixture.agent("claude", "echo 'API Error: Repeated 529'; echo 'try again in 2 hours'; exit 1");
    let started = supervisor.new_session(fixture.session(agent, Some("x"))).await.unwrap();
    let waiting = wait_for_state(&supervisor, &started.session_id, "waiting").await;
    drop(supervisor);
    // Its lock is free once no actor holds its context.
    let supervisor = fixture.next_supervisor().await;
    assert_eq!(session_info(&supervisor, &started.session_id), waiting);
}

#[tokio::test]
async fn whoever_asked_for_the_end_of_a_session_is_answered_also_where_several_did() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let started =
        supervisor.new_session(fixture.session(shell("trap '' TERM; sleep 60"), None)).await.unwrap();
    let end = || supervisor.end(&started.session_id, GRACE);
    let (first, second) = tokio::join!(end(), end());
    assert_eq!(first.unwrap(), second.unwrap());
    assert!(process_table::find(started.pid).is_none());
    assert!(!end().await.unwrap().changed, "it was over before");
}

#[tokio::test]
async fn a_wait_can_be_cancelled() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let agent = fixture.agent("claude", "echo 'Claude AI usage limit reached|4102444800'; exit 1");
    let mut options = fixture.options();
    options.restart.max_wait = Duration::MAX;
    let started = supervisor.new_session(fixture.session(agent.clone(), Some("x"))).await.unwrap();
    let failed = wait_for_state(&supervisor, &started.session_id, "failed").await;
    assert!(failed.failure.unwrap().contains("the longest wait is 168 h"));
    let agent =
        fixture.agent("claude", "echo 'API Error: Repeated 529'; echo 'try again in 2 hours'; exit 1");
    let started = supervisor.new_session(fixture.session(agent, Some("x"))).await.unwrap();
    wait_for_state(&supervisor, &started.session_id, "waiting").await;
    let ended = supervisor.end(&started.session_id, GRACE).await.unwrap();
    assert!(ended.changed && ended.state == SessionStateKind::Stopped && ended.left.is_empty());
    let again = supervisor.end(&started.session_id, GRACE).await.unwrap();
    assert!(!again.changed);
    assert_eq!(supervisor.end("nothing", GRACE).await.unwrap_err().code, ErrorCode::NoSession);
}

#[tokio::test]
async fn a_time_on_a_clock_is_the_next_such_moment_in_its_zone() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let mut waits = Vec::new();
    for zone in ["Asia/Dhaka", "No/Where"] {
        let said = format!("You've hit your session limit · resets 3:30pm ({zone})");
        let agent = fixture.agent("claude", &format!("echo \"{said}\"; sleep 0.1; exit 1"));
        let started = supervisor.new_session(fixture.session(agent, Some("x"))).await.unwrap();
        wait_until("it waits", || session_info(&supervisor, &started.session_id).last_stop.is_some()).await;
        let waiting = session_info(&supervisor, &started.session_id);
        waits.push((waiting.next_action.map(|next| next.at), waiting.last_stop.unwrap().retry_source));
        supervisor.end(&started.session_id, GRACE).await.unwrap();
    }
    let zones_are_known = Path::new("/usr/share/zoneinfo/Asia/Dhaka").exists();
    if zones_are_known {
        let (at, source) = &waits[0];
        assert!(at.as_ref().unwrap().contains("T09:30:00"), "half past three in Dhaka: {waits:?}");
        assert_eq!(*source, Some(AgentRetrySource::Reset));
    }
    assert_eq!(waits[1].1, None, "a zone that nobody knows says nothing");
}

#[tokio::test]
async fn the_end_of_a_session_is_the_end_of_its_tree() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let script = "trap '' TERM; setsid sleep 200 & (trap '' TERM; sleep 200) & echo ready; sleep 200";
    let started = supervisor.new_session(fixture.session(shell(script), None)).await.unwrap();
    let id = started.session_id.as_str();
    wait_until("its tree is there", || process_table::tree(Some(started.pid), id).len() >= 4).await;
    let ended = supervisor.end(id, Duration::from_millis(200)).await.unwrap();
    assert_eq!((ended.state.as_str(), ended.left.len()), ("stopped", 0));
    assert!(process_table::tree(Some(started.pid), id).is_empty());
    // And what a process leaves behind that ends by itself.
    let started =
        supervisor.new_session(fixture.session(shell("setsid sleep 200 & echo bye"), None)).await.unwrap();
    wait_for_state(&supervisor, &started.session_id, "stopped").await;
    assert!(process_table::tree(None, &started.session_id).is_empty());
}

#[tokio::test]
async fn a_message_reaches_a_session_that_reads_and_resumes_one_that_is_over() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let script = "while read line; do echo \"heard $line\"; done";
    let reader = supervisor.new_session(fixture.session(shell(script), None)).await.unwrap();
    let sent = supervisor.send(&reader.session_id, "hello there").await.unwrap();
    assert_eq!((sent.delivered.as_str(), sent.pid), ("input", reader.pid));
    let log = PathBuf::from(&reader.log);
    wait_until("it has heard", || fs::read_to_string(&log).unwrap().contains("heard hello there")).await;
    supervisor.end(&reader.session_id, GRACE).await.unwrap();
    let refused = supervisor.send(&reader.session_id, "still there?").await.unwrap_err();
    assert!(refused.message.contains("cannot be resumed"), "{refused}");

    let agent = fixture.agent(
        "codex",
        "echo \"$@\" >> args; echo 'session id: 019c2470-729c-7dc1-b60a-365dad515395'; sleep 0.3; exit 0",
    );
    let worker = supervisor.new_session(fixture.session(agent, Some("first"))).await.unwrap();
    let busy = supervisor.send(&worker.session_id, "quick").await.unwrap_err();
    assert!(busy.message.contains("works on its prompt"), "{busy}");
    wait_for_state(&supervisor, &worker.session_id, "stopped").await;
    let sent = supervisor.send(&worker.session_id, "second").await.unwrap();
    assert_eq!(sent.delivered, MessageDeliveryMethod::Resume);
    wait_for_state(&supervisor, &worker.session_id, "stopped").await;
    assert_eq!(fixture.read("args"), "exec first\nexec resume 019c2470-729c-7dc1-b60a-365dad515395 second\n");
    assert_eq!(supervisor.status().stats.saves_count, 0, "somebody asked for it");
}

#[tokio::test]
async fn a_session_with_a_terminal_sees_one_is_typed_to_and_hung_up() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three; tty; stty size; \
                  (: < /dev/tty) && echo it controls; printf '\\033[31mred\\033[0m\\n'; \
                  read line; echo \"heard $line\"; sleep 60";
    let new = NewSession { pty: Some(true), ..fixture.session(shell(script), None) };
    let started = supervisor.new_session(new).await.unwrap();
    let id = started.session_id.as_str();
    let said = || fs::read_to_string(&started.log).unwrap();
    wait_until("it has looked", || said().contains("red")).await;
    assert!(
        said().contains("all three") && said().contains("/dev/pts/") && said().contains("40 120"),
        "{}",
        said()
    );
    assert!(said().contains("it controls"), "{}", said());
    let sent = supervisor.send(id, "hello there").await.unwrap();
    assert_eq!((sent.delivered.as_str(), sent.pid), ("input", started.pid));
    wait_until("it has heard", || said().contains("heard hello there")).await;
    let ended = supervisor.end(id, Duration::from_millis(200)).await.unwrap();
    assert!(ended.state == SessionStateKind::Stopped && ended.left.is_empty());
    assert!(process_table::tree(Some(started.pid), id).is_empty());
    // Why one stopped is told from its words, without what paints them.
    let script = "printf '\\033[31mAPI Error: Repeated 529 Overloaded errors\\033[0m\\r\\n'; exit 1";
    let agent = fixture.agent("claude", script);
    let new = NewSession { pty: Some(true), ..fixture.session(agent, Some("x")) };
    let started = supervisor.new_session(new).await.unwrap();
    wait_until("it has an end", || session_info(&supervisor, &started.session_id).last_stop.is_some()).await;
    let stop = session_info(&supervisor, &started.session_id).last_stop.unwrap();
    assert_eq!(
        (stop.reason, stop.evidence[0].as_str()),
        (SessionStopCause::RateLimit, "it printed: API Error: Repeated 529 Overloaded errors")
    );
    supervisor.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_credential_is_good_while_its_session_runs() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let script = "echo $CORETOOLS_SESSION_TOKEN > token; env; echo done; sleep 60";
    let mut new = fixture.session(shell(script), None);
    new.roles = vec!["orchestrator".to_owned(), "worker".to_owned()];
    let started = supervisor.new_session(new).await.unwrap();
    wait_until("it has written", || fixture.read("token").len() > 60).await;
    let token = fixture.read("token").trim().to_owned();
    let identity = supervisor.identify(&token).unwrap();
    assert_eq!((identity.session_id.as_str(), identity.roles.len()), (started.session_id.as_str(), 2));
    assert_eq!(supervisor.identify(&format!("{token}0")).unwrap_err().code, ErrorCode::Refused);
    assert!(!log_text(&supervisor, None).await.contains(&token));
    let log = PathBuf::from(&started.log);
    wait_until("it has said all", || fs::read_to_string(&log).unwrap().ends_with("done\n")).await;
    assert!(!fs::read_to_string(&log).unwrap().contains(&token), "also where the agent prints it");
    supervisor.end(&started.session_id, GRACE).await.unwrap();
    assert_eq!(supervisor.identify(&token).unwrap_err().code, ErrorCode::Refused);
    let database = fs::read(fixture.state().join("sessions.db")).unwrap();
    assert!(
        !database.windows(20).any(|window| window == &token.as_bytes()[..20]),
        "what is kept is no credential"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sessions_run_at_once_and_all_end() {
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let mut starting = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (supervisor, new) =
            (supervisor.clone(), fixture.session(shell(&format!("echo I am {number}; sleep 300")), None));
        starting.spawn(async move { (number, supervisor.new_session(new).await.unwrap()) });
    }
    let started = starting.join_all().await;
    let pids: std::collections::BTreeSet<u32> = started.iter().map(|(_, started)| started.pid).collect();
    assert_eq!(pids.len(), 200);
    assert!(pids.iter().all(|pid| process_table::find(*pid).is_some()));
    for (number, session) in &started {
        wait_until("it has said who it is", || {
            fs::read_to_string(&session.log).unwrap().contains(&format!("I am {number}\n"))
        })
        .await;
    }
    assert_eq!(supervisor.status().sessions.len(), 200);
    supervisor.shutdown(Duration::from_secs(2)).await;
    assert!(pids.iter().all(|pid| process_table::find(*pid).is_none()));
    assert!(supervisor.list(true).sessions.iter().all(|session| session.state == SessionStateKind::Stopped));
}

#[tokio::test]
async fn one_supervisor_answers_all_who_ask_by_its_socket() {
    let fixture = SupervisorFixture::new();
    let client = SupervisorClient::new(fixture.state());
    assert_eq!(client.ask(&SupervisorRequest::Status {}).await.unwrap_err().code, ErrorCode::NotRunning);
    let supervisor = fixture.supervisor().await;
    let second = Supervisor::host(&fixture.state(), fixture.options()).await.unwrap_err();
    assert!(second.message.contains("supervises there already"), "{second}");
    let mode = fs::metadata(fixture.state().join("socket")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let started = client
        .ask(&SupervisorRequest::New(Box::new(fixture.session(shell("sleep 60"), None))))
        .await
        .unwrap();
    let id = started["session_id"].as_str().unwrap();
    assert_eq!(session_info(&supervisor, id).state, SessionStateKind::Running);
    let switched = client.ask(&SupervisorRequest::Pause {}).await.unwrap();
    assert_eq!((switched["changed"].clone(), supervisor.status().state.as_str()), (true.into(), "paused"));
    // Another way to the same, which does not start a rival.
    let made = fixture.options();
    let sessions = SessionService::new(fixture.state(), move || Ok(made.clone()));
    let status = sessions.ask(SupervisorRequest::Status {}).await.unwrap();
    assert_eq!((status["state"].as_str(), sessions.is_own().await), (Some("paused"), false));
    let ended =
        sessions.ask(SupervisorRequest::End { session_id: id.to_owned(), grace_ms: 100 }).await.unwrap();
    assert_eq!(ended["state"], "stopped");
    supervisor.close();
    supervisor.shutdown(GRACE).await;
}

#[tokio::test]
async fn the_protocol_answers_what_it_does_not_understand() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let fixture = SupervisorFixture::new();
    let _supervisor = fixture.supervisor().await;
    let lines = async |sent: &str| {
        let stream = tokio::net::UnixStream::connect(fixture.state().join("socket")).await.unwrap();
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
    let fixture = SupervisorFixture::new();
    let supervisor = fixture.supervisor().await;
    let mut worker = fixture.session(shell("sleep 60"), None);
    worker.roles = vec!["orchestrator".to_owned(), "worker".to_owned()];
    let worker = supervisor.new_session(worker).await.unwrap();
    let other = supervisor.new_session(fixture.session(shell("sleep 60"), None)).await.unwrap();
    let as_worker = supervisor.requester(Some(worker.pid), None).unwrap();
    for request in [
        SupervisorRequest::Pause {},
        SupervisorRequest::Resume {},
        SupervisorRequest::New(Box::new(fixture.session(shell("sleep 60"), None))),
        SupervisorRequest::Send { session_id: other.session_id.clone(), text: "x".to_owned() },
        SupervisorRequest::End { session_id: other.session_id.clone(), grace_ms: 0 },
        SupervisorRequest::Logs(SessionLogRequest {
            lines: 5,
            since: None,
            level: None,
            session: Some(other.session_id.clone()),
            cursor: None,
            wait_ms: 0,
        }),
    ] {
        let refused = supervisor.answer(request.clone(), &as_worker).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::Refused, "{request:?}");
    }
    assert!(supervisor.answer(SupervisorRequest::Status {}, &as_worker).await.is_ok());
    // One that may steer others cannot give more than it has.
    let mut lead = fixture.session(shell("sleep 60"), None);
    (lead.role, lead.roles, lead.orchestrates) = ("lead".to_owned(), vec!["lead".to_owned()], true);
    let lead = supervisor.new_session(lead).await.unwrap();
    let mut wish = fixture.session(shell("sleep 60"), None);
    (wish.role, wish.roles, wish.orchestrates) =
        ("orchestrator".to_owned(), vec!["orchestrator".to_owned()], true);
    let as_lead = supervisor.requester(Some(lead.pid), None).unwrap();
    let child = supervisor.answer(SupervisorRequest::New(Box::new(wish)), &as_lead).await.unwrap();
    let record = supervisor.record_of(child["session_id"].as_str().unwrap()).unwrap();
    assert_eq!(
        (record.roles.clone(), record.parent.clone()),
        (vec!["orchestrator".to_owned(), "lead".to_owned()], Some(lead.session_id))
    );
    supervisor.shutdown(GRACE).await;
}

impl SupervisorFixture {
    /// A supervisor after the one before is gone.
    async fn next_supervisor(&self) -> Supervisor {
        let started = Instant::now();
        loop {
            match Supervisor::host(&self.state(), self.options()).await {
                Ok(supervisor) => return supervisor,
                Err(error) => assert!(started.elapsed() < TIMEOUT, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
