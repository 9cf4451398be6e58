//! Any process, by the kernel's statistics of its sockets.

use crate::support::{ProfiledApp, TraceServer, source};
use serde_json::json;
use std::process::Command;

#[test]
fn connections_are_told_by_peer_with_their_bytes() {
    let mut command = Command::new("python3");
    command.arg(source("app.py"));
    let (app, mut server) = (ProfiledApp::start(command), TraceServer::start());
    let profile = server.profile(json!({"duration_ms": 1500, "type": "network", "target": app.target()}));
    let connections = profile["summary"]["connections"].as_array().unwrap();
    let peer = |direction: &str| {
        let found = connections.iter().find(|told| told["direction"] == direction);
        found.unwrap_or_else(|| panic!("no {direction} in {profile}"))
    };
    // It talks to itself: what it sends through the one it receives through the other.
    assert_eq!(peer("out")["peer"], format!("127.0.0.1:{}", app.port));
    assert_eq!((&peer("in")["peer"], &peer("in")["port"]), (&json!("127.0.0.1"), &json!(app.port)));
    assert!(peer("out")["bytes_sent"].as_u64().unwrap() >= 10_000, "{profile}");
    assert!(peer("in")["bytes_received"].as_u64().unwrap() >= 10_000, "{profile}");
    assert_eq!(peer("out")["opened"], 0);
}
