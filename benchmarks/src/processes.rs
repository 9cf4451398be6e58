//! The processes of a server: how much memory they take, and who is left when it is gone.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

/// Makes this process the parent of whatever its descendants leave behind, in what session and group ever.
pub(crate) fn adopt() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// All that a process has started, and what they have, and so on; no zombies.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, parent, zombie) in table() {
        if !zombie {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut waiting = vec![of];
    while let Some(pid) = waiting.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            found.push(*child);
            waiting.push(*child);
        }
    }
    found
}

/// Those of all descendants of this process whose command line holds `mark`.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let ours: HashSet<u32> = descendants(std::process::id()).into_iter().collect();
    integration_tests::alive(mark).into_iter().filter(|pid| ours.contains(pid)).collect()
}

/// Process, parent, and whether it is a zombie: fields 1, 4 and 3 of `proc_pid_stat(5)`.
fn table() -> Vec<(u32, u32, bool)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let zombie = matches!(fields.next()?, "Z" | "X");
        Some((pid, fields.next()?.parse().ok()?, zombie))
    };
    entries.filter_map(of).collect()
}

/// Kills these, and takes in what has become ours. Gives up after a second.
pub(crate) fn end(pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| as_pid(*pid)) {
        let _ = kill_process(pid, Signal::KILL);
    }
    let started = Instant::now();
    while pids.iter().any(|pid| integration_tests::is_alive(*pid))
        && started.elapsed() < Duration::from_secs(1)
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    reap();
}

/// Takes in the zombies that were left to this process. No child that it started itself may be running.
pub(crate) fn reap() {
    while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
}

fn as_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Memory of a server and all that it has started, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessMemory {
    /// Resident: what several share is counted with each.
    pub(crate) resident: u64,
    /// Proportional: what several share is divided among them.
    pub(crate) proportional: u64,
    /// The most that each of those which are there has had resident.
    pub(crate) peak: u64,
}

/// The memory of a process and its descendants.
pub(crate) fn memory(of: u32) -> ProcessMemory {
    let mut total = ProcessMemory::default();
    for pid in std::iter::once(of).chain(descendants(of)) {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        total.resident += kilobytes(&rollup, "Rss:");
        total.proportional += kilobytes(&rollup, "Pss:");
        total.peak += kilobytes(&status, "VmHWM:");
    }
    total
}

/// Resident memory of one process, in bytes.
pub(crate) fn resident(of: u32) -> u64 {
    kilobytes(&fs::read_to_string(format!("/proc/{of}/status")).unwrap_or_default(), "VmRSS:")
}

/// A figure of a file of `/proc`, in bytes.
fn kilobytes(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let figure = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    figure.unwrap_or_default() * 1024
}

/// Open descriptors of a process.
pub(crate) fn descriptors(of: u32) -> usize {
    fs::read_dir(format!("/proc/{of}/fd")).map_or(0, Iterator::count)
}
