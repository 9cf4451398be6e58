//! Terminals, for agents that want one (pty(7)).

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

/// How large its window is.
const COLUMNS: u16 = 120;
const ROWS: u16 = 40;
/// How long what is typed may take that nobody reads.
const PATIENCE: Duration = Duration::from_secs(2);

/// What stands where the user would sit. With the last of it the terminal hangs up: its session is sent `SIGHUP`.
#[derive(Clone, Debug)]
pub(super) struct Terminal(Arc<AsyncFd<OwnedFd>>);

/// What stands where the program is.
#[derive(Debug)]
pub(super) struct Line {
    /// The device.
    pub(super) path: PathBuf,
    /// The same, open.
    pub(super) file: File,
}

#[cfg(target_os = "linux")]
fn open_master() -> rustix::io::Result<OwnedFd> {
    openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
}

/// A program that another thread starts before the second call inherits it: not every system can do both at once.
#[cfg(not(target_os = "linux"))]
fn open_master() -> rustix::io::Result<OwnedFd> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    Ok(master)
}

/// By the terminal itself: `path` may mean another in another namespace.
#[cfg(target_os = "linux")]
fn open_line(master: &OwnedFd, _path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(master, flags)
}

#[cfg(not(target_os = "linux"))]
fn open_line(_master: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, rustix::fs::Mode::empty())
}

impl Terminal {
    /// A new one, of 120 columns and 40 rows.
    pub(super) fn open() -> io::Result<(Self, Line)> {
        let master = open_master()?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(ptsname(&master, Vec::new())?.into_bytes()));
        let line = open_line(&master, &path)?;
        tcsetwinsize(&master, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        #[allow(
            deprecated,
            reason = "sound for an `OwnedFd`, which is one descriptor for as long as it lives"
        )]
        let master = AsyncFd::new(master)?;
        Ok((Self(Arc::new(master)), Line { path, file: File::from(line) }))
    }

    /// Reads what was printed. Nothing at the end: nobody has the terminal open any more.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|master| Ok(rustix::io::read(master, &mut *buffer)?));
            match read {
                // The end, on Linux.
                Ok(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    return Ok(0);
                }
                Ok(read) => return read,
                Err(_would_block) => {}
            }
        }
    }

    /// Types a text, and Enter. How many bytes were taken.
    pub(super) async fn type_in(&self, text: &str) -> Result<(), (usize, io::Error)> {
        let line = format!("{}\r", text.trim_end_matches('\n'));
        let mut rest = line.as_bytes();
        let until = tokio::time::Instant::now() + PATIENCE;
        while !rest.is_empty() {
            let taken = line.len() - rest.len();
            let late = |_| (taken, io::Error::from(io::ErrorKind::TimedOut));
            let ready = tokio::time::timeout_at(until, self.0.writable()).await.map_err(late)?;
            let mut ready = ready.map_err(|error| (taken, error))?;
            match ready.try_io(|master| Ok(rustix::io::write(master, rest)?)) {
                Ok(Ok(written)) => rest = &rest[written..],
                Ok(Err(error)) => return Err((taken, error)),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }
}
