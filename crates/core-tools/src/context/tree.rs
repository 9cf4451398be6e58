//! The primary root of a workspace, as the compiler sees it.

use crate::workspace::{self, ConfinedPath, Kind, Workspace};
use context_compiler::source::{Content, Entry, EntryKind, ReadProblem, Stamp, Tree};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// How often a file that changes while it is read is read.
const ATTEMPTS: usize = 3;

/// The primary root of a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceTree {
    workspace: Arc<Workspace>,
    limited: bool,
}

impl WorkspaceTree {
    /// The primary root of `workspace`.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, limited: false }
    }

    /// The same for a caller who may reach less of it: what it may not read is as if it were not there.
    #[must_use]
    pub fn limited(mut self) -> Self {
        self.limited = true;
        self
    }

    /// Why, without a word about where the root lies.
    fn problem(&self, error: workspace::Error) -> ReadProblem {
        match error {
            error if error.is_not_found() => ReadProblem::NotFound,
            error if error.is_outside() => ReadProblem::Outside,
            workspace::Error::WrongKind { found: Kind::Directory, .. } => ReadProblem::NotRegular("a folder"),
            workspace::Error::WrongKind { found, .. } => ReadProblem::NotRegular(found.noun()),
            workspace::Error::Io { source, .. } => self.refused(source),
            error => ReadProblem::Io(io::Error::other(error.to_string())),
        }
    }

    fn refused(&self, error: io::Error) -> ReadProblem {
        match error.kind() {
            io::ErrorKind::PermissionDenied if self.limited => ReadProblem::NotFound,
            _ => ReadProblem::Io(error),
        }
    }

    fn locate(&self, path: &str) -> Result<ConfinedPath, ReadProblem> {
        // `name:path` is the form of the other roots; `./` is that of this one.
        if path.starts_with('/') {
            return Err(ReadProblem::Outside);
        }
        self.workspace.locate(&format!("./{path}")).map_err(|error| self.problem(error))
    }
}

impl Tree for WorkspaceTree {
    fn read(&self, path: &str, limit: u64) -> Result<Content, ReadProblem> {
        let located = self.locate(path)?;
        let mut attempt = 1;
        loop {
            let (mut file, _) = located.open_read().map_err(|error| self.problem(error))?;
            let before = stamp(&file)?;
            if before.size > limit {
                return Err(ReadProblem::TooLarge { bytes: before.size });
            }
            let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or_default());
            file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadProblem::Io)?;
            let after = stamp(&file)?;
            if bytes.len() as u64 > limit {
                return Err(ReadProblem::TooLarge { bytes: after.size.max(bytes.len() as u64) });
            }
            let unstable = before != after || bytes.len() as u64 != after.size;
            if !unstable || attempt == ATTEMPTS {
                return Ok(Content { bytes, stamp: after, unstable });
            }
            attempt += 1;
        }
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadProblem> {
        let folder = self.locate(path)?.open_folder().map_err(|error| self.problem(error))?;
        let mut entries = Vec::new();
        for entry in folder.entries().map_err(|error| self.refused(error))? {
            let entry = entry.map_err(ReadProblem::Io)?;
            let name = entry.name.to_str().map(str::to_owned);
            let kind = match entry.kind {
                _ if name.is_none() => EntryKind::Other,
                Kind::File => EntryKind::File,
                Kind::Directory => EntryKind::Folder,
                Kind::Symlink => EntryKind::Link,
                _ => EntryKind::Other,
            };
            entries
                .push(Entry { name: name.unwrap_or_else(|| escaped(entry.name.as_encoded_bytes())), kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn stamp(&self, path: &str) -> Result<Stamp, ReadProblem> {
        stamp(&self.locate(path)?.open_read().map_err(|error| self.problem(error))?.0)
    }

    fn resolve(&self, path: &str) -> Result<String, ReadProblem> {
        let resolved = self.locate(path)?.resolved().map_err(|error| self.problem(error))?;
        Ok(resolved.strip_prefix("./").map_or(resolved.clone(), str::to_owned))
    }
}

/// A name that is not UTF-8: bytes that are not are written `\xNN`.
fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// The state of an open file.
fn stamp(file: &File) -> Result<Stamp, ReadProblem> {
    let metadata = file.metadata().map_err(ReadProblem::Io)?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mtime_ns = modified.and_then(|since| i128::try_from(since.as_nanos()).ok()).unwrap_or_default();
    #[cfg(unix)]
    let (inode, ctime_ns) = {
        use std::os::unix::fs::MetadataExt;
        (metadata.ino(), i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()))
    };
    #[cfg(not(unix))]
    let (inode, ctime_ns) = (0, mtime_ns);
    Ok(Stamp { size: metadata.len(), mtime_ns, ctime_ns, inode })
}

#[cfg(test)]
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "tests make the files that are read")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_leave_pipes_and_other_roots_are_not_read() {
        let (project, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(project.path().join("a"), "text").unwrap();
        fs::write(other.path().join("b"), "other").unwrap();
        symlink(other.path().join("b"), project.path().join("link")).unwrap();
        symlink("a", project.path().join("inside")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            project.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let tree = WorkspaceTree::new(Arc::new(Workspace::new([project.path()]).unwrap()));
        assert_eq!(tree.read("inside", 10).unwrap().bytes, b"text");
        assert_eq!(tree.read("a", 10).unwrap().stamp, tree.stamp("a").unwrap());
        assert!(matches!(tree.read("a", 3), Err(ReadProblem::TooLarge { bytes: 4 })));
        assert!(matches!(tree.read("link", 10), Err(ReadProblem::Outside)));
        assert!(matches!(tree.read("../x", 10), Err(ReadProblem::Outside)));
        assert!(matches!(tree.read("/etc/passwd", 10), Err(ReadProblem::Outside)));
        assert!(matches!(tree.read("pipe", 10), Err(ReadProblem::NotRegular(_))));
        let names: Vec<_> = tree.list("").unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a", "inside", "link", "pipe"]);
        let both = Arc::new(Workspace::new([project.path(), other.path()]).unwrap());
        let name = other.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(matches!(
            WorkspaceTree::new(both).read(&format!("{name}:b"), 10),
            Err(ReadProblem::NotFound)
        ));
    }
}
