//! Makes and enters network namespaces.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::sys;
use crate::network_namespace::NetworkNamespaceError;

/// An open namespace.
#[derive(Clone)]
pub(crate) struct NamespaceHandle(Arc<OwnedFd>);

impl NamespaceHandle {
    pub(crate) fn create() -> Result<Self, NetworkNamespaceError> {
        let created = on_thread(|| {
            sys::unshare_network()?;
            bring_loopback_up()?;
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

/// Brings interface 1 of the current namespace up, which is its loopback, by rtnetlink(7).
fn bring_loopback_up() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const NLMSG_ERROR: u16 = 2;
    const LOOPBACK: i32 = 1;
    const IFF_UP: u32 = 1;
    // The protocol 0, which `None` stands for, is `NETLINK_ROUTE`.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    // `struct nlmsghdr`: length, type, flags, sequence, port; `struct ifinfomsg`: family, padding, device type, index,
    // flags, and which flags change.
    let mut request = Vec::with_capacity(32);
    request.extend(32_u32.to_ne_bytes());
    request.extend(RTM_NEWLINK.to_ne_bytes());
    request.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([0; 4]);
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    sendto(&socket, &request, SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0_u8; 256];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let answer = &answer[..length.min(answer.len())];
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer cannot be read")),
    }
}
