//! Where profiles are kept: a private folder, in which the oldest make room for new ones.
#![allow(
    clippy::disallowed_methods,
    reason = "the folder is the operator's and lies outside the roots; no name in it comes from a caller"
)]

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// How names begin, by which files of ours are told from others that somebody put there.
const PREFIX: &str = "trace-";
/// The most that is kept.
const MOST_FILES: usize = 200;
const MOST_BYTES: u64 = 2 << 30;

/// A folder for profiles.
#[derive(Clone, Debug)]
pub(super) struct Artifacts {
    folder: PathBuf,
    most_files: usize,
    most_bytes: u64,
}

/// The files of one capture: of one name, with several extensions.
///
/// Dropped before they are kept they are removed: the capture gave no answer.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    stem: String,
    kept: bool,
}

impl Artifacts {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, most_files: MOST_FILES, most_bytes: MOST_BYTES }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A name for the files of one capture, for whose folder is seen to.
    pub(super) fn begin(&self, runtime: &str, pid: u32, kind: &str) -> io::Result<Files> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        make_private(&self.folder)?;
        let now = SystemTime::now();
        let millis = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().subsec_millis();
        let time = crate::time::rfc3339(now).replace([':', 'Z'], "");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = std::process::id();
        let stem = format!("{PREFIX}{time}.{millis:03}-{runtime}-{pid}-{kind}-{own}.{number}");
        Ok(Files { folder: self.folder.clone(), stem, kept: false })
    }

    /// Removes the oldest files beyond the limits, but none of `files`. What cannot be removed stays.
    pub(super) fn prune(&self, files: &Files) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((metadata.modified().ok()?, metadata.len(), entry.file_name()))
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        let (mut count, mut bytes) = (0, 0_u64);
        for (_, length, name) in found {
            (count, bytes) = (count + 1, bytes.saturating_add(length));
            let own = name.to_str().is_some_and(|name| files.has(name));
            if !own && (count > self.most_files || bytes > self.most_bytes) {
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
    }
}

impl Files {
    /// Where the file with this extension is, or will be.
    pub(super) fn path(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.stem))
    }

    /// A new file that only its owner can read.
    pub(super) fn create(&self, extension: &str) -> io::Result<File> {
        let mut options = File::options();
        options.write(true).read(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path(extension))
    }

    /// A new file with these bytes.
    pub(super) fn write(&self, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        io::Write::write_all(&mut self.create(extension)?, bytes)?;
        Ok(self.path(extension))
    }

    /// The file with this extension, of at most `most` bytes.
    pub(super) fn read(&self, extension: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.path(extension))?;
        io::Read::read_to_end(&mut io::Read::take(file, most), &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn open(&self, extension: &str) -> io::Result<File> {
        File::open(self.path(extension))
    }

    pub(super) fn length(&self, extension: &str) -> u64 {
        self.path(extension).metadata().map_or(0, |metadata| metadata.len())
    }

    /// Makes what another program wrote private, whatever it made of it.
    pub(super) fn seal(&self, extension: &str) {
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            let _ = fs::set_permissions(self.path(extension), mode);
        }
        #[cfg(not(unix))]
        let _ = extension;
    }

    fn has(&self, name: &str) -> bool {
        name.strip_prefix(&self.stem).is_some_and(|rest| rest.starts_with('.'))
    }

    /// Keeps them beyond this value's end.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_str().is_some_and(|name| self.has(name)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// A folder that only its owner can enter, and that is no link to another.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
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
        let artifacts = Artifacts { folder: folder.path().join("a/b"), most_files: 3, most_bytes: 100 };
        for at in 0..5 {
            let files = artifacts.begin("node", at, "cpu").unwrap();
            let file = files.write("x", &[0; 10]).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(u64::from(at));
            File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
            files.keep();
        }
        fs::write(artifacts.folder().join("mine.txt"), "kept").unwrap();
        let files = artifacts.begin("node", 9, "heap").unwrap();
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
        let files = Artifacts::new(folder.clone()).begin("go", 1, "cpu").unwrap();
        let file = files.write("pprof", b"x").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        drop(files);
        assert!(!file.exists());
        std::os::unix::fs::symlink(&folder, outer.path().join("link")).unwrap();
        assert!(Artifacts::new(outer.path().join("link")).begin("go", 1, "cpu").is_err());
    }
}
