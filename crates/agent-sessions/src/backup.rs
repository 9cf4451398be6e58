//! Backups of session files.

use crate::clock;
use crate::session_file::{BACKUP_INFIX, open_file, open_parent};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The number of backups that are kept of one file.
const MAX_BACKUPS: usize = 10;
/// The most backups of one second. More than this means that something calls in a loop.
const MAX_BACKUPS_PER_SECOND: u32 = 100;
/// The length of `YYYYMMDD-HHMMSS`.
const TIME_CHARS: usize = 15;

/// Copies a session file beside itself, as `stem-backup-YYYYMMDD-HHMMSS.md` (UTC), and keeps the newest ten copies.
///
/// No copy is overwritten: further ones of the same second get `-1`, `-2` and so on behind the time. `now_ms` is in
/// milliseconds since 1970.
///
/// # Errors
/// The file cannot be read or copied.
pub(crate) fn back_up(path: &Path, now_ms: u64) -> io::Result<PathBuf> {
    let (folder, name) = open_parent(path)?;
    let mut source = open_file(&folder, name, OFlags::RDONLY, Mode::empty())?;
    let mut content = Vec::new();
    source.read_to_end(&mut content)?;
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    let digits: String = clock::rfc3339(now_ms).chars().filter(char::is_ascii_digit).collect();
    // A copy must not show others what the file itself hides from them.
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&source)?.st_mode & 0o777);
    let base = format!("{stem}{BACKUP_INFIX}{}-{}", &digits[..8], &digits[8..14]);
    for number in 0..MAX_BACKUPS_PER_SECOND {
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        let copy = format!("{base}{suffix}{extension}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = match open_file(&folder, &copy, flags, mode) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        if let Err(error) = file.write_all(&content).and_then(|()| file.sync_all()) {
            // Half a copy would look like a whole one later.
            let _ = rustix::fs::unlinkat(&folder, copy.as_str(), AtFlags::empty());
            return Err(error);
        }
        // Only after the new copy is whole, so that there is never one copy less.
        remove_oldest(&folder, stem, &extension)?;
        return Ok(path.with_file_name(copy));
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("there are {MAX_BACKUPS_PER_SECOND} copies of this second"),
    ))
}

fn remove_oldest(folder: &OwnedFd, stem: &str, extension: &str) -> io::Result<()> {
    let prefix = format!("{stem}{BACKUP_INFIX}");
    let mut copies: Vec<(String, u32, String)> = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let middle = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(extension));
        if let Some((time, number)) = middle.and_then(parse_backup_time) {
            copies.push((time.to_owned(), number, name.to_owned()));
        }
    }
    // By time and then by number: as text, -10 would come before -2.
    copies.sort();
    for (_, _, name) in copies.iter().take(copies.len().saturating_sub(MAX_BACKUPS)) {
        rustix::fs::unlinkat(folder, name.as_str(), AtFlags::empty())?;
    }
    Ok(())
}

/// Splits `YYYYMMDD-HHMMSS` or `YYYYMMDD-HHMMSS-N` into time and number.
fn parse_backup_time(text: &str) -> Option<(&str, u32)> {
    let (time, number) = text.split_at_checked(TIME_CHARS)?;
    let is_time =
        time.bytes().enumerate().all(|(at, byte)| if at == 8 { byte == b'-' } else { byte.is_ascii_digit() });
    let number = match number {
        "" => 0,
        number => number.strip_prefix('-')?.parse().ok()?,
    };
    is_time.then_some((time, number))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]
    use super::*;
    use std::fs;

    #[test]
    fn copies_never_overwrite_each_other_and_the_newest_ten_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.md");
        let second = 1_763_764_620_000;
        let mut copies = Vec::new();
        for number in 0..15 {
            fs::write(&path, format!("version {number}")).unwrap();
            // Three in each second.
            let copy = back_up(&path, second + number / 3 * 1000).unwrap();
            assert_eq!(fs::read_to_string(&copy).unwrap(), format!("version {number}"));
            copies.push(copy);
        }
        assert!(
            copies[0].ends_with("session-backup-20251121-223700.md")
                && copies[1].ends_with("session-backup-20251121-223700-1.md")
        );
        let left: Vec<bool> = copies.iter().map(|copy| copy.exists()).collect();
        assert_eq!(left, [[false; 5].as_slice(), &[true; 10]].concat());
        assert!(back_up(&folder.path().join("nothing.md"), second).is_err());
    }
}
