//! Tells the service manager how the server is doing: `sd_notify(3)`, for a unit of `Type=notify`.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Who started the server, if it wants to hear.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manager(Option<SocketAddr>);

/// How long a manager that reads nothing is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

impl Manager {
    /// The one that `$NOTIFY_SOCKET` names.
    #[allow(clippy::disallowed_methods, reason = "the service manager speaks through the environment")]
    pub(crate) fn from_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        match address(name.as_bytes()) {
            Ok(address) => Self(Some(address)),
            Err(error) => {
                tracing::warn!("NOTIFY_SOCKET {} cannot be used: {error}", name.display());
                Self::default()
            }
        }
    }

    /// It serves, for the first time or again after [`Self::reloading`].
    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Its files are read again. When is told because a manager may have asked for it at another time as well.
    pub(crate) fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// It ends.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    fn tell(&self, state: &str) {
        let Some(address) = &self.0 else { return };
        let told = UnixDatagram::unbound().and_then(|socket| {
            socket.set_write_timeout(Some(PATIENCE))?;
            socket.send_to_addr(state.as_bytes(), address)
        });
        if let Err(error) = told {
            tracing::warn!("the service manager was not told {state:?}: {error}");
        }
    }
}

/// A path, or on Linux `@` and an abstract name.
fn address(name: &[u8]) -> io::Result<SocketAddr> {
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
