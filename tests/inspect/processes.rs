//! The processes that may be looked into, and those that are sent a signal.

use crate::app::{InspectedApp, nodes, plain, program, source};
use crate::{answer, failure, said, serve, value};
use integration_tests::{Project, require};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SIGNALS: (&str, &str) = ("CORETOOLS_INSPECT_ALLOW_SIGNALS", "true");
const TICKING: &str = "globalThis.n = 5; console.log('ready'); setInterval(() => {}, 1000)";

/// One that runs as another user: root can start it, and nobody else.
fn of_nobody(project: &Project, program: &Path, arguments: &[&str]) -> Option<InspectedApp> {
    let is_root = rustix::process::geteuid().is_root();
    let setpriv = require(
        is_root.then(|| crate::app::program("setpriv")).flatten(),
        "only root with setpriv can start another user's process",
    )?;
    let mut command = Command::new(setpriv);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program).args(arguments);
    command.current_dir("/");
    Some(InspectedApp::start(project, command))
}

#[test]
fn a_process_of_another_user_is_refused_also_by_a_server_that_runs_as_root() {
    let Some(node) = program("node") else { return };
    let project = Project::empty();
    let script = "const i = require('inspector'); console.log('listening ' + new URL(i.url()).port); setInterval(() => {}, 1000)";
    let Some(mut app) = of_nobody(&project, &node, &["--inspect=127.0.0.1:0", "-e", script]) else { return };
    let port = app.port();
    let mut wire = serve(&project, &[SIGNALS]);
    for target in [
        format!("pid:{}", app.pid()),
        format!("port:{port}"),
        format!("ws://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}/json/list"),
    ] {
        let said = said(&mut wire, json!({"path": "process.pid", "target": target}));
        assert!(said.contains("belongs to another user (65534)"), "{target}: {said}");
    }
    assert!(app.is_running());
}

#[test]
fn an_inspector_is_opened_by_a_signal_only_where_that_is_allowed_and_closed_again() {
    // Port 9229 is the only one that Node.js opens by a signal.
    let listener = std::net::TcpListener::bind("127.0.0.1:9229");
    assert!(listener.is_ok(), "port 9229 is taken, and this test needs it");
    drop(listener);
    for node in nodes() {
        let project = Project::empty();
        let mut app = plain(&project, &node, &["-e", TICKING]);
        assert_eq!(app.line(), "ready");
        let mut wire = serve(&project, &[]);
        let said = said(&mut wire, json!({"path": "n"}));
        assert!(said.contains("no inspector listens") && said.contains("--inspect"), "{said}");
        let mut wire = serve(&project, &[SIGNALS]);
        let opened = answer(&mut wire, json!({"path": "n"}));
        assert_eq!(opened["value"], 5);
        assert!(opened["notes"].to_string().contains("SIGUSR1"), "{opened}");
        integration_tests::wait_until(Duration::from_secs(20), "the inspector is closed", || {
            std::net::TcpStream::connect("127.0.0.1:9229").is_err()
        });
        assert!(app.is_running());
    }
}

#[test]
fn what_is_not_proven_to_take_the_signal_is_not_sent_it() {
    let (Some(gcc), Some(node)) = (program("gcc"), program("node")) else { return };
    let project = Project::empty();
    // A program that only has the name, and dies of any signal.
    let built =
        Command::new(gcc).arg(source("native.c")).arg("-o").arg(project.join("node")).status().unwrap();
    assert!(built.success());
    let mut named = InspectedApp::start(&project, Command::new(project.join("node")));
    assert_eq!(named.line(), "ready");
    let mut wire = serve(&project, &[SIGNALS]);
    let target = format!("pid:{}", named.pid());
    let refused = said(&mut wire, json!({"path": "n", "target": target}));
    assert!(refused.contains("not proven"), "{refused}");
    assert!(named.is_running());
    named.kill();

    // Node.js that has given the handler away.
    let mut deaf = plain(
        &project,
        &node,
        &["-e", &format!("process.on('SIGUSR1', () => {{ globalThis.got = 1 }}); {TICKING}")],
    );
    assert_eq!(deaf.line(), "ready");
    let answered = failure(&mut wire, json!({"path": "n", "target": format!("pid:{}", deaf.pid())}));
    assert!(answered["error"].as_str().unwrap().contains("opened no inspector"), "{answered}");
    assert!(deaf.is_running());
}

#[test]
fn the_server_itself_is_not_found_among_the_processes_under_the_roots() {
    let project = Project::empty();
    let mut wire = serve(&project, &[]);
    let failed = failure(&mut wire, json!({"path": "process.pid"}));
    assert_eq!(failed["error"], "No inspectable process", "{failed}");
    // It may be named.
    let pid = wire.pid();
    assert_eq!(
        answer(&mut wire, json!({"path": "process.pid", "target": format!("pid:{pid}")}))["value"],
        pid
    );
    assert_eq!(value(&mut wire, "process.env.PATH"), std::env::var("PATH").unwrap());
}
