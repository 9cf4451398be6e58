//! Pseudoterminals, for programs that need one (pty(7)).

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::io::unix::AsyncFd;

use crate::command::TerminalSize;

/// The user's side of a terminal. When its last clone is dropped the terminal hangs up: its session gets `SIGHUP`.
///
/// [`Command::terminal`](crate::Command::terminal) gives a run one. Open one here to keep it beyond the run.
#[derive(Clone, Debug)]
pub struct PseudoTerminal(Arc<AsyncFd<OwnedFd>>);

/// The program's side of a terminal.
#[derive(Debug)]
pub struct TerminalDevice {
    /// The path of the device, for [`Stdin::Terminal`](crate::Stdin::Terminal).
    pub path: PathBuf,
    /// The open device, for [`Command::stdout`](crate::Command::stdout).
    pub file: File,
}

/// The error of text that could not be typed.
#[derive(Debug, thiserror::Error)]
#[error("the terminal took {written} bytes")]
pub struct TerminalWriteError {
    /// The number of bytes that were taken.
    pub written: usize,
    /// The cause.
    pub source: io::Error,
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
    /// Opens a new terminal of this size, and both its sides.
    ///
    /// # Errors
    /// The system has no more terminals, or this process no more descriptors.
    pub fn open(size: TerminalSize) -> io::Result<(Self, TerminalDevice)> {
        let master = open_master()?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(ptsname(&master, Vec::new())?.into_bytes()));
        let device = open_device(&master, &path)?;
        let TerminalSize { columns, rows } = size;
        tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
        // `AsyncFd` waits for readiness, and a read after that must not block the thread if another was faster.
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        #[allow(
            deprecated,
            reason = "sound for an `OwnedFd`, which is one descriptor for as long as it lives"
        )]
        let master = AsyncFd::new(master)?;
        Ok((Self(Arc::new(master)), TerminalDevice { path, file: File::from(device) }))
    }

    /// Returns another handle of the user's side, for a writer of its own.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(rustix::io::fcntl_dupfd_cloexec(self.0.get_ref(), 3)?)
    }

    /// Reads what was printed. Returns 0 at the end: no process has the device open any more.
    ///
    /// # Errors
    /// The terminal cannot be read.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        std::future::poll_fn(|context| self.poll_read(context, buffer)).await
    }

    // Not by way of tokio's pipes: they take a short read for a sign that nothing is left, and a terminal never gives
    // more than 4 KiB at a time.
    fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let read = ready.try_io(|master| Ok(rustix::io::read(master, &mut *buffer)?));
            match read {
                // On Linux this is the end.
                Ok(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    return Poll::Ready(Ok(0));
                }
                Ok(read) => return Poll::Ready(read),
                Err(_would_block) => {}
            }
        }
    }

    /// Reads into a buffer of tokio's.
    pub(crate) fn poll_read_buf(
        &self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.poll_read(context, buffer.initialize_unfilled()))?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }

    /// Types `text`, within `timeout`. Enter is a carriage return; the terminal turns it into a line feed for programs
    /// that read lines.
    ///
    /// # Errors
    /// The program does not read, or the terminal is gone.
    pub async fn write(&self, text: &[u8], timeout: Duration) -> Result<(), TerminalWriteError> {
        let mut rest = text;
        let deadline = tokio::time::Instant::now() + timeout;
        while !rest.is_empty() {
            let written = text.len() - rest.len();
            let late = |_| TerminalWriteError { written, source: io::ErrorKind::TimedOut.into() };
            let ready = tokio::time::timeout_at(deadline, self.0.writable()).await.map_err(late)?;
            let mut ready = ready.map_err(|source| TerminalWriteError { written, source })?;
            match ready.try_io(|master| Ok(rustix::io::write(master, rest)?)) {
                Ok(Ok(written)) => rest = &rest[written..],
                Ok(Err(source)) => return Err(TerminalWriteError { written, source }),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }
}

impl std::os::fd::AsFd for PseudoTerminal {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
