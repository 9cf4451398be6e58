//! Makes and enters network namespaces.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::adoption::StartTicket;
use super::child::{enable_loopback, in_child};
use super::namespaces::{map_user, remove_unused_in};
use super::sys;
use crate::network_namespace_error::NetworkNamespaceError;

/// An open namespace. Clones are the same one.
#[derive(Clone)]
pub(crate) struct NamespaceHandle(Arc<OpenNamespace>);

struct OpenNamespace {
    /// The user namespace that owns it, if this process has no privileges of its own.
    user: Option<OwnedFd>,
    network: OwnedFd,
}

impl NamespaceHandle {
    pub(crate) fn create() -> Result<Self, NetworkNamespaceError> {
        let is_refused =
            |error: &io::Error| matches!(Errno::from_io_error(error), Some(Errno::PERM | Errno::ACCESS));
        let created = match create_with_privileges() {
            Err(error) if is_refused(&error) && !geteuid().is_root() => create_in_user_namespace(),
            created => created,
        };
        match created {
            Ok(opened) => Ok(Self(Arc::new(opened))),
            Err(error) if is_refused(&error) => Err(NetworkNamespaceError::NotPermitted),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let inside = || self.enter().map(|()| work());
        if !self.needs_process() {
            return on_thread(inside)?;
        }
        // With the descriptors of this process, so that those that `work` opens are its own.
        let _ticket = StartTicket::new();
        let (child, result) = in_child(libc::CLONE_FILES | libc::SIGCHLD, inside)?;
        child.reap();
        result.ok_or_else(|| io::Error::other("the process in the namespace died"))?
    }

    /// Returns true if this is the only handle of the namespace, and no process is in it.
    pub(crate) fn is_unused(&self) -> bool {
        remove_unused_in(self);
        Arc::strong_count(&self.0) == 1 && !self.is_occupied()
    }

    #[allow(clippy::disallowed_methods, reason = "reads what the kernel says of processes")]
    fn is_occupied(&self) -> bool {
        // What cannot be found out counts as a process.
        let Ok(inside) = fstat(&self.0.network) else { return true };
        let link = format!("net:[{}]", inside.st_ino);
        let Ok(processes) = std::fs::read_dir("/proc") else { return true };
        processes.flatten().any(|process| {
            std::fs::read_link(process.path().join("ns/net"))
                .is_ok_and(|own| own.as_os_str() == link.as_str())
        })
    }

    /// Returns true if only a process without threads can enter the namespace, and so not a thread of this process.
    pub(super) fn needs_process(&self) -> bool {
        self.0.user.is_some()
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Moves the calling thread, and what it starts, into the namespace.
    pub(super) fn enter(&self) -> io::Result<()> {
        let OpenNamespace { user, network } = &*self.0;
        if let Some(user) = user {
            move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        }
        Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

fn create_with_privileges() -> io::Result<OpenNamespace> {
    let network = on_thread(|| {
        sys::unshare_network()?;
        bring_loopback_up()?;
        open_own("/proc/thread-self/ns/net")
    });
    Ok(OpenNamespace { user: None, network: network?? })
}

/// Makes the namespace in a user namespace, in which this user has the privileges.
fn create_in_user_namespace() -> io::Result<OpenNamespace> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let work = || {
        map_user(user, group)?;
        bring_loopback_up()?;
        Ok(OpenNamespace {
            user: Some(open_own("/proc/self/ns/user")?),
            network: open_own("/proc/self/ns/net")?,
        })
    };
    // The descriptors that the process opens are those of this one, and stay open when it ends.
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_FILES | libc::SIGCHLD;
    let _ticket = StartTicket::new();
    let (child, created) = in_child(flags, work)?;
    child.reap();
    created.ok_or_else(|| io::Error::other("the process that makes the namespace died"))?
}

fn bring_loopback_up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    enable_loopback(socket.as_fd())
}

fn open_own(path: &str) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Calls `work` on a thread that ends with it. Its namespace is its own, and does not change that of others.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("network-namespace".into());
        thread.spawn_scoped(scope, work)?.join().map_err(|_| io::Error::other("the thread panicked"))
    })
}
