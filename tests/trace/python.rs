//! Python, by py-spy.

use crate::support::{ProfiledApp, TraceServer, file, has, hot, source, told};
use integration_tests::wait_until;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

fn app() -> ProfiledApp {
    let mut command = Command::new("python3");
    command.arg(source("app.py"));
    ProfiledApp::start(command)
}

#[test]
fn the_hot_function_is_told_with_file_and_line() {
    if !has("py-spy") {
        return;
    }
    let (app, mut server) = (app(), TraceServer::start());
    let profile = server.profile(json!({"duration_ms": 1500, "type": "cpu", "target": app.target()}));
    assert_eq!((&profile["runtime"], &profile["format"]), (&json!("python"), &json!("speedscope")));
    let hottest = hot(&profile["summary"]["top_self"], "burn_the_processor");
    assert!(hottest["pct"].as_f64().unwrap() > 10.0, "{profile}");
    let source_text = std::fs::read_to_string(source("app.py")).unwrap();
    let line = source_text.lines().position(|line| line.starts_with("def burn_the_processor")).unwrap() + 1;
    assert_eq!(hottest["line"], line, "{hottest}");
    assert!(hottest["file"].as_str().unwrap().ends_with("trace/apps/app.py"), "{hottest}");
    assert_eq!(hot(&profile["summary"]["top_total"], "evil")["function"], "evil; <b>");
    assert!(profile["summary"]["idle_pct"].as_f64().is_some());
    assert!(profile["samples"].as_u64().unwrap() > 5, "{profile}");
    assert!(serde_json::from_slice::<serde_json::Value>(&file(&profile["path"])).is_ok());
    roxmltree::Document::parse(std::str::from_utf8(&file(&profile["flame_graph"])).unwrap()).unwrap();
    assert_eq!(app.tracer(), 0);
}

#[test]
fn a_cancelled_capture_lets_go_of_the_process() {
    if !has("py-spy") {
        return;
    }
    let (app, mut server) = (app(), TraceServer::start());
    let id = server.ask(json!({"duration_ms": 30_000, "type": "cpu", "target": app.target()}));
    let spies = || integration_tests::alive(&format!("record --pid {} ", app.pid()));
    wait_until(Duration::from_secs(20), "it samples", || !spies().is_empty());
    server.cancel(id);
    wait_until(Duration::from_secs(10), "py-spy has ended", || spies().is_empty());
    assert_eq!(app.tracer(), 0);
    // It runs on: its own time grows.
    let ticks = || std::fs::read_to_string(format!("/proc/{}/stat", app.pid())).unwrap();
    let before = ticks();
    wait_until(Duration::from_secs(10), "it runs", || ticks() != before);
    let left = || std::fs::read_dir(server.traces()).map_or(0, Iterator::count);
    wait_until(Duration::from_secs(10), "no half a profile is left", || left() == 0);
}

#[test]
fn of_a_process_that_ends_meanwhile_the_time_before_is_told() {
    if !has("py-spy") {
        return;
    }
    let (mut app, mut server) = (app(), TraceServer::start());
    let id = server.ask(json!({"duration_ms": 30_000, "type": "cpu", "target": app.target()}));
    let spies = || integration_tests::alive(&format!("record --pid {} ", app.pid()));
    wait_until(Duration::from_secs(20), "it samples", || !spies().is_empty());
    std::thread::sleep(Duration::from_millis(1500));
    let killed = Instant::now();
    app.kill();
    let result = server.wire.answer(id)["result"].take();
    assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
    let told = &told(&result);
    assert!(told["kind"] == "gone" || told["warnings"].to_string().contains("the target ended"), "{result}");
}

#[test]
fn a_process_that_a_debugger_traces_is_busy() {
    if !has("py-spy") || !has("strace") {
        return;
    }
    let (app, mut server) = (app(), TraceServer::start());
    let mut tracer = Command::new("strace")
        .args(["-qq", "-e", "trace=none", "-p", &app.pid().to_string()])
        .spawn()
        .unwrap();
    wait_until(Duration::from_secs(20), "it is traced", || app.tracer() != 0);
    let refusal = server.refusal(json!({"duration_ms": 100, "type": "cpu", "target": app.target()}));
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    assert_eq!(refusal["kind"], "busy", "{refusal}");
}

#[test]
fn memory_is_told_by_mapping_with_what_would_tell_more() {
    let (app, mut server) = (app(), TraceServer::start());
    let profile = server.profile(json!({"duration_ms": 200, "type": "heap", "target": app.target()}));
    assert!(profile["summary"]["total_bytes"].as_u64().unwrap() > 1 << 20, "{profile}");
    assert!(profile["warnings"].to_string().contains("tracemalloc"), "{profile}");
    let refusal =
        server.refusal(json!({"duration_ms": 200, "type": "heap", "target": app.target(), "snapshot": true}));
    assert_eq!(refusal["kind"], "unsupported");
}

#[test]
fn without_the_profiler_the_answer_says_how_to_get_it() {
    let app = app();
    let project = integration_tests::Project::empty();
    let mut command = crate::support::command(&project);
    command.env("PATH", "/nonexistent");
    let mut wire = integration_tests::Wire::connect(command, integration_tests::Era::Modern);
    let result =
        wire.call("capture_trace", json!({"duration_ms": 100, "type": "cpu", "target": app.target()}));
    assert_eq!(told(&result)["kind"], "missing_program", "{result}");
    assert!(told(&result)["remedy"].as_str().unwrap().contains("pip"), "{result}");
}

#[test]
fn a_profiler_beneath_a_root_is_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let app = app();
    let project = integration_tests::Project::with([("bin/py-spy", "#!/bin/sh\ntouch \"$0.ran\"\n")]);
    std::fs::set_permissions(project.join("bin/py-spy"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = crate::support::command(&project);
    command.env("PATH", project.join("bin"));
    let mut wire = integration_tests::Wire::connect(command, integration_tests::Era::Modern);
    let result =
        wire.call("capture_trace", json!({"duration_ms": 100, "type": "cpu", "target": app.target()}));
    assert_eq!(told(&result)["kind"], "missing_program", "{result}");
    assert!(!project.join("bin/py-spy.ran").exists());
}
