//! The private folders of a supervisor: the state directory, and one for each session and each caller.
//!
//! Sessions run as the same user and can change everything here. So each name is opened beneath the handle of its
//! folder, no link is followed, and whatever has the wrong type or owner is refused.
#![allow(clippy::doc_markdown, reason = "names of variables and files")]

use role_policy::source::{SESSION_MARKER_NAME, write_marker};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The role marker under the name that an earlier role filter gave it, and still reads.
const LEGACY_ROLE_MARKER: &str = "teleclaude_role";

/// The name of the folder of all sessions.
const SESSIONS_NAME: &str = "sessions";
/// The name of the folder of all callers.
const CALLERS_NAME: &str = "callers";
/// The name of the folder for temporary files in the folder of a session.
const TEMPORARY_NAME: &str = "tmp";
/// The longest id that is used as the name of a folder, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// The depth to which a folder is emptied. No agent nests its temporary files deeper.
const MAX_DEPTH: usize = 100;

const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The state directory of a supervisor. It belongs to this user, who alone may enter it (0700).
#[derive(Debug)]
pub(crate) struct SupervisorStateFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl SupervisorStateFolder {
    /// Opens the state directory, and creates it and the folders above it where they are missing.
    ///
    /// # Errors
    /// It cannot be created or opened, its path is relative, or it belongs to another user.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the state directory is not an absolute path",
            ));
        }
        create_all(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        make_private(handle.as_fd())?;
        Ok(Self { path: path.to_owned(), handle })
    }

    /// Returns the path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the folder of a session.
    pub(crate) fn session_path(&self, id: &str) -> PathBuf {
        self.path.join(SESSIONS_NAME).join(folder_name(id))
    }

    /// Opens a file in the directory that only this user may read, and creates it if it is missing.
    ///
    /// # Errors
    /// It is a link or no regular file, or the system refuses.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        private_file(self.handle.as_fd(), name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Creates the folder of a session. One that is left over is emptied.
    ///
    /// # Errors
    /// Something else has its name, or it cannot be created.
    pub(crate) fn session(&self, id: &str) -> io::Result<SessionDirectory> {
        let sessions = subfolder(self.handle.as_fd(), SESSIONS_NAME)?;
        let name = folder_name(id);
        // Created and not looked for first: what exists is then known to be left over.
        match rustix::fs::mkdirat(&sessions, name.as_str(), Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                // A link is refused and not replaced: somebody put it there, and the user should know.
                let old = open_user_folder(sessions.as_fd(), &name)?;
                remove_contents(old.as_fd(), 0)?;
            }
            Err(error) => return Err(error.into()),
        }
        self.existing(id)
    }

    /// Opens the folder of a session that was created before.
    ///
    /// # Errors
    /// It is missing, or something else has its name.
    pub(crate) fn existing(&self, id: &str) -> io::Result<SessionDirectory> {
        let sessions = subfolder(self.handle.as_fd(), SESSIONS_NAME)?;
        let handle = open_user_folder(sessions.as_fd(), &folder_name(id))?;
        let temporary = subfolder(handle.as_fd(), TEMPORARY_NAME)?;
        Ok(SessionDirectory { path: self.session_path(id), handle, temporary })
    }

    /// Returns the folder for a caller of a shared server, and creates it if it is missing.
    ///
    /// # Errors
    /// Something else has its name, or it cannot be created.
    pub(crate) fn caller(&self, principal: &str) -> io::Result<PathBuf> {
        // A hash, as two names may be the same to the file system.
        let name = hex(&Sha256::digest(principal.as_bytes())[..16]);
        let callers = subfolder(self.handle.as_fd(), CALLERS_NAME)?;
        subfolder(callers.as_fd(), &name)?;
        Ok(self.path.join(CALLERS_NAME).join(name))
    }

    /// Removes the folder of a session and everything in it.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn remove_session(&self, id: &str) -> io::Result<()> {
        let sessions = subfolder(self.handle.as_fd(), SESSIONS_NAME)?;
        let name = folder_name(id);
        let handle = open_user_folder(sessions.as_fd(), &name)?;
        remove_contents(handle.as_fd(), 0)?;
        Ok(rustix::fs::unlinkat(&sessions, name.as_str(), AtFlags::REMOVEDIR)?)
    }
}

/// The folder of a session.
#[derive(Debug)]
pub(crate) struct SessionDirectory {
    path: PathBuf,
    handle: OwnedFd,
    temporary: OwnedFd,
}

/// The content of the markers by which programs in a session find its id and its role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionMarkers<'a> {
    /// The id of the session.
    pub(crate) session: &'a str,
    /// The role of its agent.
    pub(crate) role: &'a str,
    /// The key that signs the marker, and the time for which that is valid. None: it is not signed.
    pub(crate) key: Option<(&'a [u8], Duration)>,
}

impl SessionDirectory {
    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the folder for the agent's temporary files, which is its `TMPDIR`.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Writes the markers anew, whatever has their names.
    ///
    /// # Errors
    /// The role or the id cannot stand in a marker, or the system refuses.
    pub(crate) fn write_markers(&self, markers: &SessionMarkers<'_>) -> io::Result<()> {
        let invalid = |error: role_policy::source::MarkerError| io::Error::other(error.to_string());
        for name in [LEGACY_ROLE_MARKER, SESSION_MARKER_NAME] {
            remove_any(self.temporary.as_fd(), name)?;
        }
        remove_any(self.temporary.as_fd(), role_policy::source::MARKER_NAMES[0])?;
        // Only a signed marker can hold the session; without a key it has a file of its own.
        let session = markers.key.map(|_| markers.session);
        write_marker(&self.temporary(), markers.role, session, markers.key).map_err(invalid)?;
        if markers.key.is_none() {
            // Where there is a key, only signed markers count, and this form has no signature.
            self.create_marker(LEGACY_ROLE_MARKER, markers.role)?;
        }
        self.create_marker(SESSION_MARKER_NAME, markers.session)
    }

    fn create_marker(&self, name: &str, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        private_file(self.temporary.as_fd(), name, flags)?.write_all(format!("{text}\n").as_bytes())
    }

    /// Creates a named pipe anew, and opens it in both directions.
    ///
    /// A process that holds it has both ends, so that it sees neither end of file nor `SIGPIPE` when the supervisor
    /// dies.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn create_pipe(&self, name: &str) -> io::Result<File> {
        remove_any(self.handle.as_fd(), name)?;
        make_pipe(self.handle.as_fd(), name)?;
        // `RDWR` does not wait for another process to open the other end (fifo(7)).
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let pipe = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        check_pipe(&pipe)?;
        Ok(File::from(pipe))
    }

    /// Opens the reading end of a pipe, without blocking.
    ///
    /// # Errors
    /// It is missing, or is no pipe.
    pub(crate) fn open_pipe_reader(&self, name: &str) -> io::Result<OwnedFd> {
        self.open_pipe(name, OFlags::RDONLY)
    }

    /// Opens the writing end of a pipe, without blocking.
    ///
    /// # Errors
    /// It is missing, is no pipe, or no process has its reading end.
    pub(crate) fn open_pipe_writer(&self, name: &str) -> io::Result<OwnedFd> {
        self.open_pipe(name, OFlags::WRONLY)
    }

    fn open_pipe(&self, name: &str, direction: OFlags) -> io::Result<OwnedFd> {
        let flags = direction | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let pipe = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        check_pipe(&pipe)?;
        Ok(pipe)
    }
}

#[cfg(not(target_vendor = "apple"))]
fn make_pipe(folder: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    Ok(rustix::fs::mknodat(folder, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// Apple's systems have no call that creates a pipe beneath a folder's handle. No supervisor starts there.
#[cfg(target_vendor = "apple")]
fn make_pipe(_folder: BorrowedFd<'_>, _name: &str) -> io::Result<()> {
    let reason = format!("not supported on {}: named pipes", std::env::consts::OS);
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

fn check_pipe(pipe: &OwnedFd) -> io::Result<()> {
    let stat = rustix::fs::fstat(pipe)?;
    match FileType::from_raw_mode(stat.st_mode) == FileType::Fifo && stat.st_uid == current_user() {
        true => Ok(()),
        false => Err(permission_denied("it is not a pipe of this user's")),
    }
}

/// Returns a name for the folder of a session: its id if that can be a name, else 32 digits of its SHA-256.
fn folder_name(id: &str) -> String {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    // No leading dot, so neither `..` nor a hidden folder.
    if (1..=MAX_NAME_BYTES).contains(&id.len()) && id.chars().all(is_name_char) && !id.starts_with('.') {
        return id.to_owned();
    }
    hex(&Sha256::digest(id.as_bytes())[..16])
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn permission_denied(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// Creates a folder and those above it, each for this user alone.
fn create_all(path: &Path) -> io::Result<()> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        // The folder itself is tried first, since usually it is there and no parent need be looked at.
        Err(Errno::NOENT) => {
            let parent = path.parent().ok_or(Errno::NOENT)?;
            create_all(parent)?;
            match rustix::fs::mkdir(path, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses a folder of another user, and takes all rights from others in one of this user.
fn make_private(folder: BorrowedFd<'_>) -> io::Result<()> {
    let stat = rustix::fs::fstat(folder)?;
    if stat.st_uid != current_user() {
        return Err(permission_denied("it belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(folder, Mode::RWXU)?;
    }
    Ok(())
}

/// Opens a folder of this user.
fn open_user_folder(parent: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let handle =
        rustix::fs::openat(parent, name, FOLDER_FLAGS, Mode::empty()).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => {
                permission_denied("something that is no folder has the name of the session's folder")
            }
            error => error.into(),
        })?;
    make_private(handle.as_fd())?;
    Ok(handle)
}

/// Opens a folder of this user, and creates it if it is missing.
fn subfolder(parent: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => open_user_folder(parent, name),
        Err(error) => Err(error.into()),
    }
}

/// Opens a regular file that only this user may read.
pub(crate) fn private_file(folder: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        || stat.st_uid != current_user()
        // A second name could lie where others may read it.
        || stat.st_nlink != 1
    {
        return Err(permission_denied("it is not a file of this user's own"));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    }
    Ok(File::from(file))
}

/// Removes whatever has a name. The target of a link stays.
fn remove_any(folder: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // To unlink a folder fails with `EISDIR` on Linux, and with `EPERM` where POSIX is followed.
        Err(Errno::ISDIR | Errno::PERM) => {
            let inner = rustix::fs::openat(folder, name, FOLDER_FLAGS, Mode::empty())?;
            remove_contents(inner.as_fd(), 0)?;
            Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes everything in a folder.
fn remove_contents(folder: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("the session's old folder is nested too deeply"));
    }
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => {
                let inner = rustix::fs::openat(folder, name, FOLDER_FLAGS, Mode::empty())?;
                remove_contents(inner.as_fd(), depth + 1)?;
                rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]
    use super::*;
    use role_policy::source::find_marker;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::SystemTime;

    fn state() -> (tempfile::TempDir, SupervisorStateFolder) {
        let folder = tempfile::tempdir().unwrap();
        let state = SupervisorStateFolder::open(&folder.path().join("a/b/state")).unwrap();
        (folder, state)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    const MARKERS: SessionMarkers<'static> = SessionMarkers { session: "s1", role: "worker", key: None };

    #[test]
    fn a_session_has_a_folder_of_its_own_that_says_who_runs_there() {
        let (_folder, state) = state();
        let session = state.session("s1").unwrap();
        session.write_markers(&MARKERS).unwrap();
        for path in [state.path(), session.path(), &session.temporary()] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        assert_eq!(mode(&session.temporary().join("coretools_role")), 0o600);
        let marker = find_marker(&session.temporary(), None, SystemTime::now()).unwrap().unwrap();
        assert_eq!(marker.role, "worker");
        let id = session.temporary().join(SESSION_MARKER_NAME);
        assert_eq!((fs::read_to_string(&id).unwrap().as_str(), mode(&id)), ("s1\n", 0o600));
    }

    #[test]
    fn a_marker_can_be_signed() {
        let (_folder, state) = state();
        let session = state.session("s1").unwrap();
        let key = [7u8; 32];
        session
            .write_markers(&SessionMarkers { key: Some((&key, Duration::from_secs(60))), ..MARKERS })
            .unwrap();
        let marker = find_marker(&session.temporary(), Some(&key), SystemTime::now()).unwrap().unwrap();
        assert!(marker.signed && marker.session.as_deref() == Some("s1"));
    }

    #[test]
    fn markers_are_written_anew_whatever_the_agent_made_of_them() {
        let (folder, state) = state();
        let session = state.session("s1").unwrap();
        session.write_markers(&MARKERS).unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        for name in ["coretools_role", "teleclaude_role", "teleclaude_session_id"] {
            let path = session.temporary().join(name);
            fs::remove_file(&path).unwrap();
            symlink(&victim, &path).unwrap();
        }
        session.write_markers(&MARKERS).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        let marker = find_marker(&session.temporary(), None, SystemTime::now()).unwrap().unwrap();
        assert_eq!(marker.role, "worker");
    }

    #[test]
    fn what_an_earlier_session_left_is_gone_and_what_its_links_led_to_is_not() {
        let (folder, state) = state();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let session = state.session("s1").unwrap();
        fs::create_dir_all(session.temporary().join("deep/er")).unwrap();
        fs::write(session.temporary().join("deep/er/old"), "x").unwrap();
        symlink(&outside, session.temporary().join("link")).unwrap();
        let again = state.session("s1").unwrap();
        assert_eq!(fs::read_dir(again.temporary()).unwrap().count(), 0);
        assert!(outside.join("kept").exists());
    }

    #[test]
    fn a_link_in_the_place_of_a_sessions_folder_is_refused() {
        let (folder, state) = state();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        state.session("other").unwrap();
        symlink(&outside, state.path().join("sessions/s1")).unwrap();
        let refused = state.session("s1").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{refused}");
        assert!(state.existing("s1").is_err() && state.remove_session("s1").is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing was written where it leads");
        // The same for the folder of all, and for the temporary one.
        let session = state.session("s2").unwrap();
        fs::remove_dir(session.temporary()).unwrap();
        symlink(&outside, session.temporary()).unwrap();
        assert!(state.existing("s2").is_err());
        assert!(state.file("log").is_ok());
        symlink(outside.join("x"), state.path().join("lock")).unwrap();
        assert!(state.file("lock").is_err() && !outside.join("x").exists());
    }

    #[test]
    fn an_id_that_cannot_be_a_name_gets_one_that_can() {
        assert_eq!(folder_name("a-B_3.x"), "a-B_3.x");
        for id in ["", "..", ".hidden", "a/b", "a b", "ä", &"x".repeat(129)] {
            let name = folder_name(id);
            assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}: {name}");
        }
        assert_ne!(folder_name("a/b"), folder_name("a/c"));
    }

    #[test]
    fn a_state_folder_that_others_may_enter_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        SupervisorStateFolder::open(folder.path()).unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        assert!(SupervisorStateFolder::open(Path::new("relative")).is_err());
    }
}
