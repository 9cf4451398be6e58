//! Receives the lines that the searcher finds in one file.

use std::io;

use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::matches::{SearchOutputLine, SearchOutputLineKind};
use super::query::SearchQuery;
use super::request::SearchMode;
use super::shorten::{MAX_LINE_BYTES, shorten_line};
use crate::filesystem::limits::MAX_TEXT_BYTES;

/// Bytes of a rendered line beside its text and path: the line's number and the separators, roughly.
const LINE_OVERHEAD_BYTES: usize = 16;

/// Counts the matching lines of one file, and keeps as many as can be shown.
pub(super) struct SearchLineSink<'a> {
    query: &'a SearchQuery<'a>,
    /// The number of lines that match, kept or not.
    pub(super) matches: u64,
    pub(super) lines: Vec<SearchOutputLine>,
    /// Bytes that `lines` take in the answer, roughly.
    pub(super) bytes: usize,
    /// True if a matching line has a NUL.
    pub(super) is_binary: bool,
    /// False if lines are only counted.
    keeps_lines: bool,
    gap_pending: bool,
}

impl<'a> SearchLineSink<'a> {
    pub(super) fn new(query: &'a SearchQuery<'a>, keeps_lines: bool) -> Self {
        Self {
            query,
            matches: 0,
            lines: Vec::new(),
            bytes: 0,
            is_binary: false,
            keeps_lines,
            gap_pending: false,
        }
    }

    /// Returns true if more lines of this file can be shown.
    fn has_room(&self) -> bool {
        self.keeps_lines && self.matches <= self.query.max_results as u64 && self.bytes < MAX_TEXT_BYTES
    }

    fn push(&mut self, number: Option<u64>, kind: SearchOutputLineKind, text: String) {
        // A gap is kept only between two lines that are: never at the start or the end.
        if std::mem::take(&mut self.gap_pending) && !self.lines.is_empty() {
            self.lines.push(SearchOutputLine {
                number: 0,
                kind: SearchOutputLineKind::Gap,
                text: String::new(),
            });
        }
        self.bytes += text.len() + LINE_OVERHEAD_BYTES;
        self.lines.push(SearchOutputLine { number: number.unwrap_or(0), kind, text });
    }
}

impl Sink for SearchLineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.bytes();
        // A file's first block was checked for NUL before; this finds one farther on.
        if memchr::memchr(0, line).is_some() {
            self.is_binary = true;
            return Ok(false);
        }
        // One line, unless the pattern matches across lines.
        for (line, number) in found.lines().zip(found.line_number().unwrap_or(0)..) {
            self.matches += 1;
            if self.has_room() {
                // Only for a long line does it matter where the match is.
                let start = match self.query.matcher.find(line) {
                    Ok(Some(found)) if line.len() > MAX_LINE_BYTES => found.start(),
                    _ => 0,
                };
                self.push(Some(number), SearchOutputLineKind::Match, shorten_line(line, start));
            }
        }
        // For the paths alone one match will do. The token is checked rarely: an atomic load for every line shows.
        Ok(self.query.mode != SearchMode::Files
            && !(self.matches.is_multiple_of(1024) && self.query.cancel.is_cancelled()))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.has_room() {
            self.push(context.line_number(), SearchOutputLineKind::Context, shorten_line(context.bytes(), 0));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.gap_pending = true;
        Ok(true)
    }
}
