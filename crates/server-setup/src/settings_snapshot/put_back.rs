//! [`UndoneChanges`], and how a file is read and put back without following a link that a command made.

use core_tools::workspace::{ConfinedPath, Error, PathKind, Workspace};
use std::io::{self, Read};

/// The size up to which a file is taken for settings.
const MAX_BYTES: u64 = 1 << 20;

/// The most changes that are told one by one.
pub(super) const MAX_TOLD: usize = 100;

/// The changes that were undone, and those that could not be.
#[derive(Debug, Default)]
pub(super) struct UndoneChanges {
    told: Vec<(String, Option<Error>)>,
    /// The number of undone changes that are not told one by one.
    further_undone: usize,
    /// The number of changes that could not be undone and are not told one by one.
    further_failed: usize,
}

impl UndoneChanges {
    pub(super) fn push(&mut self, path: &ConfinedPath, undone: Result<(), Error>) {
        match undone {
            undone if self.told.len() < MAX_TOLD => self.told.push((path.display_path(), undone.err())),
            Ok(()) => self.further_undone += 1,
            Err(_) => self.further_failed += 1,
        }
    }

    pub(super) fn into_list(mut self) -> Vec<(String, Option<Error>)> {
        let files = |count| format!("{count} further files of clients");
        if self.further_undone > 0 {
            self.told.push((files(self.further_undone), None));
        }
        if self.further_failed > 0 {
            let path = files(self.further_failed);
            let source = io::Error::other("their errors are as those before");
            self.told.push((path.clone(), Some(Error::Io { action: "put back", path, source })));
        }
        self.told
    }
}

/// Returns true if something has this path, and no part of the path is a link.
pub(super) fn is_there_without_links(path: &ConfinedPath) -> bool {
    is_free_of_links(path) && path.is_there() && !is_link(path)
}

pub(super) fn is_link(path: &ConfinedPath) -> bool {
    path.is_there() && path.read_link().is_ok_and(|link| link.is_some())
}

/// Returns true if the path is a regular file with this content.
pub(super) fn holds(path: &ConfinedPath, content: &[u8]) -> bool {
    !is_link(path) && path.is_there() && read(path).is_some_and(|now| now == content)
}

/// Removes a file or link. Refused if a link leads to the folder of the path: the file is another one then.
pub(super) fn remove(path: &ConfinedPath) -> Result<(), Error> {
    check_way(path)?;
    path.remove_file()
}

pub(super) fn put_back(path: &ConfinedPath, content: &[u8]) -> Result<(), Error> {
    check_way(path)?;
    // A link in its place would have the content written elsewhere, and a pipe cannot be written.
    let is_other = |kind| !matches!(kind, PathKind::File | PathKind::Directory);
    if path.is_there() && is_other(path.link_metadata()?.kind) {
        path.remove_file()?;
    }
    path.write(content)
}

fn check_way(path: &ConfinedPath) -> Result<(), Error> {
    match path.parent().is_none_or(|folder| is_free_of_links(&folder)) {
        true => Ok(()),
        false => Err(not_put_back(path, "a link leads to its folder by now")),
    }
}

pub(super) fn not_put_back(path: &ConfinedPath, reason: impl Into<String>) -> Error {
    let source = io::Error::other(reason.into());
    Error::Io { action: "put back", path: path.display_path(), source }
}

pub(super) fn read(path: &ConfinedPath) -> Option<Vec<u8>> {
    let (file, metadata) = path.open_read().ok()?;
    if metadata.size > MAX_BYTES {
        return None;
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Returns the same file by its path without links, or nothing if that lies outside.
pub(super) fn without_links(workspace: &Workspace, path: &ConfinedPath) -> Option<ConfinedPath> {
    workspace.locate(&path.without_links().ok()?).ok()
}

/// Returns true if no part of the path is a link.
pub(super) fn is_free_of_links(path: &ConfinedPath) -> bool {
    path.without_links().is_ok_and(|real| real == path.to_absolute())
}
