//! A client is told when its sessions change, wherever their supervisor runs.

use super::*;

/// Waits for the next message for which `wanted` holds, and drops those before it.
fn told(wire: &mut Wire, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = wire.receive();
        if wanted(&message) {
            return message;
        }
    }
}

#[test]
fn the_end_of_a_session_is_told_in_both_eras_also_beside_a_daemon() {
    for (beside_a_daemon, era) in
        [false, true].into_iter().flat_map(|daemon| Era::BOTH.map(|era| (daemon, era)))
    {
        let project = Project::empty();
        let _daemon = beside_a_daemon.then(|| Daemon::start(&project));
        let mut wire = Wire::connect(project.server(), era);
        let is_update = |message: &Value, uri: &str| {
            message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
        };
        if era == Era::Modern {
            let filter = json!({"resourceSubscriptions": ["coretools://sessions"]});
            wire.ask("subscriptions/listen", json!({"notifications": filter}));
            assert_eq!(wire.receive()["method"], "notifications/subscriptions/acknowledged");
        } else {
            wire.request("logging/setLevel", json!({"level": "info"}));
            wire.request("resources/subscribe", json!({"uri": "coretools://sessions"}));
        }
        let started = wire.call("new_session", json!({"command": ["cat"], "input": true}));
        let id = text(&started["structuredContent"]["session_id"]);
        told(&mut wire, |message| is_update(message, "coretools://sessions"));
        let uri = format!("coretools://sessions/{id}");
        let state = |wire: &mut Wire| {
            let answer = wire.request("resources/read", json!({"uri": uri}));
            let content =
                answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
            text(&serde_json::from_str::<Value>(content).unwrap()["state"])
        };
        assert_eq!(state(&mut wire), "running");
        wire.text("end_session", json!({"session_id": id, "grace": 1}));
        if era == Era::Modern {
            told(&mut wire, |message| is_update(message, "coretools://sessions"));
        } else {
            let message = told(&mut wire, |message| message["method"] == "notifications/message");
            assert_eq!(message["params"]["logger"], "sessions", "{message}");
            assert_eq!(message["params"]["data"]["session"]["session_id"], json!(id), "{message}");
            assert_eq!(message["params"]["data"]["resource"], json!(uri), "{message}");
        }
        wait_until(PATIENCE, "it is over", || state(&mut wire) == "stopped");
    }
}
