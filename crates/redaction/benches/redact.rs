//! How fast text without secrets passes the redactor, and what a call costs.
//!
//! `cargo bench -p redaction --bench redact [-- FILE…]`: the files are measured beside the made texts.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::expect_used, reason = "a benchmark ends where it cannot go on")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the files and arguments it is given")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use redaction::{RedactionOptions, Redactor};

fn main() {
    let plain = Redactor::new(RedactionOptions::default()).expect("no values");
    let values = (0..20).map(|n| format!("environment-value-{n:04}")).collect::<Vec<String>>();
    let with_values = Redactor::new(RedactionOptions::default().values(values)).expect("20 values");
    println!("{:<28} {:>12} {:>16}", "text", "MB/s", "with 20 values");
    for (name, text) in texts() {
        println!("{name:<28} {:>12.0} {:>16.0}", speed(&plain, &text), speed(&with_values, &text));
    }
    let kilobyte: String = texts().swap_remove(0).1.chars().take(1024).collect();
    let call = best(|| drop(black_box(plain.redact(black_box(&kilobyte)))));
    println!("1 KB of source code: {} ns a call", call.as_nanos());
}

fn speed(redactor: &Redactor, text: &str) -> f64 {
    let time = best(|| drop(black_box(redactor.redact(black_box(text)))));
    #[allow(clippy::cast_precision_loss, reason = "a figure to read")]
    let bytes = text.len() as f64;
    bytes / time.as_secs_f64() / 1e6
}

/// The shortest of many runs: what else the machine does only adds.
fn best(mut run: impl FnMut()) -> Duration {
    let end = Instant::now() + Duration::from_millis(300);
    let mut best = Duration::MAX;
    while Instant::now() < end {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed());
    }
    best
}

fn texts() -> Vec<(String, String)> {
    let source = include_str!("../src/token_runs.rs").repeat(256);
    let log: String = (0..20_000)
        .map(|n| format!("2026-01-02T03:04:{:02}.{:06}Z  INFO server::router: request finished method=GET path=/api/v1/items/{n} status=200 latency_ms={}\n", n % 60, n * 37 % 1_000_000, n % 90))
        .collect();
    let json: String = (0..20_000)
        .map(|n| format!("{{\"id\":{n},\"name\":\"item {n}\",\"tags\":[\"a\",\"b\"],\"price\":{}.5,\"active\":true,\"parent\":null,\"path\":\"src/a{n}.rs\"}},", n % 100))
        .collect();
    let mut texts =
        vec![("source code".to_owned(), source), ("log".to_owned(), log), ("minified JSON".to_owned(), json)];
    for file in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("a readable file")).into_owned();
        texts.push((file, text));
    }
    texts
}
