//! Measures from outside what `mcp-stdio wrap` adds to a call: the same client calls the same small server
//! directly and through the proxy, in turn. Prints a table.
//!
//! ```sh
//! cargo bench --package coretools-mcp --bench wrap
//! ```
//!
//! With `PEER_PROXIES` set, other proxies are measured in the same run: one to a line, `NAME: COMMAND`, where
//! `{port}` is the port of the streamable HTTP that they give to a server on standard streams, and `{server}`
//! is that server's command line.
//!
//! With `OTHER_BUILD` set to another `mcp-stdio`, such as that of an earlier commit, calls through that one are
//! measured in turn with the rest.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "it starts the servers that it measures")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it measures or stops"
)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The argument that makes this program the server.
const SERVE: &str = "serve-echo";
const WARM_UP: usize = 500;
const CALLS: usize = 20_000;
const LISTS: usize = 2_000;
const PEER_CALLS: usize = 1_000;

fn main() {
    if std::env::args().any(|argument| argument == SERVE) {
        return serve();
    }
    println!("| path | p50 | p99 | added p50 | added p99 | target | |");
    println!("|---|---|---|---|---|---|---|");
    const PROXY: &str = env!("CARGO_BIN_EXE_mcp-stdio");
    let other = std::env::var("OTHER_BUILD").ok();
    let mut pipes = vec![
        ("bare", PipeClient::start(None)),
        ("wrapped", PipeClient::start(Some((PROXY, &[])))),
        ("wrapped, one tool hidden", PipeClient::start(Some((PROXY, &["--hide", "tool_7"])))),
        ("wrapped, role worker", PipeClient::start(Some((PROXY, &["--role", "worker"])))),
    ];
    if let Some(other) = &other {
        pipes.push(("wrapped by the other build", PipeClient::start(Some((other, &[])))));
        let hidden = PipeClient::start(Some((other, &["--hide", "tool_7"])));
        pipes.push(("wrapped by the other build, one tool hidden", hidden));
    }
    let echo = json!({"name": "echo", "arguments": {"text": "hello, this is a call of usual length"}});
    let mut measure = |what: &str, method: &str, params: &Value, rounds: usize, target: bool| {
        let mut times = vec![Vec::new(); pipes.len()];
        for round in 0..WARM_UP + rounds {
            for ((_, pipe), times) in pipes.iter_mut().zip(&mut times) {
                let time = pipe.request(method, params);
                if round >= WARM_UP {
                    times.push(time);
                }
            }
        }
        let mut times = times.into_iter().map(CallTimes::new);
        let bare = times.next().unwrap();
        row(&format!("{what}, bare"), &bare, None, false);
        for ((name, _), times) in pipes[1..].iter().zip(times) {
            row(&format!("{what}, {name}"), &times, Some(&bare), target);
        }
        bare
    };
    let bare = measure("call", "tools/call", &echo, CALLS, true);
    measure("list of 50 tools", "tools/list", &json!({}), LISTS, false);
    let big = json!({"name": "echo", "arguments": {"text": "x".repeat(100_000)}});
    measure("call with an argument of 100 KB", "tools/call", &big, LISTS, false);
    for line in std::env::var("PEER_PROXIES").unwrap_or_default().lines() {
        let Some((name, command)) = line.split_once(": ") else { continue };
        let mut peer = HttpProxyClient::start(command);
        let times = (0..WARM_UP / 5 + PEER_CALLS).map(|_| peer.call(&echo)).skip(WARM_UP / 5).collect();
        row(&format!("call, {name}"), &CallTimes::new(times), Some(&bare), false);
    }
}

fn row(what: &str, times: &CallTimes, bare: Option<&CallTimes>, has_target: bool) {
    let micros = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
    let (mut added, mut target, mut verdict) = ([String::new(), String::new()], "", "");
    if let Some(bare) = bare {
        let differences = [times.p50.saturating_sub(bare.p50), times.p99.saturating_sub(bare.p99)];
        added = differences.map(micros);
        if has_target {
            target = "≤ 25 µs, ≤ 150 µs";
            let met =
                differences[0] <= Duration::from_micros(25) && differences[1] <= Duration::from_micros(150);
            verdict = if met { "met" } else { "**not met**" };
        }
    }
    let [p50, p99] = [times.p50, times.p99].map(micros);
    println!("| {what} | {p50} | {p99} | {} | {} | {target} | {verdict} |", added[0], added[1]);
}

struct CallTimes {
    p50: Duration,
    p99: Duration,
}

impl CallTimes {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { p50: times[times.len() / 2], p99: times[times.len() * 99 / 100] }
    }
}

/// A client of a server on pipes.
struct PipeClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl PipeClient {
    /// The small server, behind this proxy with these flags, or bare.
    fn start(proxy: Option<(&str, &[&str])>) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = match proxy {
            None => Command::new(&own),
            Some((program, flags)) => {
                let mut command = Command::new(program);
                command.arg("wrap").args(flags).arg("--").arg(&own);
                command
            }
        };
        let mut child =
            command.arg(SERVE).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take();
        let output = BufReader::with_capacity(1 << 18, child.stdout.take().unwrap());
        let mut pipe = Self { child, input, output, id: 0 };
        pipe.request("initialize", &handshake());
        pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        pipe
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// From the write of a request to the last byte of its answer.
    fn request(&mut self, method: &str, params: &Value) -> Duration {
        self.id += 1;
        let id = self.id;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n";
        let mut answer = String::new();
        let started = Instant::now();
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        self.output.read_line(&mut answer).unwrap();
        let time = started.elapsed();
        assert!(answer.contains(&format!("\"id\":{id},")) && answer.contains("\"result\""), "{answer}");
        time
    }
}

impl Drop for PipeClient {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

fn handshake() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
}

/// A client of a server behind a proxy of another make.
struct HttpProxyClient {
    child: Child,
    stream: BufReader<TcpStream>,
    port: u16,
    session: Option<String>,
    id: u64,
}

impl HttpProxyClient {
    fn start(command: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let own = format!("{} {SERVE}", std::env::current_exe().unwrap().display());
        let command = command.replace("{port}", &port.to_string()).replace("{server}", &own);
        let child = Command::new("sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let started = Instant::now();
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) => assert!(started.elapsed() < Duration::from_secs(60), "{command}: {error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut http = Self { child, stream: BufReader::new(stream), port, session: None, id: 0 };
        http.post("initialize", &handshake(), true);
        http.post("notifications/initialized", &json!({}), false);
        http
    }

    fn call(&mut self, params: &Value) -> Duration {
        let started = Instant::now();
        self.post("tools/call", params, true);
        started.elapsed()
    }

    fn post(&mut self, method: &str, params: &Value, is_request: bool) {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if is_request {
            self.id += 1;
            message["id"] = self.id.into();
        }
        let body = message.to_string();
        let session = self.session.as_ref().map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-06-18\r\n\
             {session}content-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut length, mut is_chunked, mut status, mut line) = (0, false, String::new(), String::new());
        loop {
            line.clear();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "closed after {status:?}");
            let lower = line.trim_end().to_ascii_lowercase();
            match lower.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("transfer-encoding", "chunked")) => is_chunked = true,
                Some(("mcp-session-id", _)) => {
                    self.session = Some(line.trim_end().split_once(": ").unwrap().1.to_owned());
                }
                _ if status.is_empty() => status.clone_from(&lower),
                _ if lower.is_empty() => break,
                _ => {}
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                line.clear();
                self.stream.read_line(&mut line).unwrap();
                let size = usize::from_str_radix(line.trim(), 16).expect("the size of a chunk");
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).unwrap();
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        } else {
            body.resize(length, 0);
            self.stream.read_exact(&mut body).unwrap();
        }
        let body = String::from_utf8_lossy(&body);
        assert!(status.contains(" 20"), "{method}: {status} {body}");
        assert!(!is_request || body.contains("\"result\""), "{method}: {status} {body}");
    }
}

impl Drop for HttpProxyClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server: reads lines, answers, allocates little.
fn serve() {
    let tools: Vec<Value> =
        (0..49).map(|n| format!("tool_{n}")).chain(["echo".to_owned()]).map(|name| tool(&name)).collect();
    let list = json!({"tools": tools}).to_string();
    let mut output = std::io::stdout().lock();
    for line in BufReader::with_capacity(1 << 18, std::io::stdin()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            })
            .to_string(),
            "tools/list" => list.clone(),
            _ => {
                let text = &message["params"]["arguments"]["text"];
                json!({"content": [{"type": "text", "text": text}]}).to_string()
            }
        };
        output
            .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").as_bytes())
            .unwrap();
        output.flush().unwrap();
    }
}

fn tool(name: &str) -> Value {
    let path = json!({"type": "string", "description": "Where, relative to the first root."});
    json!({
        "name": name,
        "title": "A tool",
        "description": "Does one thing with one file, says what it did, and what to use instead where it cannot.",
        "inputSchema": {"type": "object", "properties": {"path": path, "depth": {"type": "integer"}}, "required": ["path"]},
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
    })
}
