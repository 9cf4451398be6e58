//! `exec --keep-background`: what a command leaves in the background goes on in a session, which shows it and ends it.

use crate::{Daemon, PATIENCE, ask, session};
use integration_tests::{Project, sleeping, unique_seconds, wait_until, wait_until_gone};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

fn keeping(project: &Project, line: &str) -> Command {
    let mut command = project.server();
    command.args(["exec", "--keep-background", "--", "sh", "-c", line]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The sessions that are not over.
fn sessions(project: &Project) -> Vec<serde_json::Value> {
    ask(project, &["list"])["sessions"].as_array().unwrap().clone()
}

#[test]
fn what_a_command_leaves_goes_on_in_a_session_that_shows_and_ends_it() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let seconds = unique_seconds();
    // In a session of its own and without a variable, so that only descent tells where it comes from.
    let line = format!("setsid env -i sleep {seconds} >/dev/null 2>&1 & cat; echo err >&2; exit 3");
    let mut child = keeping(&project, &line).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed").unwrap();
    let output: Output = child.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("typed", Some(3)), "{output:?}");
    let errors = text(&output.stderr);
    assert!(errors.starts_with("err\n") && errors.contains("goes on"), "{errors}");
    assert_eq!(sleeping(&seconds).len(), 1, "{errors}");
    let listed = sessions(&project);
    assert_eq!(listed.len(), 1, "{listed:?}");
    let id = listed[0]["session_id"].as_str().unwrap();
    assert!(errors.contains(&format!("session end {id}")), "{errors}");
    assert!(listed[0]["command"].as_str().unwrap().contains(&seconds), "{listed:?}");
    let ended = session(&project, &["end", id]);
    assert!(ended.status.success(), "{ended:?}");
    wait_until_gone(&format!("sleep {seconds}"), PATIENCE);
    wait_until(PATIENCE, "the session to be over", || sessions(&project).is_empty());
}

#[test]
fn a_command_that_leaves_nothing_is_as_without_the_option() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let line = "pwd; printf %s \"$OWN_VARIABLE\"; exit 5";
    let output = keeping(&project, line).env("OWN_VARIABLE", "mine").output().unwrap();
    let here = project.path().canonicalize().unwrap();
    assert_eq!(text(&output.stdout), format!("{}\nmine", here.display()), "{output:?}");
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(5)));
    wait_until(PATIENCE, "the session to be over", || sessions(&project).is_empty());
    let output = keeping(&project, "kill -USR1 $$").output().unwrap();
    assert_eq!(output.status.signal(), Some(10), "{output:?}");
    let refused = {
        let mut command = project.server();
        command.args(["--role", "readonly", "exec", "--keep-background", "--", "true"]).output().unwrap()
    };
    assert_eq!(refused.status.code(), Some(126), "{refused:?}");
    let limited = {
        let mut command = project.server();
        command.args(["exec", "--keep-background", "--timeout", "1", "--", "sleep", "600"]).output().unwrap()
    };
    assert_eq!(limited.status.code(), Some(124), "{limited:?}");
    assert!(text(&limited.stderr).contains("its time limit"), "{limited:?}");
}

#[test]
fn the_command_gets_signals_and_ends_with_the_one_that_waits_for_it() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let seconds = unique_seconds();
    let line = format!("trap 'exit 9' TERM; sleep {seconds} & wait");
    let mut child = keeping(&project, &line).spawn().unwrap();
    wait_until(PATIENCE, "the command to run", || !sleeping(&seconds).is_empty());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
    // The shell has ended, and what it has left goes on.
    assert_eq!(sleeping(&seconds).len(), 1);
    let seconds = unique_seconds();
    let mut child = keeping(&project, &format!("sleep {seconds}; true")).spawn().unwrap();
    wait_until(PATIENCE, "the command to run", || !sleeping(&seconds).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_gone(&format!("sleep {seconds}"), PATIENCE);
}

#[test]
fn the_background_ends_with_the_daemon() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let seconds = unique_seconds();
    let output = keeping(&project, &format!("sleep {seconds} >/dev/null 2>&1 &")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(sleeping(&seconds).len(), 1);
    drop(daemon);
    wait_until_gone(&format!("sleep {seconds}"), PATIENCE);
}

#[test]
fn without_a_supervisor_nothing_runs_and_the_error_says_how_to_start_one() {
    let project = Project::empty();
    let output = keeping(&project, "touch made").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = text(&output.stderr);
    assert!(errors.contains("no supervisor is running") && errors.contains("session daemon"), "{errors}");
    assert!(!project.path().join("made").exists());
}
