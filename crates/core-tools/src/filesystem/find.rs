//! `find_files`: what has a name or a path of some form.

use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::MAX_TEXT_BYTES;
use super::error::{Error, ranged};
use super::glob::Globs;
use super::walk::{Filter, Found, Visitor, shown, walk};
use crate::workspace::{Kind, Workspace};

/// What to find.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindFiles {
    /// Glob: `*.rs`, `src/**/*.ts`
    pub pattern: String,
    /// Folder
    #[serde(default = "super::here")]
    pub path: String,
    /// Default file
    #[serde(default)]
    pub kind: FindKind,
    /// Include what .gitignore names
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub include_ignored: bool,
    /// Include dot names; default true
    #[schemars(extend("unlisted" = true))]
    pub hidden: Option<bool>,
    /// Default 1000
    #[schemars(range(min = 1, max = 100_000))]
    pub max_results: Option<i64>,
}

/// What kind of thing to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FindKind {
    /// Regular files.
    #[default]
    File,
    /// Directories.
    Directory,
    /// These, links and everything else.
    Any,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundFiles {
    /// Paths relative to the root, sorted: the first ones, if there are more.
    pub paths: Vec<String>,
    /// How many there are, also those not listed.
    pub total: u64,
    /// Whether there are more than listed.
    pub truncated: bool,
    /// What was left out and how to get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl FoundFiles {
    /// One path a line, then the notes.
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
    let most = ranged("max_results", input.max_results, 100_000, 1000, "from 1 to 100000")?;
    let start = workspace.locate(&input.path)?;
    let globs = Globs::new("pattern", std::slice::from_ref(&input.pattern))?;
    let filter = Filter { gitignore: !input.include_ignored, hidden: input.hidden.unwrap_or(true) };
    let (finders, unread) = walk(&start, filter, cancel, || Finder {
        globs: &globs,
        kind: input.kind,
        most,
        first: BinaryHeap::new(),
        total: 0,
        key: Vec::new(),
        path: PathBuf::new(),
    })?;

    let total: u64 = finders.iter().map(|finder| finder.total).sum();
    let mut keys: Vec<Vec<u8>> = finders.into_iter().flat_map(|finder| finder.first).collect();
    keys.sort_unstable();
    keys.truncate(most);
    let start = start.shown();
    let mut left = if input.max_results.is_none() { MAX_TEXT_BYTES } else { usize::MAX };
    let paths: Vec<String> = keys
        .iter()
        .map(|key| shown(&start, key))
        .take_while(|path| {
            let fits = path.len() < left;
            left = left.saturating_sub(path.len() + 1);
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
    if total == 0 {
        let plain = !input.pattern.contains(['*', '?', '[', '{', '/']);
        let part =
            if plain { format!("; for a part of a name use `*{}*`", input.pattern) } else { String::new() };
        let ignored =
            if input.include_ignored { "" } else { "; what .gitignore names was left out (include_ignored)" };
        notes.push(format!("nothing matches{part}{ignored}"));
    }
    if unread.folders > 0 {
        notes.push(format!("{} directories could not be read", unread.folders));
    }
    Ok(FoundFiles { paths, total, truncated, notes })
}

/// What one thread found.
struct Finder<'a> {
    globs: &'a Globs,
    kind: FindKind,
    most: usize,
    /// The first in order, the last of them on top.
    first: BinaryHeap<Vec<u8>>,
    total: u64,
    key: Vec<u8>,
    path: PathBuf,
}

impl Visitor for Finder<'_> {
    fn visit(&mut self, found: &Found<'_>) -> ControlFlow<()> {
        let kind = match self.kind {
            FindKind::File => found.kind == Kind::File,
            FindKind::Directory => found.kind == Kind::Directory,
            FindKind::Any => true,
        };
        if !kind {
            return ControlFlow::Continue(());
        }
        if self.globs.need_path() {
            found.path(&mut self.path);
        }
        if self.globs.match_entry(found.name, &self.path) {
            self.total += 1;
            found.key(&mut self.key);
            if self.first.len() < self.most {
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
