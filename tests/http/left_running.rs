//! What a caller's command leaves running is on the page, and ends with the caller's token and with the server.

use crate::SOON;
use integration_tests::{
    Era, Escape, HttpServer, Project, alive, unique_seconds, wait_until_gone, wait_until_left,
};
use rustix::process::Signal;
use serde_json::json;

/// Runs each escape for a token of its own on one server.
fn escaped(server: &HttpServer, name: &str) -> Vec<String> {
    let token = server.token(name, "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    let mut marks = Vec::new();
    for escape in Escape::ALL {
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
    let (gone, kept) = (escaped(&server, "gone"), escaped(&server, "kept"));
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
        let marks = escaped(&server, "ada");
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
    let marks = escaped(&server, "ada");
    let (token, other) = (server.token("viewer", "dev", &[]), server.token("bob", "dev", &[]));
    let page = server.get("/ui", Some(&token)).body;
    let list = server.connect(&other, Era::Modern).text("list_commands", json!({}));
    for seconds in &marks {
        assert!(page.contains(seconds.as_str()), "{page}");
        assert!(!list.contains(seconds.as_str()), "{list}");
    }
}
