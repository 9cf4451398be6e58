//! Mixed work for a while on both of our servers at once.

use crate::client::{MeasureError, RunningServer, SentRequest, ServerClient};
use crate::fixture::{BenchmarkFolder, FixturePart};
use crate::peers;
use crate::{BenchmarkError, machine, processes};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Callers at a time: each its own client over HTTP, all in flight of one client over standard streams.
const CALLERS: usize = 8;

/// How long one answer may take on a machine that is kept busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a server has, when the work is over, to end what clients left in the middle of a call.
const REST: Duration = Duration::from_secs(6);

/// A word in the command lines of all commands that would not end.
const SLEEPER: &str = "soak-sleeper";

/// The work that one server did, and the time and memory that it took.
#[derive(Default)]
struct SoakRecord {
    calls: AtomicU64,
    /// Resident memory in bytes, once a second.
    memory: Vec<u64>,
}

/// Works both servers for so many seconds. An error says what was not as it should be.
pub(crate) fn soak(seconds: u64) -> Result<(), BenchmarkError> {
    processes::adopt()?;
    let peers = peers::load(&crate::home().join("peers.toml"))?;
    let peer = |name: &str| {
        let found = peers.iter().find(|peer| peer.name == name).cloned();
        found.ok_or_else(|| format!("peers.toml has no {name}"))
    };
    let (stdio, mut http) = (peer("mcp-stdio")?, peer("mcp-http")?);
    for config in http.files.values_mut() {
        // Sessions that nobody ends are not to be kept for half an hour and look like a leak.
        config.push_str("session_idle_ms = 5000\n");
    }
    let fixture = BenchmarkFolder::new()?;
    for part in [FixturePart::File, FixturePart::Project] {
        fixture.path(part)?;
    }
    println!("load averages before: {}\n", machine::load());
    let began = Instant::now();
    let span = Duration::from_secs(seconds);
    let over = AtomicBool::new(false);
    let mut servers = Vec::new();
    for peer in [&stdio, &http] {
        servers.push(RunningServer::start(peer, fixture.dir())?);
    }
    let pids: Vec<u32> = servers.iter().filter_map(RunningServer::pid).collect();
    let mut watches = [SoakRecord::default(), SoakRecord::default()];
    println!("| after | server | calls | RSS, MB | descriptors | programs |\n|---|---|---:|---:|---:|---:|");
    let outcome = std::thread::scope(|scope| -> Result<(), BenchmarkError> {
        let mut callers = Vec::new();
        let counts = watches.each_mut().map(|watch| (&watch.calls, &mut watch.memory));
        let [(stdio_calls, stdio_memory), (http_calls, http_memory)] = counts;
        let over = &over;
        let clients: Vec<ServerClient> = (0..CALLERS).filter_map(|_| servers[1].client.again()).collect();
        let stdio = &mut servers[0].client;
        callers.push(scope.spawn(move || many_in_flight(stdio, over, stdio_calls)));
        for (number, client) in clients.into_iter().enumerate() {
            callers.push(scope.spawn(move || one_after_another(&client, number, over, http_calls)));
        }
        let mut memories = [stdio_memory, http_memory];
        let mut shown = 0;
        while began.elapsed() < span && !callers.iter().any(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_secs(1).min(span.saturating_sub(began.elapsed())));
            for (memory, pid) in memories.iter_mut().zip(&pids) {
                memory.push(processes::resident(*pid));
            }
            let tenth = began.elapsed().as_secs() * 10 / seconds.max(1);
            if tenth > shown {
                shown = tenth;
                let after = format!("{} s", began.elapsed().as_secs());
                row(&after, "mcp-stdio", stdio_calls, pids[0]);
                row(&after, "mcp-http", http_calls, pids[1]);
            }
        }
        over.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.join().map_err(|_| "a client broke")??;
        }
        Ok(())
    });
    if outcome.is_ok() {
        std::thread::sleep(REST);
        row("the end", "mcp-stdio", &watches[0].calls, pids[0]);
        row("the end", "mcp-http", &watches[1].calls, pids[1]);
    }
    println!("\nload averages after: {}", machine::load());
    let mut wrong: Vec<String> = outcome.err().map(|failure| failure.to_string()).into_iter().collect();
    for ((watch, pid), name) in watches.iter().zip(&pids).zip(["mcp-stdio", "mcp-http"]) {
        wrong.extend(judge(watch, *pid).into_iter().map(|what| format!("{name}: {what}")));
    }
    // Both end before either is taken in: what is then left is nobody's.
    servers[0].client.close();
    servers[1].client.close();
    servers[1].signal(rustix::process::Signal::TERM);
    for (server, name) in servers.iter_mut().zip(["mcp-stdio", "mcp-http"]) {
        if server.wait(Duration::from_secs(10)).is_none() {
            wrong.push(format!("{name} does not end"));
        }
        if server.log().contains("panicked") {
            wrong.push(format!("{name} says: {}", server.log()));
        }
    }
    std::thread::sleep(Duration::from_millis(500));
    let orphans = processes::marked(SLEEPER).len();
    let left = processes::descendants(std::process::id()).len();
    println!("left by both: {left} processes, {orphans} of them commands");
    if left > 0 {
        wrong.push(format!("{left} processes are left"));
    }
    match wrong.is_empty() {
        true => {
            println!("flat, and nothing is left");
            Ok(())
        }
        false => Err(wrong.join("; ").into()),
    }
}

fn row(after: &str, name: &str, calls: &AtomicU64, pid: u32) {
    println!(
        "| {after} | {name} | {} | {:.1} | {} | {} |",
        calls.load(Ordering::Relaxed),
        processes::resident(pid) as f64 / 1e6,
        processes::descriptors(pid),
        processes::descendants(pid).len(),
    );
}

/// Lists the figures that are not flat, and what is left, while the server rests.
fn judge(watch: &SoakRecord, pid: u32) -> Vec<String> {
    let mut wrong = Vec::new();
    let quarter = (watch.memory.len() / 4).max(1);
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64 / 1e6;
    let end = watch.memory.len();
    let early = mean(watch.memory.get(quarter..quarter * 2).unwrap_or_default());
    let late = mean(watch.memory.get(end.saturating_sub(quarter)..).unwrap_or_default());
    println!("mean RSS of the second quarter {early:.1} MB, of the last {late:.1} MB");
    // Allocators and page caches breathe; a leak does not stop at a tenth.
    if late > early * 1.1 + 4.0 {
        wrong.push(format!("memory grows from {early:.1} to {late:.1} MB"));
    }
    let descriptors = processes::descriptors(pid);
    if descriptors >= 64 {
        wrong.push(format!("{descriptors} descriptors are open"));
    }
    // One is the process that ends what a killed server leaves.
    let programs = processes::descendants(pid).len();
    if programs > 1 {
        wrong.push(format!("{programs} programs are left"));
    }
    wrong
}

/// The calls that each caller makes in turn, with a file of its own.
fn mixed(number: usize) -> Vec<(&'static str, Value)> {
    let own = format!("own_{number}.txt");
    let edit = json!({"old_string": "line\nline\n", "new_string": "other\n", "replace_all": true});
    let much = "echo hello; head -c 300000 /dev/zero | tr '\\0' x";
    vec![
        ("read_file", json!({"path": "small.txt"})),
        ("write_file", json!({"path": own, "content": "line\n".repeat(200)})),
        ("edit_file", json!({"path": own, "edits": [edit]})),
        ("list_directory", json!({"path": "."})),
        ("search_files", json!({"pattern": "f_7_3", "path": "project"})),
        ("find_files", json!({"pattern": "**/*.rs", "path": "project"})),
        ("git_status", json!({"repository_path": "project"})),
        ("git_log", json!({"repository_path": "project"})),
        ("run_command", json!({"command": ["sh", "-c", much]})),
        ("start_command", json!({"command": ["sh", "-c", endless()]})),
        ("list_commands", json!({})),
        ("get_diagnostics", json!({})),
    ]
}

fn endless() -> String {
    format!("sleep 600 & sleep 600; : {SLEEPER}")
}

fn params(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// The number of the command in the answer of `start_command`.
fn stop(answer: &Value) -> Result<Value, MeasureError> {
    let id = answer["structuredContent"]["id"].as_u64();
    let id = id.ok_or_else(|| MeasureError::Wrong(crate::client::short(&answer.to_string())))?;
    Ok(params("stop_command", &json!({"id": id, "grace_ms": 0})))
}

/// Each caller has a call in flight on the one connection. Now and then one is cancelled.
fn many_in_flight(
    client: &mut ServerClient,
    over: &AtomicBool,
    calls: &AtomicU64,
) -> Result<(), MeasureError> {
    let works: Vec<_> = (0..CALLERS).map(mixed).collect();
    for round in 0_u64.. {
        for step in 0..works[0].len() {
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let mut open: Vec<(SentRequest, &str)> = Vec::new();
            for work in &works {
                let (tool, arguments) = &work[step];
                open.push((client.begin("tools/call", &params(tool, arguments))?, *tool));
            }
            while let Some((ticket, tool)) = open.pop() {
                let answer = client.wait(ticket, Instant::now() + PATIENCE)?;
                answer.check().map_err(|problem| MeasureError::Wrong(format!("{tool}: {problem}")))?;
                calls.fetch_add(1, Ordering::Relaxed);
                if tool == "start_command" {
                    open.push((client.begin("tools/call", &stop(&answer.result())?)?, "stop_command"));
                }
            }
        }
        if round % 5 == 4 {
            let long = params("run_command", &json!({"command": ["sh", "-c", endless()]}));
            let ticket = client.begin("tools/call", &long)?;
            std::thread::sleep(Duration::from_millis(50));
            client.cancel(ticket)?;
        }
    }
    Ok(())
}

/// One call after the other, in a session that is ended after a round, or left in the middle of a command.
fn one_after_another(
    connection: &ServerClient,
    number: usize,
    over: &AtomicBool,
    calls: &AtomicU64,
) -> Result<(), MeasureError> {
    let work = mixed(CALLERS + number);
    for round in number.. {
        let Some(mut client) = connection.again() else { return Ok(()) };
        client.greet(Instant::now() + PATIENCE)?;
        for (tool, arguments) in &work {
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let answer = client.request("tools/call", &params(tool, arguments), Instant::now() + PATIENCE)?;
            answer.check().map_err(|problem| MeasureError::Wrong(format!("{tool}: {problem}")))?;
            calls.fetch_add(1, Ordering::Relaxed);
            if *tool == "start_command" {
                let stop = stop(&answer.result())?;
                client.request("tools/call", &stop, Instant::now() + PATIENCE)?.check()?;
            }
        }
        if round % 5 == 4 {
            let long = params("run_command", &json!({"command": ["sh", "-c", endless()]}));
            client.begin("tools/call", &long)?;
            std::thread::sleep(Duration::from_millis(50));
            client.close();
        } else {
            client.end_session()?;
        }
    }
    Ok(())
}
