//! [`Namespaces`]: a set of namespaces, from the process that makes it to its end.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, fstat, open, openat, stat};
use rustix::io::{Errno, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getegid, geteuid, pidfd_send_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, ThreadNameSpaceType, move_into_thread_name_spaces, set_capabilities,
};

use super::mounts::MountPlan;
use super::{init, mounts};
use crate::confine::{Confinement, SystemCallPermission};
use crate::tree::NamespaceHandle;
use crate::tree::adoption::{NamespaceInit, StartTicket};
use crate::tree::child::{ChildProcess, become_init, enable_loopback, in_child, signal_namespace};
use crate::tree::resource_control::PID_MAX_FILE;
use crate::tree::sys::ChildFolder;

/// A set of namespaces, which exists until this value is dropped. All processes in it are ended then.
pub(in crate::tree) struct Namespaces {
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
    pub(super) fn new(
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
    pub(in crate::tree) fn enter(&self) -> io::Result<()> {
        Ok(move_into_thread_name_spaces(self.handle.as_fd(), self.kinds)?)
    }

    /// Returns the first process of the PID namespace, which adopts the orphans there.
    pub(in crate::tree) fn init_pid(&self) -> Option<Pid> {
        Pid::from_raw(self.init.pid)
    }

    /// Sends `signal` to every process in the PID namespace but the first.
    pub(super) fn signal_all(&self, signal: Signal) -> io::Result<()> {
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
    pub(in crate::tree) fn confirm_end(&self) -> bool {
        // Not of the PID namespace, which a process shows until its parent has its status.
        let has_ended =
            !self.is_alive() || std::fs::read_link(format!("/proc/{}/ns/mnt", self.init.pid)).is_err();
        self.has_ended.store(has_ended, Ordering::Relaxed);
        has_ended
    }

    pub(super) fn is_alive(&self) -> bool {
        if self.has_ended.load(Ordering::Relaxed) {
            return false;
        }
        // A handle is readable when its process has ended.
        let mut ended = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// Returns true if a process beside the first one is in the PID namespace.
    #[allow(clippy::disallowed_methods, reason = "reads what the kernel says of processes")]
    pub(super) fn is_occupied(&self) -> bool {
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
pub(in crate::tree) fn map_user(user: u32, group: u32) -> io::Result<()> {
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
pub(in crate::tree) fn may_write_proc(confinement: &Confinement) -> bool {
    confinement.permissions().contains(&SystemCallPermission::UserNamespaces) && !geteuid().is_root()
}

/// Checks that this system lets this process make namespaces and enter them.
pub(in crate::tree) fn try_out() -> io::Result<()> {
    let confinement = Confinement::new().network(true);
    let namespaces = Namespaces::new(&confinement, None, None, mounts::memory_budget() / 2)?;
    let _ticket = StartTicket::new();
    let (child, entered) = in_child(libc::SIGCHLD, || namespaces.enter())?;
    child.reap();
    entered.unwrap_or_else(|| Err(io::Error::other("the process did not return")))
}

/// The path of a folder, and the folder that must be there.
pub(in crate::tree) struct FolderInside {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl FolderInside {
    /// Describes the folder of a start.
    pub(in crate::tree) fn of(folder: ChildFolder<'_>) -> io::Result<Self> {
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
    pub(in crate::tree) fn open(&self) -> io::Result<OwnedFd> {
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
