//! Collects the matches of many files, in bounded memory, and renders the first in order.

use super::matches::{FileMatches, RemainingAnswerSpace, SearchOutputLineKind};
use super::query::SearchQuery;
use super::request::{SearchFiles, SearchMode, SearchResult, plural};
use super::symbols::FileSymbols;
use crate::filesystem::key_context::key_lines;
use crate::filesystem::limits::MAX_TEXT_BYTES;
use crate::filesystem::walk::{display_path, relative_path};
use crate::redact::{KeyLines, Redactor, may_be_key_line};
use crate::workspace::ConfinedPath;

/// Characters that have a meaning in a regular expression.
const REGEX_CHARACTERS: [char; 11] = ['(', '[', '{', '.', '*', '+', '?', '|', '$', '^', '\\'];

/// The matches of many files. All are counted; those that cannot be shown are dropped as more come in.
#[derive(Default)]
pub(super) struct MatchCollector {
    /// The first files in order, and maybe some more.
    kept: Vec<FileMatches>,
    /// Results and bytes in `kept`.
    results: usize,
    bytes: usize,
    /// Files with this key or a later one are only counted.
    cutoff: Option<Vec<u8>>,
    matches: u64,
    files: u64,
    /// Files that were searched.
    pub(super) searched_files: u64,
    /// Files with matches that were left out for being binary.
    pub(super) binary_files: u64,
    /// Files that could not be read.
    pub(super) unreadable_files: u64,
}

impl MatchCollector {
    /// Returns true if the lines of the file with this key may be shown, and not only counted.
    pub(super) fn may_show(&self, key: &[u8]) -> bool {
        self.cutoff.as_ref().is_none_or(|cutoff| key < cutoff.as_slice())
    }

    /// Adds the matches of a file, whose lines take about `bytes`.
    pub(super) fn add(&mut self, file: FileMatches, bytes: usize, query: &SearchQuery<'_>) {
        self.files += 1;
        self.matches += file.matches;
        if !self.may_show(&file.key) {
            return;
        }
        self.results += file.results(query.mode);
        self.bytes += bytes + file.key.len();
        self.kept.push(file);
        // Twice as much as can be shown, so that sorting is rare.
        if self.results >= 2 * query.max_results || self.bytes >= 2 * MAX_TEXT_BYTES {
            self.drop_excess(query);
        }
    }

    /// Sorts the files, and drops those behind the last that can be shown.
    fn drop_excess(&mut self, query: &SearchQuery<'_>) {
        self.kept.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let (mut results, mut bytes) = (0, 0);
        let shown = self.kept.iter().take_while(|file| {
            let has_room = results < query.max_results && bytes < MAX_TEXT_BYTES;
            results += file.results(query.mode);
            bytes += file.bytes();
            has_room
        });
        let shown = shown.count();
        if shown < self.kept.len() {
            // From now on, files behind this one are counted and their lines are not kept.
            self.cutoff = Some(self.kept[shown].key.clone());
            self.kept.truncate(shown);
        }
        self.results = self.kept.iter().map(|file| file.results(query.mode)).sum();
        self.bytes = self.kept.iter().map(FileMatches::bytes).sum();
    }

    /// Merges the collections of all threads. What is kept does not depend on how files fell to threads.
    pub(super) fn merge(parts: impl Iterator<Item = Self>, query: &SearchQuery<'_>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.kept.extend(part.kept);
            all.matches += part.matches;
            all.files += part.files;
            all.searched_files += part.searched_files;
            all.binary_files += part.binary_files;
            all.unreadable_files += part.unreadable_files;
        }
        all.drop_excess(query);
        all
    }

    /// Returns the paths of the files that are kept, in their order, and the number of all files.
    pub(super) fn into_paths(self, start: &ConfinedPath) -> (Vec<String>, u64) {
        let start = start.display_path();
        let path = |file: &FileMatches| match file.key.is_empty() {
            true => start.clone(),
            false => display_path(&start, &file.key),
        };
        (self.kept.iter().map(path).collect(), self.files)
    }

    /// Masks the lines of private keys by what stands around them in the files below `start`.
    pub(super) fn mask_key_lines(&mut self, start: &ConfinedPath, redactor: &Redactor) {
        for file in &mut self.kept {
            if !file.lines.iter().any(|line| may_be_key_line(&line.text)) {
                continue;
            }
            let shown = || file.lines.iter().filter(|line| line.kind != SearchOutputLineKind::Gap);
            // The key is empty where `start` itself is the one file searched.
            let path =
                if file.key.is_empty() { Ok(start.clone()) } else { start.join(&relative_path(&file.key)) };
            let keys = match path {
                Ok(path) => key_lines(&path, shown().map(|line| (line.number, line.text.as_str())), redactor),
                Err(_) => KeyLines::of_lines(shown().map(|line| line.text.as_str())),
            };
            if !keys.is_empty() {
                file.lines.iter_mut().for_each(|line| line.text = keys.mask(&line.text));
            }
        }
    }

    /// Renders the matches, with notes for what is left out.
    pub(super) fn into_result(
        self,
        start: &ConfinedPath,
        input: &SearchFiles,
        max_results: usize,
        unreadable_folders: u64,
    ) -> SearchResult {
        let (text, results) = self.render(start, input, max_results);
        let lines_are_shown = input.mode == SearchMode::Lines;
        let total = if lines_are_shown { self.matches } else { self.files };
        let truncated = (results as u64) < total;
        let mut notes = Vec::new();
        if truncated {
            let noun = if lines_are_shown { "matching lines" } else { "files" };
            let advice = if results < max_results {
                "the answer is full: narrow pattern, path or include, or ask for mode files or count"
            } else {
                "narrow pattern, path or include, or raise max_results (to at most 10000)"
            };
            notes.push(format!("{results} of {total} {noun} shown, the first in order; {advice}"));
        }
        if self.files == 0 {
            notes.push(note_on_nothing_found(input, self.searched_files));
        }
        if input.symbol && cfg!(not(feature = "context")) {
            notes.push("no symbols: this server has no grammars".to_owned());
        }
        if self.binary_files > 0 {
            notes.push(format!("{} left out for being binary", plural(self.binary_files, "matching file")));
        }
        if self.unreadable_files + unreadable_folders > 0 {
            notes.push(format!(
                "{} files and {unreadable_folders} directories could not be read",
                self.unreadable_files
            ));
        }
        // The mode `files` stops at the first match of each file, so it has no count.
        let matches = (input.mode != SearchMode::Files).then_some(self.matches);
        SearchResult { text, matches, files: self.files, truncated, notes }
    }

    /// Renders as many results as the limits allow. Returns them with their number.
    fn render(&self, start: &ConfinedPath, input: &SearchFiles, max_results: usize) -> (String, usize) {
        let start_path = start;
        let start = start.display_path();
        let (mut text, mut results) = (String::new(), 0);
        for file in &self.kept {
            // The key is empty where `start` itself is the one file searched.
            let path = if file.key.is_empty() { start.clone() } else { display_path(&start, &file.key) };
            let separate = input.context.unwrap_or(0) > 0 && !text.is_empty();
            let space =
                RemainingAnswerSpace { results: max_results - results, bytes: MAX_TEXT_BYTES - text.len() };
            let symbols = input.symbol.then(|| FileSymbols::of(start_path, &file.key, &path));
            let rendered = file.render(&path, input.mode, separate, symbols.as_ref(), space);
            text.push_str(&rendered.text);
            results += rendered.results;
            if rendered.is_cut || results >= max_results || text.len() >= MAX_TEXT_BYTES {
                break;
            }
        }
        (text, results)
    }
}

/// Returns the note for a search without matches: the likeliest reasons, and what to try.
fn note_on_nothing_found(input: &SearchFiles, searched_files: u64) -> String {
    if searched_files == 0 && !input.include.0.is_empty() {
        let include: Vec<&str> = input.include.0.iter().take(5).map(String::as_str).collect();
        return format!(
            "no file below `{}` fits include ({}), so nothing was searched; a glob is on names (`*.rs`) or on paths below \
             that folder (`src/**`)",
            input.path,
            include.join(", ")
        );
    }
    let literal = if !input.literal && input.pattern.contains(REGEX_CHARACTERS) {
        "; the pattern is a regular expression (literal: true takes it as it stands)"
    } else {
        ""
    };
    let ignored =
        if input.include_ignored { "" } else { "; what .gitignore names was left out (include_ignored)" };
    format!("nothing matches{literal}{ignored}")
}
