//! The form of Codex: `*** Begin Patch`, `*** Update File: PATH`, `@@ LINE`, `*** End Patch`.
//!
//! Where Codex is lenient, so is this: blanks around markers, a wrapping here-document, a first hunk without `@@`. Beyond
//! that it takes several `@@` in a row, the line numbers of unified diffs behind `@@`, and a file that is only moved.

use super::file_patch::{FilePatch, Hunk, HunkLine};
use super::hunk_range::parse_range;
use super::syntax::{error, error_at, shown};
use crate::filesystem::error::Error;

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
const HEADERS: &str = "`*** Update File: PATH`, `*** Add File: PATH` or `*** Delete File: PATH`";

/// Parses the lines of a patch in this form.
pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, Error> {
    let begin = lines.iter().position(|line| line.trim() == BEGIN).unwrap_or_default();
    let end = lines.iter().rposition(|line| line.trim() == END).filter(|end| *end > begin);
    let Some(end) = end else {
        return Err(error(
            "the line `*** End Patch` is missing, so it may have been cut off; send the whole patch",
        ));
    };
    let mut parser = PatchParser { lines: &lines[..end], next: begin + 1 };
    let mut files = Vec::new();
    while let Some(line) = parser.peek() {
        match line.trim() {
            // Several patches in one text, as they stand in a transcript.
            "" | BEGIN | END => parser.next += 1,
            header => files.push(parser.file(header)?),
        }
    }
    Ok(files)
}

/// Returns the path that a line names if it is a header of this form.
#[cfg(feature = "mcp")]
pub(super) fn header_path(line: &str) -> Option<&str> {
    let path = [ADD, DELETE, UPDATE, MOVE].iter().find_map(|header| line.trim().strip_prefix(header))?;
    // A line that begins with a blank is one of a hunk.
    line.starts_with("***").then_some(path.trim())
}

struct PatchParser<'a> {
    lines: &'a [&'a str],
    next: usize,
}

impl<'a> PatchParser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    /// Returns the number, from 1, of the line that was taken last.
    fn number(&self) -> usize {
        self.next
    }

    fn file(&mut self, header: &str) -> Result<FilePatch, Error> {
        self.next += 1;
        if let Some(path) = header.strip_prefix(ADD) {
            let path = self.path(path)?;
            // In this form a file that exists is replaced, as Codex itself does.
            return Ok(FilePatch::Add { path, content: self.added_text(), overwrite: true });
        }
        if let Some(path) = header.strip_prefix(DELETE) {
            return Ok(FilePatch::Delete { path: self.path(path)?, hunks: Vec::new() });
        }
        if let Some(path) = header.strip_prefix(UPDATE) {
            let path = self.path(path)?;
            return self.update(path);
        }
        Err(error_at(self.number(), format!("`{}` is no header; expected {HEADERS}", shown(header))))
    }

    fn path(&self, text: &str) -> Result<String, Error> {
        match text.trim() {
            "" => Err(error_at(self.number(), "the header names no file")),
            path => Ok(path.to_owned()),
        }
    }

    /// Takes the lines that begin with `+`. Blank lines among them count, since models leave out their `+`.
    fn added_text(&mut self) -> String {
        let mut text = String::new();
        let mut blank_lines = 0;
        while let Some(line) = self.peek() {
            match line.strip_prefix('+') {
                Some(added) => {
                    text.push_str(&"\n".repeat(blank_lines));
                    blank_lines = 0;
                    text.push_str(added);
                    text.push('\n');
                }
                None if line.trim().is_empty() => blank_lines += 1,
                None => break,
            }
            self.next += 1;
        }
        text
    }

    fn update(&mut self, path: String) -> Result<FilePatch, Error> {
        let header = self.number();
        let move_to = match self.peek().and_then(|line| line.trim().strip_prefix(MOVE)) {
            Some(destination) => {
                self.next += 1;
                Some(self.path(destination)?)
            }
            None => None,
        };
        let mut hunks = Vec::new();
        while let Some(line) = self.peek() {
            if line.trim().is_empty() {
                self.next += 1;
            } else if line.starts_with("***") {
                break;
            } else {
                hunks.push(self.hunk(hunks.is_empty())?);
            }
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(error_at(
                header,
                format!("the part about `{}` has no lines that change it", shown(&path)),
            ));
        }
        Ok(FilePatch::Update { path, move_to, hunks })
    }

    fn hunk(&mut self, is_first: bool) -> Result<Hunk, Error> {
        let mut hunk = Hunk::default();
        let start = self.next + 1;
        while let Some(anchor) = self.peek().and_then(anchor_text) {
            self.next += 1;
            match parse_range(anchor) {
                Some(range) => hunk.first_line = Some(range.first_line),
                None if anchor.is_empty() => {}
                None => hunk.anchors.push(anchor.to_owned()),
            }
        }
        if self.next + 1 == start && !is_first {
            return Err(self.no_hunk_line());
        }
        while let Some(line) = self.peek() {
            let parsed = match line.as_bytes().first() {
                // Models and editors strip the blank of an empty context line.
                None => HunkLine::Context(String::new()),
                Some(b' ') => HunkLine::Context(line[1..].to_owned()),
                Some(b'+') => HunkLine::Add(line[1..].to_owned()),
                Some(b'-') => HunkLine::Remove(line[1..].to_owned()),
                Some(_) if line.trim_end() == END_OF_FILE => {
                    self.next += 1;
                    hunk.is_at_end = true;
                    break;
                }
                Some(_) if line.starts_with("***") || anchor_text(line).is_some() => break,
                Some(_) => return Err(self.no_hunk_line()),
            };
            hunk.lines.push(parsed);
            self.next += 1;
        }
        hunk.trim_end();
        if hunk.lines.is_empty() {
            return Err(error_at(
                start,
                "the hunk has no lines; each begins with ` ` (as it is), `-` or `+`",
            ));
        }
        Ok(hunk)
    }

    fn no_hunk_line(&self) -> Error {
        let line = shown(self.peek().unwrap_or_default());
        error_at(
            self.next + 1,
            format!(
                "`{line}` begins with none of ` ` (a line that stays), `-` (one that goes), `+` (one that comes), \
                 `@@` (a new hunk) and `***`"
            ),
        )
    }
}

/// Returns the text behind `@@`.
fn anchor_text(line: &str) -> Option<&str> {
    let rest = line.trim_end().strip_prefix("@@")?;
    match rest.strip_prefix(' ') {
        // The two closing signs of a header without numbers.
        Some(rest) => Some(rest.strip_suffix(" @@").unwrap_or(rest)),
        None => rest.is_empty().then_some(""),
    }
}
