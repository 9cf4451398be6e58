//! Notifications to the service manager, `sd_notify(3)`, for a unit of `Type=notify`.
//!
//! The crate `sd-notify` connects to paths alone, not to the abstract sockets that some managers have, and waits for one that
//! reads nothing without an end.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager that has started the server, if it asks for notifications.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceManager(Option<SocketAddr>);

/// The time that a manager has to read a notification.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

impl ServiceManager {
    /// Returns the manager whose socket is in `$NOTIFY_SOCKET`.
    #[allow(clippy::disallowed_methods, reason = "the service manager speaks through the environment")]
    pub(super) fn from_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        match parse_address(name.as_bytes()) {
            Ok(address) => Self(Some(address)),
            Err(error) => {
                tracing::warn!("NOTIFY_SOCKET {} cannot be used: {error}", name.display());
                Self::default()
            }
        }
    }

    /// Notifies that the server serves, for the first time or again after [`Self::reloading`].
    pub(super) fn ready(&self) {
        self.notify("READY=1");
    }

    /// Notifies that the server reads its files again. The time tells the manager to which of its requests this belongs.
    pub(super) fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
        self.notify(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Notifies that the server shuts down.
    pub(super) fn stopping(&self) {
        self.notify("STOPPING=1");
    }

    fn notify(&self, state: &str) {
        let Some(address) = &self.0 else { return };
        let sent = UnixDatagram::unbound().and_then(|socket| {
            socket.set_write_timeout(Some(SEND_TIMEOUT))?;
            socket.send_to_addr(state.as_bytes(), address)
        });
        if let Err(error) = sent {
            tracing::warn!("the service manager was not told {state:?}: {error}");
        }
    }
}

/// Parses the address of a socket: a path, or on Linux `@` and an abstract name.
fn parse_address(name: &[u8]) -> io::Result<SocketAddr> {
    match name {
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)),
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected an absolute path, or `@` and an abstract name",
        )),
    }
}
