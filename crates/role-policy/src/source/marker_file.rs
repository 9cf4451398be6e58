//! Reads and writes marker files: whoever starts an agent writes one, and the agent's server reads it once.

use super::marker::{MARKER_NAMES, MIN_KEY_BYTES, MarkerError, RoleMarker, SESSION_MARKER_NAME};
use crate::policy_file::wrong_role_name;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The largest marker, in bytes. A signed one with the longest role and session has fewer than 300.
const MAX_BYTES: u64 = 512;

/// The longest lifetime of a signed marker, in seconds: one day.
const MAX_LIFETIME: u64 = 86_400;

/// The beginning of a signed marker. A role has no blank in its name, so no plain marker begins like this.
const SIGNED: &str = "rp1 ";

/// Reads the marker in `folder`; `None` if there is none of the [`MARKER_NAMES`]. If there are both, both must be
/// valid and name the same role.
///
/// With a `key`, there must be a marker that is signed with the key and has not expired at the time `now`. Read the
/// marker once, before anything is served.
///
/// A marker is not trusted if it is a link or no regular file, has hard links, has more than 512 bytes, belongs to
/// another user than that of this process, may be written by others, or is in a folder that others may write and that
/// is not sticky.
///
/// # Errors
/// The marker is there, or must be, and cannot be trusted.
pub fn find_marker(
    folder: &Path,
    key: Option<&[u8]>,
    now: SystemTime,
) -> Result<Option<RoleMarker>, MarkerError> {
    // All files are opened in this handle, so that the folder cannot be swapped after it was checked.
    let folder = unix::open_folder(folder)?;
    let mut found: Option<RoleMarker> = None;
    for name in MARKER_NAMES {
        let Some(text) = unix::read(&folder, name, MAX_BYTES)? else { continue };
        let mut marker = parse(&text, key, now)?;
        if name == "teleclaude_role" && marker.session.is_none() {
            marker.session = match unix::read(&folder, SESSION_MARKER_NAME, MAX_BYTES)? {
                Some(text) => Some(session_name(single_line(&text)?)?.to_owned()),
                None => None,
            };
        }
        match &found {
            Some(other) if other.role != marker.role => {
                return Err(MarkerError::Malformed("two markers name different roles"));
            }
            Some(_) => {}
            None => found = Some(marker),
        }
    }
    match found {
        None if key.is_some() => Err(MarkerError::Missing),
        found => Ok(found),
    }
}

/// Reads the key for signed markers from a file that only its owner may read.
///
/// # Errors
/// The file cannot be read, others may read the file, or the key has fewer than [`MIN_KEY_BYTES`] or more than
/// 4096 bytes.
pub fn read_key(path: &Path) -> Result<Vec<u8>, MarkerError> {
    unix::read_key(path)
}

/// Writes a marker for the agent that is about to start, with mode 0600 and all at once. A missing folder is created
/// with mode 0700. The program that starts the agent calls this before it does.
///
/// `lifetime` is at most a day, and only signed markers have one.
///
/// # Errors
/// A role or session that no marker can hold, a key that is too short, or the file cannot be written.
pub fn write_marker(
    folder: &Path,
    role: &str,
    session: Option<&str>,
    signature: Option<(&[u8], Duration)>,
) -> Result<std::path::PathBuf, MarkerError> {
    if let Some(wrong) = wrong_role_name(role) {
        return Err(MarkerError::Malformed(wrong));
    }
    let session = session.map(session_name).transpose()?;
    let text = match signature {
        None if session.is_some() => {
            return Err(MarkerError::Malformed(
                "only a signed marker holds a session; see teleclaude_session_id",
            ));
        }
        None => format!("{role}\n"),
        Some((key, lifetime)) => {
            if lifetime.as_secs() > MAX_LIFETIME {
                return Err(MarkerError::Malformed("it would be good for longer than a day"));
            }
            let expires = unix_time(SystemTime::now() + lifetime);
            let mut text = format!("{SIGNED}role={role}");
            if let Some(session) = session {
                let _ = write!(text, " session={session}");
            }
            let _ = write!(text, " exp={expires}");
            let mac = sign(key, &text)?;
            format!("{text} mac={mac}\n")
        }
    };
    unix::write(folder, MARKER_NAMES[0], text.as_bytes())
}

/// Returns the only line of a marker, which may lack its end.
fn single_line(text: &[u8]) -> Result<&str, MarkerError> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    match std::str::from_utf8(text) {
        Ok("") => Err(MarkerError::Malformed("it is empty")),
        Ok(line) if line.contains('\n') => Err(MarkerError::Malformed("it has more than one line")),
        Ok(line) => Ok(line),
        Err(_) => Err(MarkerError::Malformed("it is not valid UTF-8")),
    }
}

fn session_name(name: &str) -> Result<&str, MarkerError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if name.is_empty() || name.len() > 128 || !name.chars().all(fits) {
        return Err(MarkerError::Malformed(
            "it names no session: 1 to 128 letters, digits, `_`, `-`, `.` and `:`",
        ));
    }
    Ok(name)
}

/// Reads a marker's text.
fn parse(text: &[u8], key: Option<&[u8]>, now: SystemTime) -> Result<RoleMarker, MarkerError> {
    let line = single_line(text)?;
    let Some(fields) = line.strip_prefix(SIGNED) else {
        if key.is_some() {
            // Where a key is in use, a plain marker proves nothing: an agent could write one itself.
            return Err(MarkerError::Signature);
        }
        if let Some(wrong) = wrong_role_name(line) {
            return Err(MarkerError::Malformed(wrong));
        }
        return Ok(RoleMarker { role: line.to_owned(), session: None, signed: false });
    };
    // Without the key nobody can say who signed it; its role then counts as that of a plain one. With the key the
    // signature is checked before any field is read.
    let (signed, mac) = line.rsplit_once(" mac=").ok_or(MarkerError::Signature)?;
    if let Some(key) = key {
        verify(key, signed, mac)?;
    }
    let (mut role, mut session, mut expires) = (None, None, None);
    for field in fields.strip_suffix(&format!(" mac={mac}")).unwrap_or(fields).split(' ') {
        let (name, value) = field.split_once('=').ok_or(MarkerError::Malformed("a field has no value"))?;
        let field = match name {
            "role" => &mut role,
            "session" => &mut session,
            "exp" => &mut expires,
            _ => return Err(MarkerError::Malformed("it has an unknown field")),
        };
        // Two programs could read a repeated field in two ways.
        if field.replace(value).is_some() {
            return Err(MarkerError::Malformed("a field is there twice"));
        }
    }
    let (Some(role), Some(expires)) = (role, expires) else {
        return Err(MarkerError::Malformed("a signed marker has `role` and `exp`"));
    };
    if let Some(wrong) = wrong_role_name(role) {
        return Err(MarkerError::Malformed(wrong));
    }
    let expires: u64 = expires.parse().map_err(|_| MarkerError::Malformed("`exp` is no time"))?;
    let now = unix_time(now);
    if expires <= now {
        return Err(MarkerError::Expired);
    }
    // Checked here too: another program with the same key may have written it.
    if expires - now > MAX_LIFETIME {
        return Err(MarkerError::Malformed("it is good for longer than a day"));
    }
    let session = session.map(session_name).transpose()?.map(str::to_owned);
    Ok(RoleMarker { role: role.to_owned(), session, signed: key.is_some() })
}

/// Returns the seconds since 1970, or 0 for a time before.
fn unix_time(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the HMAC-SHA-256 (RFC 2104) of `text` in lower-case hexadecimal.
fn sign(key: &[u8], text: &str) -> Result<String, MarkerError> {
    let bytes = mac(key, text)?.finalize().into_bytes();
    Ok(bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

/// Checks a signature that [`sign`] made. `verify_slice` compares in constant time.
fn verify(key: &[u8], text: &str, expected: &str) -> Result<(), MarkerError> {
    let digits = expected.as_bytes();
    if digits.len() != 64 || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(MarkerError::Signature);
    }
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let bytes = bytes.ok_or(MarkerError::Signature)?;
    mac(key, text)?.verify_slice(&bytes).map_err(|_| MarkerError::Signature)
}

fn mac(key: &[u8], text: &str) -> Result<Hmac<Sha256>, MarkerError> {
    if key.len() < MIN_KEY_BYTES {
        return Err(MarkerError::Malformed("the key has fewer than 32 bytes"));
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| MarkerError::Signature)?;
    mac.update(text.as_bytes());
    Ok(mac)
}

mod unix {
    //! Opens markers and keys, and checks what was opened.

    use super::{MIN_KEY_BYTES, MarkerError};
    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use trusted_file::OthersAccess;

    fn io(error: Errno) -> MarkerError {
        MarkerError::Unreadable(error.into())
    }

    fn untrusted(why: impl Into<String>) -> MarkerError {
        MarkerError::Untrusted(why.into())
    }

    fn user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    pub(super) fn open_folder(path: &Path) -> Result<OwnedFd, MarkerError> {
        if !path.is_absolute() {
            return Err(untrusted("the folder of the marker is not an absolute path"));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(io)?;
        let stat = rustix::fs::fstat(&folder).map_err(io)?;
        if stat.st_uid != user() && stat.st_uid != 0 {
            return Err(untrusted("its folder belongs to another user"));
        }
        // In a sticky folder, such as `/tmp`, others can add files but cannot replace this user's.
        if stat.st_mode & 0o022 != 0 && stat.st_mode & 0o1000 == 0 {
            return Err(untrusted("others may write to its folder"));
        }
        Ok(folder)
    }

    /// Reads the file; `None` if there is none. Opening never blocks and follows no link.
    pub(super) fn read(folder: &OwnedFd, name: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, MarkerError> {
        // Without `NONBLOCK`, opening a FIFO would wait for its writer. Without `NOCTTY`, a terminal could become
        // the controlling one.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(untrusted("it is a symbolic link")),
            Err(error) => return Err(io(error)),
        };
        check(&file, OthersAccess::MayRead)?;
        read_limited(file, max_bytes).map(Some)
    }

    pub(super) fn read_key(path: &Path) -> Result<Vec<u8>, MarkerError> {
        // Links are followed here: the operator names this path, and a mounted secret is often a link. The opened
        // file itself is checked.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io)?);
        check(&file, OthersAccess::MayNotRead)?;
        let key = read_limited(file, 4096)?;
        if key.len() < MIN_KEY_BYTES {
            return Err(MarkerError::Malformed("the key has fewer than 32 bytes"));
        }
        Ok(key)
    }

    fn check(file: &File, others: OthersAccess) -> Result<(), MarkerError> {
        use std::os::unix::fs::MetadataExt;
        trusted_file::check(file, others)?;
        // By a second name, another session could have put its own valid marker here.
        if file.metadata()?.nlink() != 1 {
            return Err(untrusted("it has several hard links"));
        }
        Ok(())
    }

    fn read_limited(file: File, max_bytes: u64) -> Result<Vec<u8>, MarkerError> {
        let mut text = Vec::new();
        // One byte more than allowed tells a full file from one that is too long.
        file.take(max_bytes + 1).read_to_end(&mut text)?;
        if text.len() as u64 > max_bytes {
            return Err(MarkerError::Malformed("it is too long"));
        }
        Ok(text)
    }

    pub(super) fn write(folder: &Path, name: &str, text: &[u8]) -> Result<PathBuf, MarkerError> {
        match rustix::fs::mkdir(folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io(error)),
        }
        let handle = open_folder(folder)?;
        let stat = rustix::fs::fstat(&handle).map_err(io)?;
        if stat.st_mode & 0o077 != 0 {
            return Err(untrusted(
                "others may enter its folder; it must be the session's own, with mode 700",
            ));
        }
        // Written under another name and then renamed: a reader finds the old marker or the new one, whole. It is
        // synced before, so that no empty marker is left after a power failure.
        let temp_name = format!(".{name}.{}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(&handle, temp_name.as_str(), flags, Mode::RUSR | Mode::WUSR).map_err(io)?;
        let mut file = File::from(file);
        let written = file
            .write_all(text)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(rustix::fs::renameat(&handle, temp_name.as_str(), &handle, name)?));
        if let Err(error) = written {
            // What remains has another name, and is nobody's marker.
            let _ = rustix::fs::unlinkat(&handle, temp_name.as_str(), AtFlags::empty());
            return Err(error.into());
        }
        Ok(folder.join(name))
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make, and look at, the files that the code is to judge")]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn put(folder: &Path, name: &str, text: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn find(folder: &Path) -> Result<Option<RoleMarker>, MarkerError> {
        find_marker(folder, None, SystemTime::now())
    }

    fn distrust(folder: &Path) -> String {
        find(folder).expect_err("not trusted").to_string()
    }

    #[test]
    fn the_marker_of_the_role_filter_that_came_before_is_understood() {
        let folder = folder();
        assert_eq!(find(folder.path()).unwrap(), None);
        put(folder.path(), "teleclaude_role", b"worker\n", 0o600);
        put(folder.path(), "teleclaude_session_id", b"session-7", 0o644);
        let marker = find(folder.path()).unwrap().unwrap();
        assert_eq!(
            (marker.role.as_str(), marker.session.as_deref(), marker.signed),
            ("worker", Some("session-7"), false)
        );
    }

    #[test]
    fn a_marker_that_says_nothing_sensible_is_not_trusted() {
        for text in [
            &b""[..],
            b"\n",
            b"worker\norchestrator",
            b" worker",
            b"worker ",
            b"worker\r\n",
            b"Worker",
            b"\xffworker",
            b"\xef\xbb\xbfworker",
            b"worker\0",
            &[b'a'; 600],
            &[b'a'; 33],
        ] {
            let folder = folder();
            put(folder.path(), "coretools_role", text, 0o600);
            assert!(find(folder.path()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_marker_that_others_may_have_made_is_not_trusted() {
        let away = folder();
        let real = put(away.path(), "real", b"orchestrator", 0o600);
        let folder = folder();
        let marker = folder.path().join("coretools_role");
        symlink(&real, &marker).unwrap();
        assert_eq!(distrust(folder.path()), "it is a symbolic link");
        std::fs::remove_file(&marker).unwrap();
        std::fs::hard_link(&real, &marker).unwrap();
        assert_eq!(distrust(folder.path()), "it has several hard links");
        std::fs::remove_file(&marker).unwrap();
        std::fs::create_dir(&marker).unwrap();
        assert_eq!(distrust(folder.path()), "it is not a file");
        std::fs::remove_dir(&marker).unwrap();
        // A pipe must not be waited for.
        rustix::fs::mkfifoat(rustix::fs::CWD, &marker, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(distrust(folder.path()), "it is not a file");
        std::fs::remove_file(&marker).unwrap();
        put(folder.path(), "coretools_role", b"worker", 0o620);
        assert!(distrust(folder.path()).contains("mode 620"));
        put(folder.path(), "coretools_role", b"worker", 0o600);
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(distrust(folder.path()), "others may write to its folder");
        // As /tmp is: nobody can put another's file away there.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(find(folder.path()).unwrap().is_some());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&marker, Some(12345), None).unwrap();
            assert_eq!(distrust(folder.path()), "it belongs to user 12345, and this process runs as user 0");
        }
        assert!(find(Path::new("relative")).is_err());
    }

    #[test]
    fn two_markers_that_disagree_are_not_trusted() {
        let folder = folder();
        put(folder.path(), "coretools_role", b"worker", 0o600);
        put(folder.path(), "teleclaude_role", b"worker", 0o600);
        assert!(find(folder.path()).unwrap().is_some());
        put(folder.path(), "teleclaude_role", b"orchestrator", 0o600);
        assert_eq!(distrust(folder.path()), "two markers name different roles");
    }

    #[test]
    fn a_marker_that_is_written_is_found_and_only_its_owner_may_touch_it() {
        let parent = folder();
        let folder = parent.path().join("session");
        let path = write_marker(&folder, "worker", None, None).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(find(&folder).unwrap().unwrap().role, "worker");
        // It replaces the one before.
        write_marker(&folder, "qa", None, None).unwrap();
        assert_eq!(find(&folder).unwrap().unwrap().role, "qa");
        for role in ["", "Worker", "a b", "a\nb"] {
            assert!(write_marker(&folder, role, None, None).is_err(), "{role:?}");
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(write_marker(&folder, "qa", None, None).unwrap_err().to_string().contains("mode 700"));
    }

    #[test]
    fn with_a_key_only_a_marker_that_it_signed_counts() {
        let parent = folder();
        let folder = parent.path().join("session");
        let now = SystemTime::now();
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(matches!(find_marker(&folder, Some(KEY), now), Err(MarkerError::Missing)));
        write_marker(&folder, "worker", None, None).unwrap();
        assert!(matches!(find_marker(&folder, Some(KEY), now), Err(MarkerError::Signature)));
        let hour = Duration::from_secs(3600);
        let path = write_marker(&folder, "worker", Some("s1"), Some((KEY, hour))).unwrap();
        let marker = find_marker(&folder, Some(KEY), now).unwrap().unwrap();
        assert_eq!(
            (marker.role.as_str(), marker.session.as_deref(), marker.signed),
            ("worker", Some("s1"), true)
        );
        let other = [b'x'; 32];
        assert!(matches!(find_marker(&folder, Some(&other), now), Err(MarkerError::Signature)));
        assert!(matches!(find_marker(&folder, Some(KEY), now + hour * 2), Err(MarkerError::Expired)));
        assert!(write_marker(&folder, "worker", None, Some((KEY, hour * 25))).is_err());
        assert!(write_marker(&folder, "worker", None, Some((b"short", hour))).is_err());
        // Any letter changed is another marker.
        let text = std::fs::read(&path).unwrap();
        for at in 0..text.len() - 1 {
            let mut forged = text.clone();
            forged[at] ^= 1;
            assert!(parse(&forged, Some(KEY), now).is_err(), "{}", String::from_utf8_lossy(&forged));
        }
    }

    #[test]
    fn a_key_that_others_may_read_is_none() {
        let folder = folder();
        let path = put(folder.path(), "key", &[7; 32], 0o600);
        assert_eq!(read_key(&path).unwrap(), [7; 32]);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read_key(&path).is_err());
        let path = put(folder.path(), "short", &[7; 31], 0o600);
        assert!(read_key(&path).is_err());
    }
}
