//! [`ProfileFolder`]: the private folder that profiles are stored in, from which the oldest are removed.
#![allow(
    clippy::disallowed_methods,
    reason = "the folder is the operator's and lies outside the roots; no name in it comes from a caller"
)]

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The prefix of file names. Only files with it are removed, as the folder may hold others.
const PREFIX: &str = "trace-";
/// The maximum number of files, and their maximum total size.
const MAX_FILES: usize = 200;
const MAX_BYTES: u64 = 2 << 30;

/// The folder for profiles, with its limits.
#[derive(Clone, Debug)]
pub(super) struct ProfileFolder {
    folder: PathBuf,
    max_files: usize,
    max_bytes: u64,
}

/// The files of one capture, which share a name and differ in their extensions.
///
/// Dropping them removes the files unless [`ProfileFiles::persist`] was called: the capture failed, and nobody knows their
/// names.
#[derive(Debug)]
pub(super) struct ProfileFiles {
    folder: PathBuf,
    stem: String,
    persistent: bool,
}

impl ProfileFolder {
    /// Creates a store in `folder` with the default limits.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, max_files: MAX_FILES, max_bytes: MAX_BYTES }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder where it is missing, and returns a unique name for the files of one capture.
    pub(super) fn new_files(&self, runtime: &str, pid: u32, kind: &str) -> io::Result<ProfileFiles> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        create_private_folder(&self.folder)?;
        // Windows allows no colon in a file name.
        let time = format!("{:.3}", jiff::Timestamp::now()).replace([':', 'Z'], "");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let server_pid = std::process::id();
        // The time comes first, so that names sort by age. The process id and the number keep several servers, and
        // several captures within a millisecond, apart.
        let stem = format!("{PREFIX}{time}-{runtime}-{pid}-{kind}-{server_pid}.{number}");
        Ok(ProfileFiles { folder: self.folder.clone(), stem, persistent: false })
    }

    /// Removes the oldest files beyond the limits, except those of `files`. Errors are ignored.
    pub(super) fn prune(&self, files: &ProfileFiles) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)))
            .filter_map(|entry| {
                // Files can vanish meanwhile: another server may prune the same folder.
                let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((metadata.modified().ok()?, metadata.len(), entry.file_name()))
            })
            .collect();
        // Newest first: what comes after the limits is older than everything kept.
        found.sort_by(|a, b| b.cmp(a));
        let (mut count, mut bytes) = (0, 0_u64);
        for (_, length, name) in found {
            (count, bytes) = (count + 1, bytes.saturating_add(length));
            let is_current = name.to_str().is_some_and(|name| files.contains_name(name));
            if !is_current && (count > self.max_files || bytes > self.max_bytes) {
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
    }
}

impl ProfileFiles {
    /// Returns the path of the file with this extension.
    pub(super) fn path(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.stem))
    }

    /// Creates a file that only its owner can read.
    pub(super) fn create(&self, extension: &str) -> io::Result<File> {
        let mut options = File::options();
        // `create_new` follows no link that somebody put in the way.
        options.write(true).read(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path(extension))
    }

    /// Creates a file with these bytes that only its owner can read.
    pub(super) fn write(&self, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        io::Write::write_all(&mut self.create(extension)?, bytes)?;
        Ok(self.path(extension))
    }

    /// Reads at most `max_bytes` bytes of the file with this extension.
    pub(super) fn read(&self, extension: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.path(extension))?;
        io::Read::read_to_end(&mut io::Read::take(file, max_bytes), &mut bytes)?;
        Ok(bytes)
    }

    /// Opens the file with this extension for reading.
    pub(super) fn open(&self, extension: &str) -> io::Result<File> {
        File::open(self.path(extension))
    }

    /// Returns the size of the file with this extension, in bytes; 0 where it is missing.
    pub(super) fn length(&self, extension: &str) -> u64 {
        self.path(extension).metadata().map_or(0, |metadata| metadata.len())
    }

    /// Makes a file private again that a profiler wrote, and for which it may have set other permissions.
    pub(super) fn make_private(&self, extension: &str) {
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            let _ = fs::set_permissions(self.path(extension), mode);
        }
        #[cfg(not(unix))]
        let _ = extension;
    }

    fn contains_name(&self, name: &str) -> bool {
        name.strip_prefix(&self.stem).is_some_and(|rest| rest.starts_with('.'))
    }

    /// Leaves the files in the folder when this value is dropped.
    pub(super) fn persist(mut self) {
        self.persistent = true;
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for ProfileFiles {
    fn drop(&mut self) {
        if self.persistent {
            return;
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_str().is_some_and(|name| self.contains_name(name)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Creates `folder`, or checks an existing one: it must be no link, belong to this user, and admit no one else.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    // `create` accepts an existing folder of any kind, such as a link in /tmp that another user made.
    let metadata = folder.symlink_metadata()?;
    let denied = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()));
    if !metadata.is_dir() {
        return denied("it is not a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return denied("the folder belongs to another user");
        }
        if metadata.mode() & 0o077 != 0 {
            fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_and_what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = ProfileFolder { folder: folder.path().join("a/b"), max_files: 3, max_bytes: 100 };
        for at in 0..5 {
            let files = artifacts.new_files("node", at, "cpu").unwrap();
            let file = files.write("x", &[0; 10]).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(u64::from(at));
            File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
            files.persist();
        }
        fs::write(artifacts.folder().join("mine.txt"), "kept").unwrap();
        let files = artifacts.new_files("node", 9, "heap").unwrap();
        files.write("big", &[0; 95]).unwrap();
        artifacts.prune(&files);
        let mut left: Vec<_> = fs::read_dir(artifacts.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[0] == "mine.txt" && left[1].contains("-node-9-heap-"), "{left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_enter_the_folder_or_read_a_file() {
        use std::os::unix::fs::PermissionsExt;
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("traces");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        let files = ProfileFolder::new(folder.clone()).new_files("go", 1, "cpu").unwrap();
        let file = files.write("pprof", b"x").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        drop(files);
        assert!(!file.exists());
        std::os::unix::fs::symlink(&folder, outer.path().join("link")).unwrap();
        assert!(ProfileFolder::new(outer.path().join("link")).new_files("go", 1, "cpu").is_err());
    }
}
