//! Finds the processes of runs in `/proc` (proc(5)).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, open, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::scan::{ProcessScan, ScanQuery, TreeMember};
use crate::outcome::Containment;

pub(crate) fn containment(marked: bool) -> Containment {
    if marked { Containment::SessionAndMarker } else { Containment::Session }
}

/// True: `/proc/PID/fd` shows which processes hold a pipe.
pub(crate) const SEES_HOLDERS: bool = true;

/// Searches all processes once. It finds nothing if there is no `/proc`.
///
/// A pass costs about 6 µs for each process. It can miss a process that is forked meanwhile, so callers repeat it
/// until several passes find nothing. It does not return zombies, leaders, or processes of other users that only
/// their marker would show.
pub(crate) fn scan(query: &ScanQuery<'_>) -> ProcessScan {
    let mut answer = ProcessScan::default();
    let Ok(proc) = open(c"/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return answer;
    };
    let Ok(entries) = Dir::read_from(&proc) else { return answer };
    let mut buffer = Vec::with_capacity(16 * 1024);
    for entry in entries.flatten() {
        let Some(pid) =
            entry.file_name().to_str().ok().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        match identify(proc.as_fd(), pid, query, &mut buffer) {
            ProcessIdentity::Stranger => continue,
            ProcessIdentity::Undecided => {
                answer.undecided = true;
                continue;
            }
            ProcessIdentity::Member { .. } => {}
        }
        // The pid may belong to another process by now. What a pidfd stands for cannot change, so a process that
        // is still a member when it is asked again is the one that the pidfd pins.
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd),
            Err(Errno::SRCH) => continue,
            Err(_) => None,
        };
        match identify(proc.as_fd(), pid, query, &mut buffer) {
            ProcessIdentity::Member { owner, group, name, busy } => {
                answer.members.push(TreeMember { owner, pid, group, name, busy, pidfd });
            }
            ProcessIdentity::Undecided => answer.undecided = true,
            ProcessIdentity::Stranger => {}
        }
    }
    answer
}

/// The relation of one process to the runs that are searched for.
enum ProcessIdentity {
    Stranger,
    /// It is in the middle of `execve(2)`, and the environment of its new program is not there yet.
    Undecided,
    Member {
        owner: usize,
        group: Option<Pid>,
        name: String,
        busy: bool,
    },
}

fn identify(proc: BorrowedFd<'_>, pid: Pid, query: &ScanQuery<'_>, buffer: &mut Vec<u8>) -> ProcessIdentity {
    let number = pid.as_raw_nonzero().get();
    if read(proc, &format!("{number}/stat"), buffer).is_err() {
        return ProcessIdentity::Stranger; // it has ended since the folder was listed
    }
    let Some(stat) = ProcessStat::parse(buffer) else { return ProcessIdentity::Stranger };
    if matches!(stat.state, b'Z' | b'X') || stat.start_ticks < query.started_since {
        return ProcessIdentity::Stranger;
    }
    let by_session = stat.session.and_then(|session| (query.by_session)(session));
    let is_leader = stat.session == Some(pid);
    if by_session.is_some() && is_leader {
        return ProcessIdentity::Stranger;
    }
    let busy = matches!(stat.state, b'R' | b'D');
    let kernel_thread = stat.flags & PF_KTHREAD != 0;
    let (group, name) = (stat.group, String::from_utf8_lossy(stat.name).into_owned());
    if let Some(owner) = by_session {
        return ProcessIdentity::Member { owner, group, name, busy };
    }
    // The environment cannot be read of another user's process, or of one that protects itself (prctl(2),
    // PR_SET_DUMPABLE). A kernel thread has none.
    if kernel_thread || read(proc, &format!("{number}/environ"), buffer).is_err() {
        return ProcessIdentity::Stranger;
    }
    if let Some(owner) = find_marker(buffer, query) {
        return ProcessIdentity::Member { owner, group, name, busy };
    }
    // In the middle of an `execve(2)` the environment reads as empty and the address of its end as 0. An
    // environment that is really empty has an address.
    if buffer.is_empty()
        && read(proc, &format!("{number}/stat"), buffer).is_ok()
        && ProcessStat::parse(buffer)
            .is_some_and(|stat| stat.environment_end == 0 && !matches!(stat.state, b'Z' | b'X'))
    {
        return ProcessIdentity::Undecided;
    }
    ProcessIdentity::Stranger
}

/// The flag of a kernel thread (`include/linux/sched.h`).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Returns the run of the first marker in an environment block, a sequence of NUL-terminated `NAME=VALUE`.
fn find_marker(environment: &[u8], query: &ScanQuery<'_>) -> Option<usize> {
    let prefix = query.marker_prefix.as_bytes();
    memchr::memmem::find_iter(environment, prefix).find_map(|at| {
        // It must be the name of a variable, and not a part of another's name or value.
        if at > 0 && environment[at - 1] != 0 {
            return None;
        }
        let rest = &environment[at + prefix.len()..];
        let digits = rest.split(|byte| *byte == b'=').next()?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        (query.by_marker)(number)
    })
}

/// The most bytes read of an environment. The kernel's own limit for arguments and environment together is a
/// quarter of the stack limit, usually 2 MiB.
const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;

/// Reads a file of `/proc` into `buffer`, whose memory is used again from process to process.
fn read(proc: BorrowedFd<'_>, path: &str, buffer: &mut Vec<u8>) -> io::Result<()> {
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    buffer.clear();
    loop {
        if buffer.capacity() - buffer.len() < 4096 {
            buffer.reserve(buffer.capacity());
        }
        let read = rustix::io::read(&file, rustix::buffer::spare_capacity(buffer))?;
        if read == 0 || buffer.len() > MAX_FILE_BYTES {
            return Ok(());
        }
    }
}

/// The fields of `/proc/PID/stat` that the search needs.
struct ProcessStat<'a> {
    name: &'a [u8],
    state: u8,
    group: Option<Pid>,
    session: Option<Pid>,
    /// `PF_*`.
    flags: u64,
    /// The time of the start in clock ticks since the system started.
    start_ticks: u64,
    /// The address where the environment ends. It is also 0 if it may not be read.
    environment_end: u64,
}

impl<'a> ProcessStat<'a> {
    /// Parses `pid (comm) state ppid pgrp session ...`.
    // `comm` may hold blanks and parentheses, so it ends at the last parenthesis of the line.
    fn parse(text: &'a [u8]) -> Option<Self> {
        let open = memchr::memchr(b'(', text)?;
        let close = memchr::memrchr(b')', text)?;
        let name = text.get(open + 1..close)?;
        // Fields are numbered as in the manual page, where the first after the name is 3.
        let fields: Vec<&str> =
            std::str::from_utf8(text.get(close + 1..)?).ok()?.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |at: usize| field(at)?.parse::<u64>().ok();
        // Group and session are -1 for a process that is being reaped, and 0 for one of another pid namespace.
        let id = |at: usize| field(at)?.parse().ok().filter(|id| *id > 0).and_then(Pid::from_raw);
        Some(Self {
            name,
            state: *field(3)?.as_bytes().first()?,
            group: id(5),
            session: id(6),
            flags: number(9)?,
            start_ticks: number(22)?,
            environment_end: number(51).unwrap_or(0),
        })
    }
}

/// Returns when a process started, in clock ticks since the system did. A zombie still has it.
pub(crate) fn start_time(pid: Pid) -> Option<u64> {
    let mut buffer = Vec::with_capacity(1024);
    read(CWD, &format!("/proc/{}/stat", pid.as_raw_nonzero()), &mut buffer).ok()?;
    ProcessStat::parse(&buffer).map(|stat| stat.start_ticks)
}

/// Returns the number that both ends of a pipe have, in every process: its inode.
pub(crate) fn pipe_id(pipe: impl AsFd) -> Option<u64> {
    fstat(pipe).ok().map(|stat| stat.st_ino)
}

/// Returns true if the process has one of these pipes open.
pub(crate) fn holds_any_pipe(pid: Pid, pipes: &[u64]) -> bool {
    let path = format!("/proc/{}/fd", pid.as_raw_nonzero());
    let Ok(folder) = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    else {
        return false;
    };
    let Ok(entries) = Dir::read_from(&folder) else { return false };
    entries.flatten().any(|entry| {
        readlinkat(&folder, entry.file_name(), Vec::new()).is_ok_and(|link| {
            let pipe = link.to_bytes().strip_prefix(b"pipe:[").and_then(|rest| rest.strip_suffix(b"]"));
            let inode = pipe.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            inode.is_some_and(|inode| pipes.contains(&inode))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let text = b"42 (a) b (c) S 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 5551212 900";
        let stat = ProcessStat::parse(text).unwrap();
        assert_eq!((stat.name, stat.state), (b"a) b (c".as_slice(), b'S'));
        assert_eq!((stat.group, stat.session), (Pid::from_raw(40), Pid::from_raw(39)));
        assert_eq!((stat.flags, stat.start_ticks), (4_194_560, 5_551_212));
    }

    #[test]
    fn a_process_that_is_just_being_reaped_has_no_group_and_no_session() {
        let text = b"42 (sh) X 1 -1 -1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 900";
        let stat = ProcessStat::parse(text).unwrap();
        assert_eq!((stat.group, stat.session), (None, None));
    }

    #[test]
    fn this_process_has_an_environment_with_an_address_and_is_no_kernel_thread() {
        let mut buffer = Vec::with_capacity(1024);
        read(CWD, "/proc/self/stat", &mut buffer).unwrap();
        let stat = ProcessStat::parse(&buffer).unwrap();
        assert_ne!(stat.environment_end, 0);
        assert_eq!(stat.flags & PF_KTHREAD, 0);
    }

    #[test]
    fn a_marker_counts_only_as_the_name_of_a_variable_and_with_its_whole_number() {
        let query = ScanQuery {
            started_since: 0,
            by_session: &|_| None,
            marker_prefix: "PROCESS_RUNNER_RUN_ab_",
            by_marker: &|number| (number == 12).then_some(7),
        };
        let find = |environment: &[u8]| find_marker(environment, &query);
        assert_eq!(find(b"A=1\0PROCESS_RUNNER_RUN_ab_12=1\0"), Some(7));
        assert_eq!(find(b"PROCESS_RUNNER_RUN_ab_1=1\0PROCESS_RUNNER_RUN_ab_12=1\0"), Some(7));
        assert_eq!(find(b"PROCESS_RUNNER_RUN_ab_123=1\0"), None);
        assert_eq!(find(b"A=PROCESS_RUNNER_RUN_ab_12=1\0"), None);
        assert_eq!(find(b"PROCESS_RUNNER_RUN_cd_12=1\0"), None);
    }
}
