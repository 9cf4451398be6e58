//! Reading the files of the audit, from the oldest line to the newest.

use crate::chain::{self, ChainHash};
use crate::entry::{AuditEntry, AuditEvent};
use crate::file::{AuditFile, numbered};
use crate::record::StoredRecord;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The error of a file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the audit {}", .path.display())]
pub struct ReadError {
    path: PathBuf,
    source: io::Error,
}

/// One line of the files.
#[derive(Debug)]
pub struct AuditLine<'a> {
    path: &'a Path,
    number: u64,
    text: &'a str,
}

/// The length of a line beyond which it is read as damaged: no writer writes such a line.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Calls `visit` with each line of the file at `path` and of its rotated files, the oldest first.
///
/// # Errors
/// The file cannot be read. A missing rotated file is no error.
pub fn read_files(path: &Path, mut visit: impl FnMut(&AuditLine<'_>)) -> Result<(), ReadError> {
    // All are opened first, and the newest before the others: a rotation meanwhile then shows a line twice to nobody.
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ReadError { path, source }
    };
    let newest = open_regular(path).map_err(failed(path))?;
    let mut files = vec![(path.to_owned(), newest)];
    for number in 1..=AuditFile::ROTATED {
        let path = numbered(path, number);
        match open_regular(&path) {
            Ok(file) if !is_same(&file, &files) => files.push((path, file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path)(error)),
        }
    }
    for (path, file) in files.into_iter().rev() {
        let mut reader = BufReader::new(file);
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            let read =
                reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes).map_err(failed(&path))?;
            if read == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&bytes);
            visit(&AuditLine { path: &path, number, text: text.trim_end_matches('\n') });
        }
    }
    Ok(())
}

/// Opens a file that ends: neither a pipe, which would be waited for, nor a device.
fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Returns true if `file` is among those that are open already: it was renamed between two looks.
#[cfg(unix)]
fn is_same(file: &File, files: &[(PathBuf, File)]) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |file: &File| file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    id(file).is_some() && files.iter().any(|(_, other)| id(other) == id(file))
}

#[cfg(not(unix))]
fn is_same(_file: &File, _files: &[(PathBuf, File)]) -> bool {
    false
}

impl AuditLine<'_> {
    /// Returns where the line is: `/var/log/audit.jsonl:7`.
    pub fn position(&self) -> String {
        format!("{}:{}", self.path.display(), self.number)
    }

    /// Returns the entry in the line, if it has one.
    pub fn entry(&self) -> Option<AuditEntry> {
        serde_json::from_str(self.text).ok()
    }

    /// Returns the line as a record of the chain.
    pub fn record(&self) -> StoredRecord {
        let Some((body, stated)) = chain::split_line(self.text) else {
            return match self.entry() {
                // A link whose hash was taken away.
                Some(AuditEntry { number: Some(_), .. }) | None => StoredRecord::Damaged,
                Some(_) => StoredRecord::Unlinked,
            };
        };
        match serde_json::from_str::<AuditEntry>(&body) {
            Ok(AuditEntry { number: Some(number), previous, event, .. }) => StoredRecord::Linked {
                number,
                previous,
                computed: ChainHash::of(&body),
                stated,
                // Lines that were lost took no number.
                lost_before: 0,
                is_end: event == AuditEvent::End,
            },
            _ => StoredRecord::Damaged,
        }
    }
}
