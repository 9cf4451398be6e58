//! The parts of a patch, whatever form it was written in.

/// The change that a patch makes to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilePatch {
    /// The file is created.
    Add {
        path: String,
        /// The whole text.
        content: String,
        /// True if a file of this name is replaced, as Codex does; otherwise that is an error, as it is to git.
        overwrite: bool,
    },
    /// The file is removed. With hunks, only if they leave nothing of it.
    Delete { path: String, hunks: Vec<Hunk> },
    /// The file is edited, moved, or both.
    Update { path: String, move_to: Option<String>, hunks: Vec<Hunk> },
}

#[cfg(feature = "mcp")]
impl FilePatch {
    /// Returns the paths, to change them.
    pub(super) fn paths_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } => vec![path],
            Self::Update { path, move_to, .. } => std::iter::once(path).chain(move_to).collect(),
        }
    }
}

/// A run of lines that stand together in a file, with those that are removed and added among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// Lines that stand somewhere before the hunk, in this order: each the text behind an `@@`.
    pub(super) anchors: Vec<String>,
    /// The number of its first line in the old file, as its header says.
    pub(super) first_line: Option<usize>,
    pub(super) lines: Vec<HunkLine>,
    /// True if it stands at the end of the file.
    pub(super) is_at_end: bool,
    /// True if the last line that it adds has no line end.
    pub(super) ends_without_newline: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HunkLine {
    Context(String),
    Remove(String),
    Add(String),
}

impl Hunk {
    /// Returns the lines that must stand in the file.
    pub(super) fn old_lines(&self) -> Vec<&str> {
        let old = self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(text) | HunkLine::Remove(text) => Some(text.as_str()),
            HunkLine::Add(_) => None,
        });
        old.collect()
    }

    /// Returns the lines that stand there afterwards.
    pub(super) fn new_lines(&self) -> Vec<&str> {
        let new = self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(text) | HunkLine::Add(text) => Some(text.as_str()),
            HunkLine::Remove(_) => None,
        });
        new.collect()
    }

    pub(super) fn added(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, HunkLine::Add(_))).count()
    }

    /// Returns the numbers of lines that come and go. A line that is removed and added again is neither.
    pub(super) fn changed_lines(&self) -> (u64, u64) {
        let (old, new) = (self.old_lines(), self.new_lines());
        let (mut added, mut removed) = (0, 0);
        for change in similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
            if change.tag() != similar::DiffTag::Equal {
                added += change.new_range().len() as u64;
                removed += change.old_range().len() as u64;
            }
        }
        (added, removed)
    }

    /// Removes blank lines of context at the end: they separate parts of a patch as often as they are context.
    pub(super) fn trim_end(&mut self) {
        while matches!(self.lines.last(), Some(HunkLine::Context(text)) if text.is_empty()) {
            self.lines.pop();
        }
    }
}
