//! The files of a selection.

use crate::parallel::default_threads;

/// The options of [`select`](super::select()).
#[derive(Clone, Debug)]
pub struct SourceSelectOptions {
    pub(super) threads: usize,
    pub(super) max_files: usize,
    pub(super) ignore_files: bool,
}

impl Default for SourceSelectOptions {
    fn default() -> Self {
        Self { threads: default_threads(), max_files: 200_000, ignore_files: true }
    }
}

impl SourceSelectOptions {
    /// Lists folders on this many threads. By default as many as the machine has, at most 8. The result is the same.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Returns [`SourceSelectError::TooManyFiles`] for more files than this, which bounds the memory. 200,000 by default.
    #[must_use]
    pub fn max_files(mut self, max_files: usize) -> Self {
        self.max_files = max_files;
        self
    }

    /// Respects ignore files. True by default.
    #[must_use]
    pub fn ignore_files(mut self, respected: bool) -> Self {
        self.ignore_files = respected;
        self
    }
}

/// The files that match the globs of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchedFiles {
    /// The paths of the files, each once, in byte order.
    pub files: Vec<String>,
    /// Paths that match and were not selected, in byte order. Ignored paths are not among them, but counted in `ignored`.
    pub skipped: Vec<SkippedSourcePath>,
    /// The number of files and folders met that are ignored, or excluded by the request.
    pub ignored: usize,
    /// The includes without wildcards that name no file.
    pub missing: Vec<String>,
}

/// A path that matches and was not selected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SkippedSourcePath {
    /// The path.
    pub path: String,
    /// The reason why it was not selected.
    pub reason: SourceSkipReason,
}

/// The reason why a path was not selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SourceSkipReason {
    /// Files of this name usually contain secrets (`.env`, `*.pem`, `id_rsa` …). An include that names the file exactly
    /// selects it.
    SensitiveName,
    /// A symbolic link. Its target is selected under its own name. An include that names the link exactly selects it.
    Link,
    /// A pipe, a socket, a device, or a name that is not UTF-8.
    NotRegular,
    /// The folder could not be listed, or one of its ignore files could not be read; nothing beneath it is selected.
    Unreadable,
}

/// The reason why there is no selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceSelectError {
    /// A pattern that is no glob, or is not allowed.
    #[error("the glob `{glob}` {problem}")]
    InvalidGlob {
        /// The pattern.
        glob: String,
        /// The problem with it.
        problem: String,
    },
    /// More files match than the options allow.
    #[error("more than {limit} files match: narrow the globs")]
    TooManyFiles {
        /// The limit of the options.
        limit: usize,
    },
}
