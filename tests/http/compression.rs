//! Answers in gzip.

use flate2::read::GzDecoder;
use integration_tests::{Era, HttpServer, Project, Reply, read_reply};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Text that gets much smaller, of more than 64 KiB.
fn text() -> String {
    (0..3000).map(|number| format!("line {number} of a file that says the same again\n")).collect()
}

fn unpacked(reply: &Reply) -> Value {
    let mut text = String::new();
    GzDecoder::new(&*reply.bytes).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn read_file(path: &str) -> Value {
    json!({"name": "read_file", "arguments": {"path": path, "limit": 100_000}})
}

#[test]
fn a_long_answer_is_compressed_for_whom_it_is_asked_and_is_the_same() {
    let project = Project::with([("long.txt", &*text()), ("short.txt", "short")]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    let plain = client.reply("tools/call", read_file("long.txt"));
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"));
    let text = |message: &Value| message["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    let whole = text(&plain.message());
    for asked in ["gzip", "gzip, deflate, br, zstd", "*"] {
        client.headers = format!("Accept-Encoding: {asked}\r\n");
        let reply = client.reply("tools/call", read_file("long.txt"));
        assert_eq!(reply.header("content-encoding"), Some("gzip"), "{asked}");
        assert_eq!(reply.header("vary"), Some("Accept-Encoding"));
        assert_eq!(reply.header("content-length").unwrap().parse(), Ok(reply.bytes.len()));
        assert_eq!(text(&unpacked(&reply)), whole);
        assert!(reply.bytes.len() * 4 < plain.bytes.len(), "{}", reply.bytes.len());
        // The list, and what is too short.
        assert_eq!(client.reply("tools/list", json!({})).header("content-encoding"), Some("gzip"));
        let short = client.reply("tools/call", read_file("short.txt"));
        assert_eq!((short.header("content-encoding"), short.header("vary")), (None, None));
    }
    for refused in ["br", "identity", "gzip;q=0", "*;q=0"] {
        client.headers = format!("Accept-Encoding: {refused}\r\n");
        let reply = client.reply("tools/call", read_file("long.txt"));
        assert_eq!(reply.header("content-encoding"), None, "{refused}");
        assert_eq!(text(&reply.message()), whole);
    }
}

#[test]
fn a_stream_of_events_is_never_held_back_to_be_compressed() {
    let project = Project::with([("long.txt", &*text())]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    for era in Era::BOTH {
        let mut client = server.connect(&token, era);
        client.headers = "Accept-Encoding: gzip\r\n".to_owned();
        let command = json!({
            "name": "run_command", "_meta": {"progressToken": "p"},
            "arguments": {"command": ["sh", "-c", "echo working; sleep 2.5; cat long.txt"]},
        });
        let reply = client.reply("tools/call", command);
        assert_eq!(reply.header("content-type"), Some("text/event-stream"), "{era:?}");
        assert_eq!(reply.header("content-encoding"), None, "{era:?}");
        let progress =
            reply.messages().iter().filter(|said| said["method"] == "notifications/progress").count();
        assert!(progress >= 1, "{era:?}: {reply:?}");
    }
}

#[test]
fn a_head_says_what_a_get_would_and_leaves_the_connection_whole() {
    let project = Project::with([("a.txt", "a")]);
    let server = HttpServer::start(&project, &["--metrics-listen", "127.0.0.1:0"]);
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    // Figures that are long enough.
    for tool in ["read_file", "list_directory", "file_exists", "get_file_info"] {
        client.call(tool, json!({"path": "a.txt"}));
    }
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut ask = |method: &str, encoding: &str| {
        let request = format!(
            "{method} /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{encoding}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        if method == "GET" {
            return read_reply(&mut stream).unwrap();
        }
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        // What follows is the next answer: there is no body.
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().to_owned();
        let mut reply = read_reply(&mut head.replace(&length, "0").as_bytes()).unwrap();
        reply.body = length;
        reply
    };
    for encoding in ["", "Accept-Encoding: gzip\r\n"] {
        let (head, get) = (ask("HEAD", encoding), ask("GET", encoding));
        assert_eq!((head.status, get.status), (200, 200));
        for name in ["content-encoding", "content-type", "vary"] {
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
        assert_eq!(get.header("content-encoding").is_some(), !encoding.is_empty());
        let length: usize = head.body.parse().unwrap();
        // The figures of the second differ by those of the first.
        assert!(length.abs_diff(get.bytes.len()) < 100, "{length} and {}", get.bytes.len());
    }
    let head = format!(
        "HEAD /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "a body: {answer}");
}
