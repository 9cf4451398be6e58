//! The ignore files of git from a root down to a folder, and what they leave out.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::workspace::ignore_rules::{FolderRules, GIT_INFO_EXCLUDE, IgnoreFile};
use crate::workspace::{ConfinedPath, Folder};

/// The ignore file that each folder may have.
pub(super) const GITIGNORE: &str = ".gitignore";
/// The ignore files, by precedence.
const IGNORE_FILES: [&str; 2] = [GITIGNORE, GIT_INFO_EXCLUDE];
/// A larger file is read to here.
const MAX_BYTES: u64 = 1 << 20;

/// The files that count in a folder. Cheap to clone: folders share what lies above them.
#[derive(Clone, Debug, Default)]
pub(super) struct ApplicableIgnoreFiles(FolderRules);

impl ApplicableIgnoreFiles {
    /// The files that count above `start`: those of the folders above it, from its root down, and `.git/info/exclude` of
    /// the root. In a linked worktree that file lies outside the root, and does not count.
    pub(super) fn above(start: &ConfinedPath) -> Self {
        let mut above = Vec::new();
        let mut next = start.parent();
        while let Some(folder) = next {
            next = folder.parent();
            above.push(folder);
        }
        let exclude = above.last().unwrap_or(start).join(GIT_INFO_EXCLUDE);
        let exclude = exclude.and_then(|path| path.open_read()).ok().map(|(file, _)| file);
        let outermost = Self::default().with_file(b"", GIT_INFO_EXCLUDE, exclude);
        above.iter().rev().fold(outermost, |outer, folder| match folder.open_folder() {
            Ok(open) => outer.within(&open, &slashed(folder.relative())),
            Err(_) => outer,
        })
    }

    /// The files that count within `folder`, which lies at `path` beneath its root: these and its own.
    pub(super) fn within(self, folder: &Folder, path: &[u8]) -> Self {
        let file = folder.open_file(GITIGNORE.as_ref()).ok();
        self.with_file(path, GITIGNORE, file)
    }

    /// Returns true if there are no rules, so that nothing is left out.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the entry at `path` beneath the root is left out.
    pub(super) fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        self.0.is_ignored(path, is_folder)
    }

    /// Adds the file of this name in the folder at `path`. One that cannot be read counts as if it were not there.
    fn with_file(self, path: &[u8], name: &str, file: Option<File>) -> Self {
        let Some(file) = file.and_then(parse) else { return self };
        let mut file = Some(file);
        let read = |read: &str| {
            let is_this = read == name;
            Ok::<_, Infallible>(file.take_if(|_| is_this).unwrap_or_default())
        };
        match self.0.with_folder(path, &IGNORE_FILES, read) {
            Ok(rules) => Self(rules),
        }
    }
}

fn parse(file: File) -> Option<IgnoreFile> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(IgnoreFile::parse(&bytes))
}

/// Returns a path beneath a root in the form that rules compare: bytes, with slashes.
pub(super) fn slashed(path: &Path) -> Vec<u8> {
    path.components().fold(Vec::new(), |mut slashed, component| {
        push_name(&mut slashed, component.as_os_str());
        slashed
    })
}

/// Appends `name` to a path in that form.
pub(super) fn push_name(path: &mut Vec<u8>, name: &OsStr) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_encoded_bytes());
}
