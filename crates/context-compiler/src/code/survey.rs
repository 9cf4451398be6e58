//! A survey of files: sizes, hashes, token counts.

use crate::cache::{ContentCache, ContentKind};
use crate::clock::now_ns;
use crate::hash::{ContentHash, hash_content};
use crate::parallel::{default_threads, map_in_order, thread_builder};
use crate::source::{SourceReadError, SourceTree};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The options of [`survey`] and [`map`](super::map()).
#[derive(Clone, Debug)]
pub struct SurveyOptions {
    pub(super) threads: usize,
    pub(super) max_file_bytes: u64,
}

impl Default for SurveyOptions {
    fn default() -> Self {
        Self { threads: default_threads(), max_file_bytes: 512 << 10 }
    }
}

impl SurveyOptions {
    /// Reads and counts on this many threads. By default as many as the machine has, at most 8. The result is the same.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Does not read files of more bytes than this. 512 KiB by default. Each thread holds one file in memory, so the
    /// memory for contents is this many bytes for each thread.
    #[must_use]
    pub fn max_file_bytes(mut self, max_bytes: u64) -> Self {
        self.max_file_bytes = max_bytes;
        self
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileKind {
    /// UTF-8.
    Text,
    /// Text with bytes that are not UTF-8.
    InvalidUtf8,
    /// A NUL among the first 8,000 bytes.
    Binary,
    /// A file with more bytes than [`SurveyOptions::max_file_bytes`]; it was not read.
    TooLarge,
    /// A file that was removed since it was selected, or that cannot be read.
    Unreadable,
}

impl From<ContentKind> for FileKind {
    fn from(kind: ContentKind) -> Self {
        match kind {
            ContentKind::Text => Self::Text,
            ContentKind::InvalidUtf8 => Self::InvalidUtf8,
            ContentKind::Binary => Self::Binary,
        }
    }
}

/// Facts about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFacts {
    /// The path of the file.
    pub path: String,
    /// The kind of the file.
    pub kind: FileKind,
    /// The size in bytes; 0 if the file is unreadable.
    pub bytes: u64,
    /// The SHA-256 of the content, if it is known.
    pub sha256: Option<ContentHash>,
    /// The tokens of the unchanged content, by the cache's counter; 0 if it is not text.
    pub tokens: usize,
    /// The lines of the content; 0 if it is not text.
    pub lines: usize,
    /// True if the file changed during each attempt to read it.
    pub unstable: bool,
}

/// The result of a [`survey`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeSurvey {
    /// The facts about each file, in the order of the paths.
    pub files: Vec<FileFacts>,
    /// The number of files that were read. The others were known to the cache, too large, or unreadable.
    pub read: usize,
}

/// Measures the files at `paths`. Files that the cache knows to be unchanged are measured by their state, the others by
/// reading them.
pub fn survey(
    tree: &dyn SourceTree,
    paths: &[String],
    cache: &ContentCache,
    options: &SurveyOptions,
) -> CodeSurvey {
    // Taken before any file is looked at: an entry of the index must not claim a later look than there was.
    let now = now_ns();
    let started = AtomicBool::new(false);
    // First the files that are known without reading. The first one that is not starts the counter, which has a vocabulary
    // to load; it is then ready when the states of the other files have been asked for.
    let known = thread::scope(|scope| {
        map_in_order(options.threads, paths.len(), |(): &mut (), index| {
            let known = unchanged_file(tree, &paths[index], cache, options.max_file_bytes);
            if known.is_none() && !started.swap(true, Ordering::Relaxed) {
                // If the system gives no thread, the first count prepares the counter.
                let _ = thread_builder().spawn_scoped(scope, || cache.counter().prepare());
            }
            known
        })
        .0
    });
    let unknown: Vec<usize> = (0..known.len()).filter(|&index| known[index].is_none()).collect();
    let (measured, _) = map_in_order(options.threads, unknown.len(), |(): &mut (), position| {
        measure_file(tree, &paths[unknown[position]], cache, options.max_file_bytes, now)
    });
    let read = measured.iter().filter(|file| file.sha256.is_some()).count();
    let mut measured = measured.into_iter();
    CodeSurvey {
        files: known.into_iter().filter_map(|known| known.or_else(|| measured.next())).collect(),
        read,
    }
}

/// Facts about a file whose content is not known.
fn without_content(path: &str, kind: FileKind, bytes: u64) -> FileFacts {
    FileFacts { path: path.to_owned(), kind, bytes, sha256: None, tokens: 0, lines: 0, unstable: false }
}

/// Returns what the cache knows about a file, if its state shows that it is unchanged.
fn unchanged_file(
    tree: &dyn SourceTree,
    path: &str,
    cache: &ContentCache,
    max_bytes: u64,
) -> Option<FileFacts> {
    if !cache.has_index_entry(path) {
        return None;
    }
    let state = tree.state(path).ok().filter(|state| state.size <= max_bytes)?;
    let hash = cache.indexed_hash(path, &state)?;
    let facts = cache.cached_facts(&hash)?;
    let file = without_content(path, facts.kind.into(), state.size);
    Some(FileFacts { sha256: Some(hash), tokens: facts.tokens, lines: facts.lines, ..file })
}

/// Measures a file by reading it.
fn measure_file(
    tree: &dyn SourceTree,
    path: &str,
    cache: &ContentCache,
    max_bytes: u64,
    now_ns: i128,
) -> FileFacts {
    let content = match tree.read(path, max_bytes) {
        Ok(content) => content,
        Err(SourceReadError::TooLarge { bytes }) => return without_content(path, FileKind::TooLarge, bytes),
        Err(_) => return without_content(path, FileKind::Unreadable, 0),
    };
    let hash = hash_content(&content.bytes);
    let facts = cache.facts(&hash, &content.bytes);
    // The hash of a file that changed while it was read belongs to none of its states.
    if !content.unstable {
        cache.record_index_entry(path, &content.state, now_ns, hash);
    }
    let file = without_content(path, facts.kind.into(), content.bytes.len() as u64);
    FileFacts {
        sha256: Some(hash),
        tokens: facts.tokens,
        lines: facts.lines,
        unstable: content.unstable,
        ..file
    }
}
