//! The files of a source, oldest first: the one that is written to, and those that were rotated away.

use super::Error;
use super::source::ReadAt;
use crate::workspace::{ConfinedPath, Folder, Kind, Workspace, printable};
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// Where a source's files are.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// As messages show it.
    pub(super) name: String,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// One file, and what was rotated away from it.
    File(ConfinedPath),
    /// Whatever matches beneath a folder, in the order of its last change.
    Glob { base: ConfinedPath, matcher: GlobMatcher, deepest: usize },
}

/// A file of a source, open.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) file: File,
    /// As messages show it.
    pub(super) shown: String,
    pub(super) size: u64,
    pub(super) id: FileId,
    pub(super) modified: Option<SystemTime>,
    pub(super) compressed: bool,
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// When it was made, in nanoseconds, where the file system says: an inode's number is soon given again.
    pub(super) born: u64,
}

/// A folder that is looked through for a glob may have so many entries.
const MOST_ENTRIES: usize = 20_000;
/// A source may have so many files, newest first.
const MOST_FILES: usize = 200;

impl Source {
    /// The source that `text` names: a path or a glob.
    pub(super) fn new(workspace: &Workspace, text: &str, name: &str) -> Result<Self, Error> {
        // Messages show no absolute path.
        let shown = if name.starts_with('/') { "`source`" } else { name };
        let path = |source| Error::Path { path: shown.to_owned(), source };
        let place = match text.find(['*', '?', '[', '{']) {
            None => Place::File(workspace.locate(text).map_err(path)?),
            Some(meta) => {
                let split =
                    text.get(..meta).and_then(|literal| literal.rfind('/')).map_or(0, |slash| slash + 1);
                let (folder, glob) = text.split_at(split);
                let base = workspace.locate(if folder.is_empty() { "." } else { folder }).map_err(path)?;
                let matcher = GlobBuilder::new(glob).literal_separator(true).build();
                let reason = |error: globset::Error| error.kind().to_string();
                let matcher = matcher
                    .map_err(|error| Error::Glob { glob: text.to_owned(), reason: reason(error) })?
                    .compile_matcher();
                let deepest = if glob.contains("**") { 8 } else { glob.matches('/').count() };
                Place::Glob { base, matcher, deepest }
            }
        };
        Ok(Self { name: name.to_owned(), place })
    }

    /// The file that is written to, where the source is one file and it is there.
    pub(super) fn current(&self) -> Option<LogFile> {
        match &self.place {
            Place::File(path) => open(path).ok(),
            Place::Glob { .. } => None,
        }
    }

    /// All files, oldest first.
    pub(super) fn files(&self) -> Result<Vec<LogFile>, Error> {
        match &self.place {
            Place::File(path) => self.rotated(path),
            Place::Glob { base, matcher, deepest } => self.matching(base, matcher, *deepest),
        }
    }

    fn rotated(&self, path: &ConfinedPath) -> Result<Vec<LogFile>, Error> {
        let mut found = Vec::new();
        if let (Some(parent), Some(name)) = (path.parent(), path.relative().file_name())
            && let Ok(folder) = parent.open_folder()
        {
            let names = folder.entries().into_iter().flatten().flatten().map(|entry| entry.name);
            let mut names: Vec<(Age, OsString)> =
                names.filter_map(|other| Some((Age::of(name.to_str()?, other.to_str()?)?, other))).collect();
            names.sort();
            names.drain(..names.len().saturating_sub(MOST_FILES));
            // One that is gone a moment later was rotated once more; whoever looks again finds it.
            found.extend(names.iter().filter_map(|(_, name)| open(&parent.join(name).ok()?).ok()));
        }
        match open(path) {
            Ok(file) => found.push(file),
            Err(error) if error.is_not_found() && !found.is_empty() => {}
            Err(error) if error.is_not_found() => return Err(self.not_found(path)),
            Err(source) => return Err(Error::Path { path: self.name.clone(), source }),
        }
        // While it is renamed, a file may be met under both names.
        let mut seen: Vec<FileId> = Vec::new();
        found.reverse();
        found.retain(|file| {
            let new = !seen.contains(&file.id) || file.id == FileId::default();
            seen.push(file.id);
            new
        });
        found.reverse();
        Ok(found)
    }

    fn matching(
        &self,
        base: &ConfinedPath,
        matcher: &GlobMatcher,
        deepest: usize,
    ) -> Result<Vec<LogFile>, Error> {
        let failed = |source| Error::Path { path: self.name.clone(), source };
        let folder = base.open_folder().map_err(failed)?;
        let (mut names, mut left) = (Vec::new(), MOST_ENTRIES);
        collect(&folder, Path::new(""), matcher, deepest, &mut left, &mut names);
        let mut files: Vec<LogFile> =
            names.iter().filter_map(|name| open(&base.join(name).ok()?).ok()).collect();
        if files.is_empty() {
            let path = self.name.clone();
            return Err(Error::NotFound { path, hint: "; no file matches it. Name a file or glob with `source`, or set LOG_PATH or `logs.sources` for the server".to_owned() });
        }
        files.sort_by(|a, b| (a.modified, &a.shown).cmp(&(b.modified, &b.shown)));
        files.drain(..files.len().saturating_sub(MOST_FILES));
        Ok(files)
    }

    fn not_found(&self, path: &ConfinedPath) -> Error {
        let mut names = Vec::new();
        if let Some(folder) = path.parent().and_then(|parent| parent.open_folder().ok()) {
            let entries = folder.entries().into_iter().flatten().flatten();
            let logs = entries.filter(|entry| Path::new(&entry.name).extension() == Some(OsStr::new("log")));
            names.extend(logs.take(100).map(|entry| printable(&entry.name)));
        }
        names.sort();
        names.truncate(5);
        let found =
            if names.is_empty() { String::new() } else { format!(" (beside it: {})", names.join(", ")) };
        Error::NotFound {
            path: self.name.clone(),
            hint: format!(
                "{found}; name a file or glob with `source`, or set LOG_PATH or `logs.sources` for the server"
            ),
        }
    }
}

fn collect(
    folder: &Folder,
    path: &Path,
    matcher: &GlobMatcher,
    deepest: usize,
    left: &mut usize,
    names: &mut Vec<OsString>,
) {
    for entry in folder.entries().into_iter().flatten().flatten() {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        let path = path.join(&entry.name);
        if entry.kind == Kind::Directory {
            if let Some(fewer) = deepest.checked_sub(1)
                && let Ok(child) = folder.child(&entry.name)
            {
                collect(&child, &path, matcher, fewer, left, names);
            }
        } else if matcher.is_match(&path) {
            names.push(path.into_os_string());
        }
    }
}

fn open(path: &ConfinedPath) -> Result<LogFile, crate::workspace::Error> {
    let (file, metadata) = path.open_read()?;
    let shown = path.shown();
    let compressed = shown.ends_with(".gz");
    let id = FileId::of(&file);
    Ok(LogFile { file, size: metadata.size, id, modified: metadata.modified, compressed, shown })
}

impl FileId {
    pub(super) fn of(file: &File) -> Self {
        #[cfg(unix)]
        if let Ok(metadata) = file.metadata() {
            use std::os::unix::fs::MetadataExt;
            let born =
                metadata.created().ok().and_then(|born| born.duration_since(SystemTime::UNIX_EPOCH).ok());
            let born = born.and_then(|born| u64::try_from(born.as_nanos()).ok()).unwrap_or_default();
            return Self { device: metadata.dev(), inode: metadata.ino(), born };
        }
        #[cfg(not(unix))]
        let _ = file;
        Self::default()
    }
}

impl LogFile {
    /// Its content from the beginning, unpacked.
    pub(super) fn unpacked(&self) -> Box<dyn Read + '_> {
        let raw = super::source::From { source: &self.file, offset: 0, end: u64::MAX };
        if self.compressed {
            Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(64 << 10, raw)))
        } else {
            Box::new(raw)
        }
    }

    /// How long it is now.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Line feeds before `end`, if that is soon known.
    pub(super) fn lines_before(&self, end: u64) -> Option<u64> {
        const MOST: u64 = 64 << 20;
        if end > MOST {
            return None;
        }
        let mut buffer = vec![0; 256 << 10];
        let (mut at, mut lines) = (0, 0);
        while at < end {
            let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
            let chunk = buffer.get_mut(..length)?;
            if self.file.read_at(chunk, at).ok()? < length {
                return None;
            }
            lines += memchr::memchr_iter(b'\n', chunk).count() as u64;
            at += length as u64;
        }
        Some(lines)
    }
}

/// What tells a rotated file's age by its name: greater is newer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    /// `app.log.2026-11-20`, `app-20261120-1.log`: its date, and its number on that day.
    Date(String, u64),
    /// `app.log.3`: the greater, the older.
    Number(std::cmp::Reverse<u64>),
}

impl Age {
    /// The age of the file `other` if it was rotated away from `name`.
    fn of(name: &str, other: &str) -> Option<Self> {
        let other = other.strip_suffix(".gz").unwrap_or(other);
        let (stem, extension) = match name.rfind('.').filter(|dot| *dot > 0) {
            Some(dot) => name.split_at(dot),
            None => (name, ""),
        };
        let mark = match other.strip_prefix(name) {
            Some(mark) => mark.to_owned(),
            // `app-2026-11-20.log`, and `app-2026-11-20.log.1`.
            None => {
                let rest = other.strip_prefix(stem)?;
                let at = rest.rfind(extension).filter(|_| !extension.is_empty())?;
                let (date, number) = rest.split_at(at);
                format!("{date}{}", number.strip_prefix(extension)?)
            }
        };
        if !mark.starts_with(['.', '-', '_']) || mark.len() > 40 {
            return None;
        }
        let allowed =
            |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_' | b'T' | b':' | b'Z');
        if !mark.bytes().all(allowed) || !mark.ends_with(|last: char| last.is_ascii_digit() || last == 'Z') {
            return None;
        }
        let groups: Vec<&str> =
            mark.split(|byte: char| !byte.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
        match groups.as_slice() {
            [number] if number.len() < 6 => Some(Self::Number(std::cmp::Reverse(number.parse().ok()?))),
            [first, ..] if first.len() >= 4 => {
                // As many digits as a date takes; what follows counts on that day.
                let (mut date, mut rest) = (String::new(), groups.as_slice());
                while let [group, after @ ..] = rest
                    && (date.len() < 8 || group.len() > 1)
                {
                    date.push_str(group);
                    rest = after;
                }
                let number = rest.first().and_then(|number| number.parse().ok()).unwrap_or(0);
                (date.len() >= 6).then_some(Self::Date(date, number))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_files_are_put_in_order_by_their_names() {
        let sorted = |name: &str, others: &[&str]| {
            let mut found: Vec<_> =
                others.iter().filter_map(|other| Some((Age::of(name, other)?, *other))).collect();
            found.sort();
            found.into_iter().map(|(_, other)| other.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            sorted(
                "app.log",
                &["app.log.1", "app.log.10.gz", "app.log.2.gz", "app.log.bak", "app.logs.1", "app.log"]
            ),
            ["app.log.10.gz", "app.log.2.gz", "app.log.1"]
        );
        assert_eq!(
            sorted(
                "app.log",
                &[
                    "app-2026-11-20.log",
                    "app-2026-11-19.log.gz",
                    "app-2026-11-20.log.1",
                    "app-x.log",
                    "apple-1.log"
                ]
            ),
            ["app-2026-11-19.log.gz", "app-2026-11-20.log", "app-2026-11-20.log.1"]
        );
        assert_eq!(
            sorted(
                "app.log",
                &["app.log-20261120", "app.log-20261119.gz", "app-2026-11-20T10-00-00.000.log"]
            ),
            ["app.log-20261119.gz", "app.log-20261120", "app-2026-11-20T10-00-00.000.log"]
        );
        assert_eq!(sorted("log", &["log.1", "log.2", "logs"]), ["log.2", "log.1"]);
    }
}
