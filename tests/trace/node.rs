//! Node.js and Deno, by their inspector.

use crate::support::{ProfiledApp, TraceServer, command, file, has, hot, source, told};
use integration_tests::{Era, Project, Wire, wait_until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A program that runs JavaScript.
struct JavaScriptEngine {
    /// As answers name it.
    name: &'static str,
    program: PathBuf,
    arguments: &'static [&'static str],
}

const NODE: &[&str] = &["--inspect=127.0.0.1:0"];
/// Where they are, and what makes them open their inspector: the system's Node.js, and those of `.nodes`.
const ENGINES: [(&str, &str, &[&str]); 4] = [
    ("node", "node", NODE),
    ("node", ".nodes/node_modules/node22/bin/node", NODE),
    ("node", ".nodes/node_modules/node24/bin/node", NODE),
    ("deno", ".nodes/node_modules/deno/deno", &["run", "--allow-all", "--inspect=127.0.0.1:0"]),
];

impl JavaScriptEngine {
    /// Those that are here; where one is not the test says so, and fails in CI.
    fn all() -> impl Iterator<Item = Self> {
        ENGINES.into_iter().filter_map(|(name, program, arguments)| {
            let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(program).canonicalize();
            let program = match program.contains('/') {
                true => integration_tests::require(
                    here.ok(),
                    &format!("no {program}; `.ci/run tools` installs it"),
                )?,
                false => has(program).then(|| program.into())?,
            };
            Some(Self { name, program, arguments })
        })
    }

    /// The application, with an inspector.
    fn app(&self, arguments: &[&str]) -> ProfiledApp {
        let mut command = Command::new(&self.program);
        command.args(self.arguments).arg(source("app.cjs")).args(arguments);
        command.env_remove("NODE_OPTIONS").env_remove("NODE_V8_COVERAGE");
        ProfiledApp::start(command)
    }
}

/// The same, by the system's Node.js.
fn app(arguments: &[&str]) -> ProfiledApp {
    let node = JavaScriptEngine { name: "node", program: "node".into(), arguments: NODE };
    node.app(arguments)
}

#[test]
fn the_hot_function_is_told_with_file_line_and_share() {
    for engine in JavaScriptEngine::all() {
        // The second capture finds a program that is optimised throughout.
        let (app, mut server) = (engine.app(&[]), TraceServer::start());
        for _ in 0..2 {
            let ask = json!({"duration_ms": 1500, "type": "cpu", "target": app.target()});
            let profile = server.profile(ask);
            assert_eq!(
                (&profile["runtime"], &profile["format"]),
                (&json!(engine.name), &json!("cpuprofile"))
            );
            // V8 of Node.js 24 gives samples to a wrong function for a while after it has compiled one (docs/trace.md).
            let top = profile["summary"]["top_self"].as_array().unwrap();
            let hottest = top.iter().take(2).find(|entry| entry["function"] == "burnTheProcessor");
            let hottest = hottest.unwrap_or_else(|| panic!("{:?}: {profile}", engine.program));
            assert!(hottest["file"].as_str().unwrap().ends_with("trace/apps/app.cjs"), "{hottest}");
            assert!(hottest["pct"].as_f64().unwrap() > 20.0, "{hottest}");
        }
    }
}

#[test]
fn the_line_and_the_flame_graph_are_those_of_the_program() {
    if !has("node") {
        return;
    }
    let (app, mut server) = (app(&[]), TraceServer::start());
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
    let source_text = std::fs::read_to_string(source("app.cjs")).unwrap();
    let line =
        source_text.lines().position(|line| line.starts_with("function burnTheProcessor")).unwrap() + 1;
    assert_eq!(hottest["line"], line);
    assert!(hottest["file"].as_str().unwrap().ends_with("trace/apps/app.cjs"), "{hottest}");
    assert!(hottest["pct"].as_f64().unwrap() > 40.0, "{hottest}");
    // The line that is hot, which is not that of the definition.
    let hot_line = &hottest["hot_lines"][0];
    assert_eq!(hot_line["line"], line + 3, "{hottest}");
    assert!(hot_line["pct"].as_f64().unwrap() > 20.0, "{hottest}");
    // Of the runtime's own functions only those that take much are entries.
    let total = summary["top_total"].as_array().unwrap();
    assert!(
        total.iter().all(|hot| !hot["file"].as_str().unwrap_or_default().starts_with("node:")),
        "{summary}"
    );
    assert!(profile["warnings"].to_string().contains("V8 has inlined"), "{profile}");
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
    // The script that zooms is the only one, and nothing of the program is in it.
    let scripts: Vec<_> = svg.descendants().filter(|node| node.has_tag_name("script")).collect();
    let [script] = &scripts[..] else { panic!("{} scripts", scripts.len()) };
    assert!(!script.text().unwrap_or_default().contains("alert"));
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
    for engine in JavaScriptEngine::all() {
        let (app, mut server) = (engine.app(&[]), TraceServer::start());
        let profile = server.profile(json!({"duration_ms": 1500, "type": "heap", "target": app.target()}));
        assert_eq!(profile["format"], "heapprofile");
        assert_eq!(profile.get("paused_ms"), None);
        let summary = &profile["summary"];
        assert!(summary["used_bytes"][1].as_u64().unwrap() > 1 << 20, "{summary}");
        assert!(!summary["top_allocators"].as_array().unwrap().is_empty(), "{summary}");
        assert!(serde_json::from_slice::<Value>(&file(&profile["path"])).unwrap()["head"].is_object());

        let profile = server
            .profile(json!({"duration_ms": 100, "type": "heap", "target": app.target(), "snapshot": true}));
        assert_eq!(profile["format"], "heapsnapshot");
        assert!(profile["paused_ms"].as_u64().is_some(), "{profile}");
        let summary = &profile["summary"];
        let items = summary["biggest"].as_array().unwrap().iter().find(|big| big["name"] == "CartItem");
        assert!(items.unwrap()["count"].as_u64().unwrap() >= 200, "{summary}");
        let bytes = file(&profile["path"]);
        assert!(bytes.starts_with(b"{\"snapshot\"") && bytes.len() > 1 << 20, "{}", bytes.len());
        assert_eq!(profile["bytes"], bytes.len());
    }
}

#[test]
fn requests_are_told_by_route_without_secrets_and_nobody_listens_afterwards() {
    for engine in JavaScriptEngine::all() {
        let (app, mut server) = (engine.app(&[]), TraceServer::start());
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
        // Deno's own `fetch` is seen as what it is to the system.
        match engine.name {
            "deno" => {
                let connections = summary["connections"].as_array().unwrap();
                assert!(!connections.is_empty(), "{summary}");
                // None of the inspector, which we are connected with.
                let mut incoming = connections.iter().filter(|told| told["direction"] == "in");
                assert!(incoming.all(|told| told["port"] == json!(app.port)), "{summary}");
                assert!(profile["warnings"].to_string().contains("Deno.serve"), "{profile}");
            }
            _ => assert_eq!(route("out", "/fetched")["method"], "GET"),
        }
        assert!(summary["errors"].as_u64().unwrap() > 0);
        let text = format!("{profile}{}", String::from_utf8(file(&profile["path"])).unwrap());
        assert!(!text.contains("sesame"), "{text}");
    }
}

#[test]
fn a_request_that_its_client_aborts_ends_as_aborted() {
    if !has("node") {
        return;
    }
    let (app, mut server) = (app(&["quiet"]), TraceServer::start());
    let id = server.ask(json!({"duration_ms": 3000, "type": "network", "target": app.target()}));
    wait_until(Duration::from_secs(20), "it listens", || app.get("/subscribers") != "[]");
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", app.port)).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    wait_until(Duration::from_secs(10), "it has begun", || app.get("/held") == "1");
    drop(stream);
    let profile = told(&server.wire.answer(id)["result"]);
    let summary = &profile["summary"];
    let routes = summary["routes"].as_array().unwrap();
    let route = routes.iter().find(|route| route["route"] == "/never").unwrap();
    assert_eq!((&route["statuses"], &summary["unfinished"]), (&json!({"error": 1}), &json!(0)), "{summary}");
    let slowest = summary["slowest"].as_array().unwrap();
    assert!(slowest.iter().any(|slow| slow["status"] == "aborted"), "{summary}");
}

#[test]
fn a_cancelled_capture_leaves_nothing_behind() {
    for engine in JavaScriptEngine::all() {
        let (app, mut server) = (engine.app(&[]), TraceServer::start());
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
}

#[test]
fn listeners_end_by_themselves_where_the_server_was_killed() {
    let listened_to = JavaScriptEngine::all().map(|engine| {
        let (app, mut server) = (engine.app(&["quiet"]), TraceServer::start());
        server.ask(json!({"duration_ms": 5000, "type": "network", "target": app.target()}));
        wait_until(Duration::from_secs(20), "it listens", || app.get("/subscribers") != "[]");
        server.wire.signal(rustix::process::Signal::KILL);
        app
    });
    // All of them first, as each takes its time.
    for app in listened_to.collect::<Vec<ProfiledApp>>() {
        wait_until(Duration::from_secs(30), "nobody listens", || app.get("/subscribers") == "[]");
    }
}

#[test]
fn a_second_capture_of_a_process_is_busy_and_of_another_is_not() {
    if !has("node") {
        return;
    }
    let (first, second, mut server) = (app(&["quiet"]), app(&["quiet"]), TraceServer::start());
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
    for engine in JavaScriptEngine::all() {
        for kind in ["cpu", "network", "heap"] {
            let (mut app, mut server) = (engine.app(&["quiet"]), TraceServer::start());
            let id = server.ask(json!({"duration_ms": 30_000, "type": kind, "target": app.target()}));
            wait_until(Duration::from_secs(20), "it has begun", || {
                std::fs::read_dir(server.traces()).is_ok()
            });
            std::thread::sleep(Duration::from_millis(500));
            let killed = Instant::now();
            app.kill();
            let result = server.wire.answer(id)["result"].take();
            assert_eq!(told(&result)["kind"], "gone", "{kind}: {result}");
            assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
            assert_eq!(std::fs::read_dir(server.traces()).unwrap().count(), 0);
        }
    }
}

#[test]
fn without_an_inspector_the_remedy_is_told_and_connections_are() {
    if !has("node") {
        return;
    }
    let mut command = Command::new("node");
    command.arg(source("app.cjs"));
    let (app, mut server) = (ProfiledApp::start(command), TraceServer::start());
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
    let project = Project::with([("app.cjs", std::fs::read_to_string(source("app.cjs")).unwrap().as_str())]);
    let mut wire = Wire::connect(command(&project), Era::Modern);
    let ask = json!({"duration_ms": 200, "type": "cpu"});
    let none = wire.call("capture_trace", ask.clone());
    assert_eq!(told(&none)["kind"], "no_target", "{none}");
    let start = || {
        let mut command = Command::new("node");
        command.args(["--inspect=127.0.0.1:0", "app.cjs", "quiet"]).current_dir(project.path());
        ProfiledApp::start(command)
    };
    let app = start();
    let found = wire.call("capture_trace", ask.clone());
    assert_eq!(told(&found)["pid"], app.pid(), "{found}");
    let _second = start();
    let several = wire.call("capture_trace", ask);
    assert_eq!(told(&several)["kind"], "no_target", "{several}");
    assert!(told(&several)["error"].as_str().unwrap().contains(&app.pid().to_string()), "{several}");
}

#[test]
fn a_target_that_exits_is_not_held_and_the_time_before_is_told() {
    if !has("node") {
        return;
    }
    for kind in ["cpu", "network"] {
        let (mut app, mut server) = (app(&[]), TraceServer::start());
        let id = server.ask(json!({"duration_ms": 30_000, "type": kind, "target": app.target()}));
        let records = || match kind {
            // The engine's profiler has a thread of its own.
            "cpu" => {
                std::fs::read_dir(format!("/proc/{}/task", app.pid())).unwrap().flatten().any(|thread| {
                    std::fs::read_to_string(thread.path().join("comm"))
                        .is_ok_and(|name| name.starts_with("v8:Prof"))
                })
            }
            _ => app.get("/subscribers") != "[]",
        };
        wait_until(Duration::from_secs(20), "it records", records);
        app.get("/exit");
        // Long before the capture would have ended.
        wait_until(Duration::from_secs(20), "it ends", || !app.is_running());
        let result = server.wire.answer(id)["result"].take();
        assert_eq!(result["isError"], false, "{result}");
        let profile = told(&result);
        assert!(profile["warnings"].to_string().contains("the target ended after"), "{profile}");
        assert!(profile["duration_ms"].as_u64().unwrap() < 30_000, "{profile}");
        assert!(!file(&profile["path"]).is_empty());
    }
}

#[test]
fn behind_the_port_of_a_cluster_the_busy_worker_is_profiled() {
    if !has("node") {
        return;
    }
    let mut command = Command::new("node");
    command.arg("--inspect=127.0.0.1:0").arg(source("cluster.cjs")).env_remove("NODE_OPTIONS");
    let (app, mut server) = (ProfiledApp::start(command), TraceServer::start());
    let busy: u32 = app.get("/busy").parse().unwrap();
    let port = format!("port:{}", app.port);
    let profile = server.profile(json!({"duration_ms": 300, "type": "cpu", "target": port}));
    assert_eq!(profile["pid"], busy, "{profile}");
    let note = profile["warnings"][0].as_str().unwrap();
    assert!(note.starts_with("3 processes serve port") && note.contains(&format!("taken: {busy}")), "{note}");
    hot(&profile["summary"]["top_total"], "burnTheProcessor");
}

#[test]
fn a_process_is_named_by_its_script_and_several_are_listed() {
    if !has("node") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = format!("shop-{}.cjs", std::process::id());
    let script = folder.path().join(&name);
    std::fs::copy(source("app.cjs"), &script).unwrap();
    let start = || {
        let mut command = Command::new("node");
        command.arg("--inspect=127.0.0.1:0").arg(&script).arg("quiet").env_remove("NODE_OPTIONS");
        ProfiledApp::start(command)
    };
    let (first, mut server) = (start(), TraceServer::start());
    let ask = json!({"duration_ms": 100, "type": "cpu", "target": format!("process:{name}")});
    assert_eq!(server.profile(ask.clone())["pid"], first.pid());
    let second = start();
    let refusal = server.refusal(ask);
    assert_eq!(refusal["kind"], "no_target", "{refusal}");
    let error = refusal["error"].as_str().unwrap();
    for app in [&first, &second] {
        assert!(error.contains(&format!("node {} (node --inspect", app.pid())), "{error}");
    }
    // A part of the name is not the name.
    let part = name.strip_suffix(".cjs").unwrap();
    let part = json!({"duration_ms": 100, "type": "cpu", "target": format!("process:{part}")});
    assert!(server.refusal(part)["error"].as_str().unwrap().contains("no process"));
}
