//! Node.js, by its inspector.

use crate::support::{App, Server, command, file, has, hot, source, told};
use integration_tests::{Era, Project, Wire, wait_until};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

fn app(arguments: &[&str]) -> App {
    let mut command = Command::new("node");
    command.arg("--inspect=127.0.0.1:0").arg(source("app.js")).args(arguments);
    App::start(command)
}

#[test]
fn the_hot_function_is_told_with_file_line_share_and_flame_graph() {
    if !has("node") {
        return;
    }
    let (app, mut server) = (app(&[]), Server::start());
    let result = server.wire.call(
        "capture_trace",
        json!({"duration_ms": 1500, "type": "cpu", "target": app.target(), "image": true}),
    );
    assert_eq!(result["isError"], false, "{result}");
    let profile = &told(&result);
    assert_eq!((&profile["runtime"], &profile["format"]), (&json!("node"), &json!("cpuprofile")));
    let summary = &profile["summary"];
    let hottest = &summary["top_self"][0];
    assert_eq!(hottest["function"], "burnTheProcessor", "{summary}");
    let source_text = std::fs::read_to_string(source("app.js")).unwrap();
    let line =
        source_text.lines().position(|line| line.starts_with("function burnTheProcessor")).unwrap() + 1;
    assert_eq!(hottest["line"], line);
    assert!(hottest["file"].as_str().unwrap().ends_with("trace/apps/app.js"), "{hottest}");
    assert!(hottest["pct"].as_f64().unwrap() > 40.0, "{hottest}");
    // It waits for half of the time, more or less.
    let idle = summary["idle_pct"].as_f64().unwrap();
    assert!(idle > 1.0 && idle < 99.0, "{summary}");
    // A hostile name is one line, in the answer and in the files.
    let hostile = hot(&summary["top_total"], "evil;");
    assert_eq!(hostile["function"], "evil; <script>alert(1)</script>");

    let native: Value = serde_json::from_slice(&file(&profile["path"])).unwrap();
    assert!(native["nodes"].as_array().unwrap().len() > 5);
    assert_eq!(profile["bytes"], file(&profile["path"]).len());
    let svg = String::from_utf8(file(&profile["flame_graph"])).unwrap();
    let svg = roxmltree::Document::parse(&svg).unwrap();
    assert!(svg.descendants().all(|node| !node.has_tag_name("script")));
    assert!(
        svg.descendants().any(|node| node.text().is_some_and(|text| text.starts_with("burnTheProcessor (")))
    );

    let image = result["content"].as_array().unwrap().iter().find(|block| block["type"] == "image").unwrap();
    assert_eq!(image["mimeType"], "image/png");
    let png = decode(image["data"].as_str().unwrap());
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.width, 1200);
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[test]
fn who_allocates_is_told_without_halting_and_what_there_is_by_a_snapshot() {
    if !has("node") {
        return;
    }
    let (app, mut server) = (app(&[]), Server::start());
    let profile = server.profile(json!({"duration_ms": 1500, "type": "heap", "target": app.target()}));
    assert_eq!(profile["format"], "heapprofile");
    assert_eq!(profile.get("paused_ms"), None);
    let summary = &profile["summary"];
    assert!(summary["used_bytes"][1].as_u64().unwrap() > 1 << 20, "{summary}");
    assert!(!summary["top_allocators"].as_array().unwrap().is_empty(), "{summary}");
    assert!(serde_json::from_slice::<Value>(&file(&profile["path"])).unwrap()["head"].is_object());

    let profile =
        server.profile(json!({"duration_ms": 100, "type": "heap", "target": app.target(), "snapshot": true}));
    assert_eq!(profile["format"], "heapsnapshot");
    assert!(profile["paused_ms"].as_u64().is_some(), "{profile}");
    let summary = &profile["summary"];
    let items = summary["biggest"].as_array().unwrap().iter().find(|big| big["name"] == "CartItem");
    assert!(items.unwrap()["count"].as_u64().unwrap() >= 200, "{summary}");
    let bytes = file(&profile["path"]);
    assert!(bytes.starts_with(b"{\"snapshot\"") && bytes.len() > 1 << 20, "{}", bytes.len());
    assert_eq!(profile["bytes"], bytes.len());
}

#[test]
fn requests_are_told_by_route_without_secrets_and_nobody_listens_afterwards() {
    if !has("node") {
        return;
    }
    let (app, mut server) = (app(&[]), Server::start());
    assert_eq!(app.get("/subscribers"), "[]");
    let profile = server.profile(json!({"duration_ms": 2500, "type": "network", "target": app.target()}));
    assert_eq!(app.get("/subscribers"), "[]");
    let summary = &profile["summary"];
    let route = |direction: &str, route: &str| {
        let routes = summary["routes"].as_array().unwrap();
        let found = routes.iter().find(|told| told["direction"] == direction && told["route"] == route);
        found.unwrap_or_else(|| panic!("no {direction} {route} in {summary}"))
    };
    assert!(route("in", "/slow")["p50_ms"].as_f64().unwrap() >= 115.0, "{summary}");
    assert!(route("in", "/users/:id")["count"].as_u64().unwrap() > 1, "{summary}");
    assert!(route("out", "/broken")["statuses"]["503"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(route("out", "/fetched")["method"], "GET");
    assert!(summary["errors"].as_u64().unwrap() > 0);
    let text = format!("{profile}{}", String::from_utf8(file(&profile["path"])).unwrap());
    assert!(!text.contains("sesame"), "{text}");
}

#[test]
fn a_cancelled_capture_leaves_nothing_behind() {
    if !has("node") {
        return;
    }
    let (app, mut server) = (app(&[]), Server::start());
    for kind in ["network", "cpu", "heap"] {
        let id = server.ask(json!({"duration_ms": 30_000, "type": kind, "target": app.target()}));
        if kind == "network" {
            wait_until(Duration::from_secs(20), "it listens", || app.get("/subscribers") != "[]");
        } else {
            wait_until(Duration::from_secs(20), "it has begun", || {
                std::fs::read_dir(server.traces()).is_ok()
            });
            std::thread::sleep(Duration::from_millis(300));
        }
        server.cancel(id);
        wait_until(Duration::from_secs(10), "nobody listens", || app.get("/subscribers") == "[]");
    }
    // The place is free, and no half a profile is left.
    let again = Instant::now();
    loop {
        let result = server
            .wire
            .call("capture_trace", json!({"duration_ms": 100, "type": "cpu", "target": app.target()}));
        if result["isError"] == false {
            break;
        }
        assert!(again.elapsed() < Duration::from_secs(10), "{result}");
    }
    let left = std::fs::read_dir(server.traces()).unwrap().count();
    assert_eq!(left, 3, "profile, stacks and graph of the last one");
}

#[test]
fn listeners_end_by_themselves_where_the_server_was_killed() {
    if !has("node") {
        return;
    }
    let (app, mut server) = (app(&[]), Server::start());
    server.ask(json!({"duration_ms": 5000, "type": "network", "target": app.target()}));
    wait_until(Duration::from_secs(20), "it listens", || app.get("/subscribers") != "[]");
    server.wire.signal(rustix::process::Signal::KILL);
    wait_until(Duration::from_secs(30), "nobody listens", || app.get("/subscribers") == "[]");
}

#[test]
fn a_second_capture_of_a_process_is_busy_and_of_another_is_not() {
    if !has("node") {
        return;
    }
    let (first, second, mut server) = (app(&["quiet"]), app(&["quiet"]), Server::start());
    let id = server.ask(json!({"duration_ms": 8000, "type": "network", "target": first.target()}));
    wait_until(Duration::from_secs(20), "it listens", || first.get("/subscribers") != "[]");
    let refusal = server.refusal(json!({"duration_ms": 100, "type": "cpu", "target": first.target()}));
    assert_eq!(refusal["kind"], "busy");
    assert!(refusal["remedy"].as_str().unwrap().contains("wait"), "{refusal}");
    server.profile(json!({"duration_ms": 100, "type": "cpu", "target": format!("port:{}", second.port)}));
    assert_eq!(server.wire.answer(id)["result"]["isError"], false);
}

#[test]
fn a_target_that_ends_meanwhile_is_gone_at_once() {
    if !has("node") {
        return;
    }
    for kind in ["cpu", "network", "heap"] {
        let (mut app, mut server) = (app(&["quiet"]), Server::start());
        let id = server.ask(json!({"duration_ms": 30_000, "type": kind, "target": app.target()}));
        wait_until(Duration::from_secs(20), "it has begun", || std::fs::read_dir(server.traces()).is_ok());
        std::thread::sleep(Duration::from_millis(500));
        let killed = Instant::now();
        app.kill();
        let result = server.wire.answer(id)["result"].take();
        assert_eq!(told(&result)["kind"], "gone", "{kind}: {result}");
        assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
        assert_eq!(std::fs::read_dir(server.traces()).unwrap().count(), 0);
    }
}

#[test]
fn without_an_inspector_the_remedy_is_told_and_connections_are() {
    if !has("node") {
        return;
    }
    let mut command = Command::new("node");
    command.arg(source("app.js"));
    let (app, mut server) = (App::start(command), Server::start());
    let refusal = server.refusal(json!({"duration_ms": 100, "type": "cpu", "target": app.target()}));
    assert_eq!(refusal["kind"], "unsupported");
    assert!(refusal["remedy"].as_str().unwrap().contains("--inspect"), "{refusal}");
    let profile = server.profile(json!({"duration_ms": 1000, "type": "network", "target": app.target()}));
    assert_eq!(profile["summary"]["source"], "sockets");
    assert!(profile["warnings"].to_string().contains("--inspect"), "{profile}");
}

#[test]
fn the_application_is_found_where_no_target_is_named() {
    if !has("node") {
        return;
    }
    let project = Project::with([("app.js", std::fs::read_to_string(source("app.js")).unwrap().as_str())]);
    let mut wire = Wire::connect(command(&project), Era::Modern);
    let ask = json!({"duration_ms": 200, "type": "cpu"});
    let none = wire.call("capture_trace", ask.clone());
    assert_eq!(told(&none)["kind"], "no_target", "{none}");
    let start = || {
        let mut command = Command::new("node");
        command.args(["--inspect=127.0.0.1:0", "app.js", "quiet"]).current_dir(project.path());
        App::start(command)
    };
    let app = start();
    let found = wire.call("capture_trace", ask.clone());
    assert_eq!(told(&found)["pid"], app.pid(), "{found}");
    let _second = start();
    let several = wire.call("capture_trace", ask);
    assert_eq!(told(&several)["kind"], "no_target", "{several}");
    assert!(told(&several)["error"].as_str().unwrap().contains(&app.pid().to_string()), "{several}");
}
