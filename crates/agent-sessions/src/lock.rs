//! The lock of a state directory: its holder is the one supervisor there.

use crate::directory::SupervisorStateFolder;
use crate::process_table::{self, ProcessIdentity};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The name of the lock file.
const LOCK_NAME: &str = "lock";
/// The longest lock file that is read, in bytes.
const MAX_LOCK_BYTES: u64 = 4096;

/// The kind of process that hosts a supervisor. It decides how long sessions live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorHostKind {
    /// A daemon, which runs for the sessions' sake: they outlive all clients.
    Daemon,
    /// A server of one client: the sessions end with it.
    Server,
}

impl SupervisorHostKind {
    /// Returns the name that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Server => "server",
        }
    }
}

/// The holder of a lock, as it wrote itself into the lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SupervisorLockHolder {
    /// Its process.
    pub(crate) process: ProcessIdentity,
    /// The kind of its process.
    #[serde(rename = "owner")]
    pub(crate) host: SupervisorHostKind,
    /// The version of its program.
    pub(crate) version: String,
}

/// The lock of a state directory. The system releases it when the process that holds it ends.
#[derive(Debug)]
pub(crate) struct SupervisorLock {
    folder: SupervisorStateFolder,
    // Declared last, so that it is dropped last: everything done under the lock is done by then.
    _file: File,
}

/// The outcome of an attempt to take the lock.
#[derive(Debug)]
pub(crate) enum SupervisorLockOutcome {
    /// The lock was acquired.
    Acquired(SupervisorLock),
    /// Another process holds it, which may not have written its name yet.
    Busy(Option<SupervisorLockHolder>),
}

impl SupervisorLock {
    /// Tries to take the lock of `folder` (flock(2)).
    ///
    /// # Errors
    /// The file cannot be opened, or the file system has no locks.
    pub(crate) fn try_acquire(
        folder: SupervisorStateFolder,
        host: SupervisorHostKind,
        version: &str,
    ) -> io::Result<SupervisorLockOutcome> {
        let mut file = folder.file(LOCK_NAME)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(SupervisorLockOutcome::Busy(read_holder(&mut file)?)),
            Err(error) => return Err(error.into()),
        }
        // Written for other processes to read who holds the lock. The lock itself does not depend on it.
        let pid = std::process::id();
        let process = process_table::find(pid).unwrap_or(ProcessIdentity { pid, started: 0 });
        let holder = SupervisorLockHolder { process, host, version: version.to_owned() };
        // Emptied first, or the end of a longer name would stay behind a shorter one.
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&serde_json::to_vec(&holder)?)?;
        Ok(SupervisorLockOutcome::Acquired(Self { folder, _file: file }))
    }

    /// Returns the state directory.
    pub(crate) fn folder(&self) -> &SupervisorStateFolder {
        &self.folder
    }
}

/// Reads the holder that wrote the lock file last. A file that is empty or half written names none.
fn read_holder(file: &mut File) -> io::Result<Option<SupervisorLockHolder>> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_LOCK_BYTES).read_to_string(&mut text)?;
    // The holder may be writing at this moment. Who it is matters only for a message.
    Ok(serde_json::from_str(&text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquire(path: &std::path::Path) -> SupervisorLockOutcome {
        SupervisorLock::try_acquire(
            SupervisorStateFolder::open(path).unwrap(),
            SupervisorHostKind::Daemon,
            "1",
        )
        .unwrap()
    }

    #[test]
    fn a_directory_has_one_holder_at_a_time_who_says_who_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let lock = match acquire(folder.path()) {
            SupervisorLockOutcome::Acquired(lock) => lock,
            SupervisorLockOutcome::Busy(_) => panic!("nobody else has it"),
        };
        match acquire(folder.path()) {
            SupervisorLockOutcome::Busy(Some(holder)) => {
                assert_eq!(
                    (holder.process.pid, holder.host),
                    (std::process::id(), SupervisorHostKind::Daemon)
                );
            }
            other => panic!("{other:?}"),
        }
        drop(lock);
        assert!(
            matches!(acquire(folder.path()), SupervisorLockOutcome::Acquired(_)),
            "a released lock can be taken"
        );
    }

    #[test]
    fn what_a_dead_holder_wrote_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let state = || SupervisorStateFolder::open(folder.path()).unwrap();
        let gone = ProcessIdentity { pid: std::process::id(), started: 1 };
        let holder =
            SupervisorLockHolder { process: gone, host: SupervisorHostKind::Server, version: "0".to_owned() };
        let mut file = state().file(LOCK_NAME).unwrap();
        file.write_all(&serde_json::to_vec(&holder).unwrap()).unwrap();
        let lock = acquire(folder.path());
        assert!(matches!(lock, SupervisorLockOutcome::Acquired(_)));
        assert_ne!(read_holder(&mut state().file(LOCK_NAME).unwrap()).unwrap(), Some(holder));
    }
}
