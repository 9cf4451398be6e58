//! The files of a source, oldest first: the one that is written to, and those that were rotated away.

use super::error::Error;
use super::log_time::LogTime;
use super::read_at::ReadAt;
use super::utf16::{Utf16Order, Utf16Reader};
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;
use workspace::{ConfinedPath, Folder, PathKind, Workspace, printable};

/// A source of logs: a file with its rotated predecessors, or the files that match a glob.
#[derive(Clone, Debug)]
pub(super) struct LogSource {
    /// The name that messages show.
    pub(super) name: String,
    location: LogLocation,
}

/// The files that belong to a source.
#[derive(Clone, Debug)]
enum LogLocation {
    /// One file, and those that were rotated away from it.
    File(ConfinedPath),
    /// The files beneath a folder that match a glob, in the order of their last change.
    Glob { base: ConfinedPath, matcher: GlobMatcher, max_depth: usize },
}

/// An open file of a source.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) file: File,
    /// The path that messages show.
    pub(super) display_path: String,
    pub(super) size: u64,
    pub(super) id: FileId,
    pub(super) modified: Option<SystemTime>,
    encoding: LogEncoding,
    /// True if its name is that of a link.
    is_link: bool,
}

/// The files of a source that are read, oldest first, and those that are not.
#[derive(Debug)]
pub(super) struct LogSourceFiles {
    pub(super) files: Vec<LogFile>,
    /// The number of older files beyond the limit.
    older_files: usize,
    /// The glob was not compared with every name: there are too many.
    is_scan_cut: bool,
    /// The names of files of the source that are in a form that is not read.
    unread: Vec<String>,
    /// The files of the source that cannot be opened, each with the reason.
    failed: Vec<String>,
}

/// Names the first few of `items`, and counts the others.
fn first_of(items: &[String], separator: &str) -> String {
    let named: Vec<&str> = items.iter().take(5).map(String::as_str).collect();
    match items.len() - named.len() {
        0 => named.join(separator),
        count => format!("{} and {count} more", named.join(separator)),
    }
}

impl LogSourceFiles {
    /// Returns what the caller has to be told of the files that are not read.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.older_files > 0 {
            notes.push(format!(
                "only the newest {} of {} files are read; name fewer with `source`",
                self.files.len(),
                self.files.len() + self.older_files
            ));
        }
        if self.is_scan_cut {
            notes.push(format!(
                "the glob was compared with the first {MAX_SCANNED_ENTRIES} names only; begin it with a folder"
            ));
        }
        if !self.unread.is_empty() {
            notes.push(format!(
                "not read: {}; only plain files and .gz are, and names that end in a number or a date",
                first_of(&self.unread, ", ")
            ));
        }
        if !self.failed.is_empty() {
            notes.push(format!("not read, because of an error: {}", first_of(&self.failed, "; ")));
        }
        notes
    }
}

/// The way in which a file holds its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogEncoding {
    /// As it is: it can be read at any offset.
    Plain,
    Gzip,
    Utf16(Utf16Order),
}

/// The identity of a file, which survives renaming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// The time of its creation, in nanoseconds since 1970, or 0 where the file system has none. It tells a file from
    /// a deleted one whose inode number it got.
    pub(super) created_ns: u64,
}

/// The maximum number of folder entries that are searched for a glob.
const MAX_SCANNED_ENTRIES: usize = 20_000;
/// The maximum number of folder entries among which a file that was moved is searched.
const MAX_MOVED_ENTRIES: usize = 500;
/// The maximum number of files of a source; the newest are kept.
const MAX_FILES: usize = 200;

impl LogSource {
    /// Creates the source that `text` names, a path or a glob. Messages call it `name`.
    pub(super) fn new(workspace: &Workspace, text: &str, name: &str) -> Result<Self, Error> {
        // An absolute path would tell a client about the machine.
        let display_path = if name.starts_with('/') { "`source`" } else { name };
        let path = |source| Error::Path { path: display_path.to_owned(), source };
        let location = match text.find(['*', '?', '[', '{']) {
            None if is_packed(text) => {
                let reason = format!(
                    "{display_path} is compressed in a form that is not read; unpack it, or pack it as .gz"
                );
                return Err(Error::Argument { parameter: "source", reason });
            }
            None => LogLocation::File(workspace.locate(text).map_err(path)?),
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
                // `**` may match any depth: eight levels bound the search.
                let max_depth = if glob.contains("**") { 8 } else { glob.matches('/').count() };
                LogLocation::Glob { base, matcher, max_depth }
            }
        };
        Ok(Self { name: name.to_owned(), location })
    }

    /// Opens the file that is being written, where the source is one file and it exists.
    pub(super) fn current(&self) -> Option<LogFile> {
        match &self.location {
            LogLocation::File(path) => open(path).ok(),
            LogLocation::Glob { .. } => None,
        }
    }

    /// Returns whether the source is a glob.
    pub(super) fn is_glob(&self) -> bool {
        matches!(self.location, LogLocation::Glob { .. })
    }

    /// Returns the logs that the source consists of, each a file with its rotated predecessors. A file that was rotated
    /// away from another one of a glob belongs to that one.
    ///
    /// # Errors
    /// The folder of the glob cannot be read.
    pub(super) fn members(&self) -> Result<Vec<Self>, Error> {
        let LogLocation::Glob { base, matcher, max_depth } = &self.location else {
            return Ok(vec![self.clone()]);
        };
        let (mut paths, _) = self.matching_paths(base, matcher, *max_depth)?;
        paths.retain(|path| !is_packed(&path.display_path()));
        // `current.log` of a program that begins a file each day: its entries come from the file that it leads to.
        let targets: Vec<Option<String>> = paths.iter().map(link_target).collect();
        let names: Vec<String> = paths.iter().map(ConfinedPath::display_path).collect();
        let mut targets = targets.into_iter();
        paths.retain(|_| !targets.next().flatten().is_some_and(|target| names.contains(&target)));
        let name = |path: &ConfinedPath| Some(path.relative().file_name()?.to_str()?.to_owned());
        let names: Vec<(Option<&Path>, Option<String>)> =
            paths.iter().map(|path| (path.relative().parent(), name(path))).collect();
        let is_rotated = |index: usize| {
            let Some((folder, Some(own))) = names.get(index) else { return false };
            names.iter().enumerate().any(|(other, (beside, name))| {
                let rotated = |name: &String| RotationKey::of(name, own).is_some();
                other != index && beside == folder && name.as_ref().is_some_and(rotated)
            })
        };
        let members = paths.iter().enumerate().filter(|(index, _)| !is_rotated(*index));
        Ok(members
            .map(|(_, path)| Self { name: path.display_path(), location: LogLocation::File(path.clone()) })
            .collect())
    }

    /// Returns the file with this identity for which `is_same` returns true, where it is no longer one of the source: a
    /// link that led to it leads elsewhere now, or it was renamed.
    pub(super) fn find_moved(&self, id: FileId, is_same: impl Fn(&LogFile) -> bool) -> Option<LogFile> {
        let LogLocation::File(path) = &self.location else { return None };
        let mut folders = vec![path.parent()?];
        if let Ok(Some(target)) = path.read_link()
            && let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            folders.extend(path.parent()?.join(folder).ok());
        }
        folders.iter().find_map(|folder| {
            let opened = folder.open_folder().ok()?;
            let entries = opened.entries().into_iter().flatten().flatten().take(MAX_MOVED_ENTRIES);
            let files = entries.filter(|entry| entry.kind == PathKind::File);
            let mut opened = files.filter_map(|entry| open(&folder.join(&entry.name).ok()?).ok());
            opened.find(|file| file.id == id && id != FileId::default() && is_same(file))
        })
    }

    /// Opens all files of the source, oldest first.
    ///
    /// # Errors
    /// None exists, or the folder cannot be read.
    pub(super) fn files(&self) -> Result<LogSourceFiles, Error> {
        match &self.location {
            LogLocation::File(path) => self.rotated(path),
            LogLocation::Glob { base, matcher, max_depth } => self.matching(base, matcher, *max_depth),
        }
    }

    /// Opens the file at `path` and those that were rotated away from it.
    fn rotated(&self, path: &ConfinedPath) -> Result<LogSourceFiles, Error> {
        let (mut found, mut older_files, mut unread) = (Vec::new(), 0, Vec::new());
        let mut failed = Vec::new();
        if let (Some(parent), Some(name)) = (path.parent(), path.relative().file_name())
            && let Ok(folder) = parent.open_folder()
        {
            // Rotated files lie beside the file: no other folder is searched.
            let entries = folder.entries().into_iter().flatten().flatten();
            let mut names: Vec<(RotationKey, OsString)> = Vec::new();
            for entry in entries {
                let (Some(name), Some(other)) = (name.to_str(), entry.name.to_str()) else { continue };
                if let Some(key) = RotationKey::of(name, other) {
                    names.push((key, entry.name));
                } else if entry.kind == PathKind::File && is_unread_rotation(name, other) {
                    unread.push(printable(&entry.name));
                }
            }
            unread.sort();
            names.sort();
            older_files = names.len().saturating_sub(MAX_FILES);
            names.drain(..older_files);
            let paths = names.iter().filter_map(|(_, name)| parent.join(name).ok());
            found.extend(paths.filter_map(|path| open_or_note(&path, &mut failed)));
        }
        match open(path) {
            Ok(file) => found.push(file),
            Err(error) if error.is_not_found() && !found.is_empty() => {}
            Err(error) if error.is_not_found() => return Err(self.not_found(path)),
            Err(source) => return Err(Error::Path { path: self.name.clone(), source }),
        }
        // A file that is renamed during the listing may be met under both names.
        let mut seen: Vec<FileId> = Vec::new();
        found.reverse();
        found.retain(|file| {
            let new = !seen.contains(&file.id) || file.id == FileId::default();
            seen.push(file.id);
            new
        });
        found.reverse();
        Ok(LogSourceFiles { files: found, older_files, is_scan_cut: false, unread, failed })
    }

    /// Opens the files beneath `base` that match.
    fn matching(
        &self,
        base: &ConfinedPath,
        matcher: &GlobMatcher,
        max_depth: usize,
    ) -> Result<LogSourceFiles, Error> {
        let (mut paths, is_scan_cut) = self.matching_paths(base, matcher, max_depth)?;
        let mut unread = Vec::new();
        paths.retain(|path| {
            let name = path.display_path();
            let is_read = !is_packed(&name);
            if !is_read {
                unread.push(name);
            }
            is_read
        });
        let mut failed = Vec::new();
        let mut files: Vec<LogFile> =
            paths.iter().filter_map(|path| open_or_note(path, &mut failed)).collect();
        if files.is_empty() && !failed.is_empty() {
            let reason = format!("none of its files can be read: {}", first_of(&failed, "; "));
            return Err(Error::Argument { parameter: "source", reason });
        }
        if files.is_empty() {
            let path = self.name.clone();
            return Err(Error::NotFound { path, hint: "; no file matches it. Name a file or glob with `source`, or set LOG_PATH or `logs.sources` for the server".to_owned() });
        }
        // A link to another file of the glob has no entries of its own.
        let mut seen: Vec<FileId> = Vec::new();
        files.sort_by_cached_key(|file| (file.is_link, file.display_path.clone()));
        files.retain(|file| {
            let is_new = !seen.contains(&file.id) || file.id == FileId::default();
            seen.push(file.id);
            is_new
        });
        files.sort_by(|a, b| (a.modified, &a.display_path).cmp(&(b.modified, &b.display_path)));
        let older_files = files.len().saturating_sub(MAX_FILES);
        files.drain(..older_files);
        Ok(LogSourceFiles { files, older_files, is_scan_cut, unread, failed })
    }

    /// Returns the paths beneath `base` that match, and true if there are more names than are looked at.
    fn matching_paths(
        &self,
        base: &ConfinedPath,
        matcher: &GlobMatcher,
        max_depth: usize,
    ) -> Result<(Vec<ConfinedPath>, bool), Error> {
        let failed = |source| Error::Path { path: self.name.clone(), source };
        let folder = base.open_folder().map_err(failed)?;
        let (mut names, mut remaining) = (Vec::new(), MAX_SCANNED_ENTRIES);
        let is_cut = !collect(&folder, Path::new(""), matcher, max_depth, &mut remaining, &mut names);
        names.sort();
        let paths = names.iter().filter_map(|name| base.join(name).ok()).collect();
        Ok((paths, is_cut))
    }

    /// Returns the error for a missing file, which names logs beside it.
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

/// The endings of the names of files that are packed in a form that is not read.
const PACKED_ENDINGS: [&str; 12] =
    [".xz", ".bz2", ".zst", ".lz4", ".lzma", ".br", ".zip", ".7z", ".Z", ".tgz", ".tar.gz", ".tar"];

/// Returns whether the file with this name is packed in a form that is not read.
fn is_packed(name: &str) -> bool {
    PACKED_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns whether `other` was rotated away from `name`, by its name, and is not read.
fn is_unread_rotation(name: &str, other: &str) -> bool {
    let (stem, extension) = stem_and_extension(name);
    let is_rotated = |other: &str| RotationKey::of(name, other).is_some();
    let packed = PACKED_ENDINGS.iter().find_map(|ending| other.strip_suffix(ending));
    if packed.is_some_and(|rest| rest == name || is_rotated(rest)) {
        return true;
    }
    let other = packed.unwrap_or(other);
    let other = other.strip_suffix(".gz").unwrap_or(other);
    // `app.log.old`, `app.log.bak.2`; `app.old`, `app.old.log`.
    let behind = other.strip_prefix(name);
    let behind_stem = other.strip_prefix(stem);
    behind == Some("~")
        || [behind, behind_stem, behind_stem.and_then(|rest| rest.strip_suffix(extension))]
            .into_iter()
            .flatten()
            .any(is_kept_mark)
}

/// Returns whether `mark` is what programs add to the name of a file that they put aside: `.old`, `-prev`, `.bak.2`.
fn is_kept_mark(mark: &str) -> bool {
    const WORDS: [&str; 10] =
        ["old", "bak", "backup", "prev", "previous", "orig", "save", "saved", "copy", "last"];
    let is_sign = |byte: char| matches!(byte, '.' | '-' | '_');
    let Some(words) = mark.strip_prefix(is_sign) else { return false };
    let word = words.trim_end_matches(|byte: char| byte.is_ascii_digit() || is_sign(byte));
    WORDS.iter().any(|kept| word.eq_ignore_ascii_case(kept))
}

/// Splits a name before its extension.
fn stem_and_extension(name: &str) -> (&str, &str) {
    match name.rfind('.').filter(|dot| *dot > 0) {
        Some(dot) => name.split_at(dot),
        None => (name, ""),
    }
}

/// Returns the path that the link at `path` leads to, as messages show it. `None` if it is no link.
fn link_target(path: &ConfinedPath) -> Option<String> {
    let target = path.read_link().ok().flatten()?;
    Some(
        path.parent()?
            .join(&target)
            .map_or_else(|_| printable(target.as_os_str()), |path| path.display_path()),
    )
}

/// Opens the file at `path`. Adds the reason to `failed` if that fails.
fn open_or_note(path: &ConfinedPath, failed: &mut Vec<String>) -> Option<LogFile> {
    match open(path) {
        Ok(file) => Some(file),
        Err(error) if error.is_not_found() && link_target(path).is_some() => {
            failed.push(format!("{} leads to a file that does not exist", path.display_path()));
            None
        }
        // A file that vanishes between listing and opening was rotated once more: the next listing has it.
        Err(error) if error.is_not_found() => None,
        Err(error) => {
            failed.push(error.to_string());
            None
        }
    }
}

/// Collects the paths beneath `folder` that match, relative to the folder that the glob begins at. Returns false if more
/// names are left than are looked at.
fn collect(
    folder: &Folder,
    path: &Path,
    matcher: &GlobMatcher,
    max_depth: usize,
    remaining: &mut usize,
    names: &mut Vec<OsString>,
) -> bool {
    for entry in folder.entries().into_iter().flatten().flatten() {
        let Some(rest) = remaining.checked_sub(1) else { return false };
        *remaining = rest;
        let path = path.join(&entry.name);
        if entry.kind == PathKind::Directory {
            if let Some(rest) = max_depth.checked_sub(1)
                && let Ok(child) = folder.child(&entry.name)
                && !collect(&child, &path, matcher, rest, remaining, names)
            {
                return false;
            }
        } else if matcher.is_match(&path) {
            names.push(path.into_os_string());
        }
    }
    true
}

fn open(path: &ConfinedPath) -> Result<LogFile, workspace::Error> {
    let (file, metadata) = path.open_read()?;
    let display_path = path.display_path();
    // By the name, not by the content: a log may begin with any bytes.
    let encoding = if display_path.ends_with(".gz") {
        LogEncoding::Gzip
    } else {
        let mut start = [0; 32];
        // What cannot be read now is told by the read that follows.
        let read = file.read_at(&mut start, 0).unwrap_or_default();
        Utf16Order::detect(start.get(..read).unwrap_or_default())
            .map_or(LogEncoding::Plain, LogEncoding::Utf16)
    };
    let id = FileId::of(&file);
    let is_link = matches!(path.read_link(), Ok(Some(_)));
    Ok(LogFile {
        file,
        size: metadata.size,
        id,
        modified: metadata.modified,
        encoding,
        display_path,
        is_link,
    })
}

impl FileId {
    /// Returns the identity of `file`; the default where the system has none.
    pub(super) fn of(file: &File) -> Self {
        #[cfg(unix)]
        if let Ok(metadata) = file.metadata() {
            use std::os::unix::fs::MetadataExt;
            let created_ns = metadata
                .created()
                .ok()
                .and_then(|created_ns| created_ns.duration_since(SystemTime::UNIX_EPOCH).ok());
            let created_ns = created_ns
                .and_then(|created_ns| u64::try_from(created_ns.as_nanos()).ok())
                .unwrap_or_default();
            return Self { device: metadata.dev(), inode: metadata.ino(), created_ns };
        }
        #[cfg(not(unix))]
        let _ = file;
        Self::default()
    }
}

impl LogFile {
    /// Returns whether its text is decoded while it is read, so that it is read from the beginning only.
    pub(super) fn is_decoded(&self) -> bool {
        self.encoding != LogEncoding::Plain
    }

    /// Returns whether it is compressed, so that nothing is added to it.
    pub(super) fn is_compressed(&self) -> bool {
        self.encoding == LogEncoding::Gzip
    }

    /// Returns the time of its last change, which tells the year of a time without one.
    pub(super) fn reference_time(&self) -> LogTime {
        self.modified.map_or_else(LogTime::now, LogTime::of_system)
    }

    /// Returns a reader of its text from the beginning, decompressed and in UTF-8.
    pub(super) fn decoded(&self) -> Box<dyn Read + '_> {
        let raw = super::read_at::RangeReader { source: &self.file, offset: 0, end: u64::MAX };
        let buffered = |raw| io::BufReader::with_capacity(64 << 10, raw);
        match self.encoding {
            LogEncoding::Plain => Box::new(raw),
            LogEncoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(buffered(raw))),
            LogEncoding::Utf16(order) => Box::new(Utf16Reader::new(buffered(raw), order)),
        }
    }

    /// Returns its current length.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Counts the line feeds before `end`. `None` where that would read more than 64 MiB.
    pub(super) fn lines_before(&self, end: u64) -> Option<u64> {
        const MAX_COUNTED_BYTES: u64 = 64 << 20;
        if end > MAX_COUNTED_BYTES {
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

/// The part of a rotated file's name that orders it among the others: the greater, the newer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RotationKey {
    /// A date, and a number on that day: `app.log.2026-11-20`, `app-20261120-1.log`.
    Date(String, u64),
    /// A number, of which the greater is the older: `app.log.3`.
    Number(std::cmp::Reverse<u64>),
}

impl RotationKey {
    /// Returns the key of the file `other` if its name is that of a rotated `name`.
    fn of(name: &str, other: &str) -> Option<Self> {
        let other = other.strip_suffix(".gz").unwrap_or(other);
        let (stem, extension) = stem_and_extension(name);
        let mut has_extension = true;
        let mark = match other.strip_prefix(name) {
            Some(mark) => mark.to_owned(),
            None => {
                let rest = other.strip_prefix(stem).filter(|_| !extension.is_empty())?;
                match rest.rfind(extension) {
                    // `app-2026-11-20.log`, and `app-2026-11-20.log.1`.
                    Some(at) => {
                        let (date, number) = rest.split_at(at);
                        format!("{date}{}", number.strip_prefix(extension)?)
                    }
                    // `app.2026-11-20.gz`. A number alone, `app.1`, is that of other files.
                    None => {
                        has_extension = false;
                        rest.to_owned()
                    }
                }
            }
        };
        // Only dates, times and numbers: `app.log.bak` and `app-worker.log` are other files.
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
            [number] if number.len() < 6 && has_extension => {
                Some(Self::Number(std::cmp::Reverse(number.parse().ok()?)))
            }
            [first, ..] if first.len() >= 4 => {
                // The groups of digits that make up the date; a number after them counts on that day.
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
                others.iter().filter_map(|other| Some((RotationKey::of(name, other)?, *other))).collect();
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
        assert_eq!(
            sorted(
                "app.log",
                &["app.2026-11-21.gz", "app.20261120.gz", "app.1", "app.1.gz", "app", "app.gz"]
            ),
            ["app.20261120.gz", "app.2026-11-21.gz"]
        );
    }

    #[test]
    fn rotated_files_that_are_not_read_are_told_from_other_files() {
        for other in [
            "app.log.3.xz",
            "app.log.4.bz2",
            "app.log.5.zst",
            "app.log.old",
            "app-2026-11-20.log.xz",
            "app.log.xz",
            "app.log.tar.gz",
            "app-2026-11-26.zip",
            "app.2026-11-26.tgz",
            "app.old.log",
            "app.log.orig",
            "app.log.save",
            "app.log.save.1",
            "app.log~",
            "app_backup.log",
            "app.log.bak.gz",
            "app.old",
        ] {
            assert!(is_unread_rotation("app.log", other), "{other}");
        }
        for other in [
            "app.log",
            "app.log.1",
            "app.log.2.gz",
            "other.log.3.xz",
            "app.log.json",
            "app.json",
            "application.old.log",
            "app-worker.log",
        ] {
            assert!(!is_unread_rotation("app.log", other), "{other}");
        }
    }
}
