//! The user to whom the files belong.
#![allow(clippy::disallowed_methods, reason = "it reads the users of this machine")]

use super::error::InitError;
use std::path::Path;

/// The user to whom the files belong, who is also the user of the service.
#[derive(Debug)]
pub(super) struct FileOwner {
    pub(super) name: String,
    /// The ids of a user who is not the one of this process.
    ids: Option<(u32, u32)>,
}

impl FileOwner {
    /// Returns the user of this name, or that of this process.
    pub(super) fn named(user: Option<&str>) -> Result<Self, InitError> {
        let own = rustix::process::geteuid().as_raw();
        let users = std::fs::read_to_string("/etc/passwd").map_err(InitError::Users)?;
        // NAME:PASSWORD:UID:GID:...
        let mut users = users.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            Some((name, fields.nth(1)?.parse::<u32>().ok()?, fields.next()?.parse::<u32>().ok()?))
        });
        match user {
            Some(user) => {
                let found = users.find(|(name, ..)| *name == user);
                let (_, uid, gid) = found.ok_or_else(|| InitError::NoUser(user.to_owned()))?;
                Ok(Self { name: user.to_owned(), ids: (uid != own).then_some((uid, gid)) })
            }
            None => {
                // systemd takes a number as well.
                let name = users.find(|(_, uid, _)| *uid == own).map(|(name, ..)| name.to_owned());
                Ok(Self { name: name.unwrap_or_else(|| own.to_string()), ids: None })
            }
        }
    }

    /// Gives the user what is at `path`.
    pub(super) fn give(&self, path: &Path) -> Result<(), InitError> {
        let Some((uid, gid)) = self.ids else { return Ok(()) };
        std::os::unix::fs::lchown(path, Some(uid), Some(gid)).map_err(|source| InitError::Owner {
            path: path.to_owned(),
            user: self.name.clone(),
            source,
        })
    }
}
