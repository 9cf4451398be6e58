//! Mixed work for a while: memory and descriptors must stay flat, nothing may fail, nothing may be left.
//!
//! ```sh
//! cargo bench --package mcp-http --bench soak -- 600    # seconds; 30 by default
//! ```
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "it starts the server")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it measures or stops"
)]

mod support;

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{KeptConnection, ServerProcess, lay_out, load};
use tokio::io::AsyncWriteExt;

const CLIENTS: usize = 12;

#[tokio::main]
async fn main() {
    let seconds = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(30_u64);
    let folder = tempfile::tempdir().unwrap();
    let root = lay_out(folder.path());
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git").args(arguments).current_dir(&root).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "all"]);
    // Sessions that nobody ends, or they would be kept for half an hour and look like a leak.
    let config = "[http]\nsession_idle_ms = 5000\n";
    let limits: &[&str] = &[
        "--calls-per-second",
        "100000",
        "--calls-in-flight",
        "64",
        "--processes",
        "64",
        "--bytes-per-minute",
        "1000000000000",
    ];
    let (mut server, tokens) = ServerProcess::start(&root, config, &[("soak", limits)]);
    println!("load averages before: {}\n", load());
    println!("| after | calls | RSS KiB | descriptors | programs |");
    println!("|---|---|---|---|---|");
    let (over, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            tokio::spawn(client(
                number,
                server.address,
                tokens[0].clone(),
                Arc::clone(&over),
                Arc::clone(&calls),
            ))
        })
        .collect();
    let began = Instant::now();
    let mut memory = Vec::new();
    let mut shown = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if clients.iter().any(tokio::task::JoinHandle::is_finished) {
            break;
        }
        memory.push(server.memory());
        let tenth = began.elapsed().as_secs() * 10 / seconds;
        if tenth > shown {
            shown = tenth;
            println!(
                "| {} s | {} | {} | {} | {} |",
                began.elapsed().as_secs(),
                calls.load(Ordering::Relaxed),
                server.memory(),
                server.descriptors(),
                server.children()
            );
        }
    }
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    // Whoever went away in the middle of a call has three seconds to come back.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (descriptors, children) = (server.descriptors(), server.children());
    println!(
        "| the end | {} | {} | {descriptors} | {children} |",
        calls.load(Ordering::Relaxed),
        server.memory()
    );
    println!("\nload averages after: {}", load());
    let quarter = (memory.len() / 4).max(1);
    let mean = |part: &[u64]| part.iter().sum::<u64>() / part.len() as u64;
    let (early, late) = (mean(&memory[quarter..quarter * 2]), mean(&memory[memory.len() - quarter..]));
    println!("mean RSS of the second quarter {early} KiB, of the last {late} KiB");
    // One is the process that ends what a killed server leaves.
    assert!(children <= 1, "programs are left: {children}");
    assert!(descriptors < 64, "descriptors are left: {descriptors}");
    assert!(late < early + early / 10 + 4096, "memory grows");
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let orphans = std::process::Command::new("pgrep").args(["-f", "soak-sleeper"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&orphans.stdout).trim(), "", "orphans");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server.child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert!(server.child.wait().unwrap().success());
    println!("flat, and nothing is left");
}

/// Calls one tool after the other, in both eras; now and then it goes away in the middle of a call.
async fn client(
    number: usize,
    address: SocketAddr,
    token: String,
    over: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
) {
    let own = format!("own_{number}.txt");
    let mixed: Vec<(&str, Value)> = vec![
        ("read_file", json!({"path": "small.txt"})),
        ("write_file", json!({"path": own, "content": "line\n".repeat(200)})),
        (
            "edit_file",
            json!({"path": own, "edits": [{"old_string": "line\nline\n", "new_string": "other\n", "replace_all": true}]}),
        ),
        ("list_directory", json!({"path": "."})),
        ("search_files", json!({"pattern": "TODO", "path": "."})),
        ("find_files", json!({"pattern": "**/*.rs"})),
        ("git_status", json!({})),
        ("git_log", json!({})),
        (
            "run_command",
            json!({"command": ["sh", "-c", "echo hello; head -c 300000 /dev/zero | tr '\\0' x"]}),
        ),
        ("start_command", json!({"command": ["sh", "-c", "sleep 600; : soak-sleeper"]})),
        ("list_commands", json!({})),
        ("get_diagnostics", json!({})),
    ];
    for round in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let session = (number + round).is_multiple_of(2);
        let mut client = if session {
            KeptConnection::handshake(address, &token).await
        } else {
            KeptConnection::connect(address, &token).await
        };
        for (tool, arguments) in &mixed {
            let request = client.call(tool, arguments);
            let reply = client.send(&request).await;
            assert!(
                reply.status == 200 && reply.body.contains("\"isError\":false"),
                "{tool}: {} {}",
                reply.status,
                reply.body
            );
            calls.fetch_add(1, Ordering::Relaxed);
            if *tool == "start_command" {
                let id = reply
                    .body
                    .split("\"id\":")
                    .filter_map(|rest| rest.split(['}', ',']).next()?.parse::<u32>().ok())
                    .last();
                let stop = client.call("stop_command", &json!({"id": id.unwrap(), "grace_ms": 0}));
                let reply = client.send(&stop).await;
                assert!(reply.body.contains("\"isError\":false"), "{}", reply.body);
            }
        }
        if round % 5 == 4 {
            let long =
                client.call("run_command", &json!({"command": ["sh", "-c", "sleep 600; : soak-sleeper"]}));
            client.stream.write_all(&long).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(client);
        } else {
            client.end().await;
        }
    }
}
