//! What the files of a selection are: sizes, hashes, token counts.

use super::workers;
use crate::cache::{self, Cache, ContentHash};
use crate::source::{ReadProblem, Tree};
use std::time::{SystemTime, UNIX_EPOCH};

/// How [`survey`] works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads to read and count on. As many as the machine has, at most 8, by default. The result is the same.
    pub threads: usize,
    /// Files of more bytes are named and not read. 512 KiB by default. Each thread holds one file at a time, so
    /// that this times the threads is what the survey holds of contents.
    pub file_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: workers::default_threads(), file_limit: 512 << 10 }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Text with bytes that are not UTF-8.
    NotUtf8,
    /// A zero byte among the first 8,000.
    Binary,
    /// More bytes than [`Options::file_limit`]; not read.
    TooLarge,
    /// Gone since it was selected, or not to be read.
    Unreadable,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes; 0 where it is unreadable.
    pub bytes: u64,
    /// The SHA-256 of its content, where that was read.
    pub sha256: Option<ContentHash>,
    /// Tokens of its content as it is, by the cache's counter; 0 where it is not text.
    pub tokens: usize,
    /// Its lines; 0 where it is not text.
    pub lines: usize,
    /// It changed while it was read, each time.
    pub unstable: bool,
}

/// What [`survey`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// A file each, in the order of the paths.
    pub files: Vec<FileFacts>,
    /// How many of them were read; the others are as the cache knows them, too large, or unreadable.
    pub read: usize,
}

/// Measures the files at `paths`: those that the cache knows to be unchanged by their state alone, the others by
/// reading them.
///
/// Threads take files as they come; the result is in the order of `paths`.
pub fn survey(tree: &dyn Tree, paths: &[String], cache: &Cache, options: &Options) -> Survey {
    let now = now_ns();
    let (found, _) = workers::in_order(options.threads, paths.len(), |(): &mut (), at| {
        measure(tree, &paths[at], cache, options.file_limit, now)
    });
    let read = found.iter().filter(|(_, read)| *read).count();
    Survey { files: found.into_iter().map(|(facts, _)| facts).collect(), read }
}

/// One file, and whether it was read.
fn measure(tree: &dyn Tree, path: &str, cache: &Cache, limit: u64, now: i128) -> (FileFacts, bool) {
    let facts = |kind, bytes| FileFacts {
        path: path.to_owned(),
        kind,
        bytes,
        sha256: None,
        tokens: 0,
        lines: 0,
        unstable: false,
    };
    if cache.has_seen(path)
        && let Ok(stamp) = tree.stamp(path)
        && stamp.size <= limit
        && let Some(hash) = cache.content_of(path, &stamp)
        && let Some(known) = cache.facts(&hash)
    {
        let unread = facts(known.kind, stamp.size);
        return (FileFacts { sha256: Some(hash), tokens: known.tokens, lines: known.lines, ..unread }, false);
    }
    let content = match tree.read(path, limit) {
        Ok(content) => content,
        Err(ReadProblem::TooLarge { bytes }) => return (facts(Kind::TooLarge, bytes), false),
        Err(_) => return (facts(Kind::Unreadable, 0), false),
    };
    let hash = cache::hash(&content.bytes);
    let known = cache.facts_of(&hash, &content.bytes);
    if !content.unstable {
        cache.remember(path, &content.stamp, now, hash);
    }
    let read = FileFacts {
        sha256: Some(hash),
        tokens: known.tokens,
        lines: known.lines,
        unstable: content.unstable,
        ..facts(known.kind, content.bytes.len() as u64)
    };
    (read, true)
}

/// Nanoseconds from 1970 until now. Only compared with times of files, and never part of a result.
fn now_ns() -> i128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0))
}
