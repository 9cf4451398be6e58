//! Native programs and the server itself, by perf.

use crate::support::{ProfiledApp, TraceServer, file, has, hot, source, told};
use integration_tests::wait_until;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

/// Compiled as programs are: optimised, without frame pointers.
fn app(folder: &tempfile::TempDir) -> ProfiledApp {
    let program = folder.path().join("app");
    let compiled = Command::new("gcc")
        .args(["-O2", "-g", "-o"])
        .args([&program, &source("app.c")])
        .arg("-lm")
        .status()
        .unwrap();
    assert!(compiled.success());
    ProfiledApp::start(Command::new(program))
}

#[test]
fn self_and_total_shares_are_those_of_the_program_with_file_and_line() {
    if !has("perf") || !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (app, mut server) = (app(&folder), TraceServer::start());
    let profile = server.cpu_profile(&app.target(), 100);
    assert_eq!((&profile["runtime"], &profile["format"]), (&json!("native"), &json!("perf.data")));
    let summary = &profile["summary"];
    let hottest = &summary["top_self"][0];
    assert_eq!(hottest["function"], "burn_the_processor", "{profile}");
    // Nine turns of ten.
    let share = hottest["pct"].as_f64().unwrap();
    assert!((75.0..=98.0).contains(&share), "{summary}");
    if has("addr2line") {
        assert!(hottest["file"].as_str().unwrap().ends_with("apps/app.c"), "{hottest}");
        assert!((4..=8).contains(&hottest["line"].as_u64().unwrap()), "{hottest}");
    }
    // Callers are found though no frame pointer is kept.
    assert!(hot(&summary["top_total"], "work")["pct"].as_f64().unwrap() > 90.0, "{summary}");
    assert!(hot(&summary["top_total"], "main")["pct"].as_f64().unwrap() > 90.0, "{summary}");
    assert!(file(&profile["path"]).starts_with(b"PERFILE2"));
}

#[test]
fn a_cancelled_capture_ends_perf_and_a_program_that_ends_meanwhile_ends_the_capture() {
    if !has("perf") || !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut app, mut server) = (app(&folder), TraceServer::start());
    let mark = format!("-p {} -o", app.pid());
    let recording = || !integration_tests::alive(&mark).is_empty();
    let ask = json!({"duration_ms": 30_000, "type": "cpu", "target": app.target()});
    let id = server.ask(ask.clone());
    wait_until(Duration::from_secs(20), "perf runs", recording);
    server.cancel(id);
    wait_until(Duration::from_secs(10), "perf has ended", || !recording());

    wait_until(Duration::from_secs(10), "the place is free", || {
        std::fs::read_dir(server.traces()).map_or(0, Iterator::count) == 0
    });
    let id = server.ask(ask);
    wait_until(Duration::from_secs(20), "perf runs", recording);
    std::thread::sleep(Duration::from_secs(2));
    let killed = Instant::now();
    app.kill();
    let told = told(&server.wire.answer(id)["result"]);
    assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    assert!(told["kind"] == "gone" || told["warnings"].to_string().contains("the target ended"), "{told}");
}

#[test]
fn the_server_profiles_itself() {
    if !has("perf") {
        return;
    }
    let mut server = TraceServer::start();
    let id = server.ask(json!({"duration_ms": 1500, "type": "cpu", "target": "server"}));
    // It works meanwhile.
    for _ in 0..200 {
        server.wire.request("tools/list", json!({}));
    }
    let result = server.wire.answer(id)["result"].take();
    let profile = &told(&result);
    assert_eq!(
        (&profile["runtime"], &profile["pid"]),
        (&json!("server"), &json!(server.wire.pid())),
        "{result}"
    );
    assert!(profile["samples"].as_u64().unwrap() > 0, "{profile}");
    let names = profile["summary"]["top_total"].to_string();
    assert!(names.contains("mcp_stdio") || names.contains("rmcp") || names.contains("core_tools"), "{names}");

    let profile = server.profile(json!({"duration_ms": 100, "type": "heap", "target": "server"}));
    assert!(profile["summary"]["total_bytes"].as_u64().unwrap() > 1 << 20, "{profile}");
    assert!(profile["warnings"].to_string().contains("allocator"), "{profile}");
    let profile = server.profile(json!({"duration_ms": 100, "type": "network", "target": "server"}));
    assert_eq!(profile["summary"]["source"], "sockets");
}

#[test]
fn it_ends_in_time_or_says_why() {
    if !has("perf") || !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (app, mut server) = (app(&folder), TraceServer::start());
    for kind in ["cpu", "heap", "network"] {
        let started = Instant::now();
        let profile = server.profile(json!({"duration_ms": 500, "type": kind, "target": app.target()}));
        let took = started.elapsed();
        let late = took > Duration::from_millis(500 + 1500 + 250);
        assert!(
            !late || profile["warnings"].to_string().contains("longer than its duration"),
            "{took:?}: {profile}"
        );
    }
}
