//! One thread's part of a search.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SearcherBuilder};

use super::collector::MatchCollector;
use super::matches::FileMatches;
use super::query::SearchQuery;
use super::request::SearchMode;
use super::sink::SearchLineSink;
use crate::filesystem::error::Error;
use crate::filesystem::walk::{WalkEntry, WalkVisitor};
use crate::workspace::{ConfinedPath, PathKind};

/// Files smaller than this are read whole; larger ones are searched as a stream.
const MAX_WHOLE_BYTES: usize = 1 << 20;
/// The buffer that a worker begins with: most source files fit.
const INITIAL_BUFFER_BYTES: usize = 64 << 10;
/// The longest line of a file that is searched as a stream. A longer one makes the file unreadable.
const MAX_STREAMED_LINE_BYTES: usize = 16 << 20;

/// Searches files on one thread, and collects what it finds.
pub(super) struct SearchWorker<'a> {
    query: &'a SearchQuery<'a>,
    /// A clone of the query's own: threads that share one matcher wait for each other's scratch space.
    matcher: RegexMatcher,
    searcher: Searcher,
    /// The start of the file that is being searched. Reused, as are `path` and `key`: an allocation for every
    /// file costs more than most searches.
    content: Vec<u8>,
    path: PathBuf,
    key: Vec<u8>,
    collector: MatchCollector,
}

impl WalkVisitor for SearchWorker<'_> {
    fn visit(&mut self, entry: &WalkEntry<'_>) -> ControlFlow<()> {
        if self.query.needs_path() {
            entry.write_path(&mut self.path);
        }
        if self.query.is_excluded(entry.name, &self.path) {
            return ControlFlow::Break(());
        }
        if entry.kind == PathKind::File && self.query.is_included(entry.name, &self.path) {
            match entry.folder.open_listed(entry.name) {
                Ok(file) => {
                    entry.write_key(&mut self.key);
                    self.search(file);
                }
                Err(_) => self.collector.unreadable_files += 1,
            }
        }
        ControlFlow::Continue(())
    }
}

impl<'a> SearchWorker<'a> {
    pub(super) fn new(query: &'a SearchQuery<'a>) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .multi_line(query.is_multiline)
            .before_context(query.context_lines)
            .after_context(query.context_lines)
            .heap_limit(Some(MAX_STREAMED_LINE_BYTES))
            .build();
        Self {
            query,
            matcher: query.matcher.clone(),
            searcher,
            content: vec![0; INITIAL_BUFFER_BYTES],
            path: PathBuf::new(),
            key: Vec::new(),
            collector: MatchCollector::default(),
        }
    }

    pub(super) fn into_matches(self) -> MatchCollector {
        self.collector
    }

    /// Searches the one file at `path`, whatever the globs say.
    pub(super) fn search_one(&mut self, path: &ConfinedPath) -> Result<(), Error> {
        let (file, _) = path.open_read()?;
        self.search(file);
        Ok(())
    }

    /// Searches `file`, whose path has the key `self.key`.
    fn search(&mut self, mut file: File) {
        self.collector.searched_files += 1;
        let Ok(length) = read_start(&mut file, &mut self.content) else {
            self.collector.unreadable_files += 1;
            return;
        };
        let head = &self.content[..length];
        let is_utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
        let is_whole = length < MAX_WHOLE_BYTES;
        // Nearly every file ends here: one pass over the bytes, without a look at lines. UTF-16 must be decoded
        // first, which the searcher does.
        if is_whole && !is_utf16 && !self.matcher.is_match(head).unwrap_or(true) {
            return;
        }
        if !is_utf16 && memchr::memchr(0, head).is_some() {
            self.collector.binary_files += 1;
            return;
        }
        let keeps_lines = self.query.mode == SearchMode::Lines && self.collector.may_show(&self.key);
        let mut sink = SearchLineSink::new(self.query, keeps_lines);
        let searched = if is_whole {
            self.searcher.search_slice(&self.matcher, head, &mut sink)
        } else {
            self.searcher.search_reader(&self.matcher, io::Cursor::new(head).chain(file), &mut sink)
        };
        if searched.is_err() {
            self.collector.unreadable_files += 1;
        }
        if sink.is_binary {
            self.collector.binary_files += 1;
        } else if sink.matches > 0 {
            let bytes = sink.bytes;
            let file = FileMatches { key: self.key.clone(), matches: sink.matches, lines: sink.lines };
            self.collector.add(file, bytes, self.query);
        }
    }
}

/// Fills `buffer` from `file` to its end or to [`MAX_WHOLE_BYTES`]. Returns the number of bytes.
fn read_start(file: &mut File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length >= MAX_WHOLE_BYTES {
                return Ok(length);
            }
            buffer.resize((length * 4).min(MAX_WHOLE_BYTES), 0);
        }
        match file.read(&mut buffer[length..]) {
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
