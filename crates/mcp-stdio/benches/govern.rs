//! Measures what a hook's decision and `exec` cost a coding agent, from outside, beside the shell that it would otherwise
//! start. Prints a table.
//!
//! ```sh
//! cargo bench --profile dist --package coretools-mcp --bench govern
//! ```
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
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The runs of each kind. They take turns, so that a busy moment of the machine meets all of them.
const ROUNDS: usize = 300;

/// One thing that is measured.
struct Measured {
    what: &'static str,
    input: Option<String>,
    command: Box<dyn Fn() -> Command>,
    times: Vec<Duration>,
}

fn main() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (home, project) = (home.path().canonicalize().unwrap(), project.path().canonicalize().unwrap());
    fs::write(project.join("a.txt"), "hello\n").unwrap();
    let line = "cargo build 2>&1 | tail -n 20 && git status --short";
    let event = |tool: &str, input: Value| {
        json!({"hook_event_name": "PreToolUse", "cwd": project, "tool_name": tool, "tool_input": input})
            .to_string()
    };
    let start = |arguments: &'static [&'static str]| -> Box<dyn Fn() -> Command> {
        let (home, project) = (home.clone(), project.clone());
        Box::new(move || server(&home, &project, arguments))
    };
    let plain = |words: &'static [&'static str]| -> Box<dyn Fn() -> Command> {
        let project = project.clone();
        Box::new(move || {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).current_dir(&project);
            command
        })
    };
    let worker: &[&str] = &["--role", "worker", "hook", "claude"];
    let audited: &[&str] = &["--role", "worker", "--audit", "audit.jsonl", "hook", "claude"];
    let read = event("Read", json!({"file_path": project.join("a.txt")}));
    let bash = event("Bash", json!({"command": line}));
    let mut all = [
        measured("`true`", None, plain(&["true"])),
        measured("`sh -c true`", None, plain(&["sh", "-c", "true"])),
        measured("`bash -c true`", None, plain(&["bash", "-c", "true"])),
        measured("start and end of the program (`--version`)", None, start(&["--version"])),
        measured("decision about `Read`", Some(read), start(worker)),
        measured("decision about a line of four programs", Some(bash.clone()), start(worker)),
        measured("the same with an audit", Some(bash), start(audited)),
        measured("`exec -- true`, no confinement", None, start(&["exec", "--", "true"])),
        measured(
            "`exec -- true`, role `worker`, confined",
            None,
            start(&["--role", "worker", "exec", "--", "true"]),
        ),
    ];
    for _ in 0..ROUNDS {
        for measured in &mut all {
            measured.run();
        }
    }
    println!("| what | p50 | p99 |");
    println!("|---|---|---|");
    for measured in &all {
        let (p50, p99) = (measured.quantile(50), measured.quantile(99));
        println!("| {} | {:.2} ms | {:.2} ms |", measured.what, millis(p50), millis(p99));
    }
    let cost = all[7].quantile(50).saturating_sub(all[0].quantile(50));
    println!("\n`exec` adds {:.2} ms to the start of a program (target ≤ 1.5 ms)", millis(cost));
}

fn measured(what: &'static str, input: Option<String>, command: Box<dyn Fn() -> Command>) -> Measured {
    Measured { what, input, command, times: Vec::new() }
}

/// The server, as a client starts it: in the project, with a home of its own.
fn server(home: &Path, project: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-stdio"));
    command.args(arguments).current_dir(project).env("HOME", home).env_remove("XDG_STATE_HOME");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CORETOOLS_") {
            command.env_remove(name);
        }
    }
    command
}

impl Measured {
    fn run(&mut self) {
        let mut command = (self.command)();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        if let (Some(input), Some(mut stdin)) = (&self.input, child.stdin.take()) {
            stdin.write_all(input.as_bytes()).unwrap();
        }
        let status = child.wait().unwrap();
        self.times.push(started.elapsed());
        assert!(status.success(), "{}: {status}", self.what);
    }

    fn quantile(&self, percent: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[times.len() * percent / 100]
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
