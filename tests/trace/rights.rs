//! Captures that the system does not allow: refused, in words that say what would allow them.

use crate::support::{ProfiledApp, command, has, source, told};
use integration_tests::{Era, Project, Wire, require};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

const NOBODY: u32 = 65_534;

/// A server that runs as nobody: only root can start it, and nobody may pass through the folder it was built in.
fn as_nobody(project: &Project) -> Option<Wire> {
    let is_root = rustix::process::geteuid().is_root().then_some(());
    require(is_root, "no right to start a server as another user; run as root")?;
    let own = project.join("mcp-stdio");
    integration_tests::copy_server(&own);
    std::fs::set_permissions(project.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut server = started_as(Command::new(own), &command(project));
    server.env("XDG_CACHE_HOME", project.join("cache")).env("HOME", project.path()).uid(NOBODY).gid(NOBODY);
    // The home folder alone would be read-only.
    server.arg("--root").arg(project.path());
    Some(Wire::connect(server, Era::Modern))
}

/// `command`, in the folder and the environment of `other`.
fn started_as(mut command: Command, other: &Command) -> Command {
    command.current_dir(other.get_current_dir().unwrap());
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn capture(wire: &mut Wire, kind: &str, target: &str) -> Value {
    told(&wire.call("capture_trace", json!({"duration_ms": 100, "type": kind, "target": target})))
}

/// Every way to look into `target` is refused, with `error` and `remedy`.
fn is_refused(wire: &mut Wire, target: &str, error: &str, remedy: &str) {
    for kind in ["cpu", "heap", "network"] {
        let refusal = capture(wire, kind, target);
        assert_eq!(refusal["kind"], "refused", "{kind}: {refusal}");
        assert!(refusal["error"].as_str().unwrap().contains(error), "{kind}: {refusal}");
        assert!(refusal["remedy"].as_str().unwrap().contains(remedy), "{kind}: {refusal}");
    }
    for path in ["process.env", "state", "python.threads"] {
        let said = wire.failure("inspect_state", json!({"path": path, "target": target}));
        assert!(said.contains(error) && said.contains(remedy), "{path}: {said}");
    }
}

#[test]
fn a_server_without_privileges_is_refused_a_process_of_root() {
    let project = Project::empty();
    let Some(mut wire) = as_nobody(&project) else { return };
    let mut sleeper = Command::new("sh");
    sleeper.args(["-c", "echo ready 0; exec sleep 600"]).current_dir("/");
    let app = ProfiledApp::start(sleeper);
    is_refused(&mut wire, &app.target(), "belongs to another user (0)", "as that user");
}

#[test]
fn a_process_that_guards_itself_against_its_own_user_is_refused() {
    let project = Project::empty();
    let Some(mut wire) = as_nobody(&project) else { return };
    let mut guarded = Command::new("python3");
    // PR_SET_DUMPABLE, as programs with keys do.
    guarded.args([
        "-c",
        "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); print('ready 0', flush=True); time.sleep(600)",
    ]);
    guarded.uid(NOBODY).gid(NOBODY).current_dir("/");
    let app = ProfiledApp::start(guarded);
    is_refused(&mut wire, &app.target(), "does not let this server look into", "CAP_SYS_PTRACE");
}

#[test]
fn profilers_that_may_not_trace_are_refused_and_what_needs_no_right_is_told() {
    if !has("py-spy") || !has("perf") {
        return;
    }
    let project = Project::empty();
    let server = command(&project);
    let mut confined = started_as(Command::new("python3"), &server);
    confined.arg(source("confined.py")).arg(server.get_program());
    let mut wire = Wire::connect(confined, Era::Modern);
    let mut python = Command::new("python3");
    python.arg(source("app.py"));
    let app = ProfiledApp::start(python);

    let refusal = capture(&mut wire, "cpu", &app.target());
    assert_eq!(refusal["kind"], "refused", "{refusal}");
    assert!(refusal["remedy"].as_str().unwrap().contains("CAP_SYS_PTRACE"), "{refusal}");
    let refusal = capture(&mut wire, "cpu", "server");
    assert_eq!(refusal["kind"], "refused", "{refusal}");
    assert!(refusal["remedy"].as_str().unwrap().contains("CAP_PERFMON"), "{refusal}");

    for kind in ["heap", "network"] {
        assert_eq!(capture(&mut wire, kind, &app.target())["pid"], app.pid(), "{kind}");
    }
    // py-spy can also read memory as a file, where it need not halt the process.
    let said = wire.text("inspect_state", json!({"path": "python.threads", "target": app.target()}));
    assert!(said.contains("\"frames\""), "{said}");
    assert_eq!(app.tracer(), 0);
}
