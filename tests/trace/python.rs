//! Python, by py-spy.

use crate::support::{ProfiledApp, TraceServer, file, has, hot, python_program, source, told};
use integration_tests::wait_until;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
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
    let mut server = TraceServer::start();
    // Beneath the root, where the definition of a function can be read.
    let file_of_app = server.project.join("app.py");
    std::fs::copy(source("app.py"), &file_of_app).unwrap();
    let mut command = Command::new("python3");
    command.arg(&file_of_app).current_dir(server.project.path());
    let app = ProfiledApp::start(command);
    let profile = server.profile(json!({"duration_ms": 1500, "type": "cpu", "target": app.target()}));
    assert_eq!((&profile["runtime"], &profile["format"]), (&json!("python"), &json!("speedscope")));
    let hottest = hot(&profile["summary"]["top_self"], "burn_the_processor");
    assert!(hottest["pct"].as_f64().unwrap() > 10.0, "{profile}");
    let source_text = std::fs::read_to_string(source("app.py")).unwrap();
    let line = source_text.lines().position(|line| line.starts_with("def burn_the_processor")).unwrap() + 1;
    assert_eq!(hottest["line"], line, "{hottest}");
    assert_eq!(hottest["file"], "app.py", "{hottest}");
    let body = line..line + 8;
    let hot_line = hottest["hot_lines"][0]["line"].as_u64().unwrap();
    assert!(body.contains(&usize::try_from(hot_line).unwrap()) && hot_line > line as u64, "{hottest}");
    let text = source_text.lines().nth(usize::try_from(hot_line).unwrap() - 1).unwrap().trim();
    assert_eq!(hottest["hot_lines"][0]["text"], text, "{hottest}");
    assert_eq!(hot(&profile["summary"]["top_total"], "evil")["function"], "evil; <b>");
    assert!(profile["summary"]["idle_pct"].as_f64().is_some());
    assert!(profile["samples"].as_u64().unwrap() > 5, "{profile}");
    assert!(serde_json::from_slice::<serde_json::Value>(&file(&profile["path"])).is_ok());
    roxmltree::Document::parse(std::str::from_utf8(&file(&profile["flame_graph"])).unwrap()).unwrap();
    assert_eq!(app.tracer(), 0);
}

#[test]
fn threads_that_wait_take_no_share() {
    if !has("py-spy") {
        return;
    }
    let mut command = Command::new("python3");
    command.arg(source("waits.py"));
    let (app, mut server) = (ProfiledApp::start(command), TraceServer::start());
    let profile = server.cpu_profile(&app.target(), 100);
    let top = &profile["summary"]["top_total"];
    assert!(hot(top, "burn_the_processor")["pct"].as_f64().unwrap() > 70.0, "{profile}");
    for waiting in ["wait_for_event", "wait_for_peer", "wait_in_queue", "take_naps"] {
        let found = top.as_array().unwrap().iter().find(|hot| hot["function"] == waiting);
        // A few milliseconds for being halted and woken.
        assert!(found.is_none_or(|hot| hot["pct"].as_f64().unwrap() < 10.0), "{waiting}: {profile}");
    }
}

#[test]
fn behind_a_port_of_gunicorn_the_busy_worker_is_profiled() {
    if !has("py-spy") || !has("gunicorn") {
        return;
    }
    let mut command = Command::new(python_program("gunicorn"));
    command.args(["--no-control-socket", "shop:application"]).current_dir(source("gunicorn"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let (app, mut server) = (ProfiledApp::start(command), TraceServer::start());
    // The connection stays, and the worker that accepted it works for it.
    let stream = std::net::TcpStream::connect(("127.0.0.1", app.port)).unwrap();
    (&stream).write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    let busy: u32 = lines.find_map(|line| line.parse().ok()).unwrap();
    let port = format!("port:{}", app.port);
    let profile = server.profile(json!({"duration_ms": 500, "type": "cpu", "target": port}));
    assert_eq!(profile["pid"], busy, "{profile}");
    let note = profile["warnings"][0].as_str().unwrap();
    assert!(note.contains(&format!("serve {}", port.replace(':', " "))), "{note}");
    assert!(
        note.contains(&format!("python {} (", app.pid())) && note.contains(&format!("taken: {busy}")),
        "{note}"
    );
    hot(&profile["summary"]["top_total"], "burn_the_processor");
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
