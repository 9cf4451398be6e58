//! Pseudoterminals, for agents that need one (pty(7)).

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// The size of the window.
const COLUMNS: u16 = 120;
const ROWS: u16 = 40;
/// The time that a program has to read what is typed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The user's side of a terminal. When its last clone is dropped the terminal hangs up: its session gets `SIGHUP`.
#[derive(Clone, Debug)]
pub(crate) struct PseudoTerminal(Arc<AsyncFd<OwnedFd>>);

/// The program's side of a terminal.
#[derive(Debug)]
pub(crate) struct TerminalDevice {
    /// The path of the device.
    pub(crate) path: PathBuf,
    /// The open device.
    pub(crate) file: File,
}

/// The error of a line that could not be typed.
#[derive(Debug)]
pub(crate) struct TypeError {
    /// The number of bytes that were taken.
    pub(crate) written: usize,
    /// The cause.
    pub(crate) source: io::Error,
}

#[cfg(target_os = "linux")]
fn open_master() -> rustix::io::Result<OwnedFd> {
    openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
}

/// Not every system can set the flag as it opens: a program that another thread starts between the two calls inherits
/// the descriptor.
#[cfg(not(target_os = "linux"))]
fn open_master() -> rustix::io::Result<OwnedFd> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    Ok(master)
}

/// Opens the device through the terminal itself: in another namespace `path` may mean another device.
#[cfg(target_os = "linux")]
fn open_device(master: &OwnedFd, _path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(master, flags)
}

#[cfg(not(target_os = "linux"))]
fn open_device(_master: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, rustix::fs::Mode::empty())
}

impl PseudoTerminal {
    /// Opens a new terminal of 120 columns and 40 rows, and both its sides.
    pub(crate) fn open() -> io::Result<(Self, TerminalDevice)> {
        let master = open_master()?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(ptsname(&master, Vec::new())?.into_bytes()));
        let device = open_device(&master, &path)?;
        tcsetwinsize(&master, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
        // `AsyncFd` waits for readiness, and a read after that must not block the thread if another was faster.
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        #[allow(
            deprecated,
            reason = "sound for an `OwnedFd`, which is one descriptor for as long as it lives"
        )]
        let master = AsyncFd::new(master)?;
        Ok((Self(Arc::new(master)), TerminalDevice { path, file: File::from(device) }))
    }

    /// Reads what was printed. Returns 0 at the end: no process has the device open any more.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|master| Ok(rustix::io::read(master, &mut *buffer)?));
            match read {
                // On Linux this is the end.
                Ok(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    return Ok(0);
                }
                Ok(read) => return read,
                Err(_would_block) => {}
            }
        }
    }

    /// Types a line, with Enter at its end.
    ///
    /// # Errors
    /// The program does not read, or the terminal is gone.
    pub(crate) async fn type_line(&self, text: &str) -> Result<(), TypeError> {
        // Enter sends a carriage return; the terminal turns it into a line feed for programs that read lines.
        let line = format!("{}\r", text.trim_end_matches('\n'));
        let mut rest = line.as_bytes();
        let deadline = tokio::time::Instant::now() + WRITE_TIMEOUT;
        while !rest.is_empty() {
            let written = line.len() - rest.len();
            let late = |_| TypeError { written, source: io::ErrorKind::TimedOut.into() };
            let ready = tokio::time::timeout_at(deadline, self.0.writable()).await.map_err(late)?;
            let mut ready = ready.map_err(|source| TypeError { written, source })?;
            match ready.try_io(|master| Ok(rustix::io::write(master, rest)?)) {
                Ok(Ok(written)) => rest = &rest[written..],
                Ok(Err(source)) => return Err(TypeError { written, source }),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }
}
