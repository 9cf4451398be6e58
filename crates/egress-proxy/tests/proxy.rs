//! The proxy against hosts on addresses of the loopback network, with names that only the test's own resolver knows.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the tests start clients and look at what hosts got"
)]

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egress_proxy::{AllowedHosts, DeniedConnection, EgressProxy, ProxyLimits, Resolve, ResolvedAddresses};
use skipped_tests::require;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Names with the addresses that they lead to, one answer after the other.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>);

impl Names {
    fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), answers.iter().map(parse).collect());
        self
    }

    fn answer(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut names = self.0.lock().unwrap();
        let answers = names.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> ResolvedAddresses<'a> {
        Box::pin(async move { self.answer(name) })
    }
}

/// A host that records what it gets and answers each connection with one HTTP response that names its address.
struct Server {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Server {
    async fn start(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let record = Arc::clone(&record);
                tokio::spawn(async move {
                    let mut all = Vec::new();
                    while !all.windows(4).any(|end| end == b"\r\n\r\n") && !all.starts_with(&[22]) {
                        if stream.read_buf(&mut all).await.unwrap_or(0) == 0 {
                            break;
                        }
                    }
                    record.lock().unwrap().extend_from_slice(&all);
                    let body = format!("this is {address}");
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all((head + &body).as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, received }
    }

    fn received(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap()).into_owned()
    }
}

/// A running proxy, and what it denied.
struct Fixture {
    proxy: SocketAddr,
    denials: Arc<Mutex<Vec<DeniedConnection>>>,
}

impl Fixture {
    async fn start(hosts: &[String], names: Names, limits: ProxyLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let denials = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&denials);
        let server = EgressProxy::new(AllowedHosts::parse(hosts).unwrap())
            .resolver(names)
            .limits(limits)
            .on_denied(move |denial| record.lock().unwrap().push(denial.clone()));
        tokio::spawn(server.serve(listener, Default::default()));
        Self { proxy, denials }
    }

    /// Sends `request` and returns all that comes back.
    async fn send(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Asks for `target` by `CONNECT`, then sends `payload`; returns all that comes back.
    async fn connect(&self, target: &str, payload: &[u8]) -> String {
        self.send(
            &[format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes(), payload].concat(),
        )
        .await
    }

    /// Asks for a host by SOCKS5 with an encoded address; returns the reply's code.
    async fn socks(&self, command: u8, address: &[u8], port: u16) -> u8 {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        let request = [&[5, 1, 0, 5, command, 0], address, &port.to_be_bytes()].concat();
        stream.write_all(&request).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        answer[3]
    }

    fn denied(&self) -> Vec<String> {
        self.denials.lock().unwrap().iter().map(ToString::to_string).collect()
    }

    async fn curl(&self, arguments: &[&str]) -> Option<(bool, String)> {
        let curl = tokio::process::Command::new("curl")
            .args(["--silent", "--show-error", "--insecure", "--max-time", "20", "--noproxy", "", "--proxy"])
            .arg(format!("http://{}", self.proxy))
            .args(arguments)
            .output()
            .await;
        let output = require(curl.ok(), "no curl; apt install curl")?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Some((output.status.success(), text))
    }
}

fn name(name: &str) -> Vec<u8> {
    [&[3, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat()
}

/// A `ClientHello` that asks for the server `name`.
fn client_hello(name: &str) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    let entry = [&[0][..], &length(name.len()), name.as_bytes()].concat();
    let list = [&length(entry.len())[..], &entry].concat();
    let extension = [&[0, 0][..], &length(list.len()), &list].concat();
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(length(extension.len()));
    body.extend(extension);
    let message = [&[1, 0][..], &length(body.len()), &body].concat();
    [&[22, 3, 1][..], &length(message.len()), &message].concat()
}

#[tokio::test]
async fn every_way_to_an_allowed_host_works_and_every_other_is_refused() {
    let allowed = Server::start("127.0.0.2:0").await;
    let port = allowed.address.port();
    let other = Server::start(&format!("127.0.0.3:{port}")).await;
    let names = Names::default()
        .with("allowed.example", &[&["127.0.0.2"]])
        .with("sub.wild.example", &[&["127.0.0.2"]])
        .with("other.example", &[&["127.0.0.3"]])
        .with("private.example", &[&["127.0.0.3"]])
        .with("mixed.example", &[&["127.0.0.3", "127.0.0.2"]]);
    let hosts = [
        format!("allowed.example:{port}"),
        format!("*.wild.example:{port}"),
        format!("private.example:{port}"),
        format!("mixed.example:{port}"),
        format!("127.0.0.2:{port}"),
    ];
    let fixture = Fixture::start(&hosts, names, ProxyLimits::default()).await;
    let get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer = format!("this is 127.0.0.2:{port}");

    // (target, the text of the refusal, or an empty one where it is allowed)
    let rows = [
        (format!("allowed.example:{port}"), ""),
        (format!("ALLOWED.Example.:{port}"), ""),
        (format!("sub.wild.example:{port}"), ""),
        (format!("127.0.0.2:{port}"), ""),
        (format!("[::ffff:127.0.0.2]:{port}"), ""),
        // An address that is closed is passed over.
        (format!("mixed.example:{port}"), ""),
        (format!("other.example:{port}"), "is not in the allowed hosts"),
        (format!("wild.example:{port}"), "is not in the allowed hosts"),
        (format!("allowed.example.other.example:{port}"), "is not in the allowed hosts"),
        ("allowed.example:1".to_owned(), "not with port 1"),
        (format!("private.example:{port}"), "leads to 127.0.0.3, a loopback address"),
        (format!("127.0.0.3:{port}"), "is not in the allowed hosts"),
        (format!("127.0.0.1:{port}"), "is not in the allowed hosts"),
        (format!("localhost:{port}"), "is not in the allowed hosts"),
        (format!("0.0.0.0:{port}"), "is not in the allowed hosts"),
        (format!("[::1]:{port}"), "is not in the allowed hosts"),
        (format!("[::127.0.0.2]:{port}"), "is not in the allowed hosts"),
        ("169.254.169.254:80".to_owned(), "is not in the allowed hosts"),
        (format!("127.2:{port}"), "is no name or address"),
        (format!("0x7f000002:{port}"), "is no name or address"),
        (format!("2130706434:{port}"), "is no name or address"),
        (format!("allowed.example%00.other.example:{port}"), "is no name or address"),
    ];
    for (target, refusal) in &rows {
        for (way, text) in [
            ("CONNECT", fixture.connect(target, get).await),
            (
                "GET",
                fixture
                    .send(
                        format!("GET http://{target}/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n").as_bytes(),
                    )
                    .await,
            ),
        ] {
            if refusal.is_empty() {
                assert!(
                    text.starts_with("HTTP/1.1 200") && text.ends_with(&answer),
                    "{way} {target}: {text}"
                );
            } else {
                assert!(text.starts_with("HTTP/1.1 403") && text.contains(refusal), "{way} {target}: {text}");
                assert!(fixture.denied().last().unwrap().contains(refusal), "{way} {target}");
            }
        }
    }
    for (address, code) in [
        (name("allowed.example"), 0),
        (name("ALLOWED.EXAMPLE."), 0),
        (vec![1, 127, 0, 0, 2], 0),
        (name("other.example"), 2),
        (name("private.example"), 2),
        (name("127.2"), 2),
        (name("allowed.example\0.other.example"), 2),
        (vec![1, 127, 0, 0, 3], 2),
        ([&[4][..], &std::net::Ipv6Addr::LOCALHOST.octets()].concat(), 2),
    ] {
        assert_eq!(fixture.socks(1, &address, port).await, code, "{address:?}");
    }
    // Listening and UDP, which no list of names can judge.
    assert_eq!(fixture.socks(2, &name("allowed.example"), port).await, 7);
    assert_eq!(fixture.socks(3, &name("allowed.example"), port).await, 7);
    assert_eq!(other.received(), "");
}

#[tokio::test]
async fn a_request_goes_to_the_host_of_its_url_and_nothing_follows_it() {
    let server = Server::start("127.0.0.2:0").await;
    let port = server.address.port();
    let names = Names::default().with("allowed.example", &[&["127.0.0.2"]]);
    let hosts = [format!("allowed.example:{port}"), format!("127.0.0.2:{port}"), "127.0.0.2:1".to_owned()];
    let fixture = Fixture::start(&hosts, names, ProxyLimits::default()).await;
    let request = format!(
        "POST http://allowed.example:{port}/a HTTP/1.1\r\nHost: hidden.example\r\nContent-Length: 2\r\n\
         Proxy-Authorization: Basic eDp5\r\n\r\nhiGET http://allowed.example:{port}/b HTTP/1.1\r\nHost: hidden.example\r\n\r\n"
    );
    let answer = fixture.send(request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let received = server.received();
    assert!(
        received.starts_with(&format!("POST /a HTTP/1.1\r\nHost: allowed.example:{port}\r\n")),
        "{received}"
    );
    assert!(
        !received.contains("hidden") && !received.contains("/b") && !received.contains("eDp5"),
        "{received}"
    );

    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n", "400"),
        ("GET https://allowed.example/ HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT allowed.example HTTP/1.1\r\n\r\n", "400"),
        ("nonsense\r\n\r\n", "400"),
        ("GET http://allowed.example/ HTTP/2.0\r\n\r\n", "400"),
        // What some readers end elsewhere: answered at once, and before the host is connected to (port 1 refuses that).
        ("GET http://127.0.0.2:1/ HTTP/1.1\nHost: a\n\n", "400"),
        ("GET http://127.0.0.2:1/ HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "400"),
        ("CONNECT 127.0.0.2:1 HTTP/1.1\n\n", "400"),
        (
            "POST http://127.0.0.2:1/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "POST http://127.0.0.2:1/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
            "400",
        ),
        ("CONNECT 127.0.0.2:1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "400"),
        ("CONNECT 127.0.0.2:1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
        ("POST http://127.0.0.2:1/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "502"),
    ] {
        let answer = fixture.send(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    let long = format!("GET http://allowed.example/{} HTTP/1.1\r\n\r\n", "a".repeat(70_000));
    let answer = fixture.send(long.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn the_server_name_must_be_the_name_that_was_connected_to() {
    let server = Server::start("127.0.0.2:0").await;
    let port = server.address.port();
    let names = Names::default().with("allowed.example", &[&["127.0.0.2"]]);
    let hosts = [format!("allowed.example:{port}"), format!("127.0.0.2:{port}")];
    let fixture = Fixture::start(&hosts, names, ProxyLimits::default()).await;
    let target = format!("allowed.example:{port}");

    fixture.connect(&target, &client_hello("hidden.example")).await;
    fixture.connect(&format!("127.0.0.2:{port}"), &client_hello("hidden.example")).await;
    fixture.connect(&target, &client_hello("a..b")).await;
    let mut cut = client_hello("allowed.example");
    cut[5] = 2; // no ClientHello
    fixture.connect(&target, &cut).await;
    assert_eq!(server.received(), "");
    let denied = fixture.denied();
    assert_eq!(denied.len(), 4, "{denied:?}");
    assert!(denied[0].contains("asked for the server `hidden.example`"), "{denied:?}");

    for name in ["allowed.example", "ALLOWED.example"] {
        let before = server.received().len();
        fixture.connect(&target, &client_hello(name)).await;
        assert!(server.received().len() > before, "{name}");
    }
    assert_eq!(fixture.denied().len(), 4);
}

#[tokio::test]
async fn curl_reaches_the_host_and_cannot_name_another_in_its_handshake() {
    let server = Server::start("127.0.0.2:0").await;
    let port = server.address.port();
    let names = Names::default().with("allowed.example", &[&["127.0.0.2"]]);
    let hosts = [format!("allowed.example:{port}"), format!("127.0.0.2:{port}")];
    let fixture = Fixture::start(&hosts, names, ProxyLimits::default()).await;
    let answer = format!("this is 127.0.0.2:{port}");

    let plain = format!("http://allowed.example:{port}/");
    let Some((succeeded, text)) = fixture.curl(&[&plain]).await else { return };
    assert!(succeeded && text == answer, "{text}");
    let (succeeded, text) = fixture.curl(&["--proxytunnel", &plain]).await.unwrap();
    assert!(succeeded && text == answer, "{text}");
    let socks = format!("socks5h://{}", fixture.proxy);
    let (succeeded, text) = fixture.curl(&["--proxy", &socks, &plain]).await.unwrap();
    assert!(succeeded && text == answer, "{text}");
    let (succeeded, text) = fixture
        .curl(&["--upload-file", "/etc/hostname", "-H", "Transfer-Encoding: chunked", &plain])
        .await
        .unwrap();
    assert!(succeeded && text == answer, "{text}");

    let received = server.received().len();
    let hidden = format!("https://hidden.example:{port}/");
    let way = format!("hidden.example:{port}:allowed.example:{port}");
    let (succeeded, text) = fixture.curl(&["--connect-to", &way, &hidden]).await.unwrap();
    assert!(!succeeded, "{text}");
    assert_eq!(server.received().len(), received);
    let (succeeded, text) = fixture.curl(&["https://other.example/"]).await.unwrap();
    assert!(!succeeded && text.contains("403"), "{text}");
    let (_, text) = fixture.curl(&["http://other.example/"]).await.unwrap();
    assert_eq!(text, "`other.example:80` is not in the allowed hosts\n");
}

#[tokio::test]
async fn a_name_that_changes_its_answer_leads_where_it_led_first() {
    let server = Server::start("127.0.0.2:0").await;
    let port = server.address.port();
    let other = Server::start(&format!("127.0.0.3:{port}")).await;
    let changing: &[&[&str]] = &[&["127.0.0.2"], &["127.0.0.3"]];
    let names = Names::default().with("rebound.example", changing).with("allowed.example", changing);
    let hosts = [format!("rebound.example:{port}"), format!("127.0.0.2:{port}")];
    let fixture = Fixture::start(&hosts, names.clone(), ProxyLimits::default()).await;
    for _ in 0..3 {
        let text = fixture.connect(&format!("rebound.example:{port}"), b"\r\n\r\n").await;
        assert!(text.ends_with(&format!("this is 127.0.0.2:{port}")), "{text}");
    }
    // Where nothing is kept, the new answer is judged again.
    let names = names.with("rebound.example", changing);
    let fixture = Fixture::start(&hosts, names, ProxyLimits::default().pin_duration(Duration::ZERO)).await;
    let target = format!("rebound.example:{port}");
    assert!(fixture.connect(&target, b"\r\n\r\n").await.contains("200"));
    assert!(fixture.connect(&target, b"\r\n\r\n").await.contains("403"));
    assert_eq!(other.received(), "");
}

#[tokio::test]
async fn slow_and_silent_clients_are_let_go() {
    // A host that accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let target = silent.local_addr().unwrap();
    let limits = ProxyLimits::default()
        .max_connections(1)
        .head_timeout(Duration::from_millis(100))
        .idle_timeout(Duration::from_millis(300));
    let fixture = Fixture::start(&[target.to_string()], Names::default(), limits).await;
    // One connection at a time: each of these must end before the next is served.
    for beginning in ["", "GET http://", "\u{5}", "\u{5}\u{1}\0\u{5}"] {
        fixture.send(beginning.as_bytes()).await;
    }
    let text = fixture.connect(&target.to_string(), b"").await;
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n\r\n"), "{text}");
    let text = fixture.connect(&target.to_string(), &client_hello("a.example")[..20]).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}
