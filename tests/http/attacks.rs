//! Requests that are not what they say, or say two things at once.

use integration_tests::{Ask, Era, Http, HttpServer, Project, Reply, exchange, read_reply};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;

struct AttackedServer {
    project: Project,
    server: HttpServer,
    token: String,
}

fn site() -> AttackedServer {
    let project = Project::with([("keep.txt", "keep")]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "readonly", &[]);
    AttackedServer { project, server, token }
}

impl AttackedServer {
    /// Sends a body as it is. `method` and `name` are what the headers say.
    fn send(&self, era: Era, body: &str, method: &str, name: Option<&str>) -> Reply {
        let client = match era {
            Era::Modern => Http::silent(self.server.address(), Some(&self.token), era),
            Era::Initialize(_) => self.server.connect(&self.token, era),
        };
        exchange(self.server.address(), &client.bytes(body, Some(method), name))
    }

    fn untouched(&self, what: &str) {
        assert!(self.project.join("keep.txt").is_file() && self.project.read("keep.txt") == "keep", "{what}");
        assert!(!self.project.join("new.txt").exists(), "{what}");
    }
}

#[test]
fn what_two_parsers_could_read_differently_is_refused() {
    let site = site();
    for era in Era::BOTH {
        let meta = if era == Era::Modern { format!("{META},") } else { String::new() };
        let write = r#""arguments":{"path":"new.txt","content":"x"}"#;
        let call = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{meta}{params}}}}}"#)
        };
        let bodies = [
            call(&format!(r#""name":"read_file","name":"write_file",{write}"#)),
            call(&format!(r#""name":"write_file","name":"read_file",{write}"#)),
            call(&format!(r#""name":"read_file","n\u0061me":"write_file",{write}"#)),
            call(&format!(r#""name":"read_file","Name":"write_file",{write}"#)),
            call(&format!(r#""name":"read_file","NAME":"write_file",{write}"#)),
            call(r#""name":"read_file","arguments":{"path":"keep.txt"},"Arguments":{"path":"/etc/passwd"}"#),
            call(r#""name":"read_file","arguments":{"path":"keep.txt","path":"/etc/passwd"}"#),
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{{{meta}"name":"write_file",{write}}}}}"#
            ),
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"tools/list","params":{{{meta}"name":"read_file",{write}}}}}"#
            ),
            format!(r#"{{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list","params":{{{meta}"x":1}}}}"#),
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}"x":1}},"PARAMS":{{}}}}"#
            ),
        ];
        for body in &bodies {
            let reply = site.send(era, body, "tools/call", Some("read_file"));
            assert_eq!(reply.status, 400, "{era:?} {body}: {reply:?}");
            assert!(reply.message()["error"]["code"].as_i64().unwrap() < 0, "{reply:?}");
            site.untouched(body);
        }
    }
}

#[test]
fn what_is_no_message_is_answered_with_what_is_wrong() {
    let site = site();
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{}1{}}}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        (&list[..list.len() - 1], -32700),
        (&format!("{list}{list}"), -32700),
        (&deep, -32700),
        ("[]", -32600),
        (&format!("[{list}]"), -32600),
        ("\"text\"", -32600),
        (r#"{"id":1,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, -32602),
    ] {
        let reply = site.send(Era::Modern, body, "tools/list", None);
        assert_eq!(reply.status, 400, "{body:.80}: {reply:?}");
        assert_eq!(reply.message()["error"]["code"], code, "{body:.80}: {reply:?}");
    }
}

#[test]
fn headers_that_say_another_thing_than_the_body_are_refused() {
    let site = site();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{META},"name":"read_file","arguments":{{"path":"keep.txt"}}}}}}"#
    );
    assert_eq!(site.send(Era::Modern, &call, "tools/call", Some("read_file")).status, 200);
    for (method, name) in [
        ("tools/list", Some("read_file")),
        ("tools/call", Some("write_file")),
        ("tools/call", None),
        ("TOOLS/CALL", Some("read_file")),
        ("", Some("read_file")),
    ] {
        let reply = site.send(Era::Modern, &call, method, name);
        assert_eq!(reply.status, 400, "{method} {name:?}: {reply:?}");
        assert_eq!(reply.message()["error"]["code"], -32020, "{reply:?}");
    }
    // The version of the header and of the body.
    let mut client = Http::silent(site.server.address(), Some(&site.token), Era::Initialize("2025-11-25"));
    let reply = client.send(&client.bytes(&call, None, None));
    assert_eq!(reply.status, 400, "{reply:?}");
    // A header that is there twice.
    for header in [
        "Mcp-Method: tools/list",
        "Mcp-Name: write_file",
        "MCP-Protocol-Version: 2025-11-25",
        "Content-Type: text/plain",
    ] {
        let mut client = Http::silent(site.server.address(), Some(&site.token), Era::Modern);
        client.headers = format!("{header}\r\n");
        let reply = client.send(&client.bytes(&call, Some("tools/call"), Some("read_file")));
        assert_eq!(reply.status, 400, "{header}: {reply:?}");
    }
}

#[test]
fn a_body_that_is_too_large_or_breaks_off_is_refused_and_the_server_goes_on() {
    let site = site();
    let mut client = site.server.connect(&site.token, Era::Modern);
    let message = client
        .message("tools/call", json!({"name": "read_file", "arguments": {"path": "x".repeat(5 << 20)}}));
    assert_eq!(exchange(site.server.address(), &client.request_bytes(&message)).status, 413);
    // Without saying how long it will be.
    let head = String::from_utf8(client.bytes("", Some("tools/list"), None)).unwrap();
    let chunked = head.replace("Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n");
    let mut stream = TcpStream::connect(site.server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(chunked.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..80 {
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    assert_eq!(read_reply(&mut stream).unwrap().status, 413);
    // Says it is longer than it is, and closes.
    let list = client.message("tools/list", json!({}));
    let bytes = String::from_utf8(client.request_bytes(&list)).unwrap();
    let (head, body) = bytes.split_once("\r\n\r\n").unwrap();
    let longer = head.replace(&format!("Content-Length: {}", body.len()), "Content-Length: 100000");
    let mut stream = TcpStream::connect(site.server.address()).unwrap();
    stream.write_all(format!("{longer}\r\n\r\n{body}").as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(!answer.contains("200 OK"), "{answer}");
    assert!(!client.listed().is_empty());
}

/// A proxy in front could take the rest of one request for the next.
#[test]
fn a_request_that_ends_in_two_places_is_not_followed_by_another() {
    let site = site();
    let client = site.server.connect(&site.token, Era::Modern);
    let hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Smuggled: 1\r\n\r\n";
    let base = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n", site.token);
    drop(client);
    for framing in [
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
            5 + hidden.len()
        ),
        format!("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}"),
        format!("Content-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
        format!("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        format!("Transfer-Encoding: xchunked\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
        format!("Transfer-Encoding : chunked\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
        format!("Content-Length: +0\r\n\r\n{hidden}"),
    ] {
        let mut stream = TcpStream::connect(site.server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        stream.write_all(format!("{base}{framing}").as_bytes()).unwrap();
        let mut answers = String::new();
        let _ = stream.read_to_string(&mut answers);
        assert!(!answers.contains("\r\n\r\nok\n"), "{framing:?} was followed by another: {answers}");
    }
}

/// A proxy in front may read two lines as one, or one request as two, where a line ends in LF alone.
#[test]
fn a_bare_line_feed_in_a_head_is_refused_and_one_in_a_body_is_not() {
    let site = site();
    let exchange = |request: &str| {
        let mut stream = TcpStream::connect(site.server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answers = String::new();
        let _ = stream.read_to_string(&mut answers);
        answers
    };
    let close = "Connection: close\r\n\r\n";
    for request in [
        format!("GET /healthz HTTP/1.1\nHost: localhost\r\n{close}"),
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\n{close}"),
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\nAuthorization: Bearer b\r\n{close}"),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\n".to_owned(),
        format!("\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n{close}"),
    ] {
        let answer = exchange(&request);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?}: {answer}");
        // Also as the second request of a connection.
        let answer = exchange(&format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n{request}"));
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.contains("HTTP/1.1 400 "),
            "{request:?}: {answer}"
        );
    }
    let mut client = site.server.connect(&site.token, Era::Modern);
    let message = client.message("tools/list", serde_json::json!({})).to_string();
    // A body of several lines is JSON all the same, whatever ends them.
    let body = message.replace("{\"", "{\n\"");
    let request = String::from_utf8(client.bytes(&body, Some("tools/list"), None)).unwrap();
    let answer = exchange(&request.replacen("\r\n", "\r\nConnection: close\r\n", 1));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{request:?}: {answer}");
    assert!(!client.listed().is_empty());
}

#[test]
fn the_head_of_a_request_has_bounds() {
    let site = site();
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(100_000));
    let many: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
    let many = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    let wide = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    for request in [long, many, wide] {
        let mut stream = TcpStream::connect(site.server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(
            answer.is_empty()
                || answer.contains(" 431 ")
                || answer.contains(" 414 ")
                || answer.contains(" 400 "),
            "{answer:.200}"
        );
    }
    assert_eq!(site.server.get("/healthz", None).status, 200);
}

#[test]
fn random_bytes_end_neither_the_server_nor_its_memory() {
    let site = site();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..200 {
        let mut bytes = Vec::new();
        for _ in 0..64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        let mut stream = TcpStream::connect(site.server.address()).unwrap();
        let head: &[u8] = if round % 2 == 0 { b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" } else { b"" };
        let _ = stream.write_all(head).and_then(|()| stream.write_all(&bytes));
    }
    assert_eq!(site.server.get("/healthz", None).status, 200);
    let list: Value = site.server.connect(&site.token, Era::Modern).request("tools/list", json!({}));
    assert!(list["result"]["tools"].is_array());
}

#[test]
fn a_message_of_very_many_values_is_refused_and_costs_its_caller_alone() {
    let site = site();
    let values: String = (0..60_000).map(|number| format!(",\"k{number}\":1")).collect();
    let call = |more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{META},"name":"read_file","arguments":{{"path":"keep.txt"{more}}}}}}}"#
        )
    };
    let reply = site.send(Era::Modern, &call(&values), "tools/call", Some("read_file"));
    assert!(reply.status == 400 && reply.body.contains("too many values"), "{reply:?}");
    // What is large by its strings is taken.
    let long = "x".repeat(1 << 20);
    let reply =
        site.send(Era::Modern, &call(&format!(",\"other\":\"{long}\"")), "tools/call", Some("read_file"));
    assert!(reply.status == 200 && reply.body.contains("other"), "{}", &reply.body[..300]);
    // Values count as bytes: whoever sends them comes to the end of what may be sent in a minute.
    let project = Project::with([("keep.txt", "keep")]);
    let server = HttpServer::start(&project, &[]);
    // Few, so that a busy machine does not give them back before the second call.
    let few = ["--bytes-per-minute", "100000"];
    let (greedy, quiet) = (server.token("ada", "readonly", &few), server.token("bob", "readonly", &few));
    let fewer: String = (0..49_000).map(|number| format!(",\"k{number}\":1")).collect();
    let send = |token: &str, more: &str| {
        let client = Http::silent(server.address(), Some(token), Era::Modern);
        exchange(server.address(), &client.bytes(&call(more), Some("tools/call"), Some("read_file"))).status
    };
    // 0.6 MB of text, and 49,000 values of 32 bytes.
    assert_eq!(send(&greedy, &fewer), 200);
    assert_eq!(send(&greedy, ""), 429);
    assert_eq!(send(&quiet, ""), 200);
}

#[test]
fn an_encoded_body_is_refused() {
    let site = site();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    for (headers, status) in [
        ("Content-Encoding: gzip\r\n", 415),
        ("Content-Encoding: identity, br\r\n", 415),
        ("Content-Encoding: identity\r\n", 200),
    ] {
        let mut client = Http::silent(site.server.address(), Some(&site.token), Era::Modern);
        client.headers = headers.to_owned();
        let reply = exchange(site.server.address(), &client.bytes(&body, Some("tools/list"), None));
        assert_eq!(reply.status, status, "{headers}: {reply:?}");
    }
}
