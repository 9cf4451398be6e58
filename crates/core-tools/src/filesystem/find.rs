//! `find_files`: finds files by a glob over their names or paths.

use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::glob::GlobFilter;
use super::limits::MAX_TEXT_BYTES;
use super::parameters::{check_range, primary_root};
use super::walk::{WalkEntry, WalkFilter, WalkOutcome, WalkVisitor, display_path, walk};
use crate::workspace::{PathKind, Workspace};

/// A glob, and the folder in which to find what it matches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FindFiles {
    /// Glob. Without a slash it is on names at any depth (`*.rs`, `Cargo.*`), with one on paths below `path`
    /// (`src/**/*.ts`). `{a,b}` is either.
    pub pattern: String,
    /// Folder to look in. Default: the first root.
    #[serde(default = "primary_root")]
    pub path: String,
    /// The kind of entries to find: `file`, `directory` or `any`. Default: file.
    #[serde(default)]
    pub kind: FindKind,
    /// Also finds what .gitignore names.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub include_ignored: bool,
    /// Also finds names that begin with a dot. Default true.
    #[schemars(extend("unlisted" = true))]
    pub hidden: Option<bool>,
    /// The most paths in the answer. Default 1000.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_results: Option<i64>,
}

impl FindFiles {
    /// An input that finds regular files below the primary root whose name or path `pattern` matches.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: primary_root(),
            kind: FindKind::default(),
            include_ignored: false,
            hidden: None,
            max_results: None,
        }
    }
}

/// The kind of entry to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FindKind {
    /// Regular files.
    #[default]
    File,
    /// Directories.
    Directory,
    /// These, links and everything else.
    Any,
}

/// The paths that a glob matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FoundFiles {
    /// Paths relative to the root, sorted: the first ones, if there are more.
    pub paths: Vec<String>,
    /// The number of matches, listed or not.
    pub total: u64,
    /// True if there are more than listed.
    pub truncated: bool,
    /// Remarks: what was left out and how to get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The number of matching files that `.gitignore` names.
    #[serde(skip)]
    pub(super) ignored_files: u64,
    /// The number of folders that could not be read.
    #[serde(skip)]
    pub(super) unreadable_folders: u64,
}

impl FoundFiles {
    /// Returns one path a line, then the notes.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for path in &self.paths {
            text.push_str(path);
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}

/// Finds files by name. Links are not followed, `.git` is never entered.
///
/// The answer is the same whatever order the threads worked in: of too many paths the first in order stay.
/// Without `max_results` the paths also have at most [`MAX_TEXT_BYTES`] together.
///
/// # Errors
/// The path, the glob, numbers out of range, cancellation.
pub fn find_files(
    workspace: &Workspace,
    input: &FindFiles,
    cancel: &CancellationToken,
) -> Result<FoundFiles, Error> {
    let max_results = check_range("max_results", input.max_results, 100_000, 1000, "from 1 to 100000")?;
    let start = workspace.locate(&input.path)?;
    let globs = GlobFilter::new("pattern", std::slice::from_ref(&input.pattern))?;
    let filter = WalkFilter { gitignore: !input.include_ignored, hidden: input.hidden.unwrap_or(true) };
    let WalkOutcome { visitors: finders, unreadable_folders } =
        walk(&start, filter, cancel, || FileFinder {
            globs: &globs,
            kind: input.kind,
            max_results,
            first: BinaryHeap::new(),
            total: 0,
            ignored: 0,
            ignored_files: 0,
            folder: None,
            key: Vec::new(),
            path: PathBuf::new(),
        })?;

    let total: u64 = finders.iter().map(|finder| finder.total).sum();
    let ignored: u64 = finders.iter().map(|finder| finder.ignored).sum();
    let ignored_files: u64 = finders.iter().map(|finder| finder.ignored_files).sum();
    let folder = finders.iter().filter_map(|finder| finder.folder.as_ref()).min().cloned();
    let mut keys: Vec<Vec<u8>> = finders.into_iter().flat_map(|finder| finder.first).collect();
    // Each thread kept the first of its own; the first of all are among them.
    keys.sort_unstable();
    // A thread knows nothing of the finds of the others, so that the limit is applied once more to all.
    keys.truncate(max_results);
    let start = start.display_path();
    // A caller that gives a number of its own wants that many, however long they are.
    let mut free_bytes = if input.max_results.is_none() { MAX_TEXT_BYTES } else { usize::MAX };
    let paths: Vec<String> = keys
        .iter()
        .map(|key| display_path(&start, key))
        .take_while(|path| {
            let fits = path.len() < free_bytes;
            free_bytes = free_bytes.saturating_sub(path.len() + 1);
            fits
        })
        .collect();

    let truncated = (paths.len() as u64) < total;
    let mut notes = Vec::new();
    if truncated {
        notes.push(format!(
            "{} of {total} paths, the first in order; narrow pattern or path, or raise max_results (to at most 100000)",
            paths.len()
        ));
    }
    if total == 0
        && let Some(folder) = &folder
    {
        let folder = display_path(&start, folder);
        notes.push(format!(
            "no file matches, and `{folder}` is a folder; `{folder}/**` matches the files in it"
        ));
    } else if total == 0 {
        let is_plain_name = !input.pattern.contains(['*', '?', '[', '{', '/']);
        let part = if is_plain_name {
            format!("; for a part of a name use `*{}*`", input.pattern)
        } else {
            String::new()
        };
        notes.push(format!("nothing matches{part}"));
    }
    if ignored > 0 {
        let entries = if ignored == 1 { "1 entry".to_owned() } else { format!("{ignored} entries") };
        notes.push(format!("left out: {entries} that .gitignore names; `include_ignored` also finds these"));
    }
    if unreadable_folders > 0 {
        notes.push(format!("{unreadable_folders} directories could not be read"));
    }
    Ok(FoundFiles { paths, total, truncated, notes, ignored_files, unreadable_folders })
}

/// Collects what one thread finds: all is counted, the first in order are kept.
struct FileFinder<'a> {
    globs: &'a GlobFilter,
    kind: FindKind,
    max_results: usize,
    /// The sort keys of the first in order. A max-heap, so that the one to replace next is on top.
    first: BinaryHeap<Vec<u8>>,
    total: u64,
    /// The number of ignored entries that match, and of ignored folders, in which anything may.
    ignored: u64,
    /// The number of the files among these.
    ignored_files: u64,
    /// The sort key of the first folder that matches where files are wanted.
    folder: Option<Vec<u8>>,
    /// Buffers, reused for every entry.
    key: Vec<u8>,
    path: PathBuf,
}

impl WalkVisitor for FileFinder<'_> {
    fn visit_ignored(&mut self, entry: &WalkEntry<'_>) {
        if self.globs.need_path() {
            entry.write_path(&mut self.path);
        }
        let is_folder = entry.kind == PathKind::Directory;
        let is_wanted_kind =
            self.kind == FindKind::Any || (self.kind == FindKind::File && entry.kind == PathKind::File);
        if is_folder || (is_wanted_kind && self.globs.match_entry(entry.name, &self.path)) {
            self.ignored += 1;
            self.ignored_files += u64::from(!is_folder);
        }
    }

    fn visit(&mut self, entry: &WalkEntry<'_>) -> ControlFlow<()> {
        let is_wanted_kind = match self.kind {
            FindKind::File => entry.kind == PathKind::File,
            FindKind::Directory => entry.kind == PathKind::Directory,
            FindKind::Any => true,
        };
        let is_other_folder = self.kind == FindKind::File && entry.kind == PathKind::Directory;
        if !is_wanted_kind && !is_other_folder {
            return ControlFlow::Continue(());
        }
        if self.globs.need_path() {
            entry.write_path(&mut self.path);
        }
        // A pattern such as `src` may mean the files of a folder. The note then says how to find them.
        if is_other_folder {
            if self.globs.match_entry(entry.name, &self.path) {
                entry.write_key(&mut self.key);
                // The first in order is kept, whatever order the threads come in.
                if self.folder.as_ref().is_none_or(|folder| *folder > self.key) {
                    self.folder = Some(self.key.clone());
                }
            }
            return ControlFlow::Continue(());
        }
        if self.globs.match_entry(entry.name, &self.path) {
            self.total += 1;
            entry.write_key(&mut self.key);
            // The key is copied only for an entry that stays, since most entries of a large tree do not.
            if self.first.len() < self.max_results {
                self.first.push(self.key.clone());
            } else if let Some(mut last) = self.first.peek_mut()
                && *last > self.key
            {
                last.clone_from(&self.key);
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
