//! Finds the processes of runs in `/proc` (proc(5)).

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, open, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::run_id::{MARKER_PREFIX, RunToken};
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
    let mut buffer = Vec::with_capacity(16 * 1024);
    let processes = list(proc.as_fd(), query, &mut buffer, &mut answer);
    let relations = ProcessRelations::new(&processes, query);
    for process in processes.values() {
        let relation = relations.of(process);
        if matches!(relation, ProcessRelation::Stranger) {
            continue;
        }
        // The pid may belong to another process by now. What a pidfd stands for cannot change, so a process that
        // is still the same when it is asked again is the one that the pidfd pins.
        let pidfd = match pidfd_open(process.pid, PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd),
            // It may have forked before it ended.
            Err(Errno::SRCH) => {
                answer.undecided |= matches!(relation, ProcessRelation::Orphan);
                continue;
            }
            Err(_) => None,
        };
        let Some(again) = ScannedProcess::read(proc.as_fd(), process.pid, &mut buffer) else {
            answer.undecided |= matches!(relation, ProcessRelation::Orphan);
            continue;
        };
        if again.start_ticks != process.start_ticks {
            continue;
        }
        let member = |owner| TreeMember {
            owner,
            pid: process.pid,
            group: again.group,
            name: again.name.clone(),
            parent: again.parent,
            start_ticks: again.start_ticks,
            busy: matches!(again.state, b'R' | b'D'),
            pidfd,
        };
        match relation {
            ProcessRelation::Member(owner) => answer.members.push(member(owner)),
            // A parent that ended in between leaves an orphan, which the next pass finds.
            ProcessRelation::Descendant { .. } if again.parent != process.parent => answer.undecided = true,
            ProcessRelation::Descendant { owner, parent, parent_start } => {
                // The parent was there throughout if it is there now, so the child was its child.
                if start_time(parent) == Some(parent_start) {
                    answer.members.push(member(owner));
                } else {
                    answer.undecided = true;
                }
            }
            ProcessRelation::Orphan if again.parent == process.parent => answer.orphans.push(member(0)),
            ProcessRelation::Orphan | ProcessRelation::Stranger => {}
        }
    }
    answer
}

/// Lists the processes that may matter, each with what it shows itself about the run that it belongs to.
fn list(
    proc: BorrowedFd<'_>,
    query: &ScanQuery<'_>,
    buffer: &mut Vec<u8>,
    answer: &mut ProcessScan,
) -> HashMap<Pid, ScannedProcess> {
    let mut processes = HashMap::new();
    let Ok(entries) = Dir::read_from(proc) else { return processes };
    for entry in entries.flatten() {
        let Some(pid) =
            entry.file_name().to_str().ok().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        let Some(mut process) = ScannedProcess::read(proc, pid, buffer) else { continue };
        let is_zombie = process.has_ended;
        // The first process of a PID namespace collects its own children.
        if is_zombie && process.parent.is_some() && process.parent.as_ref() == query.adopters.first() {
            answer.zombies.push(pid);
        }
        if is_zombie || process.start_ticks < query.started_since {
            continue;
        }
        process.sign = process.sign(query);
        processes.insert(pid, process);
    }
    // The environments of strangers need not be read where everything that matters descends from an adopter.
    let unread: Vec<Pid> = processes
        .values()
        .filter(|process| matches!(process.sign, RunEvidence::None { environment_read: false }))
        .filter(|process| query.adopters.is_empty() || query.is_adopter(process.parent))
        .map(|process| process.pid)
        .collect();
    for pid in unread {
        let parent = processes.get(&pid).and_then(|process| process.parent);
        let sign = read_marker(proc, pid, parent, query, buffer);
        answer.undecided |= matches!(sign, RunEvidence::Undecided);
        if let Some(process) = processes.get_mut(&pid) {
            process.sign = sign;
        }
    }
    processes
}

/// A sign of the run that a process belongs to, which the process itself shows.
#[derive(Clone, Copy)]
enum RunEvidence {
    /// It leads the session of this run.
    Leader(usize),
    /// It is in the session of this run, has its marker, or was adopted as its orphan.
    Run(usize),
    /// It is in the middle of `execve(2)`, and the environment of its new program is not there yet.
    Undecided,
    None {
        environment_read: bool,
    },
}

/// A process of the list.
struct ScannedProcess {
    pid: Pid,
    parent: Option<Pid>,
    group: Option<Pid>,
    session: Option<Pid>,
    state: u8,
    /// False while another thread runs on after the end of the first.
    has_ended: bool,
    start_ticks: u64,
    kernel_thread: bool,
    name: String,
    sign: RunEvidence,
}

impl ScannedProcess {
    /// Reads about a process. `None` if it has ended.
    fn read(proc: BorrowedFd<'_>, pid: Pid, buffer: &mut Vec<u8>) -> Option<Self> {
        read(proc, &format!("{}/stat", pid.as_raw_nonzero()), buffer).ok()?;
        let stat = ProcessStat::parse(buffer)?;
        Some(Self {
            pid,
            parent: stat.parent,
            group: stat.group,
            session: stat.session,
            state: stat.state,
            has_ended: stat.has_ended(),
            start_ticks: stat.start_ticks,
            kernel_thread: stat.flags & PF_KTHREAD != 0,
            name: String::from_utf8_lossy(stat.name).into_owned(),
            sign: RunEvidence::None { environment_read: false },
        })
    }

    /// Finds its run by its session, or because it was adopted.
    fn sign(&self, query: &ScanQuery<'_>) -> RunEvidence {
        match self.session.and_then(|session| (query.by_session)(session)) {
            Some(owner) if self.session == Some(self.pid) => RunEvidence::Leader(owner),
            Some(owner) => RunEvidence::Run(owner),
            None => match (query.by_adoption)(self.pid, self.start_ticks) {
                Some(owner) => RunEvidence::Run(owner),
                // A kernel thread has no environment.
                None => RunEvidence::None { environment_read: self.kernel_thread },
            },
        }
    }
}

/// Finds the run of a process by the marker in its environment.
// It cannot be read of another user's process, or of one that protects itself (prctl(2), PR_SET_DUMPABLE).
fn read_marker(
    proc: BorrowedFd<'_>,
    pid: Pid,
    parent: Option<Pid>,
    query: &ScanQuery<'_>,
    buffer: &mut Vec<u8>,
) -> RunEvidence {
    let number = pid.as_raw_nonzero();
    let none = RunEvidence::None { environment_read: true };
    if read(proc, &format!("{number}/environ"), buffer).is_err() {
        return none;
    }
    if buffer.is_empty() {
        read_environment_of_threads(proc, number.get(), buffer);
    }
    if let Some(owner) = find_marker(buffer, parent, query) {
        return RunEvidence::Run(owner);
    }
    if buffer.is_empty() && is_in_execve(proc, number.get(), buffer) { RunEvidence::Undecided } else { none }
}

/// Reads the environment through the threads of a process whose first thread has ended: the process itself shows none then.
fn read_environment_of_threads(proc: BorrowedFd<'_>, number: i32, buffer: &mut Vec<u8>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(proc, format!("{number}/task"), flags, Mode::empty()) else { return };
    let Ok(threads) = Dir::read_from(&folder) else { return };
    for thread in threads.flatten() {
        let Some(name) = thread.file_name().to_str().ok().filter(|name| name.parse::<i32>().is_ok()) else {
            continue;
        };
        if read(folder.as_fd(), &format!("{name}/environ"), buffer).is_ok() && !buffer.is_empty() {
            return;
        }
    }
    buffer.clear();
}

/// Returns true if the process is in the middle of an `execve(2)`: its command line and its environment read as empty, and
/// the address of the environment's end as 0. An environment that is really empty has an address. Empties the buffer.
fn is_in_execve(proc: BorrowedFd<'_>, number: i32, buffer: &mut Vec<u8>) -> bool {
    let is_read = read(proc, &format!("{number}/stat"), buffer).is_ok();
    let in_execve = is_read
        && ProcessStat::parse(buffer).is_some_and(|stat| {
            stat.environment_end == 0 && stat.flags & PF_KTHREAD == 0 && !matches!(stat.state, b'Z' | b'X')
        });
    buffer.clear();
    in_execve
}

/// The relation of a process to the runs that are searched for.
#[derive(Clone, Copy)]
enum ProcessRelation {
    Stranger,
    /// It shows its run itself.
    Member(usize),
    /// Its parent belongs to the run.
    Descendant {
        owner: usize,
        parent: Pid,
        parent_start: u64,
    },
    /// It is a child of an adopter that shows no run.
    Orphan,
}

/// The relations of the listed processes, found through their parents.
struct ProcessRelations<'a> {
    processes: &'a HashMap<Pid, ScannedProcess>,
    query: &'a ScanQuery<'a>,
}

impl<'a> ProcessRelations<'a> {
    fn new(processes: &'a HashMap<Pid, ScannedProcess>, query: &'a ScanQuery<'a>) -> Self {
        Self { processes, query }
    }

    fn of(&self, process: &ScannedProcess) -> ProcessRelation {
        match process.sign {
            RunEvidence::Leader(_) | RunEvidence::Undecided => return ProcessRelation::Stranger,
            RunEvidence::Run(owner) => return ProcessRelation::Member(owner),
            RunEvidence::None { .. } => {}
        }
        if self.query.is_adopter(process.parent) {
            return ProcessRelation::Orphan;
        }
        let Some(parent) = self.parent(process) else { return ProcessRelation::Stranger };
        let mut ancestor = parent;
        // The list is a snapshot of moving things, so a circle is possible.
        for _ in 0..self.processes.len() {
            match ancestor.sign {
                RunEvidence::Leader(owner) | RunEvidence::Run(owner) => {
                    return ProcessRelation::Descendant {
                        owner,
                        parent: parent.pid,
                        parent_start: parent.start_ticks,
                    };
                }
                RunEvidence::None { .. } | RunEvidence::Undecided => {}
            }
            match self.parent(ancestor) {
                Some(next) => ancestor = next,
                None => return ProcessRelation::Stranger,
            }
        }
        ProcessRelation::Stranger
    }

    /// Returns the parent of a process, if it is listed and not younger.
    fn parent(&self, process: &ScannedProcess) -> Option<&ScannedProcess> {
        self.processes.get(&process.parent?).filter(|parent| parent.start_ticks <= process.start_ticks)
    }
}

/// The flag of a kernel thread (`include/linux/sched.h`).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Returns the run of the first marker in an environment block, a sequence of NUL-terminated `NAME=VALUE`.
fn find_marker(environment: &[u8], parent: Option<Pid>, query: &ScanQuery<'_>) -> Option<usize> {
    let prefix = MARKER_PREFIX.as_bytes();
    memchr::memmem::find_iter(environment, prefix).find_map(|at| {
        // It must be the name of a variable, and not a part of another's name or value.
        if at > 0 && environment[at - 1] != 0 {
            return None;
        }
        let rest = &environment[at + prefix.len()..];
        let token = RunToken::parse(rest.split(|byte| *byte == b'=').next()?)?;
        (query.by_marker)(token, parent)
    })
}

/// The most bytes read of an environment. The kernel's own limit for arguments and environment together is a
/// quarter of the stack limit, usually 2 MiB.
const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;

/// Reads a file of `/proc` into `buffer`, whose memory is used again from process to process.
pub(super) fn read(proc: BorrowedFd<'_>, path: &str, buffer: &mut Vec<u8>) -> io::Result<()> {
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
    parent: Option<Pid>,
    group: Option<Pid>,
    session: Option<Pid>,
    /// `PF_*`.
    flags: u64,
    threads: u64,
    /// The time of the start in clock ticks since the system started.
    start_ticks: u64,
    /// The address where the environment ends. It is also 0 if it may not be read.
    environment_end: u64,
}

impl<'a> ProcessStat<'a> {
    /// Returns true if no thread of the process runs any more. A process whose first thread has ended is shown as a zombie,
    /// although its other threads run on.
    fn has_ended(&self) -> bool {
        self.state == b'X' || (self.state == b'Z' && self.threads <= 1)
    }

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
            parent: id(4),
            group: id(5),
            session: id(6),
            flags: number(9)?,
            threads: number(20)?,
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

/// Returns the parent of a process, or `Some(None)` if it is outside the PID namespace of this one. `None` if the process has
/// ended.
pub(super) fn parent_of(pid: Pid) -> Option<Option<Pid>> {
    let mut buffer = Vec::with_capacity(1024);
    read(CWD, &format!("/proc/{}/stat", pid.as_raw_nonzero()), &mut buffer).ok()?;
    ProcessStat::parse(&buffer).map(|stat| stat.parent)
}

/// Returns the command line of a process, its words separated by blanks, at most [`MAX_COMMAND_LINE_BYTES`] of it.
pub(crate) fn command_line(pid: Pid) -> Option<String> {
    let number = pid.as_raw_nonzero();
    let mut buffer = Vec::with_capacity(1024);
    let proc =
        openat(CWD, "/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    for _ in 0..EXECVE_READS {
        read(proc.as_fd(), &format!("{number}/cmdline"), &mut buffer).ok()?;
        if !buffer.is_empty() || !is_in_execve(proc.as_fd(), number.get(), &mut buffer) {
            break;
        }
        std::thread::sleep(EXECVE_PAUSE);
    }
    buffer.truncate(MAX_COMMAND_LINE_BYTES);
    let words: Vec<_> = buffer.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ").trim_end().to_owned();
    (!line.is_empty()).then_some(line)
}

/// How often a command line is read that an `execve(2)` hides, and the pause between two reads: 20 ms in all, while loading
/// a program takes less than one.
const EXECVE_READS: u32 = 40;
const EXECVE_PAUSE: Duration = Duration::from_micros(500);

/// The most bytes of a command line that are of interest to a reader.
const MAX_COMMAND_LINE_BYTES: usize = 1024;

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
    use super::super::run_id::RunId;
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
    fn a_marker_counts_only_as_the_name_of_a_variable_and_with_its_whole_token() {
        let (run, other) = (RunId::next().unwrap(), RunId::next().unwrap());
        let (parent, elsewhere) = (Pid::from_raw(5), Pid::from_raw(6));
        let query = ScanQuery {
            started_since: 0,
            by_session: &|_| None,
            by_adoption: &|_, _| None,
            adopters: &[],
            by_marker: &|token, of| (token == run.token && of == parent).then_some(7),
        };
        let find = |environment: String| find_marker(environment.as_bytes(), parent, &query);
        let (own, others) = (run.marker(), other.marker());
        assert_eq!(find(format!("A=1\0{own}=1\0")), Some(7));
        assert_eq!(find(format!("{others}=1\0{own}=1\0")), Some(7));
        for no_marker in [format!("{own}0=1"), format!("{}=1", &own[..own.len() - 1]), format!("A={own}=1")] {
            assert_eq!(find(format!("{no_marker}\0")), None, "{no_marker}");
        }
        assert_eq!(find_marker(format!("{own}=1\0").as_bytes(), elsewhere, &query), None);
    }
}
