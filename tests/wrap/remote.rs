//! A server by URL, which may misbehave in HTTP too.

use crate::{LEGACY, names, problem};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct RemoteServer {
    project: Project,
    child: Child,
    port: u16,
}

impl RemoteServer {
    fn start() -> Self {
        let mut child = Command::new("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/wrap/http_server.py"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 can be started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { project: Project::empty(), child, port: line.trim().parse().expect("a port") }
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = self.project.server();
        command.args(["wrap", "--url", &format!("http://127.0.0.1:{}/mcp", self.port)]).args(flags);
        command
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns what the server has seen so far, and the headers of this call.
fn seen(wire: &mut Wire) -> (Vec<String>, Value) {
    let seen: Value = serde_json::from_str(&wire.text("headers", json!({}))).unwrap();
    (serde_json::from_value(seen["seen"].clone()).unwrap(), seen["headers"].clone())
}

#[test]
fn a_server_by_url_is_listed_called_and_narrowed_in_both_eras() {
    for era in Era::BOTH {
        let remote = RemoteServer::start();
        let mut wire = Wire::connect(remote.command(&["--hide", "secret"]), era);
        assert_eq!(names(&mut wire), ["echo", "answer", "headers"]);
        assert_eq!(wire.text("echo", json!({"a": [1, "é"]})), r#"{"a": [1, "\u00e9"]}"#);
        let hidden = wire.request("tools/call", json!({"name": "secret"}));
        assert_eq!(hidden["error"]["code"], if era == Era::Modern { -32602 } else { -32601 });
        wire.close_input();
        let (status, time) = wire.wait(Duration::from_secs(10));
        assert!(status.success() && time < Duration::from_secs(8), "{status} after {time:?}");
    }
}

#[test]
fn answers_of_every_shape_are_read_by_the_event_and_nothing_else_reaches_the_client() {
    let remote = RemoteServer::start();
    let mut wire = Wire::connect(remote.command(&[]), LEGACY);
    for kind in ["two-lines", "returns", "201"] {
        assert_eq!(wire.text("answer", json!({"kind": kind})), "good", "{kind}");
    }
    for kind in ["redirect", "status", "gzip", "text", "empty", "two-messages", "other-event", "cut"] {
        let answer = wire.request("tools/call", json!({"name": "answer", "arguments": {"kind": kind}}));
        assert!(problem(&answer).contains("may have run"), "{kind}: {answer}");
        assert!(!answer.to_string().contains("LEAK"), "{kind}: {answer}");
    }
    let (seen, _) = seen(&mut wire);
    // A redirect is not followed.
    assert!(!seen.contains(&"LEAK".to_owned()), "{seen:?}");
    assert!(wire.others().is_empty());
}

#[test]
fn a_session_that_the_server_has_forgotten_is_begun_again_unseen() {
    let remote = RemoteServer::start();
    let mut wire = Wire::connect(remote.command(&[]), LEGACY);
    wire.text("echo", json!({}));
    let answer = wire.request("tools/call", json!({"name": "answer", "arguments": {"kind": "forget"}}));
    assert!(problem(&answer).contains("it does not know the session any more"), "{answer}");
    assert_eq!(wire.text("echo", json!({"n": 2})), r#"{"n": 2}"#);
    let (seen, _) = seen(&mut wire);
    assert_eq!(seen.iter().filter(|method| *method == "initialize").count(), 2, "{seen:?}");
}

#[test]
fn a_server_that_is_not_there_is_told_to_the_client() {
    let project = Project::empty();
    let mut command = project.server();
    // Port 1 is nobody's.
    command.args(["wrap", "--url", "http://127.0.0.1:1/mcp"]);
    let mut wire = Wire::start(command);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = wire.request("initialize", hello);
    assert!(problem(&answer).starts_with("not sent: "), "{answer}");
}

#[test]
fn headers_come_from_the_environment_and_from_a_private_file_alone() {
    use std::os::unix::fs::PermissionsExt;
    let remote = RemoteServer::start();
    remote.project.write("headers", "# for the server\nX-From-File: of the file\n");
    let path = remote.project.join("headers");
    let flags = ["--header-env", "Authorization=MY_TOKEN", "--headers-file", "headers"];
    let mut command = remote.command(&flags);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let output = command.env("MY_TOKEN", "Bearer secret").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("others may read it"), "{output:?}");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = remote.command(&flags);
    command.env("MY_TOKEN", "Bearer secret");
    let mut wire = Wire::connect(command, LEGACY);
    let (_, headers) = seen(&mut wire);
    assert_eq!(
        (&headers["authorization"], &headers["x-from-file"]),
        (&json!("Bearer secret"), &json!("of the file"))
    );
    assert!(!integration_tests::command_line(wire.pid()).contains("secret"));
}

#[test]
fn a_url_that_would_carry_secrets_in_the_clear_is_refused() {
    for url in ["http://example.com/mcp", "https://user:hunter2@example.com/mcp", "file:///etc/passwd"] {
        let output = Project::empty().server().args(["wrap", "--url", url]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{url}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("hunter2"), "{output:?}");
    }
}
