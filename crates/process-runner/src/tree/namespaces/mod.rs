//! Namespaces that are prepared once and entered by every program with the same confinement (namespaces(7)).
//!
//! To make them takes milliseconds, and to enter them microseconds. Programs of one confinement share them, and with
//! them `/tmp`, `/dev/shm` and the sight of each other's processes.

mod init;
mod masked;
mod mounts;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, fstat, open, openat, stat};
use rustix::io::{Errno, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getegid, geteuid, pidfd_send_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, ThreadNameSpaceType, move_into_thread_name_spaces, set_capabilities,
};

use self::mounts::MountPlan;
use super::NamespaceHandle;
use super::adoption::{NamespaceInit, StartTicket};
use super::child::{ChildProcess, become_init, enable_loopback, in_child, signal_namespace};
use super::resource_control::{NamespaceLimit, PID_MAX_FILE};
use super::sys::ChildFolder;
use crate::confine::{AccessGrant, Confinement, SystemCallPermission};
use crate::network_namespace::NetworkNamespace;

/// A set of namespaces, which exists until this value is dropped. All processes in it are ended then.
pub(super) struct Namespaces {
    /// The first process of the PID namespace.
    init: ChildProcess,
    _known: NamespaceInit,
    handle: OwnedFd,
    /// The init ends when this is closed, so also when this process dies.
    _lifeline: OwnedFd,
    kinds: ThreadNameSpaceType,
    /// True once a start has found that the first process is ending.
    has_ended: AtomicBool,
}

impl Namespaces {
    /// Makes the namespaces of `confinement`, which are entered after `network` if that has a user namespace.
    /// At most about `processes` processes and threads are in the PID namespace, where that is given.
    fn new(
        confinement: &Confinement,
        network_namespace: Option<&NamespaceHandle>,
        processes: Option<u32>,
        memory_bytes: u64,
    ) -> io::Result<Self> {
        // Without privileges, all of it is done in a user namespace, in which the user has them.
        let user = (!geteuid().is_root()).then(|| (geteuid().as_raw(), getegid().as_raw()));
        let network = !confinement.allows_network();
        let plan = MountPlan::new(confinement, may_write_proc(confinement), memory_bytes);
        let program = init::program()?;
        let (input, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        let mut kinds = ThreadNameSpaceType::MOUNT
            | ThreadNameSpaceType::PROCESS_ID
            | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
            | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
        if network {
            flags |= libc::CLONE_NEWNET;
            kinds |= ThreadNameSpaceType::NETWORK;
        }
        if user.is_some() {
            flags |= libc::CLONE_NEWUSER;
            kinds |= ThreadNameSpaceType::USER;
        }
        let prepare = || -> io::Result<()> {
            if let Some((user, group)) = user {
                map_user(user, group)?;
            }
            if network {
                let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
                enable_loopback(socket.as_fd())?;
            }
            processes.map_or(Ok(()), limit_processes)?;
            plan.enter()?;
            let none = CapabilitySet::empty();
            Ok(set_capabilities(
                None,
                CapabilitySets { effective: none, permitted: none, inheritable: none },
            )?)
        };
        let work = || match prepare() {
            Ok(()) => become_init(&program, &input),
            Err(error) => error,
        };
        let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
        let ticket = StartTicket::new();
        let (mut init, failure) = match network_namespace {
            None => in_child(flags, work)?,
            Some(outer) => in_child_of(outer, flags, work)?,
        };
        let Some(handle) = init.handle.take() else {
            return Err(io::Error::other("no handle of the new process"));
        };
        if let Some(failure) = failure {
            init.reap();
            return Err(failure);
        }
        let known = NamespaceInit::new(init.pid);
        drop(ticket);
        let namespaces = Self {
            init,
            _known: known,
            handle,
            _lifeline: lifeline,
            kinds,
            has_ended: AtomicBool::new(false),
        };
        match namespaces.is_alive() {
            true => Ok(namespaces),
            false => Err(io::Error::other("the first process of the namespace ended")),
        }
    }

    /// Moves the calling process, which has no threads, into the namespaces. Its working directory becomes their root.
    /// Only what it starts from now on is in the PID namespace.
    pub(super) fn enter(&self) -> io::Result<()> {
        Ok(move_into_thread_name_spaces(self.handle.as_fd(), self.kinds)?)
    }

    /// Returns the first process of the PID namespace, which adopts the orphans there.
    pub(super) fn init_pid(&self) -> Option<Pid> {
        Pid::from_raw(self.init.pid)
    }

    /// Sends `signal` to every process in the PID namespace but the first.
    fn signal_all(&self, signal: Signal) -> io::Result<()> {
        let namespace = stat(format!("/proc/{}/ns/pid", self.init.pid))?.st_ino;
        let kinds = self.kinds & (ThreadNameSpaceType::PROCESS_ID | ThreadNameSpaceType::USER);
        let failed = || io::Error::other("the process did not return");
        let work = || {
            move_into_thread_name_spaces(self.handle.as_fd(), kinds)?;
            // Only a child is in the PID namespace.
            let (child, sent) = in_child(libc::SIGCHLD, || signal_namespace(signal, namespace))?;
            child.reap();
            sent.ok_or_else(failed)?
        };
        let _ticket = StartTicket::new();
        let (child, sent) = in_child(libc::SIGCHLD, work)?;
        child.reap();
        sent.ok_or_else(failed)?
    }

    /// Looks again whether the first process is ending, after a start in the namespaces has failed.
    ///
    /// A process gives up its namespaces a moment before its handle tells the end. A start in between is refused, and another
    /// set of namespaces has to be made for it.
    #[allow(clippy::disallowed_methods, reason = "reads what the kernel says of processes")]
    pub(super) fn confirm_end(&self) -> bool {
        // Not of the PID namespace, which a process shows until its parent has its status.
        let has_ended =
            !self.is_alive() || std::fs::read_link(format!("/proc/{}/ns/mnt", self.init.pid)).is_err();
        self.has_ended.store(has_ended, Ordering::Relaxed);
        has_ended
    }

    fn is_alive(&self) -> bool {
        if self.has_ended.load(Ordering::Relaxed) {
            return false;
        }
        // A handle is readable when its process has ended.
        let mut ended = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// Returns true if a process beside the first one is in the PID namespace.
    #[allow(clippy::disallowed_methods, reason = "reads what the kernel says of processes")]
    fn is_occupied(&self) -> bool {
        let namespace = |process: &Path| std::fs::read_link(process.join("ns/pid")).ok();
        let own = PathBuf::from(format!("/proc/{}", self.init.pid));
        let Some(inside) = namespace(&own) else { return false };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .any(|process| process != own && namespace(&process).as_ref() == Some(&inside))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // It fails if the process has ended, which is as well.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
        self.init.reap();
    }
}

/// The process numbers that a PID namespace does not give out again (`RESERVED_PIDS` of the kernel).
const RESERVED_PIDS: u32 = 300;

/// Limits the processes and threads in the PID namespace of the calling process, the only one there.
// Called only where a namespace has a file of its own; see `has_namespace_pid_max`.
fn limit_processes(count: u32) -> io::Result<()> {
    let file = open(PID_MAX_FILE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // Numbers are given out in turn, and after the last one from `RESERVED_PIDS` on.
    let text = RESERVED_PIDS.saturating_add(count.max(1)).to_string();
    match write(&file, text.as_bytes())? {
        written if written == text.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Calls `work` as [`in_child`] does, in a process that is made inside `outer`: its user namespace is then one that can
/// be entered from there.
fn in_child_of(
    outer: &NamespaceHandle,
    flags: libc::c_int,
    work: impl FnOnce() -> io::Error,
) -> io::Result<(ChildProcess, Option<io::Error>)> {
    let make = || {
        outer.enter()?;
        // A child of this process and not of the one that makes it, which ends.
        in_child(flags | libc::CLONE_PARENT, work)
    };
    // The handle of the new process is opened among the descriptors of this one.
    let (maker, made) = in_child(libc::CLONE_FILES | libc::SIGCHLD, make)?;
    maker.reap();
    made.ok_or_else(|| io::Error::other("the process that makes the namespaces died"))?
}

/// Maps the user and the group to themselves in the calling process's new user namespace (`user_namespaces(7)`).
pub(super) fn map_user(user: u32, group: u32) -> io::Result<()> {
    let write_file = |path: &str, text: &str| -> io::Result<()> {
        let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        match write(&file, text.as_bytes())? {
            written if written == text.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    };
    write_file("/proc/self/setgroups", "deny")?;
    write_file("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write_file("/proc/self/gid_map", &format!("{group} {group} 1"))
}

/// Returns true if programs may write `/proc`, where a sandbox maps the users of its own namespaces.
// Never for root, who could change the settings of the kernel there.
pub(super) fn may_write_proc(confinement: &Confinement) -> bool {
    confinement.permissions().contains(&SystemCallPermission::UserNamespaces) && !geteuid().is_root()
}

/// Checks that this system lets this process make namespaces and enter them.
pub(super) fn try_out() -> io::Result<()> {
    let confinement = Confinement::new().network(true);
    let namespaces = Namespaces::new(&confinement, None, None, mounts::memory_budget() / 2)?;
    let _ticket = StartTicket::new();
    let (child, entered) = in_child(libc::SIGCHLD, || namespaces.enter())?;
    child.reap();
    entered.unwrap_or_else(|| Err(io::Error::other("the process did not return")))
}

/// The path of a folder, and the folder that must be there.
pub(super) struct FolderInside {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl FolderInside {
    /// Describes the folder of a start.
    pub(super) fn of(folder: ChildFolder<'_>) -> io::Result<Self> {
        match folder {
            ChildFolder::Handle(handle) => Self::of_handle(handle),
            ChildFolder::Path(path) => Self::of_path(Path::new(OsStr::from_bytes(path.to_bytes()))),
        }
    }

    /// Describes an open folder. A handle must not be taken along: by `..` it would lead to all that lies above it
    /// outside.
    fn of_handle(handle: BorrowedFd<'_>) -> io::Result<Self> {
        let status = fstat(handle)?;
        Ok(Self { path: mounts::path_of(handle)?, identity: Some((status.st_dev, status.st_ino)) })
    }

    /// Describes the folder that `path` leads to now.
    fn of_path(path: &Path) -> io::Result<Self> {
        let folder = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: mounts::path_of(folder.as_fd())?, identity: None })
    }

    /// Opens it in the namespaces of the calling process.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, &self.path, flags, Mode::empty())?;
        let found = fstat(&folder)?;
        // A folder above a granted one is a part of the new root, or of the new `/tmp`.
        let is_made_by_us =
            || ["/", "/tmp"].iter().any(|own| stat(*own).is_ok_and(|own| own.st_dev == found.st_dev));
        match self.identity.is_none_or(|identity| identity == (found.st_dev, found.st_ino)) || is_made_by_us()
        {
            true => Ok(folder),
            false => Err(Errno::NOENT.into()),
        }
    }
}

/// The most sets that are kept. The oldest that are not in use make room.
const MAX_KEPT: usize = 32;

/// The caller who alone uses a set of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamespaceOwner {
    /// The name, if the callers are told apart.
    pub(super) name: Option<Arc<str>>,
    /// The memory that the programs of the caller may use, if that is limited.
    pub(super) memory_bytes: Option<u64>,
}

impl NamespaceOwner {
    /// Returns the most bytes that all file systems in memory of the caller may hold.
    fn budget(&self) -> u64 {
        let budget = mounts::memory_budget();
        self.memory_bytes.map_or(budget, |bytes| bytes.min(budget))
    }
}

/// A set of namespaces and the confinement that it was made for.
struct KeptNamespaces {
    grants: Vec<AccessGrant>,
    /// The files and folders that were granted. Another one under the same name needs another set.
    identities: Vec<Option<(u64, u64)>>,
    network: bool,
    writable_proc: bool,
    private_temp: bool,
    /// The most processes, if that is limited here.
    limit: Option<NamespaceLimit>,
    /// The network namespace with a user namespace in which these were made.
    outer: Option<NamespaceHandle>,
    owner: NamespaceOwner,
    /// The most bytes in the file systems in memory.
    memory_bytes: u64,
    made: Arc<Mutex<Option<Arc<Namespaces>>>>,
}

static KEPT: Mutex<Vec<KeptNamespaces>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<KeptNamespaces>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the namespaces of `confinement`, which are made if there are none. Programs in `network` get a set of their own
/// where only a process in its user namespace can enter it.
pub(super) fn prepared(
    confinement: &Confinement,
    network_namespace: Option<&NetworkNamespace>,
    limit: Option<NamespaceLimit>,
    owner: &NamespaceOwner,
) -> io::Result<Arc<Namespaces>> {
    let outer = network_namespace.map(NetworkNamespace::handle).filter(|handle| handle.needs_process());
    let identity = |grant: &AccessGrant| stat(&grant.path).ok().map(|status| (status.st_dev, status.st_ino));
    // Before the lock: a file system that hangs must not stop the starts of others.
    let identities: Vec<_> = confinement.grants().iter().map(identity).collect();
    let (network, writable_proc) = (confinement.allows_network(), may_write_proc(confinement));
    let private_temp = confinement.has_private_temp();
    // Dropped outside the lock, because the end of a set takes a while.
    let mut removed = Vec::new();
    let (made, memory_bytes) = {
        let mut kept = kept();
        let found = kept.iter().position(|kept| {
            kept.network == network
                && kept.writable_proc == writable_proc
                && kept.private_temp == private_temp
                && kept.limit == limit
                && kept.owner == *owner
                && match (&kept.outer, outer) {
                    (None, None) => true,
                    (Some(one), Some(other)) => one.is_same(other),
                    _ => false,
                }
                && kept.identities == identities
                && kept.grants == confinement.grants()
        });
        // The last one is the one that was used last.
        let entry = match found {
            Some(index) => kept.remove(index),
            None => KeptNamespaces {
                grants: confinement.grants().to_vec(),
                identities,
                network,
                writable_proc,
                private_temp,
                limit: limit.clone(),
                outer: outer.cloned(),
                memory_bytes: memory_for(owner, &mut kept, &mut removed),
                owner: owner.clone(),
                made: Arc::default(),
            },
        };
        let made = (Arc::clone(&entry.made), entry.memory_bytes);
        kept.push(entry);
        made
    };
    drop(removed);
    let namespaces = {
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(namespaces) if namespaces.is_alive() => Arc::clone(namespaces),
            _ => {
                let processes = limit.map(|limit| limit.processes);
                let namespaces = Arc::new(Namespaces::new(confinement, outer, processes, memory_bytes)?);
                *made = Some(Arc::clone(&namespaces));
                namespaces
            }
        }
    };
    drop(made);
    remove_unused();
    Ok(namespaces)
}

/// The smallest part of a caller's memory that a set of namespaces gets while other sets of the caller are not in use.
const SMALLEST_SHARE: u64 = 8;

/// Returns the memory for the file systems of another set of `owner`: half of what its other sets leave, so that all sets
/// together never get more than the whole. If that is little, sets that are not in use are put into `removed`.
fn memory_for(
    owner: &NamespaceOwner,
    kept: &mut Vec<KeptNamespaces>,
    removed: &mut Vec<KeptNamespaces>,
) -> u64 {
    let budget = owner.budget();
    loop {
        let of_owner = |kept: &&KeptNamespaces| kept.owner.name == owner.name;
        let used: u64 = kept.iter().filter(of_owner).map(|kept| kept.memory_bytes).sum();
        let share = budget.saturating_sub(used) / 2;
        let unused = || kept.iter().position(|kept| kept.owner.name == owner.name && kept.is_unused());
        match unused().filter(|_| share < budget / SMALLEST_SHARE) {
            Some(index) => removed.push(kept.remove(index)),
            None => return share,
        }
    }
}

/// Drops the sets of namespaces of an owner whose programs have ended, with the files in their file systems in memory.
pub(crate) fn release_owner(name: &str) {
    let is_its = |kept: &mut KeptNamespaces| kept.owner.name.as_deref() == Some(name);
    let removed: Vec<_> = {
        let mut kept = kept();
        kept.extract_if(.., is_its).collect()
    };
    drop(removed);
}

/// A PID namespace in which nothing runs and nothing is forked, until this is dropped.
pub(crate) struct FrozenNamespace(Arc<Namespaces>);

impl Drop for FrozenNamespace {
    fn drop(&mut self) {
        // It fails if nothing is left there.
        let _ = self.0.signal_all(Signal::CONT);
    }
}

/// Stops every process in the PID namespace whose first process is `init`, so that a search finds all of them. `None` if that
/// cannot be done now.
pub(crate) fn freeze_namespace(init: Pid) -> Option<FrozenNamespace> {
    let made: Vec<_> = kept().iter().map(|kept| Arc::clone(&kept.made)).collect();
    let namespaces = made.iter().find_map(|made| {
        // One that is being made takes a while, and is none that is looked for.
        let made = made.try_lock().ok()?;
        made.as_ref().filter(|namespaces| namespaces.init_pid() == Some(init)).map(Arc::clone)
    })?;
    namespaces.signal_all(Signal::STOP).ok()?;
    Some(FrozenNamespace(namespaces))
}

/// Drops the oldest sets that nothing uses, if there are too many.
fn remove_unused() {
    let mut removed = Vec::new();
    let mut kept = kept();
    while kept.len() > MAX_KEPT {
        let Some(index) = kept.iter().position(KeptNamespaces::is_unused) else { break };
        removed.push(kept.remove(index));
    }
    drop(kept);
    // Outside the lock, because the end of a set takes a while.
    drop(removed);
}

/// Drops the sets that were made inside `outer` and that nothing uses.
pub(super) fn remove_unused_in(outer: &NamespaceHandle) {
    let is_inside = |kept: &KeptNamespaces| kept.outer.as_ref().is_some_and(|own| own.is_same(outer));
    let mut kept = kept();
    let removed: Vec<_> = kept.extract_if(.., |kept| is_inside(kept) && kept.is_unused()).collect();
    drop(kept);
    drop(removed);
}

impl KeptNamespaces {
    /// Returns true if no start uses the namespaces, and no process is in them.
    fn is_unused(&self) -> bool {
        if Arc::strong_count(&self.made) > 1 {
            return false;
        }
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.as_ref().is_none_or(|namespaces| Arc::strong_count(namespaces) == 1 && !namespaces.is_occupied())
    }
}
