//! `directory_tree`: shows a folder and everything below it as indented text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::entry::{is_hidden, kind_suffix};
use super::error::Error;
use super::ignore_files::{ApplicableIgnoreFiles, push_name, slashed};
use super::limits::MAX_TEXT_BYTES;
use super::parameters::{check_range, primary_root};
use crate::workspace::{DirEntry, Folder, PathKind, Workspace, printable};

/// The most entries that are counted, in all folders together.
const MAX_COUNTED_ENTRIES: u64 = 1_000_000;

/// A folder to show as a tree.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DirectoryTree {
    /// Folder to show. Default: the first root.
    #[serde(default = "primary_root")]
    pub path: String,
    /// Number of levels. Default 3.
    #[schemars(range(min = 1, max = 20))]
    pub depth: Option<i64>,
    /// Also shows names that begin with a dot. Default false.
    #[serde(default)]
    pub hidden: bool,
    /// Leaves out what .gitignore names. Default true.
    pub gitignore: Option<bool>,
    /// The most entries in the answer. Default 1000.
    #[schemars(range(min = 1, max = 10_000), extend("alias" = "limit"))]
    pub max_results: Option<i64>,
}

impl DirectoryTree {
    /// An input that shows three levels of the folder at `path`, without hidden and ignored entries.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), depth: None, hidden: false, gitignore: None, max_results: None }
    }
}

impl Default for DirectoryTree {
    /// An input that shows the primary root.
    fn default() -> Self {
        Self::new(primary_root())
    }
}

/// A directory and everything below it, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RenderedTree {
    /// The directory, relative to its root.
    pub path: String,
    /// One entry a line, two spaces a level, sorted by name; `/` marks directories, `@` links.
    pub text: String,
    /// The number of directories, shown or not.
    pub directories: u64,
    /// The number of all other entries, shown or not.
    pub files: u64,
    /// Remarks: what was left out and how to get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl RenderedTree {
    /// Returns the tree, its counts and the notes.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{}/\n{}[{} directories, {} files]\n",
            self.path.trim_end_matches('/'),
            self.text,
            self.directories,
            self.files
        );
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}

/// Shows a directory and what is below it as indented text. Links are shown, not entered; so is `.git`,
/// where hidden names are.
///
/// `.gitignore` files count from the root down, and so does the root's `.git/info/exclude`. The user's own file does not.
///
/// # Errors
/// The path, numbers out of range, cancellation.
pub fn directory_tree(
    workspace: &Workspace,
    input: &DirectoryTree,
    cancel: &CancellationToken,
) -> Result<RenderedTree, Error> {
    let depth = check_range("depth", input.depth, 20, 3, "from 1 to 20")?;
    let limit = check_range("max_results", input.max_results, 10_000, 1000, "from 1 to 10000")?;
    let path = workspace.locate(&input.path)?;
    let folder = path.open_folder()?;
    let gitignore = input.gitignore.unwrap_or(true);
    let above =
        if gitignore { ApplicableIgnoreFiles::above(&path) } else { ApplicableIgnoreFiles::default() };
    let mut renderer = TreeRenderer {
        hidden: input.hidden,
        gitignore,
        limit,
        cancel,
        text: String::new(),
        shown: 0,
        examined: 0,
        directories: 0,
        files: 0,
        unreadable_folders: 0,
        has_deeper_levels: false,
    };
    // The folder asked for must be readable; those below it are only counted if they are not.
    folder.entries().map_err(|source| Error::list(path.display_path(), source))?;
    renderer.render(&folder, &slashed(path.relative()), above, 0, depth)?;

    let mut notes = Vec::new();
    let total = renderer.directories + renderer.files;
    if renderer.shown < total {
        let more = if renderer.examined >= MAX_COUNTED_ENTRIES { "more than " } else { "" };
        notes.push(format!(
            "{} of {more}{total} entries shown; raise max_results (to at most 10000), lower depth, or choose a directory below",
            renderer.shown
        ));
    }
    if renderer.has_deeper_levels {
        notes.push(format!("deeper than {depth} levels is not shown (directories marked /…)"));
    }
    if renderer.unreadable_folders > 0 {
        notes.push(format!("{} directories could not be read", renderer.unreadable_folders));
    }
    Ok(RenderedTree {
        path: path.display_path(),
        text: renderer.text,
        directories: renderer.directories,
        files: renderer.files,
        notes,
    })
}

/// Renders a tree, and counts its entries.
struct TreeRenderer<'a> {
    hidden: bool,
    gitignore: bool,
    limit: usize,
    cancel: &'a CancellationToken,
    text: String,
    shown: u64,
    /// Entries looked at, including those left out.
    examined: u64,
    directories: u64,
    files: u64,
    unreadable_folders: u64,
    /// True if there are levels deeper than those shown.
    has_deeper_levels: bool,
}

impl TreeRenderer<'_> {
    /// Renders the entries of `folder`, which lies at `path` beneath its root, without those that the rules of the
    /// folders above it leave out (`ignored`).
    fn render(
        &mut self,
        folder: &Folder,
        path: &[u8],
        ignored: ApplicableIgnoreFiles,
        level: usize,
        depth: usize,
    ) -> Result<(), Error> {
        let ignored = if self.gitignore { ignored.within(folder, path) } else { ignored };
        let mut entries = self.kept_entries(folder, path, &ignored)?;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for DirEntry { name, kind, .. } in entries {
            let directory = kind == PathKind::Directory;
            if directory {
                self.directories += 1;
            } else {
                self.files += 1;
            }
            // The folder is opened by its handle, so that a link which takes its place cannot lead elsewhere.
            let child = if directory && name != ".git" { folder.child(&name).ok() } else { None };
            let descend = level + 1 < depth;
            // Marked as not shown only if there is something in it.
            let is_closed = !descend
                && child
                    .as_ref()
                    .is_some_and(|child| child.entries().is_ok_and(|mut all| all.next().is_some()));
            self.has_deeper_levels |= is_closed;
            // Entries beyond the limit are counted all the same: the note says how many there are.
            if self.shown < self.limit as u64 && self.text.len() < MAX_TEXT_BYTES {
                self.shown += 1;
                self.text.push_str(&"  ".repeat(level + 1));
                self.text.push_str(&printable(&name));
                self.text.push_str(kind_suffix(kind));
                self.text.push_str(if is_closed { "…\n" } else { "\n" });
            }
            match child {
                Some(child) if descend => {
                    let mut path = path.to_vec();
                    push_name(&mut path, &name);
                    self.render(&child, &path, ignored.clone(), level + 1, depth)?;
                }
                None if directory && name != ".git" => self.unreadable_folders += 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn kept_entries(
        &mut self,
        folder: &Folder,
        path: &[u8],
        ignored: &ApplicableIgnoreFiles,
    ) -> Result<Vec<DirEntry>, Error> {
        let Ok(entries) = folder.entries() else {
            self.unreadable_folders += 1;
            return Ok(Vec::new());
        };
        let mut kept = Vec::new();
        let mut entry_path = Vec::new();
        for entry in entries {
            // A look at the token for every entry would cost as much as reading the entry.
            if self.examined.is_multiple_of(1024) && self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            self.examined += 1;
            let Ok(entry) = entry else { break };
            if self.examined > MAX_COUNTED_ENTRIES {
                break;
            }
            entry_path.clear();
            entry_path.extend_from_slice(path);
            push_name(&mut entry_path, &entry.name);
            let is_kept = (self.hidden || !is_hidden(&entry.name))
                && !ignored.is_ignored(&entry_path, entry.kind == PathKind::Directory);
            if is_kept {
                kept.push(entry);
            }
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
    fn tree(project: &ProjectFixture, input: DirectoryTree) -> Result<RenderedTree, String> {
        directory_tree(&project.workspace, &input, &project.cancel).map_err(|error| chain(&error))
    }

    fn project() -> ProjectFixture {
        ProjectFixture::with(&[
            (".gitignore", "target/\n*.log\n!keep.log\n"),
            ("target/debug/app", ""),
            ("a.log", ""),
            ("keep.log", ""),
            ("src/lib.rs", ""),
            ("src/.gitignore", "/local\n!special.log\n"),
            ("src/local", ""),
            ("src/special.log", ""),
            ("src/deep/local", ""),
            ("src/deep/er/x", ""),
            (".git/HEAD", ""),
        ])
    }

    #[test]
    fn the_tree_is_indented_sorted_and_free_of_what_git_ignores() {
        let tree = tree(&project(), DirectoryTree::default()).unwrap();
        assert_eq!(
            tree.to_text(),
            "./\n  keep.log\n  src/\n    deep/\n      er/…\n      local\n    lib.rs\n    special.log\n\
             [3 directories, 4 files]\n[deeper than 3 levels is not shown (directories marked /…)]\n"
        );
    }

    #[test]
    fn a_tree_from_below_still_honours_what_lies_above() {
        let project = project();
        let input = DirectoryTree { path: "src".into(), depth: Some(9), ..DirectoryTree::default() };
        let tree = tree(&project, input).unwrap();
        assert_eq!(tree.text, "  deep/\n    er/\n      x\n    local\n  lib.rs\n  special.log\n");
    }

    #[test]
    fn all_is_shown_on_request_but_git_is_not_entered() {
        let input = DirectoryTree {
            hidden: true,
            gitignore: Some(false),
            depth: Some(2),
            ..DirectoryTree::default()
        };
        let tree = tree(&project(), input).unwrap();
        assert_eq!(
            tree.text,
            "  .git/\n  .gitignore\n  a.log\n  keep.log\n  src/\n    .gitignore\n    deep/…\n    lib.rs\n    local\n    \
             special.log\n  target/\n    debug/…\n"
        );
    }

    #[test]
    fn a_tree_over_the_limit_says_how_much_there_is() {
        let input = DirectoryTree { max_results: Some(2), ..DirectoryTree::default() };
        let tree = tree(&project(), input).unwrap();
        assert_eq!(tree.text, "  keep.log\n  src/\n");
        assert!(tree.notes[0].starts_with("2 of 7 entries shown"), "{:?}", tree.notes);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_shown_and_not_entered() {
        let project = ProjectFixture::with(&[("a/f", "")]);
        std::os::unix::fs::symlink("..", project.at("a/up")).unwrap();
        std::os::unix::fs::symlink("/etc", project.at("etc")).unwrap();
        let tree = tree(&project, DirectoryTree { depth: Some(20), ..DirectoryTree::default() }).unwrap();
        assert_eq!(tree.text, "  a/\n    f\n    up@\n  etc@\n");
    }

    #[test]
    fn wrong_input_and_cancelling_are_answered() {
        let project = project();
        let deep = DirectoryTree { depth: Some(21), ..DirectoryTree::default() };
        assert_eq!(tree(&project, deep).unwrap_err(), "`depth` must be from 1 to 20; 21 was given");
        let file = DirectoryTree { path: "a.log".into(), ..DirectoryTree::default() };
        assert_eq!(tree(&project, file).unwrap_err(), "`a.log` is a regular file, not a directory");
        project.cancel.cancel();
        assert_eq!(tree(&project, DirectoryTree::default()).unwrap_err(), "cancelled");
    }
}
