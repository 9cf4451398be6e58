//! Another policy while the session goes on.

use crate::{LEGACY, WrapSetup, call, names, setup};
use integration_tests::{Era, Wire, wait_until};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A policy in which `dev` may use `tools`.
fn policy(tools: &[&str]) -> String {
    format!(
        "version = 1\nexternal_tools = [\"echo\", \"secret\", \"sleep\"]\n[roles.dev]\nallow = {tools:?}\n"
    )
}

/// As an operator does it: at once, and not byte by byte.
fn replace(setup: &WrapSetup, text: &str) {
    setup.project.write("roles.new", text);
    std::fs::rename(setup.project.join("roles.new"), setup.project.join("roles.toml")).unwrap();
}

fn begin(tools: &[&str], more: &[&str]) -> WrapSetup {
    let flags: Vec<&str> = ["--policy", "roles.toml", "--role", "dev"].iter().chain(more).copied().collect();
    let setup = setup(&flags);
    setup.project.write("roles.toml", &policy(tools));
    setup
}

/// The same command, its standard error in the file `log`.
fn logging(command: &Command) -> Command {
    let mut logging = Command::new("sh");
    logging.args(["-c", "exec \"$0\" \"$@\" 2> log"]).arg(command.get_program()).args(command.get_args());
    logging.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => logging.env(name, value),
            None => logging.env_remove(name),
        };
    }
    logging
}

fn is_refused(wire: &mut Wire, tool: &str) -> bool {
    wire.request("tools/call", json!({"name": tool, "arguments": {}})).get("error").is_some()
}

#[test]
fn the_client_is_told_of_a_changed_list_and_the_next_call_is_judged_by_the_new_policy() {
    for era in Era::BOTH {
        let setup = begin(&["echo", "secret"], &[]);
        let mut wire = setup.connect(era);
        let stream = (era == Era::Modern).then(|| {
            let id = wire.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
            assert_eq!(wire.receive()["method"], "notifications/subscriptions/acknowledged");
            id
        });
        assert_eq!(names(&mut wire), ["echo", "secret"]);
        wire.text("secret", json!({}));

        replace(&setup, &policy(&["echo", "sleep"]));
        let told = wire.receive();
        assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
        if let Some(stream) = stream {
            assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
        }
        let asked = setup.calls("secret");
        assert!(is_refused(&mut wire, "secret"));
        assert_eq!(setup.calls("secret"), asked);
        assert_eq!(names(&mut wire), ["echo", "sleep"]);
        wire.text("sleep", json!({"seconds": 0}));
    }
}

#[test]
fn a_policy_that_leaves_the_clients_list_as_it_is_tells_it_nothing() {
    let setup = begin(&["echo"], &[]);
    let mut wire = setup.connect(LEGACY);
    assert_eq!(names(&mut wire), ["echo"]);
    let other = format!("{}\n[roles.other]\nallow = [\"sleep\"]\n", policy(&["echo"]));
    replace(&setup, &other.replace("allow = [\"echo\"]", "allow = [\"echo\"]\n[[roles.dev.require]]\nid = \"E\"\ntools = [\"echo\"]\narguments = { n = { max = 1 } }"));
    // It holds from now on, and there was nothing to tell.
    wait_until(PATIENCE, "the policy is read again", || {
        wire.request("tools/call", json!({"name": "echo", "arguments": {"n": 2}}))["result"]["isError"]
            == true
    });
    wire.text("echo", json!({"n": 1}));
    assert_eq!(wire.others(), Vec::<Value>::new());
}

#[test]
fn a_bad_file_leaves_the_policy_as_it_was_until_there_is_a_good_one() {
    let setup = begin(&["echo"], &["--log", "error"]);
    let mut wire = Wire::connect(logging(&setup.command()), LEGACY);
    assert_eq!(names(&mut wire), ["echo"]);
    replace(&setup, "version = 1\n[roles.dev]\nallow = [\"*\"]\ndney = [\"secret\"]\n");
    wait_until(PATIENCE, "the bad file is told", || {
        setup.project.read("log").contains("the one before stays")
    });
    assert!(is_refused(&mut wire, "secret"));
    wire.text("echo", json!({}));
    assert_eq!(names(&mut wire), ["echo"]);
    std::fs::remove_file(setup.project.join("roles.toml")).unwrap();
    wait_until(PATIENCE, "the missing file is told", || {
        setup.project.read("log").matches("the one before stays").count() == 2
    });
    assert!(is_refused(&mut wire, "secret"));
    replace(&setup, &policy(&["echo", "secret"]));
    wait_until(PATIENCE, "the good file holds", || !is_refused(&mut wire, "secret"));
}

#[test]
fn a_call_that_waits_for_the_server_is_judged_by_the_policy_of_the_moment_it_is_sent() {
    let setup = begin(&["echo", "secret", "die"], &["--reconnect-limit", "60"]);
    setup.project.write("roles.toml", &policy(&["*"]));
    let mut wire = setup.connect(LEGACY);
    assert!(names(&mut wire).contains(&"secret".to_owned()));
    setup.project.write("hold", "");
    wire.request("tools/call", json!({"name": "die"}));
    // It waits until the server is back, and meanwhile the policy changes.
    let waiting = call(&mut wire, "secret", json!({}));
    replace(&setup, &policy(&["echo"]));
    let told = wire.receive();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    std::fs::remove_file(setup.hold()).unwrap();
    let answer = wire.answer(waiting);
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    wire.text("echo", json!({}));
    assert_eq!(setup.calls("secret"), 0);
}
