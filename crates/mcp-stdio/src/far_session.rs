//! The far end of a remote that outlives the loss of its channel for a while: a session, with a file and a socket by which
//! the next channel finds it.
//!
//! ```text
//! connect ──> remote-server (serves)  <── socket ── remote-server (passes on) <── connect, again
//! ```
//!
//! The process that the first channel has started serves on when that channel is lost. The process that a later channel
//! starts finds the socket, and passes lines on. Both belong to one user: the folder and the socket are for that user alone.
#![allow(clippy::disallowed_methods, reason = "the module's own files, in the user's folder for state")]

use rustix::fs::{FlockOperation, flock};
use server_setup::remote::session_folder;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixListener;

/// The age until which the file of a session may not have its lock yet.
const NEW_AGE: Duration = Duration::from_secs(10);

/// A session that this process serves. Its files are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct FarSession {
    socket: PathBuf,
    record: PathBuf,
    pub(crate) listener: UnixListener,
    /// Held while this process lives.
    _lock: File,
}

impl FarSession {
    /// Writes down a session and listens for its next channels. To be called in a runtime.
    pub(crate) fn create(id: &str, grace_s: u64) -> io::Result<Self> {
        let folder = prepared_folder()?;
        remove_abandoned(&folder);
        let (record, socket) = (folder.join(format!("{id}.json")), folder.join(format!("{id}.sock")));
        let mut lock = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&record)?;
        let listening =
            flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from).and_then(|()| {
                let facts = serde_json::json!({"pid": std::process::id(), "grace_s": grace_s});
                lock.write_all(format!("{facts}\n").as_bytes())?;
                let listener = UnixListener::bind(&socket)?;
                fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
                Ok(listener)
            });
        match listening {
            Ok(listener) => Ok(Self { socket, record, listener, _lock: lock }),
            Err(error) => {
                let _ = fs::remove_file(&record);
                Err(error)
            }
        }
    }

    /// Connects to a session of another process. None if there is no such session.
    pub(crate) fn connect(id: &str) -> Option<UnixStream> {
        UnixStream::connect(prepared_folder().ok()?.join(format!("{id}.sock"))).ok()
    }
}

impl Drop for FarSession {
    fn drop(&mut self) {
        for path in [&self.socket, &self.record] {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!("{} cannot be removed: {error}", path.display());
            }
        }
    }
}

/// Returns the folder of sessions, which belongs to the user alone.
fn prepared_folder() -> io::Result<PathBuf> {
    let folder =
        session_folder().ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let metadata = folder.symlink_metadata()?;
    if !metadata.is_dir() {
        return Err(io::Error::other("the folder of sessions is no folder"));
    }
    trusted_file::check_access(&metadata, trusted_file::OthersAccess::MayNotRead)?;
    Ok(folder)
}

/// Removes the files of sessions whose processes were killed. What cannot be removed is tried again by the next session.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_record = path.extension().is_some_and(|extension| extension == "json");
        let is_abandoned = is_record
            && File::open(&path).is_ok_and(|file| {
                let modified = file.metadata().and_then(|metadata| metadata.modified());
                // Between its creation and its lock, the file of a new session has no lock.
                modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= NEW_AGE))
                    && flock(&file, FlockOperation::NonBlockingLockShared).is_ok()
            });
        if is_abandoned {
            // The socket first: without its record nobody would find it.
            let _ = fs::remove_file(path.with_extension("sock"));
            let _ = fs::remove_file(&path);
        }
    }
}
