//! Clients that take their time, and many of them.

use crate::SOON;
use integration_tests::{Ask, Era, HttpServer, Project, peak_memory_kib, require, wait_until};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;

fn configured(text: &str) -> (Project, Project, HttpServer) {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let config = outside.join("coretools.toml");
    std::fs::write(&config, text).unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    (project, outside, server)
}

/// Returns true if the server has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut bytes = [0; 1024];
    match stream.read(&mut bytes) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
    }
}

#[test]
fn a_request_that_comes_byte_by_byte_is_not_waited_for() {
    let (_project, _outside, server) =
        configured("[http]\nheader_timeout_ms = 1000\nbody_timeout_ms = 1000\n");
    let token = server.token("ada", "dev", &[]);
    let head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.write_all(head).unwrap();
    let began = Instant::now();
    wait_until(SOON, "the head is given up", || {
        let _ = slow.write_all(b"x");
        is_closed(&mut slow)
    });
    assert!(began.elapsed() >= Duration::from_millis(800), "{:?}", began.elapsed());
    let client = server.connect(&token, Era::Modern);
    let mut slow = TcpStream::connect(server.address()).unwrap();
    let bytes = client.bytes(&"x".repeat(1000), Some("tools/list"), None);
    slow.write_all(&bytes[..bytes.len() - 1000]).unwrap();
    wait_until(SOON, "the body is given up", || {
        let _ = slow.write_all(b"x");
        is_closed(&mut slow)
    });
    let mut silent = TcpStream::connect(server.address()).unwrap();
    wait_until(SOON, "one who says nothing is given up", || is_closed(&mut silent));
}

#[test]
fn a_thousand_idle_connections_keep_nobody_waiting() {
    let (_project, _outside, server) = configured("[http]\nheader_timeout_ms = 600000\n");
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    client.listed();
    let before = peak_memory_kib(server.pid());
    let idle: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for _ in 0..20 {
        assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a");
    }
    let more = peak_memory_kib(server.pid()) - before;
    assert!(more < 40 * 1024, "1000 connections took {more} KiB");
    drop(idle);
}

/// A connection from this address of the loopback network.
fn connect_from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((source, 0))).unwrap();
        let stream = socket.connect(to).await.unwrap().into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream
    })
}

fn is_healthy(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    integration_tests::read_reply(stream).is_ok_and(|reply| reply.status == 200)
}

/// Counts the sockets of a process. Its other descriptors come and go: it reads its files again when they change.
fn sockets(pid: u32) -> usize {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn ten_thousand_connections_without_a_word_take_the_place_of_nobody_who_is_there() {
    const FLOOD: usize = 10_000;
    // What is opened here is open in this process too, whatever becomes of it there.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let enough = files.maximum.is_none_or(|most| most >= FLOOD as u64 + 1_000);
    if require(enough.then_some(()), "no 11,000 open files; raise `ulimit -Hn`").is_none() {
        return;
    }
    let (_project, _outside, server) = configured("[http]\nheader_timeout_ms = 600000\n");
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a");
    let (memory, before) = (peak_memory_kib(server.pid()), sockets(server.pid()));
    let held = || sockets(server.pid()) - before;
    let mut silent = Vec::new();
    for number in 0..FLOOD {
        let source = [127, 0, 1, u8::try_from(number * 4 / FLOOD).unwrap()];
        let mut stream = connect_from(source, server.address());
        // Some begin to ask, and never end.
        if number % 3 == 0 {
            let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: loc");
        }
        silent.push(stream);
        if number % 500 == 0 {
            assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a");
        }
        if number == FLOOD / 5 {
            wait_until(SOON, &format!("one address has a quarter, {} of {}", held(), 1_024), || {
                held() == 1_024
            });
            assert!(is_healthy(&mut connect_from([127, 0, 2, 1], server.address())), "another has none");
        }
    }
    // Those who are there already are answered; nobody else has a place.
    wait_until(SOON, "all have a place but the one of the client", || held() == 4_095);
    assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a");
    let more = peak_memory_kib(server.pid()) - memory;
    assert!(more < 128 * 1024, "they took {more} KiB");
    drop(silent);
    wait_until(SOON, "their places are free", || sockets(server.pid()) <= before);
    assert!(is_healthy(&mut connect_from([127, 0, 1, 0], server.address())));
}

/// A connection on which the caller with `token` has identified itself, and which it keeps open.
fn identified(server: &HttpServer, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let status = integration_tests::read_reply(&mut stream).unwrap().status;
    assert!(status != 401, "{status}");
    stream
}

/// A program of this machine without a token cannot use up the connections: those that are idle give their place to a client
/// that asks, and those of callers keep theirs.
#[test]
fn connections_without_a_word_give_their_place_to_a_client_that_asks() {
    let (_project, _outside, server) =
        configured("[http]\nmax_connections = 5\nheader_timeout_ms = 600000\n");
    let token = server.token("ada", "dev", &[]);
    let mut known = identified(&server, &token);
    let mut silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for round in 0..10 {
        assert!(is_healthy(&mut TcpStream::connect(server.address()).unwrap()), "{round}");
        let mut client = server.connect(&token, Era::Modern);
        assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a");
        silent.push(TcpStream::connect(server.address()).unwrap());
    }
    assert!(!is_closed(&mut known), "a caller keeps its connection");
    wait_until(SOON, "the first are closed", || silent[..36].iter_mut().all(is_closed));
}

#[test]
fn beyond_so_many_connections_none_is_taken_until_one_ends() {
    let (_project, _outside, server) =
        configured("[http]\nmax_connections = 5\nheader_timeout_ms = 600000\n");
    let token = server.token("ada", "dev", &[]);
    let mut held: Vec<TcpStream> = (0..5).map(|_| identified(&server, &token)).collect();
    let mut refused = TcpStream::connect(server.address()).unwrap();
    wait_until(SOON, "it is refused", || is_closed(&mut refused));
    held.pop();
    wait_until(SOON, "there is room", || {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 200")
    });
}

#[test]
fn streamed_answers_do_not_wait_for_acknowledgements() {
    let (_project, _outside, server) = configured("");
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Initialize("2025-11-25"));
    let mut times: Vec<Duration> = (0..40)
        .map(|_| {
            let began = Instant::now();
            client.text("read_file", json!({"path": "a.txt"}));
            began.elapsed()
        })
        .collect();
    times.sort();
    // Held back for a delayed acknowledgement each would take 40 ms and more.
    assert!(times[5] < Duration::from_millis(25), "{times:?}");
}
