//! Sessions of clients of the `initialize` era.

use crate::SOON;
use integration_tests::{Ask, Era, Http, HttpServer, Project, exchange, wait_until};
use serde_json::json;

const LEGACY: Era = Era::Initialize("2025-11-25");

#[test]
fn a_session_is_good_only_together_with_whoever_began_it() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (ada, bob) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let owner = server.connect(&ada, LEGACY);
    let mut thief = Http::silent(server.address(), Some(&bob), LEGACY);
    thief.session.clone_from(&owner.session);
    let (stolen, guessed) = (thief.reply("tools/list", json!({})), {
        thief.session = Some("00000000-0000-4000-8000-000000000000".to_owned());
        thief.reply("tools/list", json!({}))
    });
    // In the same words, so that nothing is learnt by asking.
    assert_eq!((stolen.status, guessed.status), (404, 404), "{stolen:?}");
    assert_eq!(stolen.body.replace("\"id\":1", ""), guessed.body.replace("\"id\":2", ""));
    // Neither ended nor listened to by another.
    let session = owner.session.clone().unwrap();
    for method in ["DELETE", "GET"] {
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {bob}\r\nMcp-Session-Id: {session}\r\n\
             Accept: text/event-stream\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(exchange(server.address(), request.as_bytes()).status, 404, "{method}");
    }
    let mut owner = owner;
    assert!(!owner.listed().is_empty());
    // Nor by a client that says it speaks a revision without sessions, or begins one inside.
    let mut thief = Http::silent(server.address(), Some(&bob), Era::Modern);
    thief.session = Some(session.clone());
    assert_eq!(thief.reply("tools/list", json!({})).status, 200, "it is a request without a session");
    let mut thief = Http::silent(server.address(), Some(&bob), LEGACY);
    thief.session = Some(session.clone());
    let reply = thief.reply(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }),
    );
    assert_ne!(reply.header("mcp-session-id"), Some(&*session), "{reply:?}");
}

#[test]
fn a_session_that_was_ended_or_was_idle_is_answered_with_404() {
    let (project, outside) = (Project::empty(), Project::empty());
    let config = outside.join("coretools.toml");
    std::fs::write(&config, "[http]\nsession_idle_ms = 3000\n").unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let token = server.token("ada", "dev", &[]);
    let mut ended = server.connect(&token, LEGACY);
    let session = ended.session.clone().unwrap();
    let delete = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n\
         Connection: close\r\n\r\n"
    );
    assert!(matches!(exchange(server.address(), delete.as_bytes()).status, 200 | 202 | 204));
    assert_eq!(ended.reply("tools/list", json!({})).status, 404);
    // A call that says nothing for longer keeps its session.
    let mut idle = server.connect(&token, LEGACY);
    let call = idle.call("run_command", json!({"command": ["sleep", "5"]}));
    assert_eq!(call["isError"], false, "{call}");
    wait_until(SOON, "it is idle", || {
        std::thread::sleep(std::time::Duration::from_millis(3500));
        idle.reply("tools/list", json!({})).status == 404
    });
}

#[test]
fn there_are_so_many_sessions_and_one_caller_has_a_share() {
    let (project, outside) = (Project::empty(), Project::empty());
    let config = outside.join("coretools.toml");
    std::fs::write(&config, "[http]\nmax_sessions = 8\n").unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let (ada, bob) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let mut first = server.connect(&ada, LEGACY);
    let mut second = server.connect(&ada, LEGACY);
    // Bob's are left alone by what Ada does, and of hers the oldest ends.
    let mut other = server.connect(&bob, LEGACY);
    let mut others: Vec<Http> = (0..6).map(|_| server.connect(&ada, LEGACY)).collect();
    assert_eq!(first.reply("tools/list", json!({})).status, 404);
    assert_eq!(second.reply("tools/list", json!({})).status, 404);
    assert!(!other.listed().is_empty());
    assert!(!others.last_mut().unwrap().listed().is_empty());
}

#[test]
fn a_request_with_the_id_of_one_that_is_open_is_refused_and_the_open_one_answered() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let client = server.connect(&token, LEGACY);
    let session = client.session.clone().unwrap();
    let address = server.address();
    let ask = |seconds: &str| {
        let body = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "run_command", "arguments": {"command": ["sleep", seconds]}},
        })
        .to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n\
             Mcp-Protocol-Version: 2025-11-25\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        exchange(address, request.as_bytes())
    };
    let seconds = integration_tests::unique_seconds().replace("120.", "");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&format!("4.{seconds}")));
        wait_until(SOON, "the first runs", || !integration_tests::alive(&format!("4.{seconds}")).is_empty());
        let second = ask("0");
        assert_eq!(second.status, 400, "{second:?}");
        assert!(second.body.contains("the request 7 of this session is open"), "{second:?}");
        let first = first.join().unwrap();
        assert_eq!(first.messages()[0]["result"]["isError"], false, "{first:?}");
    });
    // Who reuses an id one after the other breaks the rule as well, and is served.
    for _ in 0..20 {
        assert_eq!(ask("0").status, 200);
    }
}

#[test]
fn what_a_client_says_of_itself_is_bounded() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    let mut begin = |name: &str| {
        client.post(&json!({
            "jsonrpc": "2.0", "id": "begin", "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": name, "version": "1"},
            },
        }))
    };
    let refused = begin(&"n".repeat(70_000));
    assert_eq!(refused.status, 413, "{refused:?}");
    assert!(refused.body.contains("an `initialize` request may have 65536 bytes"), "{refused:?}");
    assert_eq!(begin("short").status, 200);
}
