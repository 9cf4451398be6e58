//! The matches of one file, and how they are rendered.

use std::fmt::Write as _;

use super::request::SearchMode;
use super::symbols::FileSymbols;

/// The matches of one file.
pub(super) struct FileMatches {
    /// The file's sort key: see [`WalkEntry::write_key`](crate::filesystem::walk::WalkEntry::write_key).
    pub(super) key: Vec<u8>,
    /// The number of lines that match, kept or not.
    pub(super) matches: u64,
    /// The lines to show, without the path.
    pub(super) lines: Vec<SearchOutputLine>,
}

/// A line to show.
pub(super) struct SearchOutputLine {
    pub(super) number: u64,
    pub(super) kind: SearchOutputLineKind,
    pub(super) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchOutputLineKind {
    Match,
    Context,
    /// A separator: lines are left out here.
    Gap,
}

/// The results and bytes that the answer can still take.
#[derive(Clone, Copy)]
pub(super) struct RemainingAnswerSpace {
    pub(super) results: usize,
    pub(super) bytes: usize,
}

/// A file's part of the answer.
#[derive(Default)]
pub(super) struct RenderedMatches {
    pub(super) text: String,
    /// Lines or files in `text`, depending on the mode.
    pub(super) results: usize,
    /// True if a limit ended it.
    pub(super) is_cut: bool,
}

impl FileMatches {
    /// Returns the number of results that the file counts for: its matching lines, or itself.
    pub(super) fn results(&self, mode: SearchMode) -> usize {
        match mode {
            SearchMode::Lines => usize::try_from(self.matches).unwrap_or(usize::MAX),
            SearchMode::Files | SearchMode::Count => 1,
        }
    }

    /// Returns the number of bytes that the file takes in the answer, roughly: every line repeats the path.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.lines.iter().map(|line| line.text.len() + self.key.len()).sum::<usize>()
    }

    /// Renders as many results as fit. `separate` puts `--` before the first of several lines.
    pub(super) fn render(
        &self,
        path: &str,
        mode: SearchMode,
        separate: bool,
        symbols: Option<&FileSymbols>,
        space: RemainingAnswerSpace,
    ) -> RenderedMatches {
        let text = match mode {
            SearchMode::Lines => return self.render_lines(path, separate, symbols, space),
            SearchMode::Files => format!("{path}\n"),
            SearchMode::Count => format!("{path}:{}\n", self.matches),
        };
        if text.len() > space.bytes {
            return RenderedMatches { is_cut: true, ..RenderedMatches::default() };
        }
        RenderedMatches { text, results: 1, is_cut: false }
    }

    fn render_lines(
        &self,
        path: &str,
        separate: bool,
        symbols: Option<&FileSymbols>,
        space: RemainingAnswerSpace,
    ) -> RenderedMatches {
        let mut rendered = RenderedMatches::default();
        let mut last_symbol = 0;
        let text = &mut rendered.text;
        if separate {
            text.push_str("--\n");
        }
        for line in &self.lines {
            let before = text.len();
            if line.kind == SearchOutputLineKind::Match && rendered.results == space.results {
                rendered.is_cut = true;
                break;
            }
            // As `git grep --show-function` marks the line of the function.
            if line.kind == SearchOutputLineKind::Match
                && let Some((first_line, signature)) =
                    symbols.and_then(|symbols| symbols.of_line(line.number))
                && std::mem::replace(&mut last_symbol, first_line) != first_line
                && first_line != line.number
            {
                let _ = writeln!(text, "{path}={first_line}={signature}");
            }
            let _ = match line.kind {
                SearchOutputLineKind::Match => writeln!(text, "{path}:{}:{}", line.number, line.text),
                // As `grep -n` marks lines of context.
                SearchOutputLineKind::Context => writeln!(text, "{path}-{}-{}", line.number, line.text),
                SearchOutputLineKind::Gap => writeln!(text, "--"),
            };
            if text.len() > space.bytes {
                text.truncate(before);
                rendered.is_cut = true;
                break;
            }
            rendered.results += usize::from(line.kind == SearchOutputLineKind::Match);
        }
        rendered
    }
}
