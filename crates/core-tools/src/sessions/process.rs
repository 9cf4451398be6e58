//! The process table: whether a process is still the same, whose child it is, and how what came of it is ended.
//!
//! Read from `/proc` (proc(5)). Where there is none nothing is known, and no process is taken for a session's: that is
//! why no supervisor starts there ([`check_supported`]).
#![allow(clippy::disallowed_methods, reason = "/proc is the process table; no path here comes from outside")]

use super::error::{Code, Error};
use super::state::Process;
use rustix::process::{Pid, Signal};
use std::collections::HashMap;
use std::time::Duration;

/// Refuses where processes cannot be told from one another, nor ended with all that they have started.
pub(super) fn check_supported() -> Result<(), Error> {
    match cfg!(target_os = "linux") {
        true => Ok(()),
        false => Err(Error::new(
            Code::Unsupported,
            format!(
                "not supported on {}: sessions are supervised by Linux's process table and handles of processes",
                std::env::consts::OS
            ),
        )),
    }
}

/// What the table says of a process.
#[derive(Clone, Copy, Debug)]
struct Row {
    parent: u32,
    session: u32,
    started: u64,
    zombie: bool,
}

fn row(pid: u32) -> Option<Row> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    // `starttime` is field 22, and the last that was taken is field 6.
    let started = fields.nth(15)?.parse().ok()?;
    Some(Row { parent, session, started, zombie })
}

/// The process with this id, as long as it lives.
pub(super) fn find(pid: u32) -> Option<Process> {
    row(pid).filter(|row| !row.zombie).map(|row| Process { pid, started: row.started })
}

/// The process with this id, which we have just started, also if it has ended already.
pub(super) fn of(pid: u32) -> Process {
    Process { pid, started: row(pid).map_or(0, |row| row.started) }
}

/// Whether it lives, and is not another with the same id.
pub(super) fn is_alive(process: Process) -> bool {
    find(process.pid) == Some(process)
}

/// Whether a process can gain no privileges, and neither can what it starts (`PR_SET_NO_NEW_PRIVS`, prctl(2)). None if it
/// is gone.
pub(super) fn is_restricted(pid: u32) -> Option<bool> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("NoNewPrivs:"))?;
    Some(value.trim() != "0")
}

/// What differs after each start of the system: process ids and their times begin anew.
pub(super) fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The processes in whose session `pid` is, or whose child it is, and so on: itself first.
pub(super) fn ancestors(pid: u32) -> Vec<u32> {
    const MOST: usize = 256;
    let mut found = Vec::new();
    let mut next = pid;
    while next > 1 && found.len() < MOST && !found.contains(&next) {
        let Some(row) = row(next) else { break };
        found.push(next);
        if !found.contains(&row.session) {
            found.push(row.session);
        }
        next = row.parent;
    }
    found
}

/// All processes of a session: those in the session of its leader (setsid(2)), and those that carry its id.
pub(super) fn tree(leader: Option<u32>, id: &str) -> Vec<Process> {
    let carried = format!("{}={id}", super::SESSION_VARIABLE);
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id())
        .filter_map(|pid| {
            let row = row(pid).filter(|row| !row.zombie)?;
            let ours = leader.is_some_and(|leader| row.session == leader) || carries(pid, carried.as_bytes());
            ours.then_some(Process { pid, started: row.started })
        })
        .collect()
}

fn carries(pid: u32, variable: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == variable))
}

/// Sends a signal to exactly this process.
fn send(process: Process, signal: Signal) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    // The handle is held before the look, so that it is that process which is looked at.
    let Ok(handle) = Handle::open(pid) else { return };
    if is_alive(process) {
        // One that has just ended needs no signal.
        let _ = handle.send(signal);
    }
}

/// Means one process for as long as it is held, whatever becomes of its id (`pidfd_open(2)`).
struct Handle(#[cfg(target_os = "linux")] std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Handle {
    fn open(pid: Pid) -> rustix::io::Result<Self> {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map(Self)
    }

    fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        rustix::process::pidfd_send_signal(&self.0, signal)
    }
}

/// There is no such thing, and without it no process is signalled.
#[cfg(not(target_os = "linux"))]
impl Handle {
    fn open(_pid: Pid) -> rustix::io::Result<Self> {
        Err(rustix::io::Errno::NOSYS)
    }

    fn send(&self, _signal: Signal) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }
}

/// Ends a session's processes that this process did not start: `SIGTERM`, the grace time, `SIGKILL`. Whether all are
/// gone.
pub(super) async fn end_tree(leader: Option<Process>, id: &str, grace: Duration) -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(20);
    const AFTER_KILL: Duration = Duration::from_secs(5);
    // A leader whose id has gone to another is nobody's leader.
    let leader = leader.filter(|leader| is_alive(*leader)).map(|leader| leader.pid);
    let all = || tree(leader, id);
    all().into_iter().for_each(|process| send(process, Signal::TERM));
    let deadline = tokio::time::Instant::now() + grace;
    while tokio::time::Instant::now() < deadline {
        if all().is_empty() {
            return true;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let deadline = tokio::time::Instant::now() + AFTER_KILL;
    loop {
        let left = all();
        if left.is_empty() {
            return true;
        }
        if tokio::time::Instant::now() >= deadline {
            return false;
        }
        left.into_iter().for_each(|process| send(process, Signal::KILL));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The session to which a process belongs, of those with these leaders.
pub(super) fn session_of<'a>(pid: u32, leaders: &HashMap<u32, &'a str>) -> Option<&'a str> {
    ancestors(pid).iter().find_map(|pid| leaders.get(pid).copied())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_with_the_same_id() {
        let own = find(std::process::id()).unwrap();
        assert!(is_alive(own) && own.started > 0);
        assert!(!is_alive(Process { started: own.started + 1, ..own }));
        assert!(find(0).is_none() && !boot().is_empty());
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
                .env(crate::sessions::SESSION_VARIABLE, id)
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
