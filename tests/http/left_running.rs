//! The processes that a caller's command leaves running are on the page, and end with the caller's token and with the server.

use crate::SOON;
use integration_tests::{
    Era, Escape, Http, HttpServer, Project, alive, unique_seconds, wait_until_gone, wait_until_left,
};
use rustix::process::Signal;
use serde_json::json;

/// The escapes that leave a session or a variable by which the command is known.
const KNOWN: [Escape; 3] = [Escape::Job, Escape::Nohup, Escape::Session];
/// Those that leave neither.
const HIDDEN: [Escape; 3] = [Escape::SessionAndEnvironment, Escape::DoubleFork, Escape::Daemon];

/// Lets each of the escapes happen with a token.
// Confinement keeps tmux from opening a terminal.
fn escaped(server: &HttpServer, token: &str, escapes: &[Escape]) -> Vec<String> {
    let mut client = server.connect(token, Era::Modern);
    let mut marks = Vec::new();
    for escape in escapes {
        let seconds = unique_seconds();
        let Some(command) = escape.command(&seconds) else { continue };
        let text = client.text("run_command", command);
        assert!(text.contains("left running") && text.contains(&seconds), "{escape:?}: {text}");
        wait_until_left(&seconds);
        marks.push(seconds);
    }
    marks
}

#[test]
fn it_ends_with_the_token_of_its_caller_and_what_is_another_callers_goes_on() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (first, second) = (server.token("gone", "dev", &[]), server.token("kept", "dev", &[]));
    let gone = escaped(&server, &first, &[KNOWN, HIDDEN].concat());
    let kept = escaped(&server, &second, &KNOWN);
    assert!(server.tokens(&["revoke", "gone"]).status.success());
    server.signal(Signal::HUP);
    for seconds in &gone {
        wait_until_gone(seconds, SOON);
    }
    for seconds in &kept {
        assert!(!alive(seconds).is_empty(), "{seconds}");
    }
}

#[test]
fn it_ends_with_the_server_however_that_ends() {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL, Signal::ABORT] {
        let project = Project::empty();
        let mut server = HttpServer::start(&project, &[]);
        let token = server.token("ada", "dev", &[]);
        let marks = escaped(&server, &token, &[KNOWN, HIDDEN].concat());
        server.signal(signal);
        server.wait(SOON);
        for seconds in &marks {
            wait_until_gone(seconds, SOON);
        }
    }
}

#[test]
fn it_is_on_the_page_and_in_the_list_of_its_caller_alone() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (token, other) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let marks = escaped(&server, &token, &[KNOWN, HIDDEN].concat());
    let page = server.get("/ui", Some(&token)).body;
    let list = server.connect(&other, Era::Modern).text("list_commands", json!({}));
    for seconds in &marks {
        assert!(page.contains(seconds.as_str()), "{page}");
        assert!(!list.contains(seconds.as_str()), "{list}");
    }
}

#[test]
fn an_orphan_that_may_be_of_several_callers_is_ended_or_is_the_callers_own() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (first, second) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let of_others = escaped(&server, &first, &KNOWN);
    let mut client = server.connect(&second, Era::Modern);
    let mut other = server.connect(&first, Era::Modern);
    for escape in HIDDEN {
        let seconds = unique_seconds();
        let Some(command) = escape.command(&seconds) else { continue };
        let listed =
            |client: &mut Http| client.text("list_commands", json!({})).matches("left running by").count();
        let before = listed(&mut client);
        // It is known if the server has seen it before it hid.
        let is_known = client.text("run_command", command).contains("left running");
        assert_eq!(listed(&mut client) - before, usize::from(is_known), "{escape:?}");
        assert!(!other.text("list_commands", json!({})).contains(&seconds), "{escape:?}");
        if !is_known {
            wait_until_gone(&seconds, SOON);
        }
    }
    assert!(of_others.iter().all(|seconds| !alive(seconds).is_empty()));
}
