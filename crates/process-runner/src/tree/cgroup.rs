//! The cgroups of the owners of runs (cgroups(7)), below a cgroup v2 that is delegated to this process.
//!
//! A cgroup that has processes of its own cannot be divided. So this process moves itself, with the processes that it has
//! started, into a group beside those of the owners, when the first run has limits.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::fs::{Access, AtFlags, CWD, Dir, Mode, OFlags, accessat, mkdirat, openat, unlinkat};
use rustix::io::{Errno, write};
use rustix::process::{Pid, getpid};

use super::linux::parent_of;
use crate::resource_limits::{CgroupUnavailable, ExceededLimit, ResourceLimits};

/// The beginnings of the names of the groups that are made: of this process, and of the programs of an owner.
const SERVER_PREFIX: &str = "server-";
const PROGRAMS_PREFIX: &str = "programs-";
/// How often processes are moved that are started meanwhile.
const MOVE_ROUNDS: usize = 16;

/// The cgroup that this process is in.
pub(super) struct OwnCgroup {
    path: PathBuf,
    folder: OwnedFd,
    has_cpu: bool,
    /// True for the root of all cgroups, which may have processes and be divided.
    is_root: bool,
}

/// The cgroups of the owners.
pub(super) struct Cgroups {
    folder: OwnedFd,
    has_cpu: bool,
    next: AtomicU64,
    groups: Mutex<HashMap<CgroupKey, Arc<Cgroup>>>,
}

/// The owner of a cgroup, if it has one, and the limits that hold in it.
type CgroupKey = (Option<Arc<str>>, ResourceLimits);

/// The cgroup of one owner.
#[derive(Debug)]
pub(crate) struct Cgroup {
    name: String,
    folder: OwnedFd,
    limits: ResourceLimits,
}

impl OwnCgroup {
    /// Finds the cgroup of this process, and checks that it can be divided. Changes nothing.
    pub(super) fn find() -> Result<Self, CgroupUnavailable> {
        let path = own_path().ok_or(CgroupUnavailable::NotMounted)?;
        let shown = || path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty()).map_err(|_| CgroupUnavailable::NotMounted)?;
        let controllers = read_file(folder.as_fd(), "cgroup.controllers").unwrap_or_default();
        let controllers: BTreeSet<&str> = controllers.split_ascii_whitespace().collect();
        let missing: Vec<_> =
            ["memory", "pids"].into_iter().filter(|needed| !controllers.contains(needed)).collect();
        if !missing.is_empty() {
            return Err(CgroupUnavailable::NoControllers { path: shown(), missing: missing.join(", ") });
        }
        // Access is tried and not derived from owner and mode: a container may mount the hierarchy read-only.
        for file in [".", "cgroup.procs", "cgroup.subtree_control"] {
            if accessat(&folder, file, Access::WRITE_OK, AtFlags::empty()).is_err() {
                return Err(CgroupUnavailable::NotDelegated { path: shown() });
            }
        }
        // Only the root of the hierarchy has no file `cgroup.type` (cgroups(7)).
        let is_root = accessat(&folder, "cgroup.type", Access::EXISTS, AtFlags::empty()).is_err();
        let own = Self { has_cpu: controllers.contains("cpu"), is_root, folder, path };
        // Before anything is changed: foreign programs in this cgroup would have to be moved as well.
        if !own.is_root && !processes(own.folder.as_fd()).unwrap_or_default().into_iter().all(is_ours) {
            return Err(CgroupUnavailable::NotAlone { path: own.path.display().to_string() });
        }
        Ok(own)
    }

    pub(super) fn has_cpu(&self) -> bool {
        self.has_cpu
    }

    /// Moves this process into a group of its own, and divides the cgroup.
    fn divide(self) -> Result<Cgroups, CgroupUnavailable> {
        let name = format!("{SERVER_PREFIX}{}", getpid().as_raw_nonzero());
        remove_empty_groups(self.folder.as_fd());
        let divided = || -> io::Result<()> {
            if !self.is_root {
                let own = make_group(self.folder.as_fd(), &name)?;
                // What is started meanwhile is in the old group.
                for _ in 0..MOVE_ROUNDS {
                    let left = processes(self.folder.as_fd())?;
                    if left.is_empty() {
                        break;
                    }
                    move_processes(left, own.as_fd())?;
                }
            }
            write_file(self.folder.as_fd(), "cgroup.subtree_control", "+memory +pids")
        };
        if let Err(error) = divided() {
            self.undo(&name);
            return Err(CgroupUnavailable::Refused {
                path: self.path.display().to_string(),
                reason: error.to_string(),
            });
        }
        // On its own: a cgroup without the controller of the processor still limits memory and processes.
        let has_cpu =
            self.has_cpu && write_file(self.folder.as_fd(), "cgroup.subtree_control", "+cpu").is_ok();
        Ok(Cgroups { folder: self.folder, has_cpu, next: AtomicU64::new(1), groups: Mutex::default() })
    }

    /// Moves everything back. What cannot be moved stays where it is, which limits nothing.
    fn undo(&self, name: &str) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(own) = openat(&self.folder, name, flags, Mode::empty()) {
            let _ = processes(own.as_fd()).map(|moved| move_processes(moved, self.folder.as_fd()));
            let _ = unlinkat(&self.folder, name, AtFlags::REMOVEDIR);
        }
    }
}

static GROUPS: OnceLock<Result<Cgroups, CgroupUnavailable>> = OnceLock::new();

impl Cgroups {
    /// Returns the groups of this process. The first call divides its cgroup.
    pub(super) fn get() -> Result<&'static Self, &'static CgroupUnavailable> {
        GROUPS.get_or_init(|| OwnCgroup::find()?.divide()).as_ref()
    }

    /// Returns what [`get`](Self::get) has returned; `None` before its first call.
    pub(super) fn known() -> Option<Result<&'static Self, &'static CgroupUnavailable>> {
        GROUPS.get().map(Result::as_ref)
    }

    pub(super) fn has_cpu(&self) -> bool {
        self.has_cpu
    }

    /// Returns the group of an owner, which is made if there is none.
    pub(super) fn group(&self, owner: Option<Arc<str>>, limits: ResourceLimits) -> io::Result<Arc<Cgroup>> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (owner, limits);
        if let Some(group) = groups.get(&key) {
            return Ok(Arc::clone(group));
        }
        // Owners come and go. A group with processes cannot be removed, and stays.
        groups.retain(|_, group| Arc::strong_count(group) > 1 || group.remove(self.folder.as_fd()).is_err());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PROGRAMS_PREFIX}{}-{number}", getpid().as_raw_nonzero());
        let group = Cgroup { folder: make_group(self.folder.as_fd(), &name)?, name, limits };
        if let Err(error) = group.write_limits(self.has_cpu) {
            let _ = group.remove(self.folder.as_fd());
            return Err(error);
        }
        let group = Arc::new(group);
        groups.insert(key, Arc::clone(&group));
        Ok(group)
    }
}

impl Cgroup {
    fn write_limits(&self, has_cpu: bool) -> io::Result<()> {
        let ResourceLimits { memory_bytes, processes, cpu_weight } = self.limits;
        if let Some(bytes) = memory_bytes {
            write_file(self.folder.as_fd(), "memory.max", &bytes.to_string())?;
            // Swapped memory would be beyond the limit. Without swap there is no such file.
            match write_file(self.folder.as_fd(), "memory.swap.max", "0") {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if let Some(count) = processes {
            write_file(self.folder.as_fd(), "pids.max", &count.to_string())?;
        }
        match cpu_weight.filter(|_| has_cpu) {
            Some(weight) => {
                write_file(self.folder.as_fd(), "cpu.weight", &weight.clamp(1, 10_000).to_string())
            }
            None => Ok(()),
        }
    }

    /// Returns the handle with which a process is started in the group.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Moves the calling process into the group.
    pub(super) fn enter(&self) -> io::Result<()> {
        // 0 stands for the process that writes.
        write_file(self.folder.as_fd(), "cgroup.procs", "0")
    }

    fn remove(&self, parent: BorrowedFd<'_>) -> io::Result<()> {
        Ok(unlinkat(parent, self.name.as_str(), AtFlags::REMOVEDIR)?)
    }

    fn counts(&self) -> EventCounts {
        let count = |file: &str, event: &str| {
            let text = read_file(self.folder.as_fd(), file).unwrap_or_default();
            text.lines().find_map(|line| line.strip_prefix(event)?.trim().parse().ok()).unwrap_or(0)
        };
        EventCounts { killed: count("memory.events", "oom_kill "), refused: count("pids.events", "max ") }
    }
}

/// The times that a limit of a group was met.
#[derive(Clone, Copy, Debug)]
struct EventCounts {
    killed: u64,
    refused: u64,
}

/// Notices that a limit of a group is met from now on.
#[derive(Debug)]
pub(crate) struct LimitWatch {
    group: Arc<Cgroup>,
    before: EventCounts,
}

impl LimitWatch {
    pub(super) fn new(group: Arc<Cgroup>) -> Self {
        Self { before: group.counts(), group }
    }

    /// Returns the limits that were met.
    pub(crate) fn exceeded(&self) -> Vec<ExceededLimit> {
        let (now, limits) = (self.group.counts(), self.group.limits);
        let memory = limits.memory_bytes.filter(|_| now.killed > self.before.killed);
        let processes = limits.processes.filter(|_| now.refused > self.before.refused);
        memory
            .map(|bytes| ExceededLimit::Memory { bytes })
            .into_iter()
            .chain(processes.map(|count| ExceededLimit::Processes { count }))
            .collect()
    }
}

/// Returns the folder of this process's cgroup v2.
fn own_path() -> Option<PathBuf> {
    let cgroups = read_file(CWD, "/proc/self/cgroup").ok()?;
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = read_file(CWD, "/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if !kind.starts_with("cgroup2 ") {
            return None;
        }
        // proc_pid_mountinfo(5): the fourth field is the root of the mount, and the fifth its place.
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let below = Path::new(own).strip_prefix(&root).ok()?;
        Some(if below.as_os_str().is_empty() { place } else { place.join(below) })
    })
}

/// Replaces `\040` and the like, as which mountinfo has blanks, by what they stand for.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped =
            tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Returns the numbers of the processes in a group. A process that cannot be named here has the number 0.
fn processes(group: BorrowedFd<'_>) -> io::Result<Vec<i32>> {
    let text = read_file(group, "cgroup.procs")?;
    Ok(text.split_ascii_whitespace().map(|number| number.parse().unwrap_or(0)).collect())
}

/// Returns true if the process is this one or a descendant, or has ended.
fn is_ours(number: i32) -> bool {
    let Some(mut pid) = Pid::from_raw(number) else { return false };
    let mut is_first = true;
    while pid != getpid() {
        match parent_of(pid) {
            Some(Some(parent)) => pid = parent,
            Some(None) => return false,
            // Only the process itself may have ended; a parent that ends gives its children to another.
            None => return is_first,
        }
        is_first = false;
    }
    true
}

fn move_processes(numbers: Vec<i32>, group: BorrowedFd<'_>) -> io::Result<()> {
    for number in numbers {
        match write_file(group, "cgroup.procs", &number.to_string()) {
            // It has ended.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => {}
            moved => moved?,
        }
    }
    Ok(())
}

/// Removes the groups that an earlier process has left. One with processes cannot be removed.
fn remove_empty_groups(folder: BorrowedFd<'_>) {
    for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy();
        if name.starts_with(SERVER_PREFIX) || name.starts_with(PROGRAMS_PREFIX) {
            let _ = unlinkat(folder, entry.file_name(), AtFlags::REMOVEDIR);
        }
    }
}

fn make_group(parent: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

fn write_file(folder: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
    let file = openat(folder, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    match write(&file, text.as_bytes())? {
        written if written == text.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

fn read_file(folder: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let file = openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(std::fs::File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_blank_is_read_as_it_is() {
        assert_eq!(unescaped(r"/sys/fs/c\040g\134x"), Path::new(r"/sys/fs/c g\x"));
        assert_eq!(unescaped(r"/a\04"), Path::new(r"/a\04"));
    }

    #[test]
    fn this_process_is_its_own_and_the_first_process_is_not() {
        assert!(is_ours(getpid().as_raw_nonzero().get()));
        assert!(!is_ours(1) && !is_ours(0));
    }
}
