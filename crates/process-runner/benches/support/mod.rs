//! Clocks and tables of the benchmarks.
#![allow(dead_code, reason = "each benchmark uses a part")]

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, without its children, and wall time.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunCost {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Measures the cost of `work`.
pub(crate) fn measure(work: impl FnOnce()) -> RunCost {
    let (cpu, wall) = (own_cpu(), Instant::now());
    work();
    RunCost { cpu: own_cpu().saturating_sub(cpu), wall: wall.elapsed() }
}

/// Returns the CPU time of all threads of this process so far.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // CPU time is never negative.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the median of several measurements, by CPU time; the wall time is the median of the wall times.
pub(crate) fn median(mut costs: Vec<RunCost>) -> RunCost {
    let middle = costs.len() / 2;
    costs.sort_by_key(|cost| cost.wall);
    let wall = costs[middle].wall;
    costs.sort_by_key(|cost| cost.cpu);
    RunCost { cpu: costs[middle].cpu, wall }
}

/// Measures `work` `rounds` times and returns the median.
pub(crate) fn rounds(rounds: usize, mut work: impl FnMut()) -> RunCost {
    median((0..rounds).map(|_| measure(&mut work)).collect())
}

/// Prints the head of a Markdown table, so that what is published is what was printed.
#[allow(clippy::print_stdout, reason = "the table is what a benchmark is for")]
pub(crate) fn heading(title: &str, columns: &[&str]) {
    println!("\n### {title}\n");
    println!("| {} |", columns.join(" | "));
    println!("|{}", " --- |".repeat(columns.len()));
}

/// Prints one row of the table.
#[allow(clippy::print_stdout, reason = "the table is what a benchmark is for")]
pub(crate) fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// Returns the target of `figure` and whether it was reached.
pub(crate) fn gate(figure: f64, at_most: f64, unit: &str) -> String {
    let verdict = if figure <= at_most { "met" } else { "**not met**" };
    format!("<= {at_most} {unit}: {verdict}")
}

/// Returns the resident memory of this process now and at its peak, in MiB (`/proc/self/status`).
pub(crate) fn memory_mib() -> (u64, u64) {
    #[allow(clippy::disallowed_methods, reason = "a benchmark reads what the kernel says of it")]
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}
