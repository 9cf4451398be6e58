//! Go programs, by net/http/pprof.

use crate::support::{ProfiledApp, TraceServer, file, has, hot, source};
use integration_tests::wait_until;
use serde_json::json;
use std::process::Command;
use std::time::Duration;

fn app(folder: &tempfile::TempDir) -> ProfiledApp {
    let program = folder.path().join("app");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(source("go"));
    assert!(build.status().unwrap().success());
    ProfiledApp::start(Command::new(program))
}

#[test]
fn time_and_memory_are_told_by_function() {
    if !has("go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (app, mut server) = (app(&folder), TraceServer::start());
    let profile = server.profile(json!({"duration_ms": 1000, "type": "cpu", "target": app.target()}));
    assert_eq!((&profile["runtime"], &profile["format"]), (&json!("go"), &json!("pprof")));
    // The runtime's own interruptions are booked above it.
    let hottest = hot(&profile["summary"]["top_total"], "main.burnTheProcessor");
    assert!(hottest["line"].as_u64().is_some(), "{hottest}");
    assert!(hottest["file"].as_str().unwrap().ends_with("apps/go/main.go"), "{hottest}");
    assert!(hottest["pct"].as_f64().unwrap() > 50.0, "{profile}");
    assert!(file(&profile["path"]).starts_with(&[0x1f, 0x8b]));
    roxmltree::Document::parse(std::str::from_utf8(&file(&profile["flame_graph"])).unwrap()).unwrap();

    let url = format!("http://127.0.0.1:{}/", app.port);
    let profile = server.profile(json!({"duration_ms": 300, "type": "heap", "target": url}));
    assert_eq!(profile["format"], "pprof");
    hot(&profile["summary"]["top_allocators"], "main.keepItems");
    let profile = server.profile(json!({"duration_ms": 300, "type": "network", "target": app.target()}));
    assert_eq!(profile["summary"]["source"], "sockets");
}

#[test]
fn a_cancelled_capture_ends_the_profiler_in_the_program() {
    if !has("go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (app, mut server) = (app(&folder), TraceServer::start());
    let running = || app.get("/debug/pprof/goroutine?debug=1").contains("pprof.Profile+");
    let id = server.ask(json!({"duration_ms": 30_000, "type": "cpu", "target": app.target()}));
    wait_until(Duration::from_secs(20), "it profiles", running);
    server.cancel(id);
    wait_until(Duration::from_secs(10), "it has ended", || !running());
}
