//! A temporary folder that no other user can enter.

use std::io;
use std::path::Path;

/// A folder for temporary files that only this user can enter (mode 0700, a name that cannot be guessed).
///
/// Dropping it removes the folder with all that is in it. A server that is killed leaves it behind.
#[derive(Debug)]
pub struct PrivateTempDir(tempfile::TempDir);

impl PrivateTempDir {
    /// Creates a temporary folder in `folder`, such as `XDG_RUNTIME_DIR` or `/tmp`.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub fn new_in(folder: impl AsRef<Path>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("core-tools-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o700));
        }
        builder.tempdir_in(folder).map(Self)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
