//! Measures from outside what a client of the built server waits for, beside the programs it would
//! otherwise run. Prints a table.
//!
//! ```sh
//! cargo bench --package coretools-mcp --bench serve
//! ```
//!
//! With `PEER_FILESYSTEM` set to the command line of another MCP server (a space between words; `{}` is the
//! folder), its `read_text_file` and `list_directory` are measured in the same run.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "it starts the server and the programs it is compared to")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it measures or stops"
)]

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 50_000;
const FOLDERS: usize = 500;
const LISTED: usize = 10_000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    println!("| what | measured | target | |");
    println!("|---|---|---|---|");
    start(folder.path());
    calls(folder.path());
    commands(folder.path());
    git(folder.path());
    flood(folder.path());
    if let Ok(peer) = std::env::var("PEER_FILESYSTEM") {
        let line = peer.replace("{}", &folder.path().display().to_string());
        measure_peer(&line, folder.path());
    }
}

/// One file of 1,088 bytes, a folder of 10,000 empty files, a tree of 50,000 files with 500 TODOs in it.
fn lay_out(folder: &Path) {
    fs::write(folder.join("small.txt"), "0123456789abcdef0123456789abcde\n".repeat(34)).unwrap();
    fs::create_dir(folder.join("many")).unwrap();
    for index in 0..LISTED {
        fs::write(folder.join(format!("many/file_{index:05}.txt")), "").unwrap();
    }
    for index in 0..FOLDERS {
        let part = folder.join(format!("tree/part_{index:03}"));
        fs::create_dir_all(&part).unwrap();
        for file in 0..FILES / FOLDERS {
            let todo = if file == 50 { "// TODO: one of five hundred\n" } else { "" };
            let text =
                format!("fn file_{index}_{file}() {{}}\n{todo}{}", "// a line of no interest\n".repeat(8));
            fs::write(part.join(format!("file_{file:03}.rs")), text).unwrap();
        }
    }
}

fn start(folder: &Path) {
    let mut times = Vec::new();
    let mut memory = 0;
    for _ in 0..41 {
        let started = Instant::now();
        let mut server = ServerProcess::start(folder);
        server.request("tools/list", &json!({}));
        times.push(started.elapsed());
        memory = server.status("VmRSS:");
    }
    row("start to tools/list", &millis(&times), "≤ 3 ms", p50(&times) <= Duration::from_millis(3));
    row("memory then", &format!("{:.1} MB", megabytes(memory)), "≤ 8 MB", megabytes(memory) <= 8.0);
}

fn calls(folder: &Path) {
    let mut server = ServerProcess::start(folder);
    let read = json!({"name": "read_file", "arguments": {"path": "small.txt"}});
    let times = server.times(2_000, &read);
    row("read of 1 KB", &micros(&times), "≤ 130 µs p50", p50(&times) <= Duration::from_micros(130));
    let rate = server.rate(40_000, 32, &read);
    row("read of 1 KB, 32 in flight", &format!("{rate:.0} calls/s"), "≥ 21,500", rate >= 21_500.0);

    let list = json!({"name": "list_directory", "arguments": {"path": "many", "limit": LISTED}});
    let times = server.times(60, &list);
    row(
        "list of 10,000 entries",
        &millis(&times),
        "≤ 8.6 ms p50",
        p50(&times) <= Duration::from_micros(8_600),
    );

    let find = json!({"name": "find_files", "arguments": {"pattern": "**/file_077.rs", "path": "tree"}});
    let times = server.times(40, &find);
    let bare = program(20, folder, &["find", "tree", "-name", "file_077.rs"]);
    row(
        "find by name in 50,000 files",
        &millis(&times),
        &format!("≤ 26 ms; `find`: {}", millis(&bare)),
        p50(&times) <= Duration::from_millis(26),
    );

    let search = json!({"name": "search_files", "arguments": {"pattern": "TODO", "path": "tree", "max_results": 1000}});
    let times = server.times(20, &search);
    let bare = program(20, folder, &["rg", "-uu", "TODO", "tree"]);
    row(
        "content search in 50,000 files",
        &millis(&times),
        &format!("≤ 118 ms; `rg -uu`: {}", millis(&bare)),
        p50(&times) <= Duration::from_millis(118),
    );
}

fn commands(folder: &Path) {
    let mut server = ServerProcess::start(folder);
    let echo = json!({"name": "run_command", "arguments": {"command": ["echo", "hello"]}});
    let times = server.times(500, &echo);
    let bare = program(300, folder, &["echo", "hello"]);
    row(
        "echo",
        &micros(&times),
        &format!("≤ 1,500 µs p50; bare: {}", micros(&bare)),
        p50(&times) <= Duration::from_micros(1_500),
    );
    let rate = server.rate(3_000, 32, &echo);
    row("echo, 32 in flight", &format!("{rate:.0} calls/s"), "≥ 1,000", rate >= 1_000.0);
}

/// `git_status` beside bare git, turn by turn: in a repository of all the files here, and in this one.
fn git(folder: &Path) {
    for words in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "all"],
    ] {
        let done = Command::new("git").args(words).current_dir(folder).output();
        assert!(done.is_ok_and(|output| output.status.success()), "git {words:?}");
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for (what, folder) in [("a repository of 60,000 files", folder), ("this repository", &own)] {
        let mut server = ServerProcess::start(folder);
        let status = json!({"name": "git_status", "arguments": {}});
        let bare = ["git", "--no-optional-locks", "status", "--porcelain=v2", "-z", "--branch"];
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            ours.extend(server.times(1, &status));
            theirs.extend(program(1, folder, &bare));
        }
        row(
            &format!("git_status in {what}"),
            &millis(&ours),
            &format!("≤ git's own + 1 ms: {}", millis(&theirs)),
            p50(&ours) <= p50(&theirs) + Duration::from_millis(1),
        );
    }
}

/// 1 GiB of output, and pings while it comes.
fn flood(folder: &Path) {
    let mut server = ServerProcess::start(folder);
    server.times(20, &json!({"name": "run_command", "arguments": {"command": ["true"]}}));
    let before = server.status("VmHWM:");
    let command = "head -c 1073741824 /dev/zero";
    let started = Instant::now();
    let id = server.send("tools/call", &json!({"name": "run_command", "arguments": {"command": command}}));
    let mut pings = Vec::new();
    let elapsed = loop {
        let sent = Instant::now();
        let ping = server.send("ping", &json!({}));
        let mut answer = server.receive();
        let mut done = None;
        if answer["id"] == id {
            done = Some(started.elapsed());
            answer = server.receive();
        }
        assert_eq!(answer["id"], ping);
        pings.push(sent.elapsed());
        if let Some(elapsed) = done {
            break elapsed;
        }
    };
    let growth = megabytes(server.status("VmHWM:")) - megabytes(before);
    let worst = pings.iter().max().copied().unwrap_or_default();
    let figure = format!(
        "{:.2} s, +{growth:.1} MB, worst of {} pings {:.1} ms",
        elapsed.as_secs_f64(),
        pings.len(),
        worst.as_secs_f64() * 1e3
    );
    let met = elapsed < Duration::from_secs(1) && growth < 5.0 && worst < Duration::from_millis(10);
    row("1 GiB of output", &figure, "< 1 s, < 5 MB, pings < 10 ms", met);
}

fn measure_peer(line: &str, folder: &Path) {
    let words: Vec<_> = line.split(' ').collect();
    let mut times = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let mut server = ServerProcess::spawn(Command::new(words[0]).args(&words[1..]).current_dir(folder));
        server.request("tools/list", &json!({}));
        times.push(started.elapsed());
    }
    println!("| peer: start to tools/list | {} | | |", millis(&times));
    let mut server = ServerProcess::spawn(Command::new(words[0]).args(&words[1..]).current_dir(folder));
    let read = json!({"name": "read_text_file", "arguments": {"path": folder.join("small.txt")}});
    println!("| peer: read of 1 KB | {} | | |", micros(&server.times(500, &read)));
    println!("| peer: read of 1 KB, 32 in flight | {:.0} calls/s | | |", server.rate(5_000, 32, &read));
    let list = json!({"name": "list_directory", "arguments": {"path": folder.join("many")}});
    println!("| peer: list of 10,000 entries | {} | | |", millis(&server.times(30, &list)));
}

fn row(what: &str, figure: &str, target: &str, met: bool) {
    println!("| {what} | {figure} | {target} | {} |", if met { "met" } else { "**not met**" });
}

/// Measures how long a program takes from start to end, with its output discarded.
fn program(count: usize, folder: &Path, words: &[&str]) -> Vec<Duration> {
    (0..count)
        .map(|_| {
            let started = Instant::now();
            let output = Command::new(words[0]).args(&words[1..]).current_dir(folder).output();
            assert!(output.is_ok_and(|output| output.status.success()), "{words:?} failed");
            started.elapsed()
        })
        .collect()
}

struct ServerProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl ServerProcess {
    fn start(folder: &Path) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_mcp-stdio")).current_dir(folder))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, input, output, last_id: 0 };
        let client = json!({"name": "bench", "version": "1"});
        server.request(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        );
        server.input.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").unwrap();
        server
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
        self.last_id
    }

    fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_line()).unwrap()
    }

    fn receive_line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
        line
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id);
        assert!(answer.get("error").is_none() && answer["result"]["isError"] != true, "{answer}");
        answer
    }

    /// One call after the other. The answer is read and not parsed: the client's own work is not measured.
    fn times(&mut self, count: usize, call: &Value) -> Vec<Duration> {
        self.request("tools/call", call);
        (0..count)
            .map(|_| {
                let started = Instant::now();
                self.send("tools/call", call);
                self.receive_line();
                started.elapsed()
            })
            .collect()
    }

    /// Calls a second, with so many of them in flight.
    fn rate(&mut self, count: usize, in_flight: usize, call: &Value) -> f64 {
        let started = Instant::now();
        for _ in 0..in_flight {
            self.send("tools/call", call);
        }
        for answered in 0..count {
            self.receive_line();
            if answered + in_flight < count {
                self.send("tools/call", call);
            }
        }
        count as f64 / started.elapsed().as_secs_f64()
    }

    /// A figure of `/proc/PID/status`, in kB.
    fn status(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It ends with its input at the latest; a bench need not wait for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sorted(times: &[Duration]) -> Vec<Duration> {
    let mut times = times.to_vec();
    times.sort();
    times
}

fn p50(times: &[Duration]) -> Duration {
    sorted(times)[times.len() / 2]
}

fn p99(times: &[Duration]) -> Duration {
    sorted(times)[times.len() * 99 / 100]
}

fn millis(times: &[Duration]) -> String {
    format!("{:.2} ms p50, {:.2} p99", p50(times).as_secs_f64() * 1e3, p99(times).as_secs_f64() * 1e3)
}

fn micros(times: &[Duration]) -> String {
    format!("{} µs p50, {} p99", p50(times).as_micros(), p99(times).as_micros())
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1000.0
}
