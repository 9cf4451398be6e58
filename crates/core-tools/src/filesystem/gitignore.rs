//! The `.gitignore` files from a root down to a folder, and what they leave out.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::workspace::{ConfinedPath, Folder};

/// A larger file is read to here.
const MAX_BYTES: u64 = 1 << 20;

/// The files that count in a folder. Cheap to clone: folders share what lies above them.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored(Option<Arc<Rules>>);

/// The rules of one file, and those outside it.
#[derive(Debug)]
struct Rules {
    file: Gitignore,
    outer: Ignored,
}

impl Ignored {
    /// The files of the folders above `start`, from its root down.
    pub(super) fn above(start: &ConfinedPath) -> Self {
        let mut above = Vec::new();
        let mut next = start.parent();
        while let Some(folder) = next {
            next = folder.parent();
            above.push(folder);
        }
        above.iter().rev().fold(Self::default(), |outer, folder| match folder.open_folder() {
            Ok(open) => outer.within(&open, folder.relative()),
            Err(_) => outer,
        })
    }

    /// The files that count within `folder`, which lies at `path` beneath its root: these and its own.
    pub(super) fn within(self, folder: &Folder, path: &Path) -> Self {
        match parse(folder, path) {
            Some(file) => Self(Some(Arc::new(Rules { file, outer: self }))),
            None => self,
        }
    }

    /// Whether there are no files, so that nothing is left out.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether what lies at `path` beneath the root is left out. The innermost file that says something
    /// decides, as in git.
    pub(super) fn is_ignored(&self, path: &Path, directory: bool) -> bool {
        let mut next = self;
        while let Some(rules) = &next.0 {
            let said = rules.file.matched(path, directory);
            if !said.is_none() {
                return said.is_ignore();
            }
            next = &rules.outer;
        }
        false
    }
}

/// The file in `folder`, which lies at `path` beneath its root.
fn parse(folder: &Folder, path: &Path) -> Option<Gitignore> {
    let file = folder.open_file(".gitignore".as_ref()).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new(path);
    for line in String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern means nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
