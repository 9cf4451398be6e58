//! What one caller may use, and what that leaves to another.

use crate::SOON;
use integration_tests::{Era, Http, HttpServer, Project, Reply, alive, unique_seconds, wait_until};
use serde_json::json;
use std::time::{Duration, Instant};

fn server(config: &str, project: &Project, outside: &Project) -> HttpServer {
    let path = outside.join("coretools.toml");
    std::fs::write(&path, config).unwrap();
    let audit = outside.join("audit.jsonl");
    HttpServer::start(project, &["--config", path.to_str().unwrap(), "--audit", audit.to_str().unwrap()])
}

#[test]
fn beyond_its_rate_a_caller_is_told_when_to_come_again_and_another_is_served() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("", &project, &outside);
    let eager = server.token("eager", "dev", &["--calls-per-second", "2"]);
    let other = server.token("other", "dev", &[]);
    for era in Era::BOTH {
        let mut client = Http::silent(server.address(), Some(&eager), Era::Modern);
        let replies: Vec<Reply> = (0..40).map(|_| client.reply("tools/list", json!({}))).collect();
        let refused: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 429).collect();
        assert!(refused.len() > 10, "{era:?}: {} of 40 were refused", refused.len());
        let wait: u64 = refused[0].header("retry-after").unwrap().parse().unwrap();
        assert!(wait >= 1);
        assert!(
            refused[0].message()["error"]["message"].as_str().unwrap().contains("2 requests in a second")
        );
        server.connect(&other, era).text("read_file", json!({"path": "a.txt"}));
        wait_until(SOON, "it may again", || client.reply("tools/list", json!({})).status == 200);
    }
    let audit = std::fs::read_to_string(outside.join("audit.jsonl")).unwrap();
    assert!(audit.contains("\"principal\":\"eager\"") && audit.contains("http: rate"), "{audit}");
}

#[test]
fn calls_wait_for_a_place_and_a_line_has_an_end() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("[http]\ncalls_in_flight = 2\nqueue = 2\nqueue_ms = 60000\n", &project, &outside);
    let (busy, quiet) = (server.token("busy", "dev", &[]), server.token("quiet", "dev", &[]));
    let seconds = unique_seconds();
    let mut client = server.connect(&busy, Era::Modern);
    let call = json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
    let running: Vec<_> = (0..2).map(|_| client.begin("tools/call", call.clone())).collect();
    wait_until(SOON, "they run", || alive(&seconds).len() == 2);
    let read = json!({"name": "read_file", "arguments": {"path": "a.txt"}});
    let mut waiting: Vec<_> = (0..5).map(|_| client.begin("tools/call", read.clone())).collect();
    let mut refused = 0;
    wait_until(SOON, "those for whom there is no room in the line are turned away", || {
        waiting.retain_mut(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            if stream.peek(&mut [0]).is_err() {
                return true;
            }
            stream.set_read_timeout(Some(SOON)).unwrap();
            let reply = Reply::try_from(stream).unwrap();
            assert_eq!(reply.status, 429, "{reply:?}");
            refused += 1;
            false
        });
        refused == 3
    });
    assert_eq!(alive(&seconds).len(), 2);
    // What needs no place is served, and so is another.
    client.call("list_commands", json!({}));
    let began = Instant::now();
    server.connect(&quiet, Era::Modern).text("read_file", json!({"path": "a.txt"}));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(running);
    for stream in &mut waiting {
        stream.set_read_timeout(Some(SOON)).unwrap();
        assert_eq!(Reply::try_from(stream).unwrap().message()["result"]["isError"], false);
    }
}

#[test]
fn a_caller_that_has_had_its_bytes_waits_for_more() {
    let (project, outside) = (Project::with([("a.txt", &*"a".repeat(60_000))]), Project::empty());
    let server = server("", &project, &outside);
    let token = server.token("ada", "dev", &["--bytes-per-minute", "100000"]);
    let mut client = Http::silent(server.address(), Some(&token), Era::Modern);
    let read = json!({"name": "read_file", "arguments": {"path": "a.txt", "limit": 100_000}});
    let statuses: Vec<u16> = (0..8).map(|_| client.reply("tools/call", read.clone()).status).collect();
    assert!(statuses.contains(&429) && statuses[0] == 200, "{statuses:?}");
}

#[test]
fn one_callers_background_commands_leave_anothers_places_alone() {
    let (project, outside) = (Project::empty(), Project::empty());
    let server = server("", &project, &outside);
    let (greedy, other) =
        (server.token("greedy", "dev", &["--processes", "3"]), server.token("other", "dev", &[]));
    let seconds = unique_seconds();
    let mut client = server.connect(&greedy, Era::Modern);
    for _ in 0..3 {
        client.text("start_command", json!({"command": ["sleep", seconds]}));
    }
    let said = client.failure("start_command", json!({"command": ["sleep", seconds]}));
    assert!(said.contains('3'), "{said}");
    server.connect(&other, Era::Modern).text("start_command", json!({"command": ["sleep", seconds]}));
    assert_eq!(alive(&seconds).len(), 4);
}

#[test]
fn every_call_and_every_refusal_is_a_line_with_its_principal() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("", &project, &outside);
    let token = server.token("ada", "readonly", &[]);
    for era in Era::BOTH {
        let mut client = server.connect(&token, era);
        client.text("read_file", json!({"path": "a.txt"}));
        client.reply(
            "tools/call",
            json!({"name": "write_file", "arguments": {"path": "x", "content": "secret words"}}),
        );
    }
    server.get("/mcp", None);
    let request = "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    integration_tests::exchange(server.address(), request.as_bytes());
    let audit = std::fs::read_to_string(outside.join("audit.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |tool: &str, decision: &str| {
        lines
            .iter()
            .filter(|line| line["tool"] == tool && line["decision"] == decision && line["principal"] == "ada")
            .count()
    };
    assert_eq!((count("read_file", "allowed"), count("write_file", "hidden")), (2, 2), "{audit}");
    assert!(lines.iter().any(|line| line["session"].is_string()), "{audit}");
    let strangers: Vec<_> = lines.iter().filter(|line| line["principal"] == "stranger:127.0.0.1").collect();
    assert!(strangers.iter().any(|line| line["rule"] == "http: no_token"), "{audit}");
    assert!(strangers.iter().any(|line| line["rule"] == "http: host"), "{audit}");
    assert!(!audit.contains("secret words"));
}
