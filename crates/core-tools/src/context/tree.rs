//! The primary root of a workspace as a [`SourceTree`] of the compiler.

use crate::workspace::{self, ConfinedPath, PathKind, Workspace};
use context_compiler::source::{
    SourceEntryKind, SourceFileContent, SourceFileState, SourceReadError, SourceTree, SourceTreeEntry,
    printable_name, read_stable,
};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The files of the primary root of a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceTree {
    workspace: Arc<Workspace>,
    /// True if the caller may read a part of the workspace only.
    limited: bool,
}

impl WorkspaceTree {
    /// The files of the primary root of `workspace`.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, limited: false }
    }

    /// Reports files that may not be read as if they did not exist, for a caller who may read a part of the workspace only.
    #[must_use]
    pub fn limited(mut self) -> Self {
        self.limited = true;
        self
    }

    /// Converts an error. The result does not tell where the root lies.
    fn read_error(&self, error: workspace::Error) -> SourceReadError {
        match error {
            error if error.is_not_found() => SourceReadError::NotFound,
            error if error.is_outside() => SourceReadError::Outside,
            workspace::Error::WrongKind { found: PathKind::Directory, .. } => SourceReadError::IsFolder,
            workspace::Error::WrongKind { found, .. } => SourceReadError::NotRegular(found.noun()),
            workspace::Error::Io { source, .. } => self.io_error(source),
            error => SourceReadError::Io(io::Error::other(error.to_string())),
        }
    }

    fn io_error(&self, error: io::Error) -> SourceReadError {
        match error.kind() {
            io::ErrorKind::PermissionDenied if self.limited => SourceReadError::NotFound,
            _ => SourceReadError::Io(error),
        }
    }

    fn locate(&self, path: &str) -> Result<ConfinedPath, SourceReadError> {
        if path.starts_with('/') {
            return Err(SourceReadError::Outside);
        }
        // `name:path` would name another root; a path that begins with `./` is always one of the primary root.
        self.workspace.locate(&format!("./{path}")).map_err(|error| self.read_error(error))
    }
}

impl SourceTree for WorkspaceTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError> {
        let located = self.locate(path)?;
        let open = || {
            let (file, _) = located.open_read().map_err(|error| self.read_error(error))?;
            let state = state_of(&file)?;
            Ok((file, state))
        };
        read_stable(max_bytes, open, state_of)
    }

    fn list(&self, path: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError> {
        let folder = self.locate(path)?.open_folder().map_err(|error| self.read_error(error))?;
        let mut entries = Vec::new();
        for entry in folder.entries().map_err(|error| self.io_error(error))? {
            let entry = entry.map_err(SourceReadError::Io)?;
            let (name, has_invalid_bytes) = printable_name(entry.name.as_encoded_bytes());
            let kind = match entry.kind {
                _ if has_invalid_bytes => SourceEntryKind::Other,
                PathKind::File => SourceEntryKind::File,
                PathKind::Directory => SourceEntryKind::Folder,
                PathKind::Symlink => SourceEntryKind::Link,
                _ => SourceEntryKind::Other,
            };
            entries.push(SourceTreeEntry { name, kind });
        }
        // The file system chooses the order of a folder, and the document must not depend on that.
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError> {
        state_of(&self.locate(path)?.open_read().map_err(|error| self.read_error(error))?.0)
    }

    fn resolve(&self, path: &str) -> Result<String, SourceReadError> {
        let resolved = self.locate(path)?.resolved().map_err(|error| self.read_error(error))?;
        Ok(resolved.strip_prefix("./").map_or(resolved.clone(), str::to_owned))
    }
}

/// Returns the state of an open file.
fn state_of(file: &File) -> Result<SourceFileState, SourceReadError> {
    let metadata = file.metadata().map_err(SourceReadError::Io)?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mtime_ns = modified.and_then(|since| i128::try_from(since.as_nanos()).ok()).unwrap_or_default();
    #[cfg(unix)]
    let (inode, ctime_ns) = {
        use std::os::unix::fs::MetadataExt;
        (metadata.ino(), i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()))
    };
    #[cfg(not(unix))]
    let (inode, ctime_ns) = (0, mtime_ns);
    Ok(SourceFileState { size: metadata.len(), mtime_ns, ctime_ns, inode })
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
        assert_eq!(tree.read("a", 10).unwrap().state, tree.state("a").unwrap());
        assert!(matches!(tree.read("a", 3), Err(SourceReadError::TooLarge { bytes: 4 })));
        assert!(matches!(tree.read("link", 10), Err(SourceReadError::Outside)));
        assert!(matches!(tree.read("../x", 10), Err(SourceReadError::Outside)));
        assert!(matches!(tree.read("/etc/passwd", 10), Err(SourceReadError::Outside)));
        assert!(matches!(tree.read("pipe", 10), Err(SourceReadError::NotRegular(_))));
        let names: Vec<_> = tree.list("").unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a", "inside", "link", "pipe"]);
        let both = Arc::new(Workspace::new([project.path(), other.path()]).unwrap());
        let name = other.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(matches!(
            WorkspaceTree::new(both).read(&format!("{name}:b"), 10),
            Err(SourceReadError::NotFound)
        ));
    }
}
