//! Go, by what `expvar` publishes.

use crate::app::{InspectedApp, program, source};
use crate::{answer, failure, serve, value};
use integration_tests::Project;
use serde_json::json;
use std::process::Command;

#[test]
fn what_expvar_publishes_is_read_by_setting_and_by_target() {
    let Some(go) = program("go") else { return };
    let project = Project::empty();
    let mut build = Command::new(go);
    build.args(["build", "-o"]).arg(project.join("shop")).arg(source("main.go"));
    assert!(
        build
            .current_dir(project.path())
            .env("GOFLAGS", "-mod=mod")
            .env("GO111MODULE", "off")
            .status()
            .unwrap()
            .success()
    );
    let app = InspectedApp::start(&project, Command::new(project.join("shop")));
    let url = format!("http://127.0.0.1:{}/debug/vars", app.port());

    let mut wire = serve(&project, &[("STATE_URL", &url)]);
    let found = answer(&mut wire, json!({"path": "orders.open"}));
    assert_eq!(found["value"], 3);
    assert!(found["source"].as_str().unwrap().starts_with("http: 127.0.0.1:"), "{found}");
    assert!(value(&mut wire, "memstats.HeapAlloc").as_u64().unwrap() > 0);
    assert_eq!(failure(&mut wire, json!({"path": "orders.closed"}))["keys"], json!(["open"]));

    let mut wire = serve(&project, &[]);
    assert_eq!(answer(&mut wire, json!({"path": "note", "target": url}))["value"], "from go");
    assert_eq!(answer(&mut wire, json!({"path": "process.runtime"}))["value"], "go");
}
