//! Something that only looks like an inspector.

use crate::{said, serve};
use integration_tests::Project;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Answers every connection by `answer`, which gets the first request, until the test ends.
fn fake(answer: impl Fn(TcpStream, String, u16) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let mut request = [0; 4000];
                let read = stream.read(&mut request).unwrap_or(0);
                answer(stream, String::from_utf8_lossy(&request[..read]).into_owned(), port);
            });
        }
    });
    port
}

fn http(stream: &mut TcpStream, body: &str) {
    let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

fn listed(url: &str) -> String {
    json!([{"id": "x", "title": "x", "url": "x", "webSocketDebuggerUrl": url}]).to_string()
}

/// Returns what is said of a fake, within a time that shows that nothing hangs.
fn of(answer: impl Fn(TcpStream, String, u16) + Send + Sync + Clone + 'static) -> String {
    let port = fake(answer);
    let project = Project::empty();
    let mut wire = serve(&project, &[]);
    let started = Instant::now();
    let said = said(&mut wire, json!({"path": "a.b", "target": format!("ws://127.0.0.1:{port}")}));
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}: {said}", started.elapsed());
    assert!(integration_tests::peak_memory_kib(wire.pid()) < 300 << 10, "memory");
    said
}

/// Keeps a connection until the other side closes it.
fn hold(mut stream: TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn one_that_answers_garbage_is_no_inspector() {
    let said = of(|mut stream, _, _| drop(stream.write_all(b"\x00\xff garbage\r\n\r\n")));
    assert!(said.contains("no HTTP"), "{said}");
    let said = of(|mut stream, _, _| http(&mut stream, "<html>"));
    assert!(said.contains("is no inspector"), "{said}");
    let said = of(|mut stream, _, _| http(&mut stream, "[]"));
    assert!(said.contains("lists nothing"), "{said}");
    let said =
        of(|mut stream, _, _| drop(stream.write_all(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")));
    assert!(said.contains("HTTP 500"), "{said}");
}

#[test]
fn the_port_of_a_program_that_is_no_javascript_is_not_asked_for_an_inspector() {
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&asked);
    let port = fake(move |mut stream, _, _| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        http(&mut stream, "[]");
    });
    let project = Project::empty();
    let mut wire = serve(&project, &[]);
    let said = said(&mut wire, json!({"path": "a.b", "target": format!("port:{port}")}));
    assert!(said.contains(&format!("name that as ws://127.0.0.1:{port}")), "{said}");
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 0, "{said}");
}

#[test]
fn one_that_never_answers_is_left() {
    let said = of(|stream, _, _| hold(stream));
    assert!(said.contains("no answer within"), "{said}");
}

#[test]
fn one_that_answers_a_gigabyte_is_left() {
    let said = of(|mut stream, _, _| {
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
        let chunk = vec![b'['; 1 << 20];
        for _ in 0..1024 {
            if stream.write_all(&chunk).is_err() {
                break;
            }
        }
    });
    assert!(said.contains("more than"), "{said}");
}

#[test]
fn one_that_leads_elsewhere_is_not_followed() {
    // Its list names another machine; the path alone is believed, and nothing there takes the connection.
    let said = of(|mut stream, request, _| {
        if request.starts_with("GET /json/list") {
            http(&mut stream, &listed("ws://192.0.2.1:9/evil"));
        } else {
            assert!(request.starts_with("GET /evil "), "{request}");
            let _ = stream.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
        }
    });
    assert!(said.contains("403"), "{said}");
}

/// A connection that was shaken, after which `then` does as it likes.
fn web_socket(mut stream: TcpStream, request: &str, port: u16, then: impl Fn(TcpStream)) {
    if request.starts_with("GET /json/list") {
        return http(&mut stream, &listed(&format!("ws://127.0.0.1:{port}/x")));
    }
    let header = "sec-websocket-key:";
    let line = request.lines().find(|line| line.to_ascii_lowercase().starts_with(header)).unwrap();
    let accept = derive_accept_key(line[header.len()..].trim().as_bytes());
    let _ = write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    then(stream);
}

#[test]
fn one_that_takes_commands_and_never_answers_is_left() {
    let said = of(|stream, request, port| web_socket(stream, &request, port, hold));
    assert!(said.contains("no answer to"), "{said}");
}

#[test]
fn one_that_answers_commands_with_garbage_is_left() {
    let said = of(|stream, request, port| {
        web_socket(stream, &request, port, |mut stream| {
            // Text frames that are no JSON, then a frame that is none.
            let _ = stream.write_all(&[
                0x81, 3, b'{', b'{', b'{', 0x81, 2, b'[', b']', 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0,
            ]);
            hold(stream);
        });
    });
    assert!(said.contains("connection ended"), "{said}");
}

#[test]
fn one_that_sends_a_gigabyte_of_message_is_left() {
    let said = of(|stream, request, port| {
        web_socket(stream, &request, port, |mut stream| {
            let mut frame = vec![0x81, 127];
            frame.extend((1_u64 << 30).to_be_bytes());
            let _ = stream.write_all(&frame);
            let chunk = vec![b' '; 1 << 20];
            while stream.write_all(&chunk).is_ok() {}
        });
    });
    assert!(said.contains("connection ended"), "{said}");
}
