//! A client is told when what runs on a remote starts and ends, as it is told of what runs here.

use crate::Machines;
use integration_tests::{Era, Wire, server, unique_seconds};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Command;

const COMMANDS: &str = "coretools://commands";

fn is_update(message: &Value, uri: &str) -> bool {
    message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
}

/// Waits for the next message for which `wanted` holds, and drops those before it.
fn told(wire: &mut Wire, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = wire.receive();
        if wanted(&message) {
            return message;
        }
    }
}

fn watch(wire: &mut Wire, era: Era, uris: &[&str]) {
    if era == Era::Modern {
        wire.ask("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}));
        told(wire, |message| message["method"] == "notifications/subscriptions/acknowledged");
        return;
    }
    wire.request("logging/setLevel", json!({"level": "info"}));
    for uri in uris {
        let subscribed = wire.request("resources/subscribe", json!({"uri": uri}));
        assert!(subscribed["error"].is_null(), "{subscribed}");
    }
}

/// A server in front of one remote, or one that chooses the remote `box`. The remote has a state folder of its own, as
/// another machine has, and writes the id of its process down.
fn command(machines: &Machines, is_chosen: bool) -> (Command, String) {
    let (front, there) = (machines.front.path().display(), machines.there.path().display());
    let text = format!(
        "[remotes.box]\nconnect = ['sh', '-c', 'echo $$ > {front}/pid; XDG_STATE_HOME={front}/far exec {} remote-server']\n\
         roots = ['{there}']\nchoosable = {is_chosen}\n",
        server().display()
    );
    machines.front.write("remotes.toml", &text);
    let mut command = machines.front.server();
    command.arg("--config").arg(machines.front.join("remotes.toml"));
    if is_chosen {
        command.arg("--root").arg(machines.front.path());
        return (command, format!("box:{there}"));
    }
    command.args(["--remote", "box"]);
    (command, ".".to_owned())
}

fn start(wire: &mut Wire, folder: &str, line: &str) -> String {
    let arguments = json!({"command": line, "shell": true, "working_directory": folder});
    let id = wire.outcome("start_command", arguments).0["id"].as_u64().unwrap();
    format!("{COMMANDS}/{id}")
}

#[test]
fn the_start_and_the_end_of_a_command_there_are_told_in_both_eras() {
    for is_chosen in [false, true] {
        for era in Era::BOTH {
            let machines = Machines::with([]);
            let (command, folder) = command(&machines, is_chosen);
            let mut wire = Wire::connect(command, era);
            let id = if is_chosen { 1_000_001 } else { 1 };
            let uri = format!("{COMMANDS}/{id}");
            watch(&mut wire, era, &[COMMANDS, &uri]);
            assert_eq!(start(&mut wire, &folder, "while ! test -e go; do sleep 0.05; done; exit 3"), uri);
            told(&mut wire, |message| is_update(message, COMMANDS));
            told(&mut wire, |message| is_update(message, &uri));
            machines.there.write("go", "");
            told(&mut wire, |message| is_update(message, &uri));
            if era != Era::Modern {
                let message = told(&mut wire, |message| message["method"] == "notifications/message");
                let params = &message["params"];
                assert_eq!(
                    (&params["logger"], &params["data"]["resource"]),
                    (&json!("commands"), &json!(uri))
                );
            }
            let read = wire.request("resources/read", json!({"uri": uri}));
            assert!(read.to_string().contains("exited"), "{read}");
        }
    }
}

#[test]
fn the_end_of_a_session_there_and_the_loss_of_what_ran_are_told() {
    let machines = Machines::with([]);
    let (command, folder) = command(&machines, true);
    let era = Era::Initialize("2025-11-25");
    let mut wire = Wire::connect(command, era);
    watch(&mut wire, era, &["coretools://sessions", COMMANDS]);
    let started =
        wire.call("new_session", json!({"command": ["cat"], "input": true, "working_directory": folder}));
    let id =
        started["structuredContent"]["session_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    told(&mut wire, |message| is_update(message, "coretools://sessions"));
    let uri = format!("coretools://sessions/{id}");
    assert!(wire.request("resources/read", json!({"uri": uri})).to_string().contains("running"));
    wire.text("end_session", json!({"session_id": id, "grace": 0}));
    let message = told(&mut wire, |message| message["method"] == "notifications/message");
    assert_eq!(
        (&message["params"]["logger"], &message["params"]["data"]["resource"]),
        (&json!("sessions"), &json!(uri))
    );
    let uri = start(&mut wire, &folder, &format!("exec sleep {}", unique_seconds()));
    told(&mut wire, |message| is_update(message, COMMANDS));
    // The far end dies, and everything with it.
    let pid = machines.front.read("pid").trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let message = told(&mut wire, |message| message["method"] == "notifications/message");
    assert_eq!(message["params"]["data"]["resource"], json!(uri), "{message}");
    assert_eq!(message["params"]["level"], "warning", "{message}");
}
