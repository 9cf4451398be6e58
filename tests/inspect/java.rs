//! A Java virtual machine, by its attach socket.

use crate::app::{InspectedApp, program, source};
use crate::{answer, failure, said, serve, value};
use integration_tests::Project;
use serde_json::json;
use std::process::Command;

fn start(project: &Project, options: &[&str]) -> Option<InspectedApp> {
    let java = program("java")?;
    let mut command = Command::new(java);
    command.args(options).arg(source("Main.java"));
    let app = InspectedApp::start(project, command);
    assert_eq!(app.line(), "ready");
    Some(app)
}

#[test]
fn threads_properties_and_classes_are_read_once_signals_are_allowed() {
    let project = Project::empty();
    let Some(mut app) =
        start(&project, &["-Dshop.mode=night", "-Dshop.password=swordfish", "-Dshop.path=a\\b:c=d"])
    else {
        return;
    };
    let mut wire = serve(&project, &[]);
    let said = said(&mut wire, json!({"path": "jvm.threads"}));
    assert!(said.contains("inspect.allow_signals"), "{said}");

    let mut wire = serve(&project, &[("CORETOOLS_INSPECT_ALLOW_SIGNALS", "true")]);
    let threads = answer(&mut wire, json!({"path": "jvm.threads", "depth": 5}));
    assert!(threads["source"].as_str().unwrap().starts_with("jvm: jvm "), "{threads}");
    let all = threads["value"].as_array().unwrap();
    let worker =
        all.iter().find(|thread| thread["name"] == "order-worker").unwrap_or_else(|| panic!("{threads}"));
    assert_eq!((&worker["daemon"], &worker["state"]), (&json!(true), &json!("TIMED_WAITING (sleeping)")));
    assert!(worker["stack"].to_string().contains("java.lang.Thread.sleep"), "{worker}");
    assert_eq!(value(&mut wire, "jvm.properties[\"shop.mode\"]"), "night");
    assert_eq!(value(&mut wire, "jvm.properties[\"shop.path\"]"), "a\\b:c=d");
    assert_eq!(value(&mut wire, "jvm.properties[\"line.separator\"]"), "\n");
    assert_eq!(
        value(&mut wire, "jvm.properties").get("shop.password").unwrap_or(&json!("[masked]")),
        "[masked]"
    );
    assert!(value(&mut wire, "jvm.classes[0].bytes").as_u64().unwrap() > 0);
    assert!(value(&mut wire, "jvm.version").as_str().unwrap().contains("JDK"));
    let failed = failure(&mut wire, json!({"path": "jvm.nothing"}));
    assert_eq!((&failed["error"], &failed["failed_at"]), (&json!("Path not found"), &json!("nothing")));
    // A field is not read; the answer names what would make it possible.
    let target = format!("pid:{}", app.pid());
    let failed = failure(&mut wire, json!({"path": "orders.open", "target": target}));
    let note = failed["notes"][0].as_str().unwrap();
    assert!(note.contains("no field of an object") && note.contains("STATE_URL"), "{failed}");
    assert!(app.is_running());

    // The socket stays, and needs no signal any more.
    let mut wire = serve(&project, &[]);
    assert!(value(&mut wire, "jvm.uptime").as_str().unwrap().ends_with('s'));
}

#[test]
fn a_machine_without_a_handler_for_the_signal_is_not_sent_it() {
    let project = Project::empty();
    let Some(mut app) = start(&project, &["-Xrs", "-XX:+DisableAttachMechanism"]) else { return };
    let mut wire = serve(&project, &[("CORETOOLS_INSPECT_ALLOW_SIGNALS", "true")]);
    let said = said(&mut wire, json!({"path": "jvm.threads"}));
    assert!(said.contains("no handler for the signal"), "{said}");
    assert!(app.is_running());
}
