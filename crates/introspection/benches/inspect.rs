//! Measures a warm read of a Node.js process, against the bare command of the inspector protocol.
//!
//! `cargo bench --package introspection --features inspect --bench inspect`: starts `node`, which must be in `PATH`. Both
//! are measured in turn, call by call, on one thread. A variable of a module is measured alone: no single command of the
//! protocol reads one.
#![allow(clippy::disallowed_methods, reason = "a benchmark starts its own target")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark stops and prints"
)]

use futures_util::{SinkExt as _, StreamExt as _};
use introspection::inspect::{InspectState, Inspector};
use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;
use workspace::Workspace;

const RUNS: usize = 5000;
/// The number of calls of a read that takes milliseconds.
const SLOW_RUNS: usize = 200;
const SCRIPT: &str = "
  globalThis.state = {count: 1, cart: {items: [{name: 'tea', price: 2.5}, {name: 'cup', price: 4}], total: 6.5},
    users: new Map([['ada', {age: 30}]]), deep: {a: {b: {c: 1}}}};
  const basket = {items: ['tea', 'cup']};
  globalThis.fill = (item) => basket.items.push(item);
  process.env.NODE_ENV = 'bench';
  console.log(require('inspector').url());
  setInterval(() => {}, 1000);
";

struct NodeProcess(Child);

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("app.cjs"), SCRIPT).unwrap();
    let mut child = Command::new("node")
        .args(["--inspect=127.0.0.1:0", "app.cjs"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("node is in PATH");
    let mut url = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let _node = NodeProcess(child);
    let url = url.trim();
    let address = url.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).expect("a URL");

    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut bare, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    let workspace = Arc::new(Workspace::new([folder.path()]).unwrap());
    let inspector = Inspector::new(workspace).unrestricted(true).target(Some(url.to_owned())).unwrap();

    println!("{RUNS} calls each; p50, p95, p99 in µs, and what p50 is beyond that of the bare command");
    for (path, depth) in [
        ("process.env.NODE_ENV", 3),
        ("state.count", 3),
        ("state.deep.a.b.c", 3),
        ("state.cart", 1),
        ("state", 3),
    ] {
        let request = InspectState::new(path).depth(depth);
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        for run in 0..RUNS {
            let started = Instant::now();
            let command = format!(
                r#"{{"id":{run},"method":"Runtime.evaluate","params":{{"expression":"{path}","returnByValue":false}}}}"#
            );
            bare.send(Message::text(command)).await.unwrap();
            bare.next().await.unwrap().unwrap();
            plain.push(started.elapsed());
            let started = Instant::now();
            read(&inspector, &request).await;
            ours.push(started.elapsed());
        }
        let (plain, ours) = (quantiles(plain), quantiles(ours));
        println!(
            "{path:22} depth {depth}: bare {:>4} {:>4} {:>5}   inspect_state {:>4} {:>4} {:>5}   p50 beyond {:>4}",
            plain[0],
            plain[1],
            plain[2],
            ours[0],
            ours[1],
            ours[2],
            ours[0].saturating_sub(plain[0])
        );
    }
    let request = InspectState::new("local:app.cjs/basket");
    let mut ours = Vec::new();
    for _ in 0..SLOW_RUNS {
        let started = Instant::now();
        read(&inspector, &request).await;
        ours.push(started.elapsed());
    }
    println!("{} ({SLOW_RUNS} calls): {:?}", request.path, quantiles(ours));
}

async fn read(inspector: &Inspector, request: &InspectState) {
    let answered = inspector.inspect(request, &Default::default()).await.unwrap();
    assert!(!answered.is_failed(), "{answered:?}");
}

fn quantiles(mut times: Vec<Duration>) -> [u128; 3] {
    times.sort_unstable();
    [50, 95, 99].map(|quantile| times.get(times.len() * quantile / 100).map_or(0, Duration::as_micros))
}
