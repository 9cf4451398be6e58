//! Approvals of commands that another process runs: each a private file in the folder of approvals, which one process takes
//! away.
//!
//! A hook that has its client ask the user cannot run the command itself. It leaves a grant, which is bound to the call by
//! its fingerprint, ends soon, and is used up by the process that runs the command.
#![allow(clippy::disallowed_methods, reason = "the module's own files, in a folder that the caller names")]

use crate::error::Error;
use crate::folder::{ApprovalFolder, MAX_BYTES};
use crate::queue::random_id;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

const GRANT: &str = "grant";

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGrant {
    fingerprint: String,
    approver: String,
    expires_at: SystemTime,
}

impl ApprovalFolder {
    /// Writes a grant for the call with this fingerprint, which `approver` is asked about. Returns its id.
    ///
    /// # Errors
    /// The folder cannot be used, or others than its owner may enter it; the system has no random numbers.
    pub fn grant(&self, fingerprint: &str, approver: &str, lifetime: Duration) -> Result<String, Error> {
        self.prepare()?;
        self.remove_expired_grants();
        let id = random_id()?;
        let expires_at = SystemTime::now() + lifetime;
        let (fingerprint, approver) = (fingerprint.to_owned(), approver.to_owned());
        self.write(&id, GRANT, &WrittenGrant { fingerprint, approver, expires_at })?;
        Ok(id)
    }

    /// Uses up the grant with this id, whatever it is for. Returns the approver if it is for the call with this
    /// fingerprint.
    ///
    /// # Errors
    /// [`Error::NoGrant`]: there is none, it was used, its time is over, or it is for another call.
    pub fn redeem(&self, id: &str, fingerprint: &str) -> Result<String, Error> {
        // The id comes from a command line, and is a part of a path.
        if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::NoGrant);
        }
        self.prepare()?;
        let path = self.file(id, GRANT);
        let grant = read(&path).map_err(|_| Error::NoGrant)?;
        // Of several processes the one that removes it has it.
        fs::remove_file(&path).map_err(|_| Error::NoGrant)?;
        let fits = grant.fingerprint == fingerprint && SystemTime::now() < grant.expires_at;
        fits.then_some(grant.approver).ok_or(Error::NoGrant)
    }

    fn remove_expired_grants(&self) {
        let Ok(entries) = fs::read_dir(self.path()) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_grant = path.extension().is_some_and(|extension| extension == GRANT);
            if is_grant && read(&path).is_ok_and(|grant| grant.expires_at < SystemTime::now()) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

fn read(path: &Path) -> io::Result<WrittenGrant> {
    let text = trusted_file::read_private(path, MAX_BYTES).map_err(io::Error::from)?;
    serde_json::from_str(&text).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn folder() -> (tempfile::TempDir, ApprovalFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ApprovalFolder::open(temporary.path().join("a")).unwrap();
        (temporary, folder)
    }

    #[test]
    fn a_grant_is_used_once_and_for_its_call_alone() {
        let (_temporary, folder) = folder();
        let id = folder.grant("one", "Ada", MINUTE).unwrap();
        assert_eq!(folder.redeem(&id, "one").unwrap(), "Ada");
        assert!(matches!(folder.redeem(&id, "one"), Err(Error::NoGrant)), "it was used");
        let id = folder.grant("one", "Ada", MINUTE).unwrap();
        assert!(matches!(folder.redeem(&id, "other"), Err(Error::NoGrant)));
        assert!(matches!(folder.redeem(&id, "one"), Err(Error::NoGrant)), "another call used it up");
        for id in ["", "../../etc/passwd", &"0".repeat(32), &"z".repeat(32)] {
            assert!(matches!(folder.redeem(id, "one"), Err(Error::NoGrant)), "{id}");
        }
    }

    #[test]
    fn of_many_that_use_a_grant_at_once_one_has_it() {
        let (_temporary, folder) = folder();
        let id = folder.grant("one", "Ada", MINUTE).unwrap();
        let redeemed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| usize::from(folder.redeem(&id, "one").is_ok()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(redeemed, 1);
    }

    #[test]
    fn a_grant_ends_and_is_taken_away_with_the_next() {
        let (_temporary, folder) = folder();
        let id = folder.grant("one", "Ada", Duration::ZERO).unwrap();
        assert!(matches!(folder.redeem(&id, "one"), Err(Error::NoGrant)));
        folder.grant("one", "Ada", Duration::ZERO).unwrap();
        folder.grant("one", "Ada", MINUTE).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_grant_that_others_could_have_written_is_none() {
        use std::os::unix::fs::PermissionsExt;
        let (_temporary, folder) = folder();
        let id = folder.grant("one", "Ada", MINUTE).unwrap();
        let path = folder.file(&id, GRANT);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(folder.redeem(&id, "one"), Err(Error::NoGrant)));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(folder.redeem(&id, "one").is_err(), "others may enter the folder");
    }
}
