//! The machine that a run was made on.

use crate::results::MachineInfo;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// This machine, with the load average of now as that before.
pub(crate) fn describe() -> MachineInfo {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = field(&cpus, "model name").unwrap_or_else(|| "unknown".to_owned());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory =
        field(&memory, "MemTotal").and_then(|memory| memory.trim_end_matches(" kB").parse::<u64>().ok());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers = release.trim().split('.').take(2).collect::<Vec<_>>().join(".");
    let mut versions = BTreeMap::new();
    for program in ["git", "rg", "node", "python3", "rustc"] {
        if let Some(version) = version(program) {
            versions.insert(program.to_owned(), version);
        }
    }
    MachineInfo {
        cpu,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_gb: memory.unwrap_or_default().div_ceil(1 << 20),
        system: format!("Linux {numbers}"),
        load: [load(), String::new()],
        versions,
    }
}

/// The load averages.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Today in UTC.
pub(crate) fn today() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// The first number in what a program says of its version.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = said
        .split_whitespace()
        .find(|word| word.contains('.') && word.contains(|c: char| c.is_ascii_digit()));
    Some(word?.trim_start_matches('v').to_owned())
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
