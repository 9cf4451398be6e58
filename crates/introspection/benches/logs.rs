//! The last 500 errors of a big log, against the cost of only reading the file.
//!
//! `cargo bench --package introspection --bench logs [-- GIB [KIND]]`: makes a file of so many GiB (1 by default) in the
//! temporary folder, and removes it. KIND is the logger whose lines it has: `pino` (the default), `slog`,
//! `structlog`, `logfmt` or `text`.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark makes its own file, and reads it past the workspace"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark stops and prints"
)]
#![allow(clippy::panic, reason = "a benchmark ends where it cannot go on")]

use introspection::logs::{EntryLevel, GetLogs, Logs};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use workspace::Workspace;

const RUNS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let gib: f64 = arguments.next().map_or(1.0, |gib| gib.parse().expect("a number of GiB"));
    let kind = arguments.next().unwrap_or_else(|| "pino".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a file is not that long")]
    let size = generate(&path, &kind, (gib * f64::from(1 << 30)) as u64);
    let logs = Logs::new(Arc::new(Workspace::new([folder.path()]).unwrap()));
    let query = GetLogs::default().level(EntryLevel::Error).limit(500);

    let before = peak_memory_kib();
    let page = logs.read(&query, &Default::default()).unwrap();
    let grown = peak_memory_kib() - before;
    let scanned = page.scanned_bytes;
    // By turns, so that whatever else runs slows both.
    let (mut reading, mut finding) = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        reading = reading.min(timed(|| only_read(&path, size, scanned)));
        finding = finding.min(timed(|| {
            logs.read(&query, &Default::default()).unwrap();
        }));
    }
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let speed = |time: Duration| scanned as f64 / 1e9 / time.as_secs_f64();
    println!(
        "{kind}: {} entries from {:.2} of {:.2} GB",
        page.entries.len(),
        scanned as f64 / 1e9,
        size as f64 / 1e9
    );
    println!("only reading  {:.2} GB/s, {reading:?}", speed(reading));
    println!(
        "get_logs      {:.2} GB/s, {finding:?}, {:.0} %",
        speed(finding),
        100.0 * speed(finding) / speed(reading)
    );
    println!("memory        {grown} KiB more than before");
    assert!(grown < 32 << 10, "memory grows with the file");
}

/// Lines of about 200 bytes, of which every 40,000th is an error.
fn generate(path: &Path, kind: &str, size: u64) -> u64 {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    let (mut written, mut number) = (0, 0_u64);
    let url = "/api/v1/orders/0123456789abcdef/items?expand=customer,payment&page=7&per_page=100";
    while written < size {
        let error = number % 40_000 == 39_999;
        let time = 1_795_168_800_000 + number;
        let (digits, name, upper) = if error { (50, "error", "ERROR") } else { (30, "info", "INFO") };
        let line = match kind {
            "pino" => format!(
                "{{\"level\":{digits},\"time\":{time},\"pid\":4711,\"hostname\":\"web-1\",\"reqId\":\"req-{number}\",\
                 \"url\":\"{url}\",\"responseTime\":12.5,\"msg\":\"request completed\"}}\n"
            ),
            "slog" => format!(
                "{{\"time\":\"2026-11-20T10:00:00.{number:09}Z\",\"level\":\"{upper}\",\"msg\":\"request completed\",\
                 \"req\":\"req-{number}\",\"url\":\"{url}\",\"ms\":12.5}}\n"
            ),
            "structlog" => format!(
                "{{\"req\": \"req-{number}\", \"url\": \"{url}\", \"event\": \"request completed\", \"level\": \"{name}\", \
                 \"timestamp\": \"2026-11-20T10:00:00.123456Z\"}}\n"
            ),
            "logfmt" => format!(
                "time=2026-11-20T10:00:00.123Z level={upper} msg=\"request completed\" req=req-{number} url=\"{url}\" ms=12.5\n"
            ),
            "text" => {
                format!("2026-11-20 10:00:00.123 [main] {upper} c.a.Web - request {number} completed {url}\n")
            }
            other => panic!("no logger is called {other}"),
        };
        file.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
        number += 1;
    }
    file.flush().unwrap();
    written
}

/// Reads the last `bytes` as the tool does, and looks at nothing.
fn only_read(path: &Path, size: u64, bytes: u64) {
    let file = File::open(path).unwrap();
    let mut buffer = vec![0; 256 << 10];
    let (mut position, end) = (size, size - bytes);
    while position > end {
        let start = position.saturating_sub(buffer.len() as u64).max(end);
        let chunk = &mut buffer[..usize::try_from(position - start).unwrap()];
        file.read_exact_at(chunk, start).unwrap();
        std::hint::black_box(&chunk);
        position = start;
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
