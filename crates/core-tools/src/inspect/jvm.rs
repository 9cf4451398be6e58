//! A Java virtual machine by its attach socket, as `jcmd` does it; no JDK is needed.
//!
//! The machine makes the socket `/tmp/.java_pidN` when it finds a file `.attach_pidN` at a `SIGQUIT`. Once made it stays
//! until the process ends, so that the signal is needed once. A machine that was started with `-Xrs` has no handler
//! for it and would end: that is looked at before.
//!
//! Sources: `attachListener_posix.cpp` and `VirtualMachineImpl.java` of `OpenJDK` 17 and 21.
#![allow(
    clippy::disallowed_methods,
    reason = "the attach file and socket are in the target's own /tmp, which is no root, under names made from its process id"
)]

use super::proc::Status;
use super::target::{Process, own_user};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// How long the machine may take to make its socket.
const ATTACHES_WITHIN: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const MOST_BYTES: u64 = 8 << 20;

/// Why a virtual machine did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody has attached yet, and the signal that it takes may not be sent.
    #[error("it has no attach socket yet, and making one takes a signal: {0}")]
    NotAttached(String),
    /// The signal was sent and no socket came.
    #[error("it made no attach socket within {} ms (it may run with -XX:+DisableAttachMechanism)", .0.as_millis())]
    NoSocket(Duration),
    /// The socket is not the machine's.
    #[error("its attach socket belongs to another process")]
    Impostor,
    /// The connection failed.
    #[error("the attach socket failed")]
    Io(#[from] std::io::Error),
    /// The machine refused the command.
    #[error("`{command}` failed: {message}")]
    Refused {
        /// The command.
        command: String,
        /// In its words.
        message: String,
    },
    /// No answer in time.
    #[error("no answer to `{command}` within {} ms", .limit.as_millis())]
    TimedOut {
        /// The command.
        command: String,
        /// How long was waited.
        limit: Duration,
    },
}

/// A virtual machine that has an attach socket.
#[derive(Clone, Debug)]
pub(crate) struct Jvm {
    pid: u32,
    socket: PathBuf,
}

impl Jvm {
    /// The machine in `process`. Where it has no socket yet and `may_signal`, it is made to make one.
    pub(crate) async fn attach(process: &Process, may_signal: bool) -> Result<Self, Error> {
        let pid = process.pid;
        let own = Status::of(pid)?.own_pid().unwrap_or(pid);
        let temporary = Path::new("/proc").join(pid.to_string()).join("root/tmp");
        let jvm = Self { pid, socket: temporary.join(format!(".java_pid{own}")) };
        if jvm.has_socket() {
            return Ok(jvm);
        }
        if !may_signal {
            return Err(Error::NotAttached("set `inspect.allow_signals`, or run `jcmd` once".to_owned()));
        }
        let request = Request::new(temporary.join(format!(".attach_pid{own}")))?;
        process.signal(rustix::process::Signal::QUIT, Process::is_proven_jvm).map_err(Error::NotAttached)?;
        let made = tokio::time::timeout(ATTACHES_WITHIN, async {
            while !jvm.has_socket() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let made = made.await;
        drop(request);
        made.map(|()| jvm).map_err(|_| Error::NoSocket(ATTACHES_WITHIN))
    }

    fn has_socket(&self) -> bool {
        std::fs::symlink_metadata(&self.socket)
            .is_ok_and(|metadata| metadata.file_type().is_socket() && metadata.uid() == own_user())
    }

    /// Runs a diagnostic command, such as `Thread.print`, and returns what it prints.
    pub(crate) async fn command(&self, command: &str, limit: Duration) -> Result<String, Error> {
        match tokio::time::timeout(limit, self.ask(command)).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::TimedOut { command: command.to_owned(), limit }),
        }
    }

    /// Version, `jcmd`, and three arguments, each ended by a zero; back come a code, a line feed, and the output.
    async fn ask(&self, command: &str) -> Result<String, Error> {
        let mut stream = UnixStream::connect(&self.socket).await?;
        let peer = stream.peer_cred()?.pid().and_then(|pid| u32::try_from(pid).ok());
        if peer != Some(self.pid) {
            return Err(Error::Impostor);
        }
        stream.write_all(format!("1\0jcmd\0{command}\0\0\0").as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.take(MOST_BYTES).read_to_end(&mut bytes).await?;
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            Some(("0", output)) => Ok(output.to_owned()),
            other => Err(Error::Refused {
                command: command.to_owned(),
                message: other.map_or(&*text, |(_, output)| output).trim().chars().take(500).collect(),
            }),
        }
    }
}

/// The file that says that the signal is meant to attach. Removed when dropped.
#[derive(Debug)]
struct Request(PathBuf);

impl Request {
    fn new(path: PathBuf) -> std::io::Result<Self> {
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => Ok(Self(path)),
            // Of an attempt that was cut off; the machine looks at whose it is.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Self(path)),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // The machine removes it as well.
        let _ = std::fs::remove_file(&self.0);
    }
}
