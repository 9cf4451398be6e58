//! The end of calls and programs when a client goes away, and when the server has to end.

use crate::SOON;
use integration_tests::{
    Ask, Era, Http, HttpServer, Project, Reply, alive, unique_seconds, wait_until, wait_until_gone,
};
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

fn tree(seconds: &str) -> serde_json::Value {
    let script = format!("setsid sleep {seconds} & sleep {seconds}");
    json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}})
}

#[test]
fn a_client_that_goes_away_ends_its_call_with_everything_that_it_started() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    for era in Era::BOTH {
        for progress in [false, true] {
            let seconds = unique_seconds();
            let mut client = server.connect(&token, era);
            let mut call = tree(&seconds);
            if progress {
                call["_meta"] = json!({"progressToken": 1});
            }
            let stream = client.begin("tools/call", call);
            wait_until(SOON, "it runs", || alive(&seconds).len() >= 2);
            if progress {
                // The answer has begun.
                let mut byte = [0];
                (&stream).read_exact(&mut byte).unwrap();
            }
            drop(stream);
            wait_until_gone(&seconds, SOON);
            assert!(!client.listed().is_empty(), "{era:?}");
        }
    }
}

#[test]
fn a_client_with_a_session_cancels_its_call_and_hears_that_it_ended() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let seconds = unique_seconds();
    let mut client = server.connect(&token, Era::Initialize("2025-06-18"));
    let _stream = client.begin("tools/call", tree(&seconds));
    wait_until(SOON, "it runs", || alive(&seconds).len() >= 2);
    let id = 1;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    assert_eq!(client.post(&cancelled).status, 202);
    wait_until_gone(&seconds, SOON);
}

#[test]
fn a_session_that_is_ended_ends_its_calls() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let seconds = unique_seconds();
    let mut client = server.connect(&token, Era::Initialize("2025-06-18"));
    let _stream = client.begin("tools/call", tree(&seconds));
    wait_until(SOON, "it runs", || alive(&seconds).len() >= 2);
    let session = client.session.clone().unwrap();
    let request = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n\
         Connection: close\r\n\r\n"
    );
    integration_tests::exchange(server.address(), request.as_bytes());
    wait_until_gone(&seconds, SOON);
}

#[test]
fn sigterm_lets_calls_end_and_then_ends_the_rest() {
    let (project, outside) = (Project::empty(), Project::empty());
    let config = outside.join("coretools.toml");
    std::fs::write(&config, "[http]\ndrain_ms = 6000\n").unwrap();
    let mut server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let token = server.token("ada", "dev", &[]);
    let [short, long, background] = [(); 3].map(|()| unique_seconds());
    let mut client = server.connect(&token, Era::Modern);
    client.text("start_command", json!({"command": ["sleep", background]}));
    let marked = format!("sleep 3; true {short}");
    let brief = json!({"name": "run_command", "arguments": {"command": ["sh", "-c", marked]}});
    let mut brief = client.begin("tools/call", brief);
    let mut endless = client.begin("tools/call", tree(&long));
    let mut listening =
        client.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut session = server.connect(&token, Era::Initialize("2025-11-25"));
    let mut in_session = session.begin("tools/call", tree(&long));
    wait_until(SOON, "they run", || !alive(&short).is_empty() && alive(&long).len() >= 4);
    let mut ready = std::net::TcpStream::connect(server.address()).unwrap();
    server.signal(Signal::TERM);
    let began = Instant::now();
    // One who is connected hears that no more should be sent here; nobody new may connect.
    wait_until(SOON, "nobody is let in", || std::net::TcpStream::connect(server.address()).is_err());
    let _ = ready.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if let Ok(reply) = Reply::try_from(&mut ready) {
        assert_eq!(reply.status, 503);
    }
    let reply = Reply::try_from(&mut brief).unwrap();
    assert_eq!(reply.message()["result"]["isError"], false, "{reply:?}");
    let mut goodbye = String::new();
    let _ = listening.read_to_string(&mut goodbye);
    assert!(goodbye.contains("\"result\""), "no goodbye: {goodbye}");
    let reply = Reply::try_from(&mut endless).unwrap();
    assert_eq!(reply.message()["result"]["isError"], true, "{reply:?}");
    let _ = in_session.read_to_end(&mut Vec::new());
    assert!(server.wait(SOON).success());
    assert!(began.elapsed() >= Duration::from_secs(5), "it did not wait: {:?}", began.elapsed());
    for mark in [&short, &long, &background] {
        wait_until_gone(mark, SOON);
    }
}

#[test]
fn an_idle_server_ends_at_once_and_so_does_one_that_is_told_twice() {
    let project = Project::empty();
    let mut server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let mut idle = server.connect(&token, Era::Modern);
    assert!(!idle.listed().is_empty());
    let began = Instant::now();
    server.signal(Signal::INT);
    assert!(server.wait(SOON).success());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let mut server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let seconds = unique_seconds();
    let _stream = server.connect(&token, Era::Modern).begin("tools/call", tree(&seconds));
    wait_until(SOON, "it runs", || alive(&seconds).len() >= 2);
    let began = Instant::now();
    server.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    server.signal(Signal::TERM);
    assert!(server.wait(SOON).success());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    wait_until_gone(&seconds, SOON);
}

#[test]
fn a_server_that_is_killed_leaves_no_orphan_and_the_next_one_starts() {
    let (project, outside) = (Project::empty(), Project::empty());
    let audit = outside.join("audit.jsonl");
    let audit = audit.to_str().unwrap();
    let mut server = HttpServer::start(&project, &["--audit", audit]);
    let token = server.token("ada", "dev", &[]);
    let seconds = unique_seconds();
    let mut client = server.connect(&token, Era::Modern);
    client.text("start_command", json!({"command": ["sleep", seconds]}));
    let _stream = client.begin("tools/call", tree(&seconds));
    wait_until(SOON, "it runs", || alive(&seconds).len() >= 3);
    server.signal(Signal::KILL);
    assert!(!server.wait(SOON).success());
    wait_until_gone(&seconds, SOON);
    let tokens = std::fs::read(server.home().join("tokens.toml")).unwrap();
    let next = HttpServer::start_with(&project, &["--audit", audit], |home| put_tokens(home, &tokens));
    let mut client = Http::connect(next.address(), Some(&token), Era::Modern);
    client.text("get_diagnostics", json!({}));
    let lines = std::fs::read_to_string(audit).unwrap();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["tool"].is_string(), "{line}");
    }
    assert!(lines.contains("\"principal\":\"ada\""), "{lines}");
}

#[test]
fn a_client_with_a_session_may_come_back_for_its_answer() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let seconds = unique_seconds();
    let mut client = server.connect(&token, Era::Initialize("2025-11-25"));
    let script = format!("sleep 5; echo done; true {seconds}");
    let call = json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}});
    let mut stream = client.begin("tools/call", call);
    let mut began = String::new();
    wait_until(SOON, "the answer begins", || {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).unwrap();
        began.push_str(&String::from_utf8_lossy(&bytes[..read]));
        began.contains("retry:")
    });
    let event = began.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().trim().to_owned();
    drop(stream);
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nMcp-Session-Id: {}\r\n\
         Accept: text/event-stream\r\nLast-Event-ID: {event}\r\nConnection: close\r\n\r\n",
        client.session.clone().unwrap()
    );
    let reply = integration_tests::exchange(server.address(), request.as_bytes());
    let answer = reply.messages().into_iter().find(|message| message["result"].is_object());
    let answer = answer.unwrap_or_else(|| panic!("no answer: {reply:?}"));
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "done\n", "{answer}");
}

#[test]
fn sighup_reads_again_and_ends_nothing() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let seconds = unique_seconds();
    let mut client = server.connect(&token, Era::Modern);
    client.text("start_command", json!({"command": ["sleep", seconds]}));
    let before = server.log().matches("were read again").count();
    server.signal(Signal::HUP);
    wait_until(SOON, "it reads again", || server.log().matches("were read again").count() > before);
    assert_eq!(alive(&seconds).len(), 1);
    assert!(!client.listed().is_empty());
}

#[test]
fn a_server_that_is_killed_under_load_leaves_whole_files_and_the_next_one_goes_on_with_them() {
    let (project, outside) = (Project::with([("a.txt", "a\n")]), Project::empty());
    let audit = outside.join("audit.jsonl");
    let mut kept: Option<Vec<u8>> = None;
    let mut answered = 0;
    for round in 0..3_u64 {
        let mut server = HttpServer::start_with(&project, &["--audit", audit.to_str().unwrap()], |home| {
            if let Some(tokens) = &kept {
                put_tokens(home, tokens);
            }
        });
        let tokens: Vec<String> =
            (0..4).map(|number| server.token(&format!("t{round}-{number}"), "dev", &[])).collect();
        let seconds = unique_seconds();
        let mut starter = server.connect(&tokens[0], Era::Modern);
        starter.text(
            "start_command",
            json!({"command": ["sh", "-c", format!("setsid sleep {seconds} & sleep {seconds}")]}),
        );
        let _stream = starter.begin("tools/call", tree(&seconds));
        wait_until(SOON, "it runs", || alive(&seconds).len() >= 4);
        let address = server.address();
        let callers: Vec<_> = tokens
            .iter()
            .enumerate()
            .map(|(number, token)| {
                let token = token.clone();
                std::thread::spawn(move || {
                    let mut done = 0_u64;
                    // Until the server is gone, whose answer then breaks off.
                    while let Ok(true) = std::panic::catch_unwind(|| {
                        let mut client = Http::connect(address, Some(&token), Era::Modern);
                        client.text("read_file", json!({"path": "a.txt"}));
                        let path = format!("out-{round}-{number}.txt");
                        client.text(
                            "write_file",
                            json!({"path": path, "content": "x".repeat(100_000), "mode": "overwrite"}),
                        );
                        true
                    }) {
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        let lines = || std::fs::read_to_string(&audit).unwrap_or_default().lines().count() as u64;
        let before = lines();
        wait_until(SOON, "there is load", || lines() > before + 40 + 17 * round);
        server.signal(Signal::KILL);
        assert!(!server.wait(SOON).success());
        answered += callers.into_iter().map(|caller| caller.join().unwrap()).sum::<u64>() * 2;
        wait_until_gone(&seconds, SOON);
        kept = Some(std::fs::read(server.home().join("tokens.toml")).unwrap());
    }
    // Each file is the old one or the new one.
    for entry in std::fs::read_dir(project.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("out-") && name.ends_with(".txt") {
            assert_eq!(entry.metadata().unwrap().len(), 100_000, "{name}");
        }
    }
    // What was answered is recorded. Where a line broke off, the next server began a new one.
    let text = std::fs::read_to_string(&audit).unwrap();
    let (whole, broken): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
    assert!(broken.is_empty(), "{broken:?}");
    let calls = whole.iter().filter(|line| line.contains("_file\"")).count() as u64;
    assert!(calls >= answered && answered > 0, "{calls} of {answered} calls are recorded");
    // The tokens of every round are good.
    let server = HttpServer::start_with(&project, &[], |home| put_tokens(home, kept.as_deref().unwrap()));
    let listed = String::from_utf8(server.tokens(&["list"]).stdout).unwrap();
    for round in 0..3 {
        assert!(listed.contains(&format!("t{round}-3")), "{listed}");
    }
}

fn put_tokens(home: &std::path::Path, tokens: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    let path = home.join("tokens.toml");
    std::fs::write(&path, tokens).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
