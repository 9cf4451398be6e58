//! The memory and CPU time of the processes of runs (`proc_pid_stat(5)`).

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::{Dir, Mode, OFlags, open};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::Pid;

use super::ProcessLeader;
use super::linux::read;

/// The resources that the processes of one run use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessTimes {
    /// The processes that live.
    pub(crate) processes: usize,
    pub(crate) memory_bytes: u64,
    /// With the time of the children that they have waited for.
    pub(crate) cpu: Duration,
}

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MeasuredProcess {
    is_alive: bool,
    parent: Option<Pid>,
    session: Option<Pid>,
    ticks: u64,
    pages: u64,
}

/// The longest chain of parents that is followed. `/proc` changes while it is read, so that a chain may lead in a circle.
const MAX_ANCESTORS: usize = 1024;

impl ProcessTimes {
    /// Measures the processes in the session of each leader, and its descendants. A process that has left both is not
    /// counted.
    pub(crate) fn of_trees(leaders: &[&ProcessLeader]) -> Vec<Self> {
        let mut times = vec![Self::default(); leaders.len()];
        let mut roots = HashMap::new();
        for (index, leader) in leaders.iter().enumerate() {
            let pids = leader.session().into_iter().chain(leader.namespace_init());
            roots.extend(pids.map(|pid| (pid, index)));
        }
        let processes = processes();
        for (pid, process) in &processes {
            let Some(index) = tree_of(*pid, process, &processes, &roots) else { continue };
            let Some(tree) = times.get_mut(index) else { continue };
            tree.processes += usize::from(process.is_alive);
            tree.memory_bytes += process.pages * page_size() as u64;
            tree.cpu += Duration::from_micros(process.ticks * 1_000_000 / clock_ticks_per_second().max(1));
        }
        times
    }
}

/// Returns the tree in `roots` that the process belongs to: by its session, or by the nearest of its ancestors that does.
fn tree_of(
    pid: Pid,
    process: &MeasuredProcess,
    processes: &HashMap<Pid, MeasuredProcess>,
    roots: &HashMap<Pid, usize>,
) -> Option<usize> {
    let (mut pid, mut process) = (pid, process);
    for _ in 0..MAX_ANCESTORS {
        let by_session = process.session.and_then(|session| roots.get(&session));
        if let Some(index) = roots.get(&pid).or(by_session) {
            return Some(*index);
        }
        pid = process.parent?;
        process = processes.get(&pid)?;
    }
    None
}

/// Reads all processes.
fn processes() -> HashMap<Pid, MeasuredProcess> {
    let mut found = HashMap::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = open(c"/proc", flags, Mode::empty()) else { return found };
    let Ok(entries) = Dir::read_from(&proc) else { return found };
    let mut buffer = Vec::with_capacity(1024);
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else { continue };
        if let Some(process) = measure(proc.as_fd(), pid, &mut buffer) {
            found.insert(pid, process);
        }
    }
    found
}

fn measure(proc: BorrowedFd<'_>, pid: Pid, buffer: &mut Vec<u8>) -> Option<MeasuredProcess> {
    read(proc, &format!("{}/stat", pid.as_raw_nonzero()), buffer).ok()?;
    parse(buffer)
}

/// Parses `/proc/PID/stat`. The name of the program, in parentheses, may hold anything.
fn parse(stat: &[u8]) -> Option<MeasuredProcess> {
    let close = memchr::memrchr(b')', stat)?;
    let fields: Vec<&str> =
        std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_ascii_whitespace().collect();
    // Fields are numbered as in the manual page, where the first after the name is 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |at: usize| field(at)?.parse::<u64>().ok();
    let id = |at: usize| field(at)?.parse().ok().filter(|id| *id > 0).and_then(Pid::from_raw);
    Some(MeasuredProcess {
        // The other threads may run on after the end of the first, which makes a zombie of the process.
        is_alive: !matches!(field(3)?, "Z" | "X") || number(20)? > 1,
        parent: id(4),
        session: id(6),
        // Its own time in user mode and in the kernel, and that of the children it has waited for.
        ticks: [14, 15, 16, 17].into_iter().filter_map(number).sum(),
        pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_behind_any_name_of_a_program() {
        let stat = b"42 (a) b (c) S 7 41 40 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 100 4096 5 18446744073709551615 1 1";
        let process = parse(stat).unwrap();
        assert_eq!((process.parent, process.session), (Pid::from_raw(7), Pid::from_raw(40)));
        assert_eq!((process.is_alive, process.ticks, process.pages), (true, 100, 5));
        assert_eq!(parse(b"42 (a) S 7"), None);
    }

    #[test]
    fn a_process_is_counted_to_its_session_or_to_its_nearest_ancestor_and_a_circle_to_none() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let process = |parent, session| MeasuredProcess {
            is_alive: true,
            parent: Pid::from_raw(parent),
            session: Pid::from_raw(session),
            ticks: 0,
            pages: 0,
        };
        let processes = HashMap::from([
            (pid(10), process(1, 10)),
            (pid(11), process(1, 10)),
            (pid(12), process(10, 12)),
            (pid(13), process(12, 12)),
            (pid(20), process(21, 9)),
            (pid(21), process(20, 9)),
            (pid(22), process(1, 9)),
        ]);
        let roots = HashMap::from([(pid(10), 0)]);
        let found = |number| tree_of(pid(number), &processes[&pid(number)], &processes, &roots);
        assert_eq!([10, 11, 12, 13].map(found), [Some(0); 4]);
        assert_eq!([20, 21, 22].map(found), [None; 3]);
    }
}
