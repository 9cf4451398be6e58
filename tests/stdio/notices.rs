//! A client is told when its background commands start and end, so that it need not ask.

use integration_tests::{Era, Project, Wire, serve};
use serde_json::{Value, json};

const INITIALIZE: Era = Era::Initialize("2025-11-25");

/// Waits for the next message for which `wanted` holds, and drops those before it.
fn told(wire: &mut Wire, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = wire.receive();
        if wanted(&message) {
            return message;
        }
    }
}

fn is_update(message: &Value, uri: &str) -> bool {
    message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
}

/// Reads a resource that is JSON.
fn read(wire: &mut Wire, uri: &str) -> Value {
    let answer = wire.request("resources/read", json!({"uri": uri}));
    let content = &answer["result"]["contents"][0];
    assert_eq!(content["mimeType"], "application/json", "{answer}");
    serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
}

fn start(wire: &mut Wire, command: &Value) {
    let started = wire.call("start_command", json!({"command": command}));
    assert_eq!(started["isError"], false, "{started}");
}

#[test]
fn a_client_of_the_initialize_era_gets_updates_and_a_log_message_of_its_level() {
    let (_project, mut wire) = serve([], INITIALIZE);
    // Before a level is set, the client gets no messages.
    start(&mut wire, &json!(["true"]));
    wire.text("read_command_output", json!({"id": 1, "wait_for_exit": true, "wait_ms": 20_000}));
    assert_eq!(wire.request("logging/setLevel", json!({"level": "info"}))["result"], json!({}));
    for uri in ["coretools://commands", "coretools://commands/2"] {
        let subscribed = wire.request("resources/subscribe", json!({"uri": uri}));
        assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    }
    start(&mut wire, &json!(["cat"]));
    told(&mut wire, |message| is_update(message, "coretools://commands"));
    assert_eq!(read(&mut wire, "coretools://commands/2")["state"], "running");
    wire.text("write_command_input", json!({"id": 2, "close": true}));
    let message = told(&mut wire, |message| message["method"] == "notifications/message");
    assert_eq!(message["params"]["level"], "info", "{message}");
    assert_eq!(message["params"]["logger"], "commands", "{message}");
    let data = &message["params"]["data"];
    assert_eq!(data["message"], "background command 2 ended: exited with exit code 0", "{message}");
    assert_eq!((&data["command"]["command"], &data["command"]["exit_code"]), (&json!("cat"), &json!(0)));
    assert_eq!(read(&mut wire, data["resource"].as_str().unwrap())["state"], "exited");
    let listed = read(&mut wire, "coretools://commands");
    assert_eq!(listed["commands"].as_array().unwrap().len(), 2, "{listed}");
    // What does not end well is a warning, and a client that wants only errors is not told.
    start(&mut wire, &json!(["false"]));
    let message = told(&mut wire, |message| message["method"] == "notifications/message");
    assert_eq!(message["params"]["level"], "warning", "{message}");
    wire.request("logging/setLevel", json!({"level": "error"}));
    wire.request("resources/unsubscribe", json!({"uri": "coretools://commands"}));
    wire.request("resources/subscribe", json!({"uri": "coretools://commands/4"}));
    start(&mut wire, &json!(["false"]));
    let next = told(&mut wire, |message| message["method"] != json!(null));
    assert!(is_update(&next, "coretools://commands/4"), "{next}");
    told(&mut wire, |message| is_update(message, "coretools://commands/4"));
    wire.request("ping", json!({}));
    assert!(wire.others().iter().all(|message| message["method"] != "notifications/message"));
}

#[test]
fn a_client_of_2026_07_28_is_told_of_the_resources_to_which_it_listens() {
    let (_project, mut wire) = serve([], Era::Modern);
    let uris = ["coretools://commands/1", "coretools://no-such"];
    wire.ask("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}));
    assert_eq!(wire.receive()["method"], "notifications/subscriptions/acknowledged");
    start(&mut wire, &json!(["cat"]));
    told(&mut wire, |message| is_update(message, "coretools://commands/1"));
    assert_eq!(read(&mut wire, "coretools://commands/1")["state"], "running");
    wire.text("stop_command", json!({"id": 1}));
    let update = told(&mut wire, |message| is_update(message, "coretools://commands/1"));
    assert!(update["params"]["_meta"].is_object(), "it names its subscription: {update}");
    assert_eq!(read(&mut wire, "coretools://commands/1")["state"], "stopped");
    let missing = wire.request("resources/read", json!({"uri": "coretools://commands/7"}));
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
    let ids = json!({
        "ref": {"type": "ref/resource", "uri": "coretools://commands/{id}"},
        "argument": {"name": "id", "value": ""},
    });
    assert_eq!(wire.request("completion/complete", ids)["result"]["completion"]["values"], json!(["1"]));
    // Log messages belong to calls in this revision.
    assert!(wire.others().iter().all(|message| message["method"] != "notifications/message"));
}

/// A process that a command leaves running is a background command, of whose end the client is told as well.
#[test]
#[cfg(target_os = "linux")]
fn the_end_of_what_a_command_left_running_is_told() {
    let (project, mut wire) = serve([], Era::Modern);
    let uris = ["coretools://commands/1"];
    wire.ask("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}));
    assert_eq!(wire.receive()["method"], "notifications/subscriptions/acknowledged");
    // It ends once the file is there.
    let waits = "(while ! [ -e end ]; do sleep 0.05; done) >/dev/null 2>&1 &";
    wire.text("run_command", json!({"command": waits, "shell": true}));
    integration_tests::wait_until(std::time::Duration::from_secs(20), "it is listed", || {
        read(&mut wire, "coretools://commands")["commands"].as_array().unwrap().len() == 1
    });
    project.write("end", "");
    let until_ended = |wire: &mut Wire| {
        loop {
            told(wire, |message| is_update(message, "coretools://commands/1"));
            if read(wire, "coretools://commands/1")["state"] != "running" {
                return;
            }
        }
    };
    until_ended(&mut wire);
}

#[test]
fn a_role_without_the_list_of_commands_has_no_resource_of_them() {
    let project = Project::empty();
    for era in Era::BOTH {
        let mut command = project.server();
        command.args(["--role", "minimal"]);
        let mut wire = Wire::connect(command, era);
        let (hidden, unknown) = ("coretools://commands", "coretools://commandz");
        let read = |wire: &mut Wire, uri: &str| {
            let answer = wire.request("resources/read", json!({"uri": uri}));
            answer["error"].to_string().replace(uri, "URI")
        };
        assert_eq!(read(&mut wire, hidden), read(&mut wire, unknown), "{era:?}");
        assert_eq!(wire.request("resources/list", json!({}))["result"]["resources"], json!([]));
        if era == INITIALIZE {
            let refused = wire.request("resources/subscribe", json!({"uri": hidden}));
            assert!(refused["error"].is_object(), "{refused}");
        }
    }
}
