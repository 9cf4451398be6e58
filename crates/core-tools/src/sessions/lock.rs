//! Who supervises: the one that holds the lock of the state directory.

use super::directory::StateFolder;
use super::process;
use super::state::Process;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// What kind of process hosts the supervisor, and so how long its sessions live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// One that lives for the sessions: they outlive all clients.
    Daemon,
    /// A server of one client: they end with it.
    Server,
}

impl Owner {
    /// Its name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Server => "server",
        }
    }
}

/// Who holds the lock, as it wrote into the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub process: Process,
    /// What kind it is.
    pub owner: Owner,
    /// Its version.
    pub version: String,
}

impl Holder {
    /// Whether that process lives. The lock of one that does not is stale, and has been let go by the system.
    pub fn is_alive(&self) -> bool {
        process::is_alive(self.process)
    }
}

/// The lock of a state directory, which the system lets go with the process that holds it.
#[derive(Debug)]
pub struct StateLock {
    folder: StateFolder,
    // Dropped last of all: what was done under it is done.
    _file: File,
}

/// Whether there was a lock to be had.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Held(StateLock),
    /// Somebody else's, who may not have said yet who it is.
    Taken(Option<Holder>),
}

const NAME: &str = "lock";

impl StateLock {
    /// Takes the lock of `folder`, if nobody has it (flock(2)).
    ///
    /// # Errors
    /// The file cannot be opened, or the file system has no locks.
    pub fn take(folder: StateFolder, owner: Owner, version: &str) -> io::Result<Attempt> {
        let mut file = folder.file(NAME)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Attempt::Taken(read(&mut file)?)),
            Err(error) => return Err(error.into()),
        }
        let process =
            process::find(std::process::id()).unwrap_or(Process { pid: std::process::id(), started: 0 });
        let holder = Holder { process, owner, version: version.to_owned() };
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&serde_json::to_vec(&holder)?)?;
        Ok(Attempt::Held(Self { folder, _file: file }))
    }

    /// The directory.
    pub fn folder(&self) -> &StateFolder {
        &self.folder
    }
}

/// Who holds the lock of `folder`, or held it last.
///
/// # Errors
/// The file cannot be read.
pub fn holder(folder: &StateFolder) -> io::Result<Option<Holder>> {
    read(&mut folder.file(NAME)?)
}

fn read(file: &mut File) -> io::Result<Option<Holder>> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(4096).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(path: &std::path::Path) -> Attempt {
        StateLock::take(StateFolder::open(path).unwrap(), Owner::Daemon, "1").unwrap()
    }

    #[test]
    fn a_directory_has_one_holder_at_a_time_who_says_who_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let held = match take(folder.path()) {
            Attempt::Held(lock) => lock,
            Attempt::Taken(_) => panic!("nobody else has it"),
        };
        match take(folder.path()) {
            Attempt::Taken(Some(holder)) => {
                assert_eq!(holder.process.pid, std::process::id());
                assert!(holder.is_alive() && holder.owner == Owner::Daemon);
            }
            other => panic!("{other:?}"),
        }
        drop(held);
        assert!(matches!(take(folder.path()), Attempt::Held(_)), "what is let go can be taken");
    }

    #[test]
    fn what_somebody_wrote_who_is_gone_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = StateFolder::open(folder.path()).unwrap().file(NAME).unwrap();
        let gone = Process { pid: std::process::id(), started: 1 };
        let holder = Holder { process: gone, owner: Owner::Server, version: "0".to_owned() };
        file.write_all(&serde_json::to_vec(&holder).unwrap()).unwrap();
        assert!(!holder.is_alive(), "the id has gone to another process");
        assert!(matches!(take(folder.path()), Attempt::Held(_)));
        assert_ne!(super::holder(&StateFolder::open(folder.path()).unwrap()).unwrap(), Some(holder));
    }
}
