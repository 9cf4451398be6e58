//! The tables of the page `docs/benchmarks/remotes.md`.

use super::{CallTimes, StartTimes, middle};
use crate::stats::percentile;
use std::fmt::Write as _;

/// A small call of each kind beside the same call of a local server.
pub(crate) fn calls(rows: &[(&str, CallTimes)]) -> String {
    let mut table = "| remote | line through the engine, p50 | local call, p50 | p99 | remote call, p50 | p99 | remote / local | more than local | more than local and a line |\n\
                     |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for (what, times) in rows {
        let p50 = |times: &[f64]| middle(times).unwrap_or(f64::NAN);
        let p99 = |times: &[f64]| percentile(times, 99.0).unwrap_or(f64::NAN);
        let (echo, local, remote) = (p50(&times.echo), p50(&times.local), p50(&times.remote));
        let _ = writeln!(
            table,
            "| {what} | {echo:.2} ms | {local:.2} ms | {:.2} ms | {remote:.2} ms | {:.2} ms | {:.1} | {:.2} ms | {:.2} ms |",
            p99(&times.local),
            p99(&times.remote),
            remote / local,
            remote - local,
            remote - local - echo,
        );
    }
    table
}

/// The first call of each kind beside the first line of its engine.
pub(crate) fn starts(rows: &[(&str, StartTimes)]) -> String {
    let mut table = "| remote | first line of the engine, median | first call, median | fastest and slowest | first call / first line | more than the engine |\n\
                     |---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for (what, times) in rows {
        let remote = middle(&times.remote).unwrap_or(f64::NAN);
        let (least, greatest) = crate::stats::spread(&times.remote).unwrap_or((f64::NAN, f64::NAN));
        let beside = match middle(&times.engine) {
            Some(engine) => [
                format!("{engine:.0} ms"),
                format!("{:.2}", remote / engine),
                format!("{:.0} ms", remote - engine),
            ],
            None => ["–", "–", "–"].map(str::to_owned),
        };
        let [engine, ratio, more] = beside;
        let _ = writeln!(
            table,
            "| {what} | {engine} | {remote:.0} ms | {least:.0} to {greatest:.0} ms | {ratio} | {more} |"
        );
    }
    table
}

/// The first call that copies the program beside the same bytes through the engine.
pub(crate) fn copies(rows: &[(&str, StartTimes)]) -> String {
    let mut table = "| remote | the bytes through the engine | first call with the copy | ratio |\n|---|---:|---:|---:|\n".to_owned();
    for (what, times) in rows {
        let (Some(engine), Some(remote)) = (middle(&times.engine), middle(&times.remote)) else { continue };
        let _ = writeln!(table, "| {what} | {engine:.0} ms | {remote:.0} ms | {:.2} |", remote / engine);
    }
    table
}
