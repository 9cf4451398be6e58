//! `search_files`: the lines of files that match.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::MAX_TEXT_BYTES;
use super::error::{Error, ranged};
use super::glob::{GlobList, Globs};
use super::walk::{Filter, Found, Visitor, shown, walk};
use crate::workspace::{ConfinedPath, Kind, Workspace};

/// Files up to this size are read whole; larger ones are searched as a stream.
const WHOLE_FILE: usize = 1 << 20;
/// Bytes of a line that are shown.
const MAX_LINE: usize = 500;
/// How far a cut moves so that it does not go through a word.
const MAX_WORD: usize = 100;

/// What to search for, and where.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFiles {
    /// Regular expression, line by line
    pub pattern: String,
    /// File or folder
    #[serde(default = "super::here")]
    pub path: String,
    /// Plain text
    #[serde(default)]
    pub literal: bool,
    /// Default sensitive
    #[serde(default)]
    pub case: Case,
    /// Globs: `*.rs`
    #[serde(default)]
    pub include: GlobList,
    /// Globs
    #[serde(default)]
    pub exclude: GlobList,
    /// Lines around a match
    #[schemars(range(min = 0, max = 20))]
    pub context: Option<i64>,
    /// Default lines
    #[serde(default)]
    pub mode: SearchMode,
    /// Default 200
    #[schemars(range(min = 1, max = 10_000))]
    pub max_results: Option<i64>,
    /// Include what .gitignore names
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub include_ignored: bool,
}

/// Whether `A` is `a`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// No.
    #[default]
    Sensitive,
    /// Yes.
    Insensitive,
    /// Yes, unless the pattern has a capital letter.
    Smart,
}

/// What is shown of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// The line.
    #[default]
    Lines,
    /// The file's path.
    Files,
    /// The file's path and how many of its lines match.
    Count,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchResult {
    /// `path:line:text`, around it `path-line-text`, `--` between groups; or the paths, or `path:count`.
    pub text: String,
    /// Lines that match, also those not shown. Absent in the mode `files`, which stops at the first of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
    /// Files with matches, also those not shown.
    pub files: u64,
    /// Whether there are more than shown.
    pub truncated: bool,
    /// What was left out and how to get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl SearchResult {
    /// The matches, their counts and the notes.
    pub fn to_text(&self) -> String {
        let mut text = self.text.clone();
        let files = plural(self.files, "file");
        let _ = match self.matches {
            _ if self.files == 0 => Ok(()),
            Some(matches) => writeln!(text, "[{} in {files}]", plural(matches, "matching line")),
            None => writeln!(text, "[{files}]"),
        };
        for note in &self.notes {
            let _ = writeln!(text, "[{note}]");
        }
        text
    }
}

fn plural(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Searches files line by line, and shows the first matches in the order of path and line.
///
/// Binary files (with a NUL) are left out, and so is what `.gitignore` names; links are not followed, `.git` is
/// never entered. UTF-16 with a byte order mark is read as text. Everything is counted, whatever is shown; and
/// the answer is the same whatever order the threads worked in.
///
/// # Errors
/// The path, the pattern, a glob, numbers out of range, cancellation.
pub fn search_files(
    workspace: &Workspace,
    input: &SearchFiles,
    cancel: &CancellationToken,
) -> Result<SearchResult, Error> {
    let most = ranged("max_results", input.max_results, 10_000, 200, "from 1 to 10000")?;
    let context = match input.context.unwrap_or(0) {
        0 => 0,
        lines => ranged("context", Some(lines), 20, 0, "from 0 to 20")?,
    };
    let start = workspace.locate(&input.path)?;
    let query = Query {
        matcher: matcher(input)?,
        include: Globs::new("include", &input.include.0)?,
        exclude: Globs::new("exclude", &input.exclude.0)?,
        mode: input.mode,
        context,
        most,
        cancel,
    };
    let mut reader = Reader::new(&query);
    let (hits, unread) = if start.metadata()?.kind == Kind::Directory {
        let filter = Filter { gitignore: !input.include_ignored, hidden: true };
        let (readers, unread) = walk(&start, filter, cancel, || Reader::new(&query))?;
        (Hits::joined(readers.into_iter().map(|reader| reader.hits), &query), unread.folders)
    } else {
        reader.search_one(&start)?;
        (reader.hits, 0)
    };
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(hits.into_result(&start, input, most, unread))
}

/// The pattern as a matcher that never goes beyond a line.
fn matcher(input: &SearchFiles) -> Result<RegexMatcher, Error> {
    if input.pattern.is_empty() {
        return Err(Error::Parameters(
            "`pattern` is empty, which every line matches; use read_file to see a file",
        ));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .line_terminator(Some(b'\n'))
        .fixed_strings(input.literal)
        .multi_line(true)
        .case_insensitive(input.case == Case::Insensitive)
        .case_smart(input.case == Case::Smart);
    builder.build(&input.pattern).map_err(|error| match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => Error::Parameters(
            "`pattern` has a line break, and lines are matched one by one; look for one of the lines, with context",
        ),
        // The matcher wraps the pattern before it reads it, and so shows another place than the client's.
        _ => match regex::Regex::new(&input.pattern) {
            Err(plain) => Error::Regex { reason: plain.to_string() },
            Ok(_) => Error::Regex { reason: error.to_string() },
        },
    })
}

/// What all threads have in common.
struct Query<'a> {
    matcher: RegexMatcher,
    include: Globs,
    exclude: Globs,
    mode: SearchMode,
    context: usize,
    most: usize,
    cancel: &'a CancellationToken,
}

/// One thread's part of a search.
struct Reader<'a> {
    query: &'a Query<'a>,
    /// A copy of the query's own: threads that share one wait for each other.
    matcher: RegexMatcher,
    searcher: Searcher,
    /// The file that is being searched.
    content: Vec<u8>,
    path: PathBuf,
    key: Vec<u8>,
    hits: Hits,
}

/// What was found in a file.
struct Hit {
    key: Vec<u8>,
    matches: u64,
    /// The lines to show, without the path.
    lines: Vec<Line>,
}

/// A line to show.
struct Line {
    number: u64,
    kind: LineKind,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Match,
    Context,
    /// Lines are left out here.
    Gap,
}

/// What was found in all files.
#[derive(Default)]
struct Hits {
    /// The first files in order, and maybe some more.
    first: Vec<Hit>,
    /// Results and bytes in `first`.
    results: usize,
    bytes: usize,
    /// Files from this one on are only counted.
    end: Option<Vec<u8>>,
    matches: u64,
    files: u64,
    binary: u64,
    unreadable: u64,
}

impl Visitor for Reader<'_> {
    fn visit(&mut self, found: &Found<'_>) -> ControlFlow<()> {
        let globs = [&self.query.include, &self.query.exclude];
        if globs.iter().any(|globs| globs.need_path()) {
            found.path(&mut self.path);
        }
        if self.query.is_excluded(found.name, &self.path) {
            return ControlFlow::Break(());
        }
        if found.kind == Kind::File && self.query.is_included(found.name, &self.path) {
            match found.folder.open_listed(found.name) {
                Ok(file) => {
                    found.key(&mut self.key);
                    self.search(file);
                }
                Err(_) => self.hits.unreadable += 1,
            }
        }
        ControlFlow::Continue(())
    }
}

impl Query<'_> {
    fn is_excluded(&self, name: &OsStr, path: &Path) -> bool {
        !self.exclude.is_empty() && self.exclude.match_entry(name, path)
    }

    fn is_included(&self, name: &OsStr, path: &Path) -> bool {
        self.include.is_empty() || self.include.match_entry(name, path)
    }
}

impl<'a> Reader<'a> {
    fn new(query: &'a Query<'a>) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(query.context)
            .after_context(query.context)
            .heap_limit(Some(16 << 20)) // of one line, in files that are searched as a stream
            .build();
        Self {
            query,
            matcher: query.matcher.clone(),
            searcher,
            content: vec![0; 64 << 10],
            path: PathBuf::new(),
            key: Vec::new(),
            hits: Hits::default(),
        }
    }

    /// Searches the one file at `path`, whatever the globs say.
    fn search_one(&mut self, path: &ConfinedPath) -> Result<(), Error> {
        let (file, _) = path.open_read()?;
        self.search(file);
        Ok(())
    }

    /// Searches `file`, whose path has the key `self.key`.
    fn search(&mut self, mut file: File) {
        let Ok(length) = fill(&mut file, &mut self.content) else {
            self.hits.unreadable += 1;
            return;
        };
        let head = &self.content[..length];
        let utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
        let whole = length < WHOLE_FILE;
        if whole && !utf16 {
            // Nearly every file ends here.
            if !self.matcher.is_match(head).unwrap_or(true) {
                return;
            }
        }
        if !utf16 && memchr::memchr(0, head).is_some() {
            self.hits.binary += 1;
            return;
        }
        let mut sink = Lines {
            query: self.query,
            matches: 0,
            lines: Vec::new(),
            // What lies behind the last file that is shown is only counted.
            show: self.query.mode == SearchMode::Lines
                && self.hits.end.as_ref().is_none_or(|end| self.key < *end),
            bytes: 0,
            gap: false,
            binary: false,
        };
        let searched = if whole {
            self.searcher.search_slice(&self.matcher, head, &mut sink)
        } else {
            self.searcher.search_reader(&self.matcher, io::Cursor::new(head).chain(file), &mut sink)
        };
        if searched.is_err() {
            self.hits.unreadable += 1;
        }
        if sink.binary {
            self.hits.binary += 1;
        } else if sink.matches > 0 {
            let hit = Hit { key: self.key.clone(), matches: sink.matches, lines: sink.lines };
            self.hits.add(hit, sink.bytes, self.query);
        }
    }
}

/// Fills `content` from `file` to its end or to [`WHOLE_FILE`] bytes. Gives the number of bytes.
fn fill(file: &mut File, content: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == content.len() {
            if length >= WHOLE_FILE {
                return Ok(length);
            }
            content.resize((length * 4).min(WHOLE_FILE), 0);
        }
        match file.read(&mut content[length..]) {
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Hits {
    fn add(&mut self, hit: Hit, bytes: usize, query: &Query<'_>) {
        self.files += 1;
        self.matches += hit.matches;
        if self.end.as_ref().is_some_and(|end| hit.key >= *end) {
            return;
        }
        self.results += hit.results(query.mode);
        self.bytes += bytes + hit.key.len();
        self.first.push(hit);
        // Twice as much as can be shown, so that this is rare.
        if self.results >= 2 * query.most || self.bytes >= 2 * MAX_TEXT_BYTES {
            self.keep_first(query);
        }
    }

    /// Drops what lies behind the last file that can be shown.
    fn keep_first(&mut self, query: &Query<'_>) {
        self.first.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let (mut results, mut bytes) = (0, 0);
        let fits = self.first.iter().take_while(|hit| {
            let more = results < query.most && bytes < MAX_TEXT_BYTES;
            results += hit.results(query.mode);
            bytes += hit.bytes();
            more
        });
        let kept = fits.count();
        if kept < self.first.len() {
            self.end = Some(self.first[kept].key.clone());
            self.first.truncate(kept);
        }
        self.results = self.first.iter().map(|hit| hit.results(query.mode)).sum();
        self.bytes = self.first.iter().map(Hit::bytes).sum();
    }

    fn joined(parts: impl Iterator<Item = Self>, query: &Query<'_>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.first.extend(part.first);
            all.matches += part.matches;
            all.files += part.files;
            all.binary += part.binary;
            all.unreadable += part.unreadable;
        }
        all.keep_first(query);
        all
    }

    fn into_result(
        self,
        start: &ConfinedPath,
        input: &SearchFiles,
        most: usize,
        unread: u64,
    ) -> SearchResult {
        let base = start.shown();
        let mut text = String::new();
        let (mut results, mut full) = (0, false);
        for hit in &self.first {
            let path = if hit.key.is_empty() { base.clone() } else { shown(&base, &hit.key) };
            let separate = input.context.unwrap_or(0) > 0 && !text.is_empty();
            let block = hit.render(&path, input.mode, separate, most - results, MAX_TEXT_BYTES - text.len());
            text.push_str(&block.text);
            results += block.results;
            full |= block.cut;
            if full || results >= most || text.len() >= MAX_TEXT_BYTES {
                break;
            }
        }
        let total = if input.mode == SearchMode::Lines { self.matches } else { self.files };
        let truncated = (results as u64) < total;
        let mut notes = Vec::new();
        if truncated {
            let what = if input.mode == SearchMode::Lines { "matching lines" } else { "files" };
            let more = if results < most {
                "the answer is full: narrow pattern, path or include, or ask for mode files or count"
            } else {
                "narrow pattern, path or include, or raise max_results (to at most 10000)"
            };
            notes.push(format!("{results} of {total} {what} shown, the first in order; {more}"));
        }
        if self.files == 0 {
            let ignored = if input.include_ignored {
                ""
            } else {
                "; what .gitignore names was left out (include_ignored)"
            };
            let literal = if !input.literal
                && input.pattern.contains(['(', '[', '{', '.', '*', '+', '?', '|', '$', '^', '\\'])
            {
                "; the pattern is a regular expression (literal: true takes it as it stands)"
            } else {
                ""
            };
            notes.push(format!("nothing matches{literal}{ignored}"));
        }
        if self.binary > 0 {
            notes.push(format!("{} left out for being binary", plural(self.binary, "matching file")));
        }
        if self.unreadable + unread > 0 {
            notes.push(format!("{} files and {unread} directories could not be read", self.unreadable));
        }
        let matches = (input.mode != SearchMode::Files).then_some(self.matches);
        SearchResult { text, matches, files: self.files, truncated, notes }
    }
}

/// A file's part of the answer.
struct Block {
    text: String,
    results: usize,
    /// Whether a limit ended it.
    cut: bool,
}

impl Hit {
    fn results(&self, mode: SearchMode) -> usize {
        match mode {
            SearchMode::Lines => usize::try_from(self.matches).unwrap_or(usize::MAX),
            SearchMode::Files | SearchMode::Count => 1,
        }
    }

    fn bytes(&self) -> usize {
        self.key.len() + self.lines.iter().map(|line| line.text.len() + self.key.len()).sum::<usize>()
    }

    /// At most `most` results in at most `bytes` bytes.
    fn render(&self, path: &str, mode: SearchMode, separate: bool, most: usize, bytes: usize) -> Block {
        let mut block = Block { text: String::new(), results: 0, cut: false };
        match mode {
            SearchMode::Files => {
                block.text = format!("{path}\n");
                block.results = 1;
            }
            SearchMode::Count => {
                block.text = format!("{path}:{}\n", self.matches);
                block.results = 1;
            }
            SearchMode::Lines => {
                if separate {
                    block.text.push_str("--\n");
                }
                for line in &self.lines {
                    let before = block.text.len();
                    if line.kind == LineKind::Match && block.results == most {
                        block.cut = true;
                        break;
                    }
                    let _ = match line.kind {
                        LineKind::Match => writeln!(block.text, "{path}:{}:{}", line.number, line.text),
                        LineKind::Context => writeln!(block.text, "{path}-{}-{}", line.number, line.text),
                        LineKind::Gap => writeln!(block.text, "--"),
                    };
                    if block.text.len() > bytes {
                        block.text.truncate(before);
                        block.cut = true;
                        break;
                    }
                    block.results += usize::from(line.kind == LineKind::Match);
                }
            }
        }
        if mode != SearchMode::Lines && block.text.len() > bytes {
            block = Block { text: String::new(), results: 0, cut: true };
        }
        block
    }
}

/// Takes what the searcher finds in one file.
struct Lines<'a> {
    query: &'a Query<'a>,
    matches: u64,
    lines: Vec<Line>,
    show: bool,
    bytes: usize,
    gap: bool,
    binary: bool,
}

impl Lines<'_> {
    /// Whether more lines of this file can be shown.
    fn has_room(&self) -> bool {
        self.show && self.matches <= self.query.most as u64 && self.bytes < MAX_TEXT_BYTES
    }

    fn push(&mut self, number: Option<u64>, kind: LineKind, text: String) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            self.lines.push(Line { number: 0, kind: LineKind::Gap, text: String::new() });
        }
        self.bytes += text.len() + 16;
        self.lines.push(Line { number: number.unwrap_or(0), kind, text });
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let bytes = found.bytes();
        if memchr::memchr(0, bytes).is_some() {
            self.binary = true;
            return Ok(false);
        }
        self.matches += 1;
        if self.has_room() {
            let start = match self.query.matcher.find(bytes) {
                Ok(Some(place)) if bytes.len() > MAX_LINE => place.start(),
                _ => 0,
            };
            self.push(found.line_number(), LineKind::Match, line(bytes, start));
        }
        // For the paths alone one match will do.
        Ok(self.query.mode != SearchMode::Files
            && !(self.matches.is_multiple_of(1024) && self.query.cancel.is_cancelled()))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.has_room() {
            self.push(context.line_number(), LineKind::Context, line(context.bytes(), 0));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.gap = true;
        Ok(true)
    }
}

/// A line without its end; of a long one, the part around `start`. Cuts do not go through a word, so that no
/// secret is cut in two before it is masked.
fn line(bytes: &[u8], start: usize) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() <= MAX_LINE {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let from = match start.saturating_sub(MAX_LINE / 4) {
        0 => 0,
        from => from.min(bytes.len() - MAX_LINE) + word(bytes[from.min(bytes.len() - MAX_LINE)..].iter()),
    };
    let to = (from + MAX_LINE).min(bytes.len());
    let to = if to == bytes.len() { to } else { to - word(bytes[from..to].iter().rev()) };
    let (before, after) = (if from > 0 { "… " } else { "" }, if to < bytes.len() { " …" } else { "" });
    let text = String::from_utf8_lossy(&bytes[from..to]);
    format!("{before}{}{after} [line of {} bytes]", text.trim_matches('\u{fffd}').trim(), bytes.len())
}

/// How many bytes of a word there are before the first that is of none; 0 if it is too long to be left out.
fn word<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    let is_word = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'.' | b'=' | 0x80..)
    };
    let length = bytes.take(MAX_WORD).take_while(|byte| is_word(byte)).count();
    if length == MAX_WORD { 0 } else { length }
}

#[cfg(test)]
mod tests;
