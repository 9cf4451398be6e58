//! How a target is named and found, and what is said where there is none.

use crate::app::{InspectedApp, program, source, state};
use crate::{answer, failure, said, serve, value};
use integration_tests::Project;
use serde_json::json;
use std::process::Command;

#[test]
fn without_anything_to_look_into_it_is_said_how_to_start_the_program() {
    let project = Project::empty();
    let mut wire = serve(&project, &[]);
    let failed = failure(&mut wire, json!({"path": "state"}));
    assert_eq!((&failed["value"], &failed["error"]), (&json!(null), &json!("No inspectable process")));
    assert_eq!(failed.get("tried"), None, "no provider had a reason of its own: {failed}");
    assert!(failed["notes"][0].as_str().unwrap().contains("--inspect=127.0.0.1:0"));
}

#[test]
fn a_variable_is_answered_from_the_servers_environment_where_there_is_no_program() {
    let project = Project::empty();
    let variables =
        [("NODE_ENV", "staging"), ("SHOP_API_KEY", "sk-very-secret-value-1"), ("SHORT_TOKEN", "abc")];
    let mut wire = serve(&project, &variables);
    let found = answer(&mut wire, json!({"path": "process.env.NODE_ENV"}));
    assert_eq!((&found["value"], &found["source"]), (&json!("staging"), &json!("server-env")));
    // The redaction of everything that leaves holds for the exact leaf as well.
    let found = answer(&mut wire, json!({"path": "process.env.SHOP_API_KEY"})).to_string();
    assert!(!found.contains("very-secret") && found.contains("[redacted"), "{found}");
    assert_eq!(failure(&mut wire, json!({"path": "process.env"}))["error"], "No inspectable process");
    assert_eq!(
        failure(&mut wire, json!({"path": "process.env.NOBODY_HAS_IT"}))["error"],
        "No inspectable process"
    );
    // Not where a target was named.
    assert!(
        said(&mut wire, json!({"path": "process.env.NODE_ENV", "target": "port:1"}))
            .contains("nothing listens on port 1")
    );
}

#[test]
fn a_target_is_named_by_process_port_and_url_and_by_the_settings() {
    let Some(node) = program("node") else { return };
    let project = Project::empty();
    let one = state(&project, &node, &[]);
    let port = {
        let mut wire = serve(&project, &[]);
        let listens = value_of(&mut wire, one.pid());
        listens.into_iter().find(|port| is_inspector(*port)).unwrap()
    };
    let _two = state(&project, &node, &[]);
    let mut wire = serve(&project, &[]);
    let failed = failure(&mut wire, json!({"path": "state.count"}));
    assert!(failed["error"].as_str().unwrap().starts_with("several processes can be inspected"), "{failed}");
    for target in [
        format!("pid:{}", one.pid()),
        format!("port:{port}"),
        format!("ws://127.0.0.1:{port}"),
        format!("ws://localhost:{port}/"),
    ] {
        let found = answer(&mut wire, json!({"path": "process.pid", "target": target}));
        assert_eq!(found["value"], one.pid(), "{target}");
    }
    for (name, text) in [
        ("NODE_INSPECT_PORT", port.to_string()),
        ("INSPECT_TARGET", format!("pid:{}", one.pid())),
        ("CORETOOLS_INSPECT_TARGET", format!("port:{port}")),
    ] {
        let mut wire = serve(&project, &[(name, &text)]);
        assert_eq!(value(&mut wire, "process.pid"), one.pid(), "{name}");
    }
}

fn value_of(wire: &mut integration_tests::Wire, pid: u32) -> Vec<u16> {
    let found = answer(wire, json!({"path": "process.listens", "target": format!("pid:{pid}")}));
    let listens = found["value"].as_array().unwrap().iter();
    listens.map(|address| address.as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()).collect()
}

fn is_inspector(port: u16) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    let _ =
        stream.write_all(format!("GET /json/version HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes());
    let mut answer = [0; 1000];
    let read = stream.read(&mut answer).unwrap_or(0);
    String::from_utf8_lossy(&answer[..read]).contains("200 OK")
}

#[test]
fn a_target_that_is_none_is_told_what_one_is() {
    let project = Project::empty();
    let mut wire = serve(&project, &[]);
    for (target, expected) in [
        ("nonsense", "names no target"),
        ("https://127.0.0.1/", "there is no TLS"),
        ("pid:999999999", "there is no process 999999999"),
        ("port:1", "nothing listens on port 1"),
        ("http://192.0.2.1/state", "is not this machine"),
        ("http://169.254.169.254/latest/meta-data", "is not this machine"),
        ("http://metadata.google.internal/computeMetadata/v1/", "is not this machine"),
        ("http://[fe80::1]/", "is not this machine"),
        ("http://[::ffff:169.254.169.254]/", "is not this machine"),
        ("http://2852039166/", "is not this machine"),
        ("ws://example.org:9229/x", "is not this machine"),
        ("file:nothing.json", "nothing.json"),
        ("file:../outside.json", "outside.json"),
        ("file:/etc/passwd", "/etc/passwd"),
        ("file:///etc/passwd", "/etc/passwd"),
        ("file:/proc/self/environ", "/proc/self/environ"),
    ] {
        let said = said(&mut wire, json!({"path": "a", "target": target}));
        assert!(said.contains(expected) && !said.contains("root:x"), "{target}: {said}");
    }
    for path in ["a..b", "a[", "local:x"] {
        assert!(said(&mut wire, json!({"path": path})).contains("`path`"), "{path}");
    }
    for depth in [0, 11] {
        assert!(said(&mut wire, json!({"path": "a", "depth": depth})).contains("depth"), "{depth}");
    }
    // Settings that are none keep the server from starting.
    for (name, text) in
        [("NODE_INSPECT_PORT", "x"), ("STATE_URL", "https://me:pa55word@x/"), ("INSPECT_TARGET", "nonsense")]
    {
        let output = project.server().env(name, text).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(name) && !said.contains("pa55"), "{name}: {said}");
    }
}

#[test]
fn facts_of_a_native_program_come_from_proc() {
    let Some(gcc) = program("gcc") else { return };
    let project = Project::empty();
    let built =
        Command::new(gcc).arg(source("native.c")).args(["-o"]).arg(project.join("native")).status().unwrap();
    assert!(built.success());
    let mut command = Command::new(project.join("native"));
    command.arg("--flag").env("APP_MODE", "night").env("APP_PASSWORD", "swordfish-12345");
    let app = InspectedApp::start(&project, command);
    assert_eq!(app.line(), "ready");
    let mut wire = serve(&project, &[]);
    let found = answer(&mut wire, json!({"path": "process", "depth": 4}));
    let process = &found["value"];
    assert_eq!((&process["pid"], &process["runtime"]), (&json!(app.pid()), &json!("native")));
    assert_eq!(process["argv"][1], "--flag");
    assert_eq!(process["status"]["Threads"], 1);
    assert_eq!(
        (
            value(&mut wire, "process.env.APP_MODE"),
            found["source"].as_str().unwrap().starts_with("proc: native ")
        ),
        (json!("night"), true)
    );
    let env = value(&mut wire, "process.env");
    assert!(env.get("APP_PASSWORD").is_none_or(|value| value == "[masked]"), "{env}");
    assert!(said(&mut wire, json!({"path": "state"})).contains("No inspectable process"));
}

#[test]
fn the_port_of_an_application_leads_to_its_inspector_also_at_a_mapped_address() {
    let Some(node) = program("node") else { return };
    let project = Project::empty();
    let script = "globalThis.n = 5; const server = require('net').createServer(() => {}); \
                  server.listen(0, process.argv[1], () => console.log('listening ' + server.address().port))";
    // The second is that of a dual-stack socket.
    for address in ["127.0.0.1", "::ffff:127.0.0.1"] {
        let app = crate::app::plain(&project, &node, &["--inspect=127.0.0.1:0", "-e", script, address]);
        let target = format!("port:{}", app.port());
        let mut wire = serve(&project, &[]);
        assert_eq!(answer(&mut wire, json!({"path": "process.pid", "target": target}))["value"], app.pid());
        assert_eq!(answer(&mut wire, json!({"path": "n", "target": target}))["value"], 5, "{address}");
    }
}

#[test]
fn a_process_is_named_by_its_program_and_several_are_listed() {
    let Some(gcc) = program("gcc") else { return };
    let project = Project::empty();
    let name = format!("shop-{}", std::process::id());
    let built =
        Command::new(gcc).arg(source("native.c")).arg("-o").arg(project.join(&name)).status().unwrap();
    assert!(built.success());
    let start = || {
        let app = InspectedApp::start(&project, Command::new(project.join(&name)));
        assert_eq!(app.line(), "ready");
        app
    };
    let (first, mut wire) = (start(), serve(&project, &[]));
    let ask = json!({"path": "process.pid", "target": format!("process:{name}")});
    assert_eq!(answer(&mut wire, ask.clone())["value"], first.pid());
    let second = start();
    let several = said(&mut wire, ask);
    for app in [&first, &second] {
        assert!(several.contains(&format!("native {} (", app.pid())), "{several}");
    }
    let part = said(&mut wire, json!({"path": "process.pid", "target": "process:shop-"}));
    assert!(part.contains("no process"), "{part}");
}

#[test]
fn a_port_is_that_of_the_application_or_of_its_inspector_however_that_was_opened() {
    let Some(node) = program("node") else { return };
    let project = Project::empty();
    let script = "globalThis.state = {count: 42}; const inspector = require('inspector'); inspector.open(0, '127.0.0.1'); \
        require('http').createServer((q, r) => r.end('x')).listen(0, '127.0.0.1', function () { \
        console.log('ready ' + this.address().port + ' ' + new URL(inspector.url()).port) })";
    let mut command = Command::new(node);
    command.args(["-e", script]).env_remove("NODE_OPTIONS");
    let app = InspectedApp::start(&project, command);
    let line = app.line();
    let inspector = line.rsplit(' ').next().unwrap();
    let mut wire = serve(&project, &[]);
    let found = answer(&mut wire, json!({"path": "state.count", "target": format!("port:{inspector}")}));
    assert_eq!((&found["value"], found.get("tried")), (&json!(42), None), "{found}");
}

#[test]
fn of_a_port_without_an_inspector_the_process_is_named_and_what_can_be_read_of_it() {
    let Some(python) = program("python3") else { return };
    let project = Project::empty();
    let script = "import http.server as h\ns = h.HTTPServer(('127.0.0.1', 0), h.BaseHTTPRequestHandler)\n\
        print('ready', s.server_port, flush=True)\ns.serve_forever()";
    let mut command = Command::new(python);
    command.args(["-c", script]);
    let app = InspectedApp::start(&project, command);
    let port = app.line().rsplit(' ').next().unwrap().to_owned();
    let mut wire = serve(&project, &[]);
    let failed = failure(&mut wire, json!({"path": "total", "target": format!("port:{port}")}));
    let note = failed["notes"][0].as_str().unwrap();
    assert!(note.starts_with(&format!("on port {port} listens python {} (", app.pid())), "{failed}");
    assert!(note.contains("python.threads") && note.contains("STATE_PATH"), "{note}");
}
