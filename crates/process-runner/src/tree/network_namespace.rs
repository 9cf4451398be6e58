//! Makes and enters network namespaces.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::child::enable_loopback;
use super::sys;
use crate::network_namespace::NetworkNamespaceError;

/// An open namespace.
#[derive(Clone)]
pub(crate) struct NamespaceHandle(Arc<OwnedFd>);

impl NamespaceHandle {
    pub(crate) fn create() -> Result<Self, NetworkNamespaceError> {
        let created = on_thread(|| {
            sys::unshare_network()?;
            let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
            enable_loopback(socket.as_fd())?;
            Ok(openat(CWD, "/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
        });
        match created.and_then(|created| created) {
            Ok(handle) => Ok(Self(Arc::new(handle))),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => {
                Err(NetworkNamespaceError::NotPermitted)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_thread(|| self.enter().map(|()| work()))?
    }

    /// Moves the calling thread, and what it starts, into the namespace.
    pub(super) fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// Calls `work` on a thread that ends with it. Its namespace is its own, and does not change that of others.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("network-namespace".into());
        thread.spawn_scoped(scope, work)?.join().map_err(|_| io::Error::other("the thread panicked"))
    })
}
