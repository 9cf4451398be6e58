//! Deno, which has the same inspector.

use crate::app::{InspectedApp, installed};
use crate::{answer, failure, serve, value};
use integration_tests::Project;
use serde_json::json;
use std::process::Command;

#[test]
fn the_state_of_deno_is_read_without_running_a_getter() {
    let Some(deno) = installed("deno/deno") else { return };
    let project = Project::with([(
        "app.js",
        "globalThis.hits = 0;
         globalThis.state = {n: 1n, m: new Map([['k', {z: 1}]]), d: new Date(0), get bad() { return ++globalThis.hits },
           p: new Proxy({a: 1}, {get() { globalThis.hits++ }, getOwnPropertyDescriptor() { globalThis.hits++ }})};
         state.self = state;
         let hidden = 5;
         globalThis.bump = () => hidden++;
         setInterval(() => {}, 1000);
         console.log('ready');",
    )]);
    let mut command = Command::new(deno);
    command
        .args(["run", "--inspect=127.0.0.1:0", "app.js"])
        .env("DENO_DIR", project.join("cache"))
        .env("NO_COLOR", "1");
    let app = InspectedApp::start(&project, command);
    assert_eq!(app.line(), "ready");
    let mut wire = serve(&project, &[]);
    let state = answer(&mut wire, json!({"path": "state"}));
    assert_eq!(
        state["value"],
        json!({
            "n": {"$bigint": "1"}, "m": {"$map": [["k", {"z": 1}]]}, "d": {"$date": "1970-01-01T00:00:00.000Z"},
            "bad": {"$getter": true}, "p": {"$proxy": "Proxy(Object)"}, "self": {"$ref": "state"}
        })
    );
    assert!(state["source"].as_str().unwrap().starts_with("node: deno "), "{state}");
    assert_eq!(value(&mut wire, "state.m.k.z"), 1);
    assert_eq!(value(&mut wire, "local:app.js/hidden"), 5);
    failure(&mut wire, json!({"path": "state.p.a"}));
    assert_eq!(value(&mut wire, "hits"), 0);
}
