//! Measures `mcp-http` beside rmcp's own HTTP server, with 1, 32 and 256 clients, and a quiet caller beside a busy one.
//! Prints two tables.
//!
//! ```sh
//! cargo bench --package mcp-http --bench load
//! cargo bench --package mcp-http --bench load -- fairness         # the shares of busy callers, and the quiet one
//! cargo bench --package mcp-http --bench load -- against PATH     # another build of mcp-http instead of the bare server
//! ```
//!
//! The bare server has two tools that do what ours of the same name do, and nothing else: no identity, no policy, no
//! limits, no audit, no redaction, no checks of names. Both speak 2026-07-28 over kept connections, in turns.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "it starts the servers")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it measures or stops"
)]

mod support;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{KeptConnection, ServerProcess, lay_out, load, percentile};

/// The length of a measurement, and the number of each.
const SPAN: Duration = Duration::from_secs(2);
const ROUNDS: usize = 7;

const UNBOUND: &[&str] =
    &["--calls-per-second", "1000000", "--calls-in-flight", "4096", "--bytes-per-minute", "1000000000000"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let after = |word: &str| {
        let position = arguments.iter().position(|argument| argument == word)?;
        Some(PathBuf::from(&arguments[position + 1]))
    };
    match (after("bare"), after("against")) {
        (Some(root), _) => runtime.block_on(bare(root)),
        (None, Some(other)) => runtime.block_on(against(&other)),
        (None, None) if arguments.iter().any(|argument| argument == "fairness") => {
            runtime.block_on(measure_fairness());
        }
        (None, None) => runtime.block_on(measure()),
    }
}

async fn measure() {
    let folder = tempfile::tempdir().unwrap();
    let root = lay_out(folder.path());
    println!("load averages before: {}\n", load());
    beside_bare(&root).await;
    println!();
    fairness(&root).await;
    println!();
    shares(&root).await;
    println!("\nload averages after: {}", load());
}

async fn measure_fairness() {
    let folder = tempfile::tempdir().unwrap();
    let root = lay_out(folder.path());
    println!("load averages before: {}\n", load());
    fairness(&root).await;
    println!();
    shares(&root).await;
    println!("\nload averages after: {}", load());
}

/// The result of one measurement.
#[derive(Clone, Copy)]
struct Measurement {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

const UNLIMITED: &str =
    "[limits]\nmax_concurrent_calls = 4096\n[http]\nmax_bytes_per_second = 1000000000000\n";

async fn beside_bare(root: &Path) {
    let (ours, tokens) = ServerProcess::start(root, UNLIMITED, &[("bench", UNBOUND)]);
    let bare = ServerProcess::start_self(&["bare"], root);
    pairs([("rmcp, bare", &bare, "none"), ("mcp-http", &ours, &tokens[0])]).await;
}

/// This build beside another one.
async fn against(other: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let root = lay_out(folder.path());
    println!("load averages before: {}\n", load());
    let (ours, tokens) = ServerProcess::start(&root, UNLIMITED, &[("bench", UNBOUND)]);
    let (before, tokens_before) =
        ServerProcess::start_program(other, &root, UNLIMITED, &[("bench", UNBOUND)]);
    pairs([("before", &before, &tokens_before[0]), ("after", &ours, &tokens[0])]).await;
    println!("\nload averages after: {}", load());
}

/// Measures two servers in turns, and prints a table.
async fn pairs([first, second]: [(&str, &ServerProcess, &str); 2]) {
    println!("| call | clients | server | calls/s | p50 | p99 | of {} |", first.0);
    println!("|---|---|---|---|---|---|---|");
    for (tool, arguments) in
        [("file_exists", json!({"path": "small.txt"})), ("read_file", json!({"path": "small.txt"}))]
    {
        for clients in [1, 32, 256] {
            let (mut of_first, mut of_second) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                of_first.push(drive(first.1.address, first.2, clients, tool, &arguments).await);
                of_second.push(drive(second.1.address, second.2, clients, tool, &arguments).await);
            }
            // Of what was measured one after the other: the machine's own speed changes from round to round.
            let mut shares: Vec<f64> = of_second
                .iter()
                .zip(&of_first)
                .map(|(second, first)| 100.0 * second.rate / first.rate)
                .collect();
            shares.sort_by(f64::total_cmp);
            let share =
                format!("{:.0} % ({:.0} to {:.0})", shares[ROUNDS / 2], shares[0], shares[ROUNDS - 1]);
            for (server, found, share) in
                [(first.0, middle(of_first), "100 %"), (second.0, middle(of_second), share.as_str())]
            {
                let Measurement { rate, p50, p99 } = found;
                println!("| `{tool}` | {clients} | {server} | {rate:.0} | {p50:.2?} | {p99:.2?} | {share} |");
            }
        }
    }
    let memory = |(name, server, _): (&str, &ServerProcess, &str)| format!("{name} {} KiB", server.memory());
    println!("\nresident afterwards: {}, {}", memory(second), memory(first));
}

fn middle(mut found: Vec<Measurement>) -> Measurement {
    found.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    found[found.len() / 2]
}

/// So many clients, each with one call in flight, for a while.
async fn drive(
    address: SocketAddr,
    token: &str,
    clients: usize,
    tool: &str,
    arguments: &Value,
) -> Measurement {
    let begin = Instant::now() + Duration::from_millis(300);
    let running: Vec<_> = (0..clients)
        .map(|_| {
            let (token, tool, arguments) = (token.to_owned(), tool.to_owned(), arguments.clone());
            tokio::spawn(async move {
                let mut client = KeptConnection::connect(address, &token).await;
                let request = client.call(&tool, &arguments);
                let mut times = Vec::new();
                // The first calls are not counted: connections, pages and threads are new.
                while begin.elapsed() < SPAN {
                    let sent = Instant::now();
                    let reply = client.send(&request).await;
                    assert!(
                        reply.status == 200 && reply.body.contains("\"content\""),
                        "{}: {}",
                        reply.status,
                        reply.body
                    );
                    if sent >= begin {
                        times.push(sent.elapsed());
                    }
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for client in running {
        times.extend(client.await.unwrap());
    }
    #[allow(clippy::cast_precision_loss, reason = "fewer than 2^53 calls")]
    let rate = times.len() as f64 / SPAN.as_secs_f64();
    Measurement { rate, p50: percentile(&mut times, 50), p99: percentile(&mut times, 99) }
}

/// One caller with a call every 5 ms, while another keeps 32 connections busy.
async fn fairness(root: &Path) {
    println!("| 32 connections of another caller | its answers/s | refused | quiet p50 | quiet p99 |");
    println!("|---|---|---|---|---|");
    let storm = "i=0; while [ $i -lt 300 ]; do sleep 0.2 & i=$((i+1)); done; wait";
    let flood = json!({"command": ["head", "-c", "1073741824", "/dev/zero"]});
    for (what, busy_limits, tool, arguments) in [
        ("none", &[] as &[&str], "", json!({})),
        ("`file_exists`, default limits", &[], "file_exists", json!({"path": "small.txt"})),
        ("`file_exists`, no limits", UNBOUND, "file_exists", json!({"path": "small.txt"})),
        ("1 GiB of output each", &[], "run_command", flood),
        ("300 children each", &[], "run_command", json!({"command": ["sh", "-c", storm]})),
    ] {
        let (server, tokens) = ServerProcess::start(
            root,
            "",
            &[("busy", busy_limits), ("quiet", &["--calls-per-second", "1000"])],
        );
        let over = Arc::new(AtomicBool::new(false));
        let (served, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let busy: Vec<_> = (0..if tool.is_empty() { 0 } else { 32 })
            .map(|_| {
                let (over, served, refused) = (Arc::clone(&over), Arc::clone(&served), Arc::clone(&refused));
                let (token, arguments, address) = (tokens[0].clone(), arguments.clone(), server.address);
                tokio::spawn(async move {
                    let mut client = KeptConnection::connect(address, &token).await;
                    let request = client.call(tool, &arguments);
                    while !over.load(Ordering::Relaxed) {
                        let counter =
                            if client.send(&request).await.status == 200 { &served } else { &refused };
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut client = KeptConnection::connect(server.address, &tokens[1]).await;
        let request = client.call("file_exists", &json!({"path": "small.txt"}));
        let mut times = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < SPAN * 2 {
            let sent = Instant::now();
            let reply = client.send(&request).await;
            assert_eq!(reply.status, 200, "the quiet one is refused: {}", reply.body);
            times.push(sent.elapsed());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seconds = begin.elapsed().as_secs();
        over.store(true, Ordering::Relaxed);
        busy.iter().for_each(tokio::task::JoinHandle::abort);
        println!(
            "| {what} | {} | {} | {:.2?} | {:.2?} |",
            served.load(Ordering::Relaxed) / seconds.max(1),
            refused.load(Ordering::Relaxed) / seconds.max(1),
            percentile(&mut times, 50),
            percentile(&mut times, 99)
        );
    }
}

/// Busy callers with few and with many connections: the calls that each of them gets, and Jain's index of that.
async fn shares(root: &Path) {
    const FAST: &[&str] = &["--calls-per-second", "1000000", "--bytes-per-minute", "1000000000000"];
    println!("| connections of each caller | limits | answers/s of each | Jain's index |");
    println!("|---|---|---|---|");
    for (connections, what, limits) in [
        ([16, 16, 16, 16], "16 calls in flight", FAST),
        ([64, 16, 16, 16], "16 calls in flight", FAST),
        ([256, 16, 16, 16], "16 calls in flight", FAST),
        ([256, 16, 16, 16], "none", UNBOUND),
    ] {
        let callers = ["a", "b", "c", "d"].map(|name| (name, limits));
        let (server, tokens) = ServerProcess::start(
            root,
            "[http]\nmax_bytes_per_second = 1000000000000\nmax_queue = 10000\nqueue = 1000\n",
            &callers,
        );
        let arguments = json!({"path": "small.txt"});
        let driven = std::iter::zip(&tokens, connections)
            .map(|(token, connections)| drive(server.address, token, connections, "read_file", &arguments));
        let [a, b, c, d] = <[_; 4]>::try_from(driven.collect::<Vec<_>>()).ok().unwrap();
        let (a, b, c, d) = tokio::join!(a, b, c, d);
        let rates = [a, b, c, d].map(|measurement| measurement.rate);
        let shown: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        println!(
            "| {} | {what} | {} | {:.3} |",
            connections.map(|count| count.to_string()).join(", "),
            shown.join(", "),
            jains_index(&rates)
        );
    }
}

/// Returns Jain's index of fairness: 1 if all shares are equal, and 1/n if one of n has everything.
fn jains_index(shares: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) =
        shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    let count = f64::from(u32::try_from(shares.len()).unwrap());
    if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 }
}

/// rmcp's server and nothing else.
#[derive(Clone)]
struct BareServer(Arc<PathBuf>);

impl ServerHandler for BareServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let path = self.0.join(arguments.get("path").and_then(Value::as_str).unwrap_or_default());
        let text = match &*request.name {
            "file_exists" => path.is_file().to_string(),
            _ => tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await.unwrap().unwrap(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

async fn bare(root: PathBuf) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let (handler, manager) = (BareServer(Arc::new(root)), Arc::new(LocalSessionManager::default()));
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(move || Ok(handler.clone()), manager, config);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let service = service.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
