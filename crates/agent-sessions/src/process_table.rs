//! The process table: finds processes and their ancestors, and ends the process tree of a session.
//!
//! It is read from `/proc` (proc(5)). Systems without `/proc` have no supervisor (see [`check_supported`]), as no
//! process could be assigned to its session there.
#![allow(clippy::disallowed_methods, reason = "/proc is the process table; no path here comes from outside")]

use crate::error::{Error, ErrorCode};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The number of ancestors that are looked at; a longer chain is a loop in a table that changes meanwhile.
const MAX_ANCESTORS: usize = 256;
/// The interval at which the process table is read while processes are being ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The time that killed processes have to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The identity of a process: its id, and the time of its start, which tells it from a later process with that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    /// The process id.
    pub(crate) pid: u32,
    /// The time of its start, in clock ticks since the system's start: `starttime` in `proc_pid_stat(5)`.
    pub(crate) started: u64,
}

/// Checks that this system can tell processes from one another and end whole trees of them.
pub(crate) fn check_supported() -> Result<(), Error> {
    match cfg!(target_os = "linux") {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::Unsupported,
            format!(
                "not supported on {}: a supervisor needs Linux's process table and process handles",
                std::env::consts::OS
            ),
        )),
    }
}

/// An entry of the process table.
#[derive(Clone, Copy, Debug)]
struct ProcessTableEntry {
    parent: u32,
    /// The id of the leader of its session (setsid(2)).
    session: u32,
    started: u64,
    is_zombie: bool,
}

fn read_entry(pid: u32) -> Option<ProcessTableEntry> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses and may hold anything, parentheses too: the last one ends it.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    // `starttime` is field 22, and the last field that was taken is field 6.
    let started = fields.nth(15)?.parse().ok()?;
    Some(ProcessTableEntry { parent, session, started, is_zombie })
}

/// Returns the process with this id if it lives.
pub(crate) fn find(pid: u32) -> Option<ProcessIdentity> {
    read_entry(pid)
        .filter(|entry| !entry.is_zombie)
        .map(|entry| ProcessIdentity { pid, started: entry.started })
}

/// Returns the identity of a process that was just started. It may have ended already.
// A start time of 0 matches no process, so one that has ended already is never taken for alive.
pub(crate) fn identify(pid: u32) -> ProcessIdentity {
    ProcessIdentity { pid, started: read_entry(pid).map_or(0, |entry| entry.started) }
}

/// Tells whether exactly this process lives, and not another with its id.
pub(crate) fn is_alive(process: ProcessIdentity) -> bool {
    find(process.pid) == Some(process)
}

/// Tells whether a process and what it starts can gain no privileges (`PR_SET_NO_NEW_PRIVS`, prctl(2)). Returns nothing
/// if the process is gone.
pub(crate) fn is_restricted(pid: u32) -> Option<bool> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("NoNewPrivs:"))?;
    Some(value.trim() != "0")
}

/// Returns the id of this start of the system. After another start process ids and start times mean other processes.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the ancestors of a process and the leaders of their sessions, the process itself first.
pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = pid;
    // Process 1 adopts orphans of everybody, so it says nothing about where a process comes from.
    while next > 1 && found.len() < MAX_ANCESTORS && !found.contains(&next) {
        let Some(entry) = read_entry(next) else { break };
        found.push(next);
        if !found.contains(&entry.session) {
            // A process whose parent has ended is adopted by init, and still has its session.
            found.push(entry.session);
        }
        next = entry.parent;
    }
    found
}

/// Returns all processes of an agent session: those in the POSIX session of its leader (setsid(2)), and those that have
/// its id in their environment.
pub(crate) fn tree(leader: Option<u32>, id: &str) -> Vec<ProcessIdentity> {
    let variable = format!("{}={id}", crate::variables::SESSION_VARIABLE);
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // This supervisor may itself run in a session of another, and must not end itself.
    pids.filter(|pid| *pid != std::process::id())
        .filter_map(|pid| {
            let entry = read_entry(pid).filter(|entry| !entry.is_zombie)?;
            // By two marks, as a process may leave the session or clear its environment, but rarely does both.
            let belongs = leader.is_some_and(|leader| entry.session == leader)
                || has_variable(pid, variable.as_bytes());
            belongs.then_some(ProcessIdentity { pid, started: entry.started })
        })
        .collect()
}

fn has_variable(pid: u32, variable: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == variable))
}

/// Sends a signal to exactly this process.
fn send_signal(process: ProcessIdentity, signal: Signal) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    // The handle is opened before the check: if the check succeeds, the handle means that process and no later one.
    let Ok(handle) = ProcessHandle::open(pid) else { return };
    if is_alive(process) {
        // A process that has just ended needs no signal.
        let _ = handle.send(signal);
    }
}

/// A handle that means one process as long as it is held, even if its id is given to another (`pidfd_open(2)`).
struct ProcessHandle(#[cfg(target_os = "linux")] std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl ProcessHandle {
    fn open(pid: Pid) -> rustix::io::Result<Self> {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map(Self)
    }

    fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        rustix::process::pidfd_send_signal(&self.0, signal)
    }
}

/// Other systems have no such handle, and without it no process is signalled: its id might mean another by then.
#[cfg(not(target_os = "linux"))]
impl ProcessHandle {
    fn open(_pid: Pid) -> rustix::io::Result<Self> {
        Err(rustix::io::Errno::NOSYS)
    }

    fn send(&self, _signal: Signal) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }
}

/// Ends the processes of a session that this process did not start: `SIGTERM`, the grace time, `SIGKILL`. Tells whether
/// all are gone.
pub(crate) async fn end_tree(leader: Option<ProcessIdentity>, id: &str, grace: Duration) -> bool {
    // If the leader has ended its id may mean another process, whose session is not ours to end.
    let leader = leader.filter(|leader| is_alive(*leader)).map(|leader| leader.pid);
    let live_processes = || tree(leader, id);
    live_processes().into_iter().for_each(|process| send_signal(process, Signal::TERM));
    let deadline = tokio::time::Instant::now() + grace;
    while tokio::time::Instant::now() < deadline {
        if live_processes().is_empty() {
            return true;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let deadline = tokio::time::Instant::now() + KILL_TIMEOUT;
    loop {
        let survivors = live_processes();
        if survivors.is_empty() {
            return true;
        }
        if tokio::time::Instant::now() >= deadline {
            return false;
        }
        // Again and again: what is killed may have started others in between.
        survivors.into_iter().for_each(|process| send_signal(process, Signal::KILL));
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_with_the_same_id() {
        let own = find(std::process::id()).unwrap();
        assert!(is_alive(own) && own.started > 0);
        assert!(!is_alive(ProcessIdentity { started: own.started + 1, ..own }));
        assert!(find(0).is_none() && !boot_id().is_empty());
        assert_eq!(ancestors(std::process::id())[0], std::process::id());
    }

    #[tokio::test]
    async fn everything_that_carries_a_sessions_id_ends_with_it_and_nothing_else() {
        let id = format!("test-{}", std::process::id());
        let runner = process_runner::Runner::new();
        let sleeper = |id: &str| {
            // It leaves its session, and its child ignores the polite signal.
            let script = "trap '' TERM; setsid sleep 120 & sleep 120";
            process_runner::Command::new("sh", "/")
                .args(["-c", script])
                .env(crate::variables::SESSION_VARIABLE, id)
        };
        let ours = runner.start(sleeper(&id)).await.unwrap();
        let other = runner.start(sleeper("another")).await.unwrap();
        let leader = find(ours.pid().unwrap()).unwrap();
        while tree(Some(leader.pid), &id).len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(end_tree(Some(leader), &id, Duration::from_millis(100)).await);
        assert!(tree(None, &id).is_empty() && !is_alive(leader));
        assert!(other.pid().and_then(find).is_some());
    }
}
