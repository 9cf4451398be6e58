//! The one rule for files that decide what is allowed: who may write them, and who may read them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The access that users other than the owner may have to a file without its being refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OthersAccess {
    /// Others may read the file, and the owner's own group may write to it: a policy or a configuration, which a person
    /// edits, often with a umask of 002.
    GroupMayWrite,
    /// Others may read the file: a file that a program writes for another program.
    MayRead,
    /// Others may not even read the file: a key.
    MayNotRead,
}

/// The reason why a file was not used. Each message fits after "cannot use FILE: ".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path leads to a folder, a pipe, a device or a socket.
    #[error("it is not a file")]
    NotAFile,
    /// The path is a symbolic link, where none is followed.
    #[error("it is a symbolic link")]
    SymbolicLink,
    /// The file belongs neither to the user of this process nor to root.
    #[error("it belongs to user {owner}, and this process runs as user {user}")]
    OtherOwner {
        /// The number of the file's owner.
        owner: u32,
        /// The number of the user of this process.
        user: u32,
    },
    /// Users other than the owner may write to the file.
    #[error("others may write to it (mode {mode:03o}; `chmod go-w` ends that)")]
    WritableByOthers {
        /// The permission bits of the file.
        mode: u32,
    },
    /// Users other than the owner could write to the file at some time since this process looks at it.
    #[error("others could write to it, and may have it open; put a new file in its place")]
    WasWritableByOthers,
    /// Users other than the owner may read the file, and it is a secret.
    #[error("others may read it (mode {mode:03o}; `chmod 600` ends that)")]
    ReadableByOthers {
        /// The permission bits of the file.
        mode: u32,
    },
    /// The file is larger than the reader allows.
    #[error("it is larger than {max_bytes} bytes")]
    TooLarge {
        /// The largest size that is read.
        max_bytes: u64,
    },
    /// The operating system refused to open or read the file, or it is not UTF-8.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Error> for io::Error {
    /// Returns the error of the operating system as it is, and a refusal as one of permissions.
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            refusal => Self::new(io::ErrorKind::PermissionDenied, refusal),
        }
    }
}

/// Reads the text of the file at `path`, which may be a symbolic link. Others may read it too.
///
/// # Errors
/// The file is not trusted, is larger than `max_bytes`, is not UTF-8, or cannot be read.
pub fn read(path: &Path, max_bytes: u64) -> Result<String, Error> {
    read_text(path, max_bytes, OthersAccess::GroupMayWrite)
}

/// Reads the text of the file at `path`, which may be a symbolic link and holds a secret: others may not read it.
///
/// # Errors
/// The file is not trusted, others may read it, it is larger than `max_bytes`, is not UTF-8, or cannot be read.
pub fn read_private(path: &Path, max_bytes: u64) -> Result<String, Error> {
    read_text(path, max_bytes, OthersAccess::MayNotRead)
}

fn read_text(path: &Path, max_bytes: u64, others: OthersAccess) -> Result<String, Error> {
    let file = open_without_waiting(path, LinkTreatment::Follow)?;
    // What is judged is the open file, which nobody can exchange any more.
    check(&file, others)?;
    read_open(&file, max_bytes)
}

/// Reads the text of the file at `path` so that it can be replaced with a private one. Unlike [`read`], others may write
/// to it; the error that [`read`] would give comes along.
///
/// # Errors
/// The file belongs to another user, is no file, is larger than `max_bytes`, is not UTF-8, or cannot be read.
pub fn read_to_repair(path: &Path, max_bytes: u64) -> Result<(String, Option<Error>), Error> {
    let file = open_without_waiting(path, LinkTreatment::Follow)?;
    let cause = match check(&file, OthersAccess::GroupMayWrite) {
        Ok(()) => None,
        Err(cause @ Error::WritableByOthers { .. }) => Some(cause),
        Err(error) => return Err(error),
    };
    Ok((read_open(&file, max_bytes)?, cause))
}

pub(crate) fn read_open(file: &File, max_bytes: u64) -> Result<String, Error> {
    let mut text = String::new();
    // One byte more tells a file at the limit from a longer one.
    if file.take(max_bytes + 1).read_to_string(&mut text)? as u64 > max_bytes {
        return Err(Error::TooLarge { max_bytes });
    }
    Ok(text)
}

/// Opens the file at `path` to read it, and refuses a symbolic link in the last place: for a file that was found by its
/// name and not named by the operator.
///
/// # Errors
/// The file is not trusted or cannot be opened.
pub fn open_no_follow(path: &Path) -> Result<File, Error> {
    // Looked at first for the sake of a clear error. `NOFOLLOW` and the check of the open file are what protects,
    // since the path can lead elsewhere in between.
    let metadata = path.symlink_metadata()?;
    if metadata.is_symlink() {
        return Err(Error::SymbolicLink);
    }
    check_kind(&metadata)?;
    let file = open_without_waiting(path, LinkTreatment::Refuse)?;
    check(&file, OthersAccess::GroupMayWrite)?;
    Ok(file)
}

/// Opens the file at `path` to append to it, and creates it for its owner alone if it is missing. Others may read it. A
/// symbolic link in the last place is refused: it could lead what is written elsewhere.
///
/// # Errors
/// The file is not trusted, or cannot be opened or created.
pub fn open_append(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // `NONBLOCK`: to open a pipe would otherwise wait for its reader.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.mode(0o600).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    let file = with_own_access(path, || options.open(path))?;
    check(&file, OthersAccess::MayRead)?;
    Ok(file)
}

/// Calls `open`, which opens the file at `path`. If the system denies the access, the owner's own access is given back to the
/// file and its folder, where this user owns them, and `open` is called once more.
///
/// A confined program runs as the user of the server. Landlock does not keep it from `chmod 000`, which would otherwise freeze
/// what the file says, or stop what is written to it.
///
/// # Errors
/// Those of `open`.
pub fn with_own_access<T>(path: &Path, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && give_access_back(path) => open(),
        opened => opened,
    }
}

/// Returns true if the mode of the file or of its folder was changed.
#[cfg(unix)]
fn give_access_back(path: &Path) -> bool {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let give_back = |path: &Path| {
        let Ok(metadata) = std::fs::symlink_metadata(path) else { return false };
        let needed = if metadata.is_dir() { 0o700 } else { 0o600 };
        if metadata.is_symlink()
            || metadata.uid() != rustix::process::geteuid().as_raw()
            || metadata.mode() & needed == needed
        {
            return false;
        }
        let mode = metadata.mode() & 0o7777 | needed;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).is_ok()
    };
    // The folder first: without it the file cannot be reached.
    let folder = path.parent().is_some_and(give_back);
    give_back(path) || folder
}

#[cfg(not(unix))]
fn give_access_back(_: &Path) -> bool {
    false
}

/// Checks that an open file is trusted. The open file is judged, not its path, which may lead elsewhere by now.
///
/// # Errors
/// The file is not regular, belongs to another user, or gives others more access than `others` allows.
pub fn check(file: &File, others: OthersAccess) -> Result<(), Error> {
    let metadata = file.metadata()?;
    check_kind(&metadata)?;
    check_access(&metadata, others)
}

/// Checks that nobody but the owner and root can have written a file with this metadata.
///
/// # Errors
/// The file belongs to another user, or gives others more access than `others` allows.
#[cfg(unix)]
pub fn check_access(metadata: &Metadata, others: OthersAccess) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    // root may write to any file of this user anyway.
    if owner != user && owner != 0 {
        return Err(Error::OtherOwner { owner, user });
    }
    let mode = metadata.mode() & 0o777;
    // A umask of 002 is common where every user has a group of its own, of the same number.
    let has_own_group = others == OthersAccess::GroupMayWrite && metadata.gid() == owner;
    let writable = if has_own_group { 0o002 } else { 0o022 };
    if mode & writable != 0 {
        return Err(Error::WritableByOthers { mode });
    }
    if others == OthersAccess::MayNotRead && mode & 0o077 != 0 {
        return Err(Error::ReadableByOthers { mode });
    }
    Ok(())
}

/// Checks nothing: this system has no owners and modes that say who may write.
///
/// # Errors
/// None on this platform.
#[cfg(not(unix))]
pub fn check_access(_: &Metadata, _: OthersAccess) -> Result<(), Error> {
    Ok(())
}

pub(crate) fn check_kind(metadata: &Metadata) -> Result<(), Error> {
    if metadata.is_file() { Ok(()) } else { Err(Error::NotAFile) }
}

/// The treatment of a symbolic link in the last place of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkTreatment {
    Follow,
    Refuse,
}

#[cfg(unix)]
pub(crate) fn open_without_waiting(path: &Path, links: LinkTreatment) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // `NONBLOCK`: to open a pipe would otherwise wait for its writer. It means nothing for regular files.
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, links == LinkTreatment::Refuse);
    with_own_access(path, || Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?)))
}

#[cfg(not(unix))]
pub(crate) fn open_without_waiting(path: &Path, _: LinkTreatment) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    struct FileFixture {
        folder: tempfile::TempDir,
        path: std::path::PathBuf,
    }

    impl FileFixture {
        fn new(mode: u32) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("policy.toml");
            std::fs::write(&path, "version = 1\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Self { folder, path }
        }
    }

    #[test]
    fn a_file_that_only_its_owner_can_write_is_read() {
        for mode in [0o600, 0o644, 0o444] {
            assert_eq!(read(&FileFixture::new(mode).path, 100).unwrap(), "version = 1\n", "{mode:o}");
        }
    }

    #[test]
    fn the_owner_gets_its_own_access_back() {
        let fixture = FileFixture::new(0o000);
        let folder = fixture.folder.path();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o000)).unwrap();
        // Root is denied nothing, so the denial is one of the test's own.
        let calls = std::cell::Cell::new(0);
        let opened = with_own_access(&fixture.path, || {
            calls.set(calls.get() + 1);
            match calls.get() {
                1 => Err(io::ErrorKind::PermissionDenied.into()),
                _ => File::open(&fixture.path),
            }
        });
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert!(opened.is_ok());
        assert_eq!((mode(folder), mode(&fixture.path)), (0o700, 0o600));
        // With its access in order, the owner is denied for another reason, and `open` is not called again.
        calls.set(0);
        assert!(
            with_own_access(&fixture.path, || -> io::Result<()> {
                calls.set(calls.get() + 1);
                Err(io::ErrorKind::PermissionDenied.into())
            })
            .is_err()
        );
        assert_eq!(calls.get(), 1);
    }

    #[test]
    fn a_file_that_others_can_write_is_refused_with_the_command_that_mends_it() {
        for mode in [0o602, 0o646, 0o666] {
            let error = read(&FileFixture::new(mode).path, 100).unwrap_err();
            assert!(matches!(error, Error::WritableByOthers { mode: found } if found == mode), "{error}");
            assert!(error.to_string().contains("`chmod go-w` ends that"), "{error}");
        }
    }

    #[test]
    fn the_group_may_write_only_if_it_is_the_owners_own() {
        let fixture = FileFixture::new(0o660);
        // Only root can give a file to another group.
        if rustix::process::geteuid().is_root() {
            chown(&fixture.path, Some(0), Some(0)).unwrap();
            assert!(read(&fixture.path, 100).is_ok());
            chown(&fixture.path, Some(0), Some(4711)).unwrap();
            assert!(matches!(read(&fixture.path, 100), Err(Error::WritableByOthers { .. })));
            chown(&fixture.path, Some(4711), Some(4711)).unwrap();
            assert!(matches!(read(&fixture.path, 100), Err(Error::OtherOwner { owner: 4711, .. })));
        }
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused() {
        let open = |mode| File::open(FileFixture::new(mode).path).unwrap();
        assert!(check(&open(0o600), OthersAccess::MayNotRead).is_ok());
        for mode in [0o640, 0o604] {
            assert!(matches!(
                check(&open(mode), OthersAccess::MayNotRead),
                Err(Error::ReadableByOthers { .. })
            ));
            assert!(check(&open(mode), OthersAccess::MayRead).is_ok());
        }
        // The owner's own group may write only where a person edits the file.
        assert!(matches!(check(&open(0o660), OthersAccess::MayRead), Err(Error::WritableByOthers { .. })));
    }

    #[test]
    fn a_secret_is_read_from_a_private_file_alone() {
        assert_eq!(read_private(&FileFixture::new(0o600).path, 100).unwrap(), "version = 1\n");
        let error = read_private(&FileFixture::new(0o644).path, 100).unwrap_err();
        assert!(matches!(error, Error::ReadableByOthers { mode: 0o644 }), "{error}");
    }

    #[test]
    fn what_is_appended_to_is_made_private_and_is_no_link() {
        use std::io::Write;
        let fixture = FileFixture::new(0o644);
        open_append(&fixture.path).unwrap().write_all(b"more\n").unwrap();
        assert_eq!(read(&fixture.path, 100).unwrap(), "version = 1\nmore\n");
        let fresh = fixture.folder.path().join("fresh");
        assert_eq!(open_append(&fresh).unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let link = fixture.folder.path().join("link");
        symlink(&fixture.path, &link).unwrap();
        assert!(matches!(open_append(&link), Err(Error::Io(_))));
        let writable = FileFixture::new(0o664);
        let error = open_append(&writable.path).unwrap_err();
        assert!(matches!(error, Error::WritableByOthers { mode: 0o664 }), "{error}");
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting_for_it() {
        let fixture = FileFixture::new(0o600);
        assert!(matches!(read(fixture.folder.path(), 100), Err(Error::NotAFile)));
        let link = fixture.folder.path().join("link");
        symlink(&fixture.path, &link).unwrap();
        assert!(read(&link, 100).is_ok());
        assert!(matches!(open_no_follow(&link), Err(Error::SymbolicLink)));
        assert!(open_no_follow(&fixture.path).is_ok());
        let pipe = fixture.folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(matches!(read(&pipe, 100), Err(Error::NotAFile)));
        assert!(matches!(open_no_follow(&pipe), Err(Error::NotAFile)));
    }

    #[test]
    fn a_file_that_is_too_large_or_no_text_is_refused() {
        let fixture = FileFixture::new(0o600);
        assert!(matches!(read(&fixture.path, 5), Err(Error::TooLarge { max_bytes: 5 })));
        std::fs::write(&fixture.path, [0xff, 0xfe]).unwrap();
        assert!(matches!(read(&fixture.path, 100), Err(Error::Io(_))));
    }
}
