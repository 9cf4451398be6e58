//! The private folders: that of the state, and one for each session.
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

/// The marker of the role filter that came before, which its readers still look for.
const OLD_ROLE_MARKER: &str = "teleclaude_role";

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder in which everything is kept: 0700, this user's own.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl StateFolder {
    /// Opens the folder, and makes it and those above it where they are missing.
    ///
    /// # Errors
    /// It cannot be made or opened, or belongs to another user.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the state directory is not an absolute path",
            ));
        }
        make_all(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        make_private(handle.as_fd())?;
        Ok(Self { path: path.to_owned(), handle })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file in it that only this user may read, and makes it where it is missing. No link is followed.
    ///
    /// # Errors
    /// It is a link or no regular file, or the system refuses.
    pub fn file(&self, name: &str) -> io::Result<File> {
        private_file(self.handle.as_fd(), name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Makes the folder of a session anew: empty, and with its markers.
    ///
    /// # Errors
    /// Something else is in its place, or it cannot be made.
    pub fn session(&self, id: &str) -> io::Result<SessionFolder> {
        let sessions = subfolder(self.handle.as_fd(), "sessions")?;
        let name = safe_name(id);
        match rustix::fs::mkdirat(&sessions, name.as_str(), Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                // One that is left over. A link is not followed, and not removed either: somebody put it there.
                let old = open_own(sessions.as_fd(), &name)?;
                empty(old.as_fd(), 0)?;
            }
            Err(error) => return Err(error.into()),
        }
        self.existing(id)
    }

    /// The folder of a session that was made before.
    ///
    /// # Errors
    /// It is not there, or something else is in its place.
    pub fn existing(&self, id: &str) -> io::Result<SessionFolder> {
        let sessions = subfolder(self.handle.as_fd(), "sessions")?;
        let name = safe_name(id);
        let handle = open_own(sessions.as_fd(), &name)?;
        let temporary = subfolder(handle.as_fd(), "tmp")?;
        Ok(SessionFolder { path: self.path.join("sessions").join(name), handle, temporary })
    }

    /// The folder of what is kept for a caller of a server for many. It is made where it is missing.
    ///
    /// # Errors
    /// Something else is in its place, or it cannot be made.
    pub(super) fn caller(&self, principal: &str) -> io::Result<PathBuf> {
        // Of the name itself nothing is made: two could be alike to the file system.
        let name = hex(&Sha256::digest(principal.as_bytes())[..16]);
        let callers = subfolder(self.handle.as_fd(), "callers")?;
        subfolder(callers.as_fd(), &name)?;
        Ok(self.path.join("callers").join(name))
    }

    /// Removes the folder of a session and all that is in it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_session(&self, id: &str) -> io::Result<()> {
        let sessions = subfolder(self.handle.as_fd(), "sessions")?;
        let name = safe_name(id);
        let handle = open_own(sessions.as_fd(), &name)?;
        empty(handle.as_fd(), 0)?;
        Ok(rustix::fs::unlinkat(&sessions, name.as_str(), AtFlags::REMOVEDIR)?)
    }
}

/// The folder of one session.
#[derive(Debug)]
pub struct SessionFolder {
    path: PathBuf,
    handle: OwnedFd,
    temporary: OwnedFd,
}

/// Whose session it is.
#[derive(Clone, Copy, Debug)]
pub struct Markers<'a> {
    /// The session's id.
    pub session: &'a str,
    /// The role of its agent.
    pub role: &'a str,
    /// The key to sign the marker with, and how long it is good.
    pub key: Option<(&'a [u8], Duration)>,
}

impl SessionFolder {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder for the agent's temporary files, which is its `TMPDIR`.
    pub fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Writes the markers that say who runs here. To be called before every start.
    ///
    /// # Errors
    /// The role or session cannot stand in a marker, or the system refuses.
    pub fn mark(&self, markers: &Markers<'_>) -> io::Result<()> {
        let other = |error: role_policy::source::MarkerError| io::Error::other(error.to_string());
        for name in [OLD_ROLE_MARKER, SESSION_MARKER_NAME] {
            remove_any(self.temporary.as_fd(), name)?;
        }
        remove_any(self.temporary.as_fd(), role_policy::source::MARKER_NAMES[0])?;
        let session = markers.key.map(|_| markers.session);
        write_marker(&self.temporary(), markers.role, session, markers.key).map_err(other)?;
        if markers.key.is_none() {
            // One that is not signed would not count beside a key.
            self.put(OLD_ROLE_MARKER, markers.role)?;
        }
        self.put(SESSION_MARKER_NAME, markers.session)
    }

    fn put(&self, name: &str, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        private_file(self.temporary.as_fd(), name, flags)?.write_all(format!("{text}\n").as_bytes())
    }

    /// Makes a pipe with a name anew, and opens it in both directions: who holds this end is never without the
    /// other, so that neither end of file nor `SIGPIPE` comes when the supervisor dies.
    ///
    /// # Errors
    /// The system refuses.
    pub fn pipe(&self, name: &str) -> io::Result<File> {
        remove_any(self.handle.as_fd(), name)?;
        make_pipe(self.handle.as_fd(), name)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let pipe = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        check_pipe(&pipe)?;
        Ok(File::from(pipe))
    }

    /// Opens our end of a pipe that is there: to read, or to write. It does not block.
    ///
    /// # Errors
    /// It is not there, is no pipe, or nobody has its other end.
    pub fn pipe_end(&self, name: &str, write: bool) -> io::Result<OwnedFd> {
        let direction = if write { OFlags::WRONLY } else { OFlags::RDONLY };
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

/// No safe call makes one beneath a folder there, and no supervisor starts.
#[cfg(target_vendor = "apple")]
fn make_pipe(_folder: BorrowedFd<'_>, _name: &str) -> io::Result<()> {
    let why = format!("not supported on {}: named pipes", std::env::consts::OS);
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

fn check_pipe(pipe: &OwnedFd) -> io::Result<()> {
    let stat = rustix::fs::fstat(pipe)?;
    match FileType::from_raw_mode(stat.st_mode) == FileType::Fifo && stat.st_uid == user() {
        true => Ok(()),
        false => Err(foreign("it is not a pipe of this user's")),
    }
}

/// A name for a folder: the id itself where it can be one, else 32 digits of its SHA-256.
pub fn safe_name(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=128).contains(&id.len()) && id.chars().all(fits) && !id.starts_with('.') {
        return id.to_owned();
    }
    hex(&Sha256::digest(id.as_bytes())[..16])
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn foreign(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Makes a folder and those above it, each for this user alone.
fn make_all(path: &Path) -> io::Result<()> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => {
            let parent = path.parent().ok_or(Errno::NOENT)?;
            make_all(parent)?;
            match rustix::fs::mkdir(path, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses a folder of another user, and keeps everybody else out of this user's.
fn make_private(folder: BorrowedFd<'_>) -> io::Result<()> {
    let stat = rustix::fs::fstat(folder)?;
    if stat.st_uid != user() {
        return Err(foreign("it belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(folder, Mode::RWXU)?;
    }
    Ok(())
}

fn open_own(parent: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let handle = rustix::fs::openat(parent, name, FOLDER, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            foreign("something that is no folder is in the place of the session's folder")
        }
        error => error.into(),
    })?;
    make_private(handle.as_fd())?;
    Ok(handle)
}

fn subfolder(parent: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => open_own(parent, name),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn private_file(folder: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        || stat.st_uid != user()
        || stat.st_nlink != 1
    {
        return Err(foreign("it is not a file of this user's own"));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    }
    Ok(File::from(file))
}

/// Removes a name, whatever it stands for. What a link leads to stays.
fn remove_any(folder: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {
            let inner = rustix::fs::openat(folder, name, FOLDER, Mode::empty())?;
            empty(inner.as_fd(), 0)?;
            Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes what is in a folder, and follows no link on the way.
fn empty(folder: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
    /// Deeper than this is no temporary file.
    const DEEPEST: usize = 100;
    if depth > DEEPEST {
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
                let inner = rustix::fs::openat(folder, name, FOLDER, Mode::empty())?;
                empty(inner.as_fd(), depth + 1)?;
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

    fn state() -> (tempfile::TempDir, StateFolder) {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::open(&folder.path().join("a/b/state")).unwrap();
        (folder, state)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    const MARKERS: Markers<'static> = Markers { session: "s1", role: "worker", key: None };

    #[test]
    fn a_session_has_a_folder_of_its_own_that_says_who_runs_there() {
        let (_folder, state) = state();
        let session = state.session("s1").unwrap();
        session.mark(&MARKERS).unwrap();
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
        session.mark(&Markers { key: Some((&key, Duration::from_secs(60))), ..MARKERS }).unwrap();
        let marker = find_marker(&session.temporary(), Some(&key), SystemTime::now()).unwrap().unwrap();
        assert!(marker.signed && marker.session.as_deref() == Some("s1"));
    }

    #[test]
    fn markers_are_written_anew_whatever_the_agent_made_of_them() {
        let (folder, state) = state();
        let session = state.session("s1").unwrap();
        session.mark(&MARKERS).unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        for name in ["coretools_role", "teleclaude_role", "teleclaude_session_id"] {
            let path = session.temporary().join(name);
            fs::remove_file(&path).unwrap();
            symlink(&victim, &path).unwrap();
        }
        session.mark(&MARKERS).unwrap();
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
        assert_eq!(safe_name("a-B_3.x"), "a-B_3.x");
        for id in ["", "..", ".hidden", "a/b", "a b", "ä", &"x".repeat(129)] {
            let name = safe_name(id);
            assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}: {name}");
        }
        assert_ne!(safe_name("a/b"), safe_name("a/c"));
    }

    #[test]
    fn a_state_folder_that_others_may_enter_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        StateFolder::open(folder.path()).unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        assert!(StateFolder::open(Path::new("relative")).is_err());
    }
}
