//! Measures from outside what a remote costs: the same client calls the same tools of a local server, and of a server in
//! front of a remote that is this machine, in turn. Prints a table.
//!
//! ```sh
//! cargo bench --package coretools-mcp --bench remote
//! ```
//!
//! With `REMOTE` set to a remote as `--remote` takes one, such as `ssh:localhost:/tmp`, that one is measured in turn with
//! the rest.
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
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const SERVER: &str = env!("CARGO_BIN_EXE_mcp-stdio");
const WARM_UP: usize = 200;
const READS: usize = 5_000;
const COMMANDS: usize = 300;
const STARTS: usize = 50;

/// The most that a call of a warm remote on this machine may take beyond a local one.
const MAX_ADDED: Duration = Duration::from_micros(300);

/// The most that the start of a warm remote may take.
const MAX_START: Duration = Duration::from_millis(20);

fn main() {
    let folder = std::env::temp_dir().join(format!("coretools-bench-remote-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("small.txt"), "x".repeat(1000)).unwrap();
    std::fs::write(folder.join("large.txt"), format!("{}\n", "x".repeat(99)).repeat(1000)).unwrap();
    let shell = format!("sh:exec {SERVER} remote-server:{}", folder.display());
    let other = std::env::var("REMOTE").ok();
    let remotes: Vec<(&str, Option<&str>)> =
        [("local", None), ("remote on this machine", Some(shell.as_str()))]
            .into_iter()
            .chain(other.as_deref().map(|other| (other, Some(other))))
            .collect();
    let mut clients: Vec<(&str, Client)> =
        remotes.iter().map(|(name, remote)| (*name, Client::start(&folder, *remote))).collect();
    println!("| call | server | p50 | p99 | added p50 | target | |");
    println!("|---|---|---|---|---|---|---|");
    let small = json!({"path": "small.txt"});
    let large = json!({"path": "large.txt"});
    let echo = json!({"command": ["true"]});
    for (what, tool, arguments, rounds) in [
        ("read_file of 1 KB", "read_file", &small, READS),
        ("read_file of 100 KB", "read_file", &large, READS / 10),
        ("run_command true", "run_command", &echo, COMMANDS),
    ] {
        let mut times = vec![Vec::new(); clients.len()];
        for round in 0..WARM_UP.min(rounds) + rounds {
            for ((_, client), times) in clients.iter_mut().zip(&mut times) {
                let time = client.call(tool, arguments);
                if round >= WARM_UP.min(rounds) {
                    times.push(time);
                }
            }
        }
        let times: Vec<CallTimes> = times.into_iter().map(CallTimes::new).collect();
        for (index, ((name, _), found)) in clients.iter().zip(&times).enumerate() {
            let added = (index > 0).then(|| found.p50.saturating_sub(times[0].p50));
            // What is measured elsewhere has a network between.
            let target = added.filter(|_| index == 1).map(|added| (added, MAX_ADDED));
            row(what, name, found, added, target);
        }
    }
    drop(clients);
    for (index, (name, remote)) in remotes.iter().enumerate() {
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            // The start of the server in front is not part of it: its first answer is a list, for which nothing connects.
            let mut client = Client::start(&folder, *remote);
            client.request("tools/list", &json!({}));
            starts.push(client.call("read_file", &small));
        }
        let times = CallTimes::new(starts);
        let target = (index == 1).then_some((times.p50, MAX_START));
        row("first call, with the start of the server there", name, &times, None, target);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn row(
    what: &str,
    server: &str,
    times: &CallTimes,
    added: Option<Duration>,
    target: Option<(Duration, Duration)>,
) {
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    let added = added.map(micros).unwrap_or_default();
    let (target, verdict) = match target {
        None => (String::new(), ""),
        Some((found, most)) => {
            (format!("≤ {}", micros(most)), if found <= most { "met" } else { "**not met**" })
        }
    };
    println!(
        "| {what} | {server} | {} | {} | {added} | {target} | {verdict} |",
        micros(times.p50),
        micros(times.p99)
    );
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
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    /// The server of `folder`, or in front of `remote`.
    fn start(folder: &Path, remote: Option<&str>) -> Self {
        let mut command = Command::new(SERVER);
        command.current_dir(folder);
        if let Some(remote) = remote {
            command.args(["--remote", remote]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take();
        let output = BufReader::with_capacity(1 << 18, child.stdout.take().unwrap());
        Self { child, input, output, id: 0 }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Duration {
        let started = Instant::now();
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        let time = started.elapsed();
        assert!(answer["result"]["isError"] == false, "{answer}");
        time
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        });
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect("an answer");
        assert_eq!(answer["id"], self.id, "{answer}");
        answer
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
