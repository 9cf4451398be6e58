//! Masks lines of private keys that a tool shows without the rest of the key.
//!
//! Answers are masked when they are complete. A page of a file or a match of a search may be a line of a key without the
//! BEGIN line that tells so; what stands around such lines in the file is read here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::read::TextFile;
use crate::redact::{KEY_CONTEXT_LINES, KeyLines, Redactor, may_be_key_line};
use crate::workspace::{ConfinedPath, Workspace};

/// The bytes of a line that are looked at: a line of a key has up to 76, with blanks before it.
const MAX_LINE_BYTES: usize = 1024;
/// The bytes of a file that are judged at a time, so that the memory for it is bounded.
const MAX_CONTEXT_BYTES: usize = 4 << 20;
/// The bytes before the lines from the end of a file whose numbers are not known.
const END_CONTEXT_BYTES: u64 = 64 << 10;

impl TextFile {
    /// Masks the lines of private keys in the text by what stands around them in the file at `path`, which `redactor` would
    /// mask in the whole file.
    pub fn mask_key_lines(&mut self, workspace: &Workspace, path: &str, redactor: &Redactor) {
        if !self.text.lines().any(may_be_key_line) || self.total_lines == Some(self.lines) {
            return;
        }
        let lines = match (workspace.locate(path), self.first_line) {
            (Ok(path), Some(first)) => key_lines(&path, (first..).zip(self.text.lines()), redactor),
            (Ok(path), None) => key_lines_at_end(&path, self.text.len() as u64, redactor)
                .unwrap_or_else(|_| KeyLines::of_lines(self.text.lines())),
            (Err(_), _) => KeyLines::of_lines(self.text.lines()),
        };
        if !lines.is_empty() {
            self.text = lines.mask(&self.text);
        }
    }
}

/// Returns the lines of private keys among `lines` of a file, which are in order and have their numbers. If the file cannot be
/// read any more, each line that may be one counts as one.
pub(super) fn key_lines<'a>(
    path: &ConfinedPath,
    lines: impl Iterator<Item = (u64, &'a str)>,
    redactor: &Redactor,
) -> KeyLines {
    let (numbers, texts): (Vec<u64>, Vec<&str>) = lines.filter(|(_, text)| may_be_key_line(text)).unzip();
    if numbers.is_empty() || !redactor.is_enabled() {
        return KeyLines::default();
    }
    let read = path
        .open_read()
        .map_err(io::Error::other)
        .and_then(|(file, _)| key_lines_around(BufReader::new(file), &numbers, redactor));
    read.unwrap_or_else(|_| KeyLines::of_lines(texts.into_iter()))
}

/// Returns the lines of the private keys around the lines with these numbers, which are in order.
fn key_lines_around(mut source: impl BufRead, numbers: &[u64], redactor: &Redactor) -> io::Result<KeyLines> {
    let context = KEY_CONTEXT_LINES as u64;
    let mut found = KeyLines::default();
    let mut text = String::new();
    let mut wanted = numbers.iter().copied().peekable();
    let mut covered_to = 0;
    let mut number = 0;
    loop {
        number += 1;
        // A line that is passed is covered as far as its context reaches.
        while let Some(next) = wanted.next_if(|next| *next <= number) {
            covered_to = next + context;
        }
        let is_covered = number <= covered_to || wanted.peek().is_some_and(|next| *next <= number + context);
        if !is_covered && !text.is_empty() {
            found.extend(redactor.key_lines(&text));
            text.clear();
        }
        if !is_covered && wanted.peek().is_none() {
            return Ok(found);
        }
        let Some(line) = read_line(&mut source)? else { break };
        if is_covered {
            text.push_str(&String::from_utf8_lossy(&line));
            text.push('\n');
        }
        if text.len() > MAX_CONTEXT_BYTES {
            found.extend(redactor.key_lines(&text));
            // The last lines stay as the context of those that follow, so that a key across the cut is found.
            let kept = memchr::memrchr_iter(b'\n', text.as_bytes()).nth(KEY_CONTEXT_LINES);
            text.drain(..kept.map_or(0, |newline| newline + 1));
        }
    }
    found.extend(redactor.key_lines(&text));
    Ok(found)
}

/// Reads a line without its end, and of a long one its start. Returns nothing at the end of the file.
fn read_line(source: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut is_begun = false;
    loop {
        let block = match source.fill_buf() {
            Ok([]) => return Ok(is_begun.then_some(line)),
            Ok(block) => block,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        is_begun = true;
        let newline = memchr::memchr(b'\n', block);
        let piece = &block[..newline.unwrap_or(block.len())];
        // The rest of a long line is read and dropped, since a line of a key is never so long.
        line.extend_from_slice(&piece[..piece.len().min(MAX_LINE_BYTES - line.len())]);
        let used = newline.map_or(block.len(), |newline| newline + 1);
        source.consume(used);
        if newline.is_some() {
            return Ok(Some(line));
        }
    }
}

/// Returns the lines of the private keys in the last `shown_bytes` bytes of a file and before them.
fn key_lines_at_end(path: &ConfinedPath, shown_bytes: u64, redactor: &Redactor) -> io::Result<KeyLines> {
    let (mut file, metadata): (File, _) = path.open_read().map_err(io::Error::other)?;
    let wanted = shown_bytes + END_CONTEXT_BYTES;
    file.seek(SeekFrom::Start(metadata.size.saturating_sub(wanted)))?;
    let mut content = Vec::new();
    file.take(wanted).read_to_end(&mut content)?;
    Ok(redactor.key_lines(&String::from_utf8_lossy(&content)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::RedactionOptions;

    /// A file with keys far apart, and the numbers of the lines of their bodies.
    fn file() -> (String, Vec<u64>) {
        let label = ["PRIVATE", "KEY"].join(" ");
        let mut text = String::new();
        let mut bodies = Vec::new();
        for key in 0..4 {
            text.push_str(&"some words of text\n".repeat(700 * key));
            text.push_str(&format!("-----BEGIN {label}-----\n"));
            for line in 0..20 {
                bodies.push(text.lines().count() as u64 + 1);
                text.push_str(&format!(
                    "{key}{line:02}AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuvw+\n"
                ));
            }
            text.push_str(&format!("-----END {label}-----\n"));
        }
        (text, bodies)
    }

    #[test]
    fn any_line_of_any_key_is_found_by_what_stands_around_it() {
        let redactor = Redactor::new(RedactionOptions::default()).unwrap();
        let (text, bodies) = file();
        let lines: Vec<&str> = text.lines().collect();
        let line = |number: u64| lines[usize::try_from(number).unwrap() - 1];
        for number in &bodies {
            let found = key_lines_around(text.as_bytes(), &[*number], &redactor).unwrap();
            assert_eq!(found.mask(line(*number)), "[redacted:private-key]", "{number}");
        }
        let found = key_lines_around(text.as_bytes(), &bodies, &redactor).unwrap();
        assert!(bodies.iter().all(|number| found.mask(line(*number)) == "[redacted:private-key]"));
        let other = key_lines_around(text.as_bytes(), &[300], &redactor).unwrap();
        assert_eq!(other.mask("some words of text"), "some words of text");
    }
}
