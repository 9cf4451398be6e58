//! Searches of the process table.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Seconds for `sleep` that no other process sleeps: about two minutes, so that what a failed test leaves
/// behind goes away by itself.
pub fn unique_seconds() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("120.{:07}{number:03}", std::process::id())
}

/// The processes that `parent` has started and that are alive.
pub fn children(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    pids().filter(|pid| is_alive(*pid) && parent_of(*pid).as_deref() == Some(&parent)).collect()
}

/// Returns true if a process is there and no zombie.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// The command line of a process, with blanks between the arguments.
pub fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
}

/// The most memory that a process has had resident, in KiB (`VmHWM` in `proc_pid_status(5)`).
pub fn peak_memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn parent_of(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")).map(|parent| parent.trim().to_owned())
}

/// Processes that are alive (no zombies) and whose command line holds `mark`. Tests mark what they start
/// with a number that nothing else has: `sleep 31.415`.
pub fn alive(mark: &str) -> Vec<u32> {
    pids()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| contains(&line, mark.as_bytes()))
        })
        .filter(|pid| is_alive(*pid))
        .filter(|pid| *pid != std::process::id())
        .collect()
}

/// The processes `sleep SECONDS` that are alive, and none whose command line only names them.
pub fn sleeping(seconds: &str) -> Vec<u32> {
    let line = format!("sleep {seconds}");
    alive(&line).into_iter().filter(|pid| command_line(*pid) == line).collect()
}

/// The zombies whose parent is `parent`.
pub fn zombies_of(parent: u32) -> Vec<u32> {
    pids()
        .filter(|pid| state(*pid) == Some('Z'))
        .filter(|pid| parent_of(*pid) == Some(parent.to_string()))
        .collect()
}

/// Waits until no process with `mark` is alive.
pub fn wait_until_gone(mark: &str, limit: Duration) {
    crate::wait_until(limit, &format!("processes with {mark:?} end"), || alive(mark).is_empty());
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // The arguments stand between NULs; a mark may hold blanks.
    let text: Vec<u8> = text.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    text.windows(part.len()).any(|window| window == part)
}

/// `server`, with these arguments, as the first process of a PID namespace, below an `unshare` that ends as it does.
pub fn contained(server: &Command, arguments: &[&str]) -> Option<Command> {
    let namespace = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let possible = Command::new("unshare").args(namespace).arg("true").output();
    let possible = possible.is_ok_and(|output| output.status.success());
    skipped_tests::require(possible.then_some(()), "no right to make a PID namespace; run as root")?;
    let mut command = Command::new("unshare");
    command.args(namespace).arg(server.get_program()).args(arguments);
    command.current_dir(server.get_current_dir().unwrap_or_else(|| Path::new(".")));
    for (name, value) in server.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(command)
}

/// The most bytes of memory that a process may have: of its cgroup, or else its own limit (`RLIMIT_DATA`).
pub fn memory_limit(pid: u32) -> Option<u64> {
    let group = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_owned();
    let of_group = fs::read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).unwrap_or_default();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let own = limits.lines().find_map(|line| line.strip_prefix("Max data size"));
    let own = own.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    of_group.trim().parse().or_else(|_| own.parse()).ok()
}
