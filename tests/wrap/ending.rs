//! The proxy ends with its client, and takes with it all that the server has started.

use crate::{LEGACY, setup};
use integration_tests::{Era, Wire, alive, unique_seconds, wait_until, wait_until_gone};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

/// One second is the promise; the rest is for a loaded machine.
const PROMPT: Duration = Duration::from_secs(5);

fn ends(behaviours: &[&'static str], end: impl Fn(&mut Wire)) {
    for era in Era::BOTH {
        let setup = setup(&[]).behaving(behaviours);
        let mut wire = setup.connect(era);
        let seconds = unique_seconds();
        wire.text("spawn", json!({"s": seconds}));
        wait_until(Duration::from_secs(20), "the tree grows", || alive(&seconds).len() >= 3);
        end(&mut wire);
        let (status, time) = wire.wait(Duration::from_secs(10));
        assert!(time < PROMPT, "{era:?}: it took {time:?}");
        assert!(status.success(), "{era:?}: {status}");
        wait_until_gone(&seconds, PROMPT);
    }
}

#[test]
fn at_the_end_of_input() {
    ends(&[], Wire::close_input);
}

#[test]
fn at_the_end_of_input_with_a_server_that_does_not_end_by_itself() {
    ends(&["stubborn"], Wire::close_input);
}

#[test]
fn at_sigterm() {
    ends(&["stubborn"], |wire| wire.signal(Signal::TERM));
}

#[test]
fn at_sigint() {
    ends(&[], |wire| wire.signal(Signal::INT));
}

#[test]
fn killed_it_leaves_nothing_behind() {
    let setup = setup(&[]).behaving(&["stubborn"]);
    let mut wire = setup.connect(LEGACY);
    let seconds = unique_seconds();
    wire.text("spawn", json!({"s": seconds}));
    wait_until(Duration::from_secs(20), "the tree grows", || alive(&seconds).len() >= 3);
    wire.signal(Signal::KILL);
    wire.wait(PROMPT);
    wait_until_gone(&seconds, Duration::from_secs(5));
}

#[test]
fn a_server_that_never_answers_does_not_keep_it() {
    for behaviour in ["mute", "deaf"] {
        let setup = setup(&[]).behaving(&[behaviour]);
        let mut wire = Wire::start(setup.command());
        wire.ask("tools/list", json!({}));
        wire.close_input();
        let (status, time) = wire.wait(Duration::from_secs(10));
        assert!(status.success() && time < PROMPT, "{behaviour}: {status} after {time:?}");
    }
}

#[test]
fn who_closes_its_end_behind_a_request_still_gets_the_answer() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    wire.text("echo", json!({}));
    let id = crate::call(&mut wire, "sleep", json!({"seconds": 0.05}));
    wire.close_input();
    assert_eq!(wire.answer(id)["result"]["content"][0]["text"], "slept");
    wire.wait(PROMPT);
}
