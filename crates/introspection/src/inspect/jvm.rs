//! A Java virtual machine over its attach socket, as `jcmd` uses it; no JDK is needed.
//!
//! The machine makes the socket `/tmp/.java_pidN` if it finds a file `.attach_pidN` at a `SIGQUIT`. The socket stays until
//! the process ends, so the signal is needed once. A machine that was started with `-Xrs` has no handler for the signal
//! and would end: [`Process::signal`] checks that before.
//!
//! Sources: `attachListener_posix.cpp` and `VirtualMachineImpl.java` of `OpenJDK` 17 and 21.
#![allow(
    clippy::disallowed_methods,
    reason = "the attach file and socket are in the target's own /tmp, which is no root, under names made from its process id"
)]

use super::proc::ProcessStatus;
use super::target::{Process, SignalError, own_user};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// The time that the machine has to make its socket.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(5);
/// The limit of an answer, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// A virtual machine that did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JvmError {
    /// The machine has no socket yet, and the signal that makes it was not sent.
    #[error("it has no attach socket yet, and making one takes a signal: {0}")]
    NotAttached(SignalError),
    /// The signal was sent, and the machine made no socket.
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
        /// Its message.
        message: String,
    },
    /// The machine did not answer in time.
    #[error("no answer to `{command}` within {} ms", .limit.as_millis())]
    TimedOut {
        /// The command.
        command: String,
        /// The time limit.
        limit: Duration,
    },
}

/// A virtual machine that has an attach socket.
#[derive(Clone, Debug)]
pub(crate) struct AttachedJvm {
    pid: u32,
    socket: PathBuf,
}

impl AttachedJvm {
    /// Attaches to the machine in `process`. If it has no socket yet and `may_signal` is true, a signal makes it create one.
    pub(crate) async fn attach(process: &Process, may_signal: bool) -> Result<Self, JvmError> {
        let pid = process.pid;
        // In a container the machine names its files by its process id there.
        let own_pid = ProcessStatus::of(pid)?.own_pid().unwrap_or(pid);
        // The folder /tmp as the process sees it, which in a container is another than ours.
        let temporary = Path::new("/proc").join(pid.to_string()).join("root/tmp");
        let jvm = Self { pid, socket: temporary.join(format!(".java_pid{own_pid}")) };
        if jvm.has_socket() {
            return Ok(jvm);
        }
        if !may_signal {
            return Err(JvmError::NotAttached(SignalError::NotAllowed));
        }
        let attach_file = JvmAttachFile::new(temporary.join(format!(".attach_pid{own_pid}")))?;
        process
            .signal(rustix::process::Signal::QUIT, Process::is_proven_jvm)
            .map_err(JvmError::NotAttached)?;
        let created = tokio::time::timeout(ATTACH_TIMEOUT, async {
            while !jvm.has_socket() {
                // The machine tells nobody that the socket is there, so it is looked for.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let created = created.await;
        drop(attach_file);
        created.map(|()| jvm).map_err(|_| JvmError::NoSocket(ATTACH_TIMEOUT))
    }

    // The owner is checked: anyone may make a socket of that name in /tmp.
    fn has_socket(&self) -> bool {
        std::fs::symlink_metadata(&self.socket)
            .is_ok_and(|metadata| metadata.file_type().is_socket() && metadata.uid() == own_user())
    }

    /// Runs a diagnostic command, such as `Thread.print`, and returns what it prints.
    pub(crate) async fn command(&self, command: &str, limit: Duration) -> Result<String, JvmError> {
        match tokio::time::timeout(limit, self.request(command)).await {
            Ok(result) => result,
            Err(_) => Err(JvmError::TimedOut { command: command.to_owned(), limit }),
        }
    }

    /// Sends version, `jcmd` and three arguments, each followed by a zero byte. The answer is a code, a line feed, and the
    /// output.
    async fn request(&self, command: &str) -> Result<String, JvmError> {
        let mut stream = UnixStream::connect(&self.socket).await?;
        // The socket could have been replaced since it was found.
        let peer = stream.peer_cred()?.pid().and_then(|pid| u32::try_from(pid).ok());
        if peer != Some(self.pid) {
            return Err(JvmError::Impostor);
        }
        stream.write_all(format!("1\0jcmd\0{command}\0\0\0").as_bytes()).await?;
        let mut bytes = Vec::new();
        // The machine closes the connection behind its answer.
        stream.take(MAX_BYTES).read_to_end(&mut bytes).await?;
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            Some(("0", output)) => Ok(output.to_owned()),
            other => Err(JvmError::Refused {
                command: command.to_owned(),
                message: other.map_or(&*text, |(_, output)| output).trim().chars().take(500).collect(),
            }),
        }
    }
}

/// The file `.attach_pidN`, which tells the machine that the signal is a request to attach. Dropping it removes the file.
#[derive(Debug)]
struct JvmAttachFile(PathBuf);

impl JvmAttachFile {
    fn new(path: PathBuf) -> std::io::Result<Self> {
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => Ok(Self(path)),
            // It is left from an attempt that was interrupted. The machine checks its owner.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Self(path)),
            Err(error) => Err(error),
        }
    }
}

impl Drop for JvmAttachFile {
    fn drop(&mut self) {
        // The machine may have removed it before.
        let _ = std::fs::remove_file(&self.0);
    }
}
