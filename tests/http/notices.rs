//! Callers are told of their own background commands and sessions, and of nobody else's.

use crate::SOON;
use integration_tests::{Ask, Era, Http, HttpServer, Project, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LEGACY: Era = Era::Initialize("2025-11-25");

/// A stream of events that is read as it comes.
struct Events {
    stream: TcpStream,
    heard: String,
}

impl Events {
    /// The answer to `subscriptions/listen`, once it was acknowledged.
    fn listen(client: &mut Http, uris: &[&str]) -> Self {
        let params = json!({"notifications": {"resourceSubscriptions": uris}});
        let mut events = Self::new(client.begin("subscriptions/listen", params));
        events.wait_for("notifications/subscriptions/acknowledged");
        events
    }

    /// The stream of a session, in the `initialize` era.
    fn of_session(server: &HttpServer, client: &Http, token: &str) -> Self {
        let session = client.session.as_deref().unwrap();
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n\
             MCP-Protocol-Version: {}\r\nAccept: text/event-stream\r\n\r\n",
            LEGACY.version()
        );
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut events = Self::new(stream);
        events.wait_for("text/event-stream");
        events
    }

    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        Self { stream, heard: String::new() }
    }

    fn read_on(&mut self) {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(read) => self.heard.push_str(&String::from_utf8_lossy(&bytes[..read])),
            // Nothing came in the time of one read.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}: {}", self.heard),
        }
    }

    /// Waits for the news of a resource. The acknowledgement names the resource as well, in a list.
    fn wait_for_update(&mut self, uri: &str) {
        self.wait_for(&updated(uri));
    }

    fn wait_for(&mut self, text: &str) {
        wait_until(SOON, &format!("{text:?} is told"), || {
            self.read_on();
            self.heard.contains(text)
        });
    }
}

fn updated(uri: &str) -> String {
    format!("\"uri\":\"{uri}\"")
}

fn read(client: &mut Http, uri: &str) -> Value {
    client.request("resources/read", json!({"uri": uri}))
}

fn state(client: &mut Http, uri: &str) -> Value {
    let answer = read(client, uri);
    let text = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str::<Value>(text).unwrap()["state"].clone()
}

#[test]
fn the_end_of_a_background_command_is_told_to_its_caller_and_to_nobody_else() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let [mut ada, mut bob] =
        ["ada", "bob"].map(|name| server.connect(&server.token(name, "dev", &[]), Era::Modern));
    let uris = ["coretools://commands", "coretools://commands/1", "coretools://commands/2"];
    let (mut hers, mut his) = (Events::listen(&mut ada, &uris), Events::listen(&mut bob, &uris));
    ada.text("start_command", json!({"command": ["true"]}));
    wait_until(SOON, "it ends", || state(&mut ada, "coretools://commands/1") == "exited");
    hers.wait_for_update("coretools://commands/1");
    assert!(read(&mut bob, "coretools://commands/1")["error"].is_object());
    // His own is told after hers was, so hers would have been told by then.
    bob.text("start_command", json!({"command": ["true"]}));
    his.wait_for_update("coretools://commands/2");
    assert!(!his.heard.contains(&updated("coretools://commands/1")), "{}", his.heard);
    assert!(!hers.heard.contains(&updated("coretools://commands/2")), "{}", hers.heard);
}

#[test]
fn a_client_of_the_initialize_era_gets_log_messages_on_the_stream_of_its_session() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let tokens = ["ada", "bob"].map(|name| server.token(name, "dev", &[]));
    let [mut ada, mut bob] = [0, 1].map(|index: usize| server.connect(&tokens[index], LEGACY));
    let mut hers = Events::of_session(&server, &ada, &tokens[0]);
    let mut his = Events::of_session(&server, &bob, &tokens[1]);
    for client in [&mut ada, &mut bob] {
        assert_eq!(client.request("logging/setLevel", json!({"level": "info"}))["result"], json!({}));
    }
    ada.text("start_command", json!({"command": ["false"]}));
    hers.wait_for("background command 1 ended: exited with exit code 1");
    bob.text("start_command", json!({"command": ["true"]}));
    his.wait_for("background command 2 ended: exited with exit code 0");
    assert!(!his.heard.contains("background command 1"), "{}", his.heard);
    assert!(!hers.heard.contains("background command 2"), "{}", hers.heard);
}

/// Sessions are told of in the same way. Their supervisor is in the server.
#[test]
#[cfg(target_os = "linux")]
fn the_end_of_a_session_is_told_to_its_caller_and_to_nobody_else() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let [mut ada, mut bob] =
        ["ada", "bob"].map(|name| server.connect(&server.token(name, "orchestrator", &[]), Era::Modern));
    let uris = ["coretools://sessions"];
    let (mut hers, mut his) = (Events::listen(&mut ada, &uris), Events::listen(&mut bob, &uris));
    let started = ada.call("new_session", json!({"command": ["cat"], "input": true}));
    let id = started["structuredContent"]["session_id"].as_str().unwrap_or_else(|| panic!("{started}"));
    let uri = format!("coretools://sessions/{id}");
    let mut its = Events::listen(&mut ada, &[&uri]);
    ada.text("end_session", json!({"session_id": id, "grace": 1}));
    its.wait_for_update(&uri);
    hers.wait_for_update("coretools://sessions");
    wait_until(SOON, "it is over", || state(&mut ada, &uri) == "stopped");
    assert!(read(&mut bob, &uri)["error"].is_object());
    his.read_on();
    assert!(!his.heard.contains("notifications/resources/updated"), "{}", his.heard);
}
