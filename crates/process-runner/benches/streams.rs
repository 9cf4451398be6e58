//! Measures the cost of each byte of output once it is in memory: capture, lines, redaction, clean text.
//!
//! `cargo bench -p process-runner --bench streams`

mod support;

use process_runner::{CaptureLimits, LineSplitter, OutputCapture, SecretValues, clean};
use std::hint::black_box;
use support::{gate, heading, rounds, row};

const CHUNK: usize = 64 * 1024;
const GIB: usize = 1 << 30;

fn main() {
    let text: Vec<u8> = log_lines().into_bytes();
    let zeroes = vec![0; CHUNK];
    heading("Streams, per GiB in chunks of 64 KiB", &["what", "own CPU ms", "GB per CPU second", "target"]);
    for (name, chunk) in [("bytes", &zeroes[..]), ("log lines", &text[..])] {
        let cost = rounds(3, || {
            let mut capture = OutputCapture::new(&CaptureLimits::default(), &SecretValues::default());
            for _ in 0..GIB / CHUNK {
                capture.push(black_box(chunk));
            }
            black_box(capture.finish(true));
        });
        let ms = cost.cpu.as_secs_f64() * 1e3;
        per_gib(&format!("capture of {name}, head and tail of 256 KiB"), ms, gate(ms, 60.0, "ms"));
    }
    for count in [1, 4, 16, 64] {
        let secrets = SecretValues::new((0..count).map(|n| format!("ghp_{:036}", n * 7_919_231)));
        let cost = rounds(3, || {
            let mut redactor = secrets.redactor();
            for _ in 0..GIB / CHUNK {
                redactor.push(black_box(&text), |bytes| {
                    black_box(bytes);
                });
            }
            redactor.finish(|_| {});
        });
        let speed = GIB as f64 / 1e9 / cost.cpu.as_secs_f64();
        let verdict = if speed >= 1.0 { "met" } else { "**not met**" };
        let ms = cost.cpu.as_secs_f64() * 1e3;
        per_gib(&format!("redaction of {count} secrets"), ms, format!(">= 1 GB/s: {verdict}"));
    }
    let as_text = String::from_utf8_lossy(&text).replace("warning", "\u{1b}[33mwarning\u{1b}[0m");
    let cost = rounds(3, || {
        for _ in 0..64 {
            black_box(clean(black_box(&as_text)));
        }
    });
    let ms = cost.cpu.as_secs_f64() * 1e3 * (GIB as f64 / (64.0 * as_text.len() as f64));
    per_gib("clean text of coloured lines", ms, "none".into());

    heading("Lines, 4,000,000 of 80 bytes from memory", &["what", "own CPU ns per line", "target"]);
    let lines = "x".repeat(79) + "\n";
    let chunk = &lines.repeat(CHUNK / 80 + 1).into_bytes()[..CHUNK];
    let cost = rounds(3, || {
        let mut splitter = LineSplitter::new(CHUNK);
        let mut count = 0_u64;
        let mut left = 4_000_000 * 80;
        while left > 0 {
            let piece = &chunk[..CHUNK.min(left)];
            left -= piece.len();
            splitter.push(black_box(piece), |line| {
                black_box(line.bytes);
                count += 1;
            });
        }
        splitter.finish(|_| {});
        black_box(count);
    });
    let ns = cost.cpu.as_secs_f64() * 1e9 / 4e6;
    row(&["LineSplitter".into(), format!("{ns:.1}"), gate(ns, 30.0, "ns")]);
}

fn per_gib(name: &str, ms: f64, target: String) {
    row(&[name.to_owned(), format!("{ms:.0}"), format!("{:.1}", GIB as f64 / 1e6 / ms), target]);
}

/// Returns 64 KiB of text such as a build prints.
fn log_lines() -> String {
    let mut text = String::new();
    for n in 0_u64.. {
        text += &format!(
            "2026-11-21T10:00:{:02}Z INFO crate_{n} compiled in {} ms; warning: unused `x`\n",
            n % 60,
            n * 7 % 997
        );
        if text.len() >= CHUNK {
            break;
        }
    }
    text.truncate(CHUNK);
    text
}
