//! What the files of a selection are: sizes, hashes, token counts.

use super::workers;
use crate::cache::{self, Cache, ContentHash};
use crate::source::{ReadProblem, Tree};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
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
    let started = AtomicBool::new(false);
    // First what is known without reading. The first file that is not starts the counter, which takes a while, so
    // that it is ready when the others have been asked for.
    let known = thread::scope(|scope| {
        workers::in_order(options.threads, paths.len(), |(): &mut (), at| {
            let known = unchanged(tree, &paths[at], cache, options.file_limit);
            if known.is_none() && !started.swap(true, Ordering::Relaxed) {
                // Where there is no thread for it, the first count does it.
                let _ = workers::builder().spawn_scoped(scope, || cache.counter().prepare());
            }
            known
        })
        .0
    });
    let unknown: Vec<usize> = (0..known.len()).filter(|&at| known[at].is_none()).collect();
    let (found, _) = workers::in_order(options.threads, unknown.len(), |(): &mut (), at| {
        measure(tree, &paths[unknown[at]], cache, options.file_limit, now)
    });
    let read = found.iter().filter(|file| file.sha256.is_some()).count();
    let mut found = found.into_iter();
    Survey { files: known.into_iter().filter_map(|known| known.or_else(|| found.next())).collect(), read }
}

/// A file of which nothing is known but its name.
fn unknown(path: &str, kind: Kind, bytes: u64) -> FileFacts {
    FileFacts { path: path.to_owned(), kind, bytes, sha256: None, tokens: 0, lines: 0, unstable: false }
}

/// What the cache knows of a file, if its state says that it is as it was.
fn unchanged(tree: &dyn Tree, path: &str, cache: &Cache, limit: u64) -> Option<FileFacts> {
    if !cache.has_seen(path) {
        return None;
    }
    let stamp = tree.stamp(path).ok().filter(|stamp| stamp.size <= limit)?;
    let hash = cache.content_of(path, &stamp)?;
    let facts = cache.facts(&hash)?;
    let file = unknown(path, facts.kind, stamp.size);
    Some(FileFacts { sha256: Some(hash), tokens: facts.tokens, lines: facts.lines, ..file })
}

/// What a file is, by reading it.
fn measure(tree: &dyn Tree, path: &str, cache: &Cache, limit: u64, now: i128) -> FileFacts {
    let content = match tree.read(path, limit) {
        Ok(content) => content,
        Err(ReadProblem::TooLarge { bytes }) => return unknown(path, Kind::TooLarge, bytes),
        Err(_) => return unknown(path, Kind::Unreadable, 0),
    };
    let hash = cache::hash(&content.bytes);
    let facts = cache.facts_of(&hash, &content.bytes);
    if !content.unstable {
        cache.remember(path, &content.stamp, now, hash);
    }
    let file = unknown(path, facts.kind, content.bytes.len() as u64);
    FileFacts {
        sha256: Some(hash),
        tokens: facts.tokens,
        lines: facts.lines,
        unstable: content.unstable,
        ..file
    }
}

/// Nanoseconds from 1970 until now. Only compared with times of files, and never part of a result.
/// Nanoseconds from 1970 to now.
pub(crate) fn now_ns() -> i128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0))
}
