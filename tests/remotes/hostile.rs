//! A far end that lies harms nobody: a lie ends as the error of one call, or is dropped, and the next call is answered.

use crate::far_end::FarEnd;
use integration_tests::{Project, Wire, alive, peak_memory_kib, unique_seconds, wait_until, wait_until_gone};
use serde_json::{Value, json};
use std::time::Duration;

/// Lines that are no message: the channel ends with them.
const NO_MESSAGES: [&str; 11] = [
    "garbage",
    "duplicate",
    "escaped",
    "both",
    "bom",
    "utf8",
    "surrogate",
    "long",
    "deep",
    "batch",
    "number",
];
/// Answers of a wrong shape: the call fails.
const NO_ANSWERS: [&str; 7] =
    ["text-for-content", "no-content", "list-for-result", "link", "question", "no-truth", "list-for-object"];
/// Messages that answer nothing: they are dropped.
const DROPPED: [&str; 10] = [
    "unasked",
    "string",
    "negative",
    "twice",
    "request",
    "roots",
    "notification",
    "log",
    "progress-of-others",
    "progress-without-text",
];
/// Channels that are not opened, each with a part of the error.
const NOT_OPENED: [(&str, &str); 8] = [
    ("banner-without-end", "no server answered"),
    ("lines-without-end", "no server answered"),
    ("other-version", "0.0.7"),
    ("long-version", "version 999"),
    ("refusal", "refused to start"),
    ("gone", "exit"),
    ("no-object", "no server answered"),
    ("wrong-members", "refused to start"),
];
/// A token, as the far end sends it. It is masked in every answer.
const GITHUB: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// A far end that lies once, and what it is sent.
struct Liar {
    far_end: FarEnd,
    mark: String,
}

impl Liar {
    fn new(lie: &str) -> Self {
        Self::with(lie, "")
    }

    /// `more` are keys of the remote.
    fn with(lie: &str, more: &str) -> Self {
        let (project, mark) = (Project::empty(), unique_seconds());
        let liar = concat!(env!("CARGO_MANIFEST_DIR"), "/remotes/liar.py");
        let line = format!("exec python3 {liar} {lie} {}/log {mark}", project.path().display());
        let text = format!("kind = 'sh'\ntarget = '{line}'\nroots = ['/src']\n{more}");
        Self { far_end: FarEnd::new("sh:", project, None).configured(&text), mark }
    }

    fn connect(&self) -> Wire {
        self.far_end.connect()
    }

    fn log(&self) -> String {
        self.far_end.project.read("log")
    }

    fn calls(&self) -> usize {
        self.log().lines().filter(|line| line.starts_with("call ")).count()
    }
}

fn read(wire: &mut Wire) -> Value {
    let answer = wire.request("tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    assert!(!answer.to_string().contains("LEAK") && !answer.to_string().contains(GITHUB), "{answer}");
    answer
}

/// Returns the text of a call that must fail.
fn refused(wire: &mut Wire, lie: &str) -> String {
    let answer = read(wire);
    let is_refused = answer["result"]["isError"] == true || answer.get("error").is_some();
    assert!(is_refused, "{lie}: {answer}");
    answer.to_string()
}

fn is_honest(wire: &mut Wire, lie: &str) {
    let answer = read(wire);
    assert_eq!(answer["result"]["content"][0]["text"], "honest", "{lie}: {answer}");
    for other in wire.others() {
        assert!(!other.to_string().contains("LEAK") && !other.to_string().contains(GITHUB), "{lie}: {other}");
    }
}

#[test]
fn a_line_that_is_no_message_fails_the_call_once_and_the_next_one_gets_another_channel() {
    for lie in NO_MESSAGES {
        let liar = Liar::new(lie);
        let mut wire = liar.connect();
        let text = refused(&mut wire, lie);
        assert!(text.contains("may have run, and is not sent again"), "{lie}: {text}");
        assert!(text.len() < 4000, "{lie}: {} bytes", text.len());
        assert_eq!(liar.calls(), 1, "{lie}");
        is_honest(&mut wire, lie);
        assert_eq!(liar.calls(), 2, "{lie}");
    }
}

#[test]
fn an_answer_of_a_wrong_shape_fails_the_call() {
    for lie in NO_ANSWERS {
        let liar = Liar::new(lie);
        let mut wire = liar.connect();
        let text = refused(&mut wire, lie);
        assert!(text.len() < 4000, "{lie}: {} bytes", text.len());
        is_honest(&mut wire, lie);
    }
}

#[test]
fn a_message_that_answers_nothing_is_dropped() {
    for lie in DROPPED {
        let liar = Liar::new(lie);
        let mut wire = liar.connect();
        is_honest(&mut wire, lie);
        is_honest(&mut wire, lie);
        assert_eq!(liar.calls(), 2, "{lie}");
    }
}

#[test]
fn what_comes_before_the_answer_is_skipped_and_what_is_no_answer_opens_nothing() {
    for lie in ["banner", "opened-twice"] {
        is_honest(&mut Liar::new(lie).connect(), lie);
    }
    for (lie, part) in NOT_OPENED {
        let liar = Liar::new(lie);
        let mut wire = liar.connect();
        let text = refused(&mut wire, lie);
        assert!(text.contains(part) && text.len() < 6000, "{lie}: {text}");
        assert_eq!(liar.log().lines().filter(|line| line.starts_with("call ")).count(), 0, "{lie}");
        is_honest(&mut wire, lie);
    }
}

#[test]
fn a_far_end_that_says_nothing_is_given_up() {
    let liar = Liar::with("mute", "connect_timeout_s = 5\n");
    let mut wire = liar.connect();
    let text = refused(&mut wire, "mute");
    assert!(text.contains("no answer within 5 s"), "{text}");
    wait_until_gone(&liar.mark, Duration::from_secs(20));
    is_honest(&mut wire, "mute");
}

#[test]
fn a_far_end_that_dies_or_closes_its_output_fails_the_call_once() {
    for lie in ["dies", "closes"] {
        let liar = Liar::new(lie);
        let mut wire = liar.connect();
        let text = refused(&mut wire, lie);
        assert!(text.contains("may have run, and is not sent again"), "{lie}: {text}");
        assert_eq!(liar.calls(), 1, "{lie}");
        is_honest(&mut wire, lie);
    }
}

#[test]
fn secrets_that_it_sends_are_masked() {
    for lie in ["secret", "secret-error", "secret-progress"] {
        let liar = Liar::new(lie);
        let mut wire = liar.connect();
        let answer = read(&mut wire).to_string();
        assert!(lie == "secret-progress" || answer.contains("[redacted"), "{lie}: {answer}");
        for other in wire.others() {
            assert!(!other.to_string().contains(GITHUB), "{lie}: {other}");
        }
        is_honest(&mut wire, lie);
    }
}

#[test]
fn what_it_sends_in_masses_costs_bounded_memory() {
    for lie in ["progress-flood", "huge"] {
        let liar = Liar::new(lie);
        let mut wire = liar.connect();
        let before = peak_memory_kib(wire.pid());
        let meta = json!({"progressToken": 1});
        let arguments = json!({"path": "a.txt"});
        let answer =
            wire.request("tools/call", json!({"name": "read_file", "arguments": arguments, "_meta": meta}));
        let grown = peak_memory_kib(wire.pid()) - before;
        assert!(grown < 150 * 1024, "{lie}: {grown} KiB; {}", answer.to_string().len());
        is_honest(&mut wire, lie);
    }
}

#[test]
fn a_far_end_that_reads_nothing_costs_bounded_memory() {
    let liar = Liar::new("deaf");
    let mut wire = liar.connect();
    is_honest(&mut wire, "deaf");
    let content = "x".repeat(4 << 20);
    let arguments = json!({"path": "a.txt", "content": content});
    for _ in 0..20 {
        wire.ask("tools/call", json!({"name": "write_file", "arguments": arguments}));
    }
    // The server in front takes as much as it may, and then no more.
    let mut last = 0;
    let mut since = std::time::Instant::now();
    wait_until(Duration::from_secs(25), "it takes no more", || {
        let peak = peak_memory_kib(wire.pid());
        assert!(peak < 250 * 1024, "{peak} KiB");
        if peak > last {
            (last, since) = (peak, std::time::Instant::now());
        }
        since.elapsed() > Duration::from_secs(1)
    });
}

#[test]
fn processes_that_stay_after_the_end_of_the_channel_are_ended() {
    let liar = Liar::new("stays");
    let mut wire = liar.connect();
    is_honest(&mut wire, "stays");
    wait_until(Duration::from_secs(20), "its processes run", || alive(&liar.mark).len() >= 3);
    wire.close_input();
    let (status, _) = wire.wait(Duration::from_secs(20));
    assert!(status.success(), "{status}");
    wait_until_gone(&liar.mark, Duration::from_secs(20));
}

#[test]
fn it_gets_no_secret_of_the_server_in_front() {
    let liar = Liar::new("none");
    let mut command = liar.far_end.command(&[]);
    command.env("GITHUB_TOKEN", "in-the-environment").env("CORETOOLS_SECRET", "in-the-environment");
    command.env("AWS_SECRET_ACCESS_KEY", "in-the-environment").env("SSH_AUTH_SOCK", "/in-the-environment");
    let mut wire = Wire::connect(command, integration_tests::Era::Modern);
    let meta = json!({"private/trace": "of-the-client"});
    let call = json!({"name": "read_file", "arguments": {"path": "a.txt"}, "_meta": meta});
    let answer = wire.request("tools/call", call);
    assert_eq!(answer["result"]["content"][0]["text"], "honest", "{answer}");
    let log = liar.log();
    assert!(log.contains("coretools/open") && log.contains("environment "), "{log}");
    for secret in ["in-the-environment", "of-the-client"] {
        assert!(!log.contains(secret), "{log}");
    }
}
