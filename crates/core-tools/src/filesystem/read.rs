//! `read_file`: lines of a text file, streamed, bounded, and honest about what was left out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use memchr::memchr_iter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::MAX_TEXT_BYTES;
use super::error::{Error, ranged};
use super::signature::{HEAD_BYTES, looks_binary};
use crate::workspace::{self, ConfinedPath, Workspace};

/// Lines given where none are asked for.
const DEFAULT_LINES: i64 = 2000;
/// Bytes read on, past what was asked for, to count a file's lines. About 10 ms.
const MAX_COUNTED_BYTES: u64 = 64 << 20;
/// Read at a time.
const BLOCK: usize = 64 << 10;

const POSITIVE: &str = "1 or more";

/// Lines of one text file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// File to read
    pub path: String,
    /// First line, from 1
    #[schemars(range(min = 1))]
    pub offset: Option<i64>,
    /// Lines; default 2000, at most 40 KB
    #[schemars(range(min = 1))]
    pub limit: Option<i64>,
    /// First N lines
    #[schemars(range(min = 1))]
    pub head: Option<i64>,
    /// Last N lines
    #[schemars(range(min = 1))]
    pub tail: Option<i64>,
}

/// Lines of a text file. Line endings are kept as they are; a byte order mark is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextFile {
    /// The file, relative to its root.
    pub path: String,
    /// The lines, as they stand in the file.
    pub text: String,
    /// Number of the first line given, from 1; absent if unknown or if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// How many lines are given.
    pub lines: u64,
    /// Lines in the whole file; absent if it is too large to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// The file's length in bytes.
    pub size: u64,
    /// What was left out and how to get it; what is odd about the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl TextFile {
    /// Which lines these are, for a line above or below the text: `lines 1-20 of 340`.
    pub fn summary(&self) -> String {
        let total = match self.total_lines {
            Some(total) => total.to_string(),
            None => format!("many ({} bytes)", self.size),
        };
        match (self.lines, self.first_line) {
            (0, _) => format!("no lines, {} bytes", self.size),
            (1, Some(first)) => format!("line {first} of {total}"),
            (lines, Some(first)) => format!("lines {first}-{} of {total}", first + lines - 1),
            (lines, None) => format!("the last {lines} lines of {total}"),
        }
    }

    /// The text, and in brackets what a reader must know: which lines these are unless all, and the notes.
    pub fn to_text(&self) -> String {
        let mut remarks = self.notes.clone();
        if self.lines == 0 || self.total_lines != Some(self.lines) {
            remarks.insert(0, self.summary());
        }
        if remarks.is_empty() {
            return self.text.clone();
        }
        let separator = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { "\n" };
        format!("{}{separator}[{}]\n", self.text, remarks.join("; "))
    }
}

/// Reads lines of a text file.
///
/// At most 2,000 lines unless more are asked for, and at most [`MAX_TEXT_BYTES`] in any case. The file is
/// streamed: a huge one costs time only as far as it must be read to find the lines, and no memory.
///
/// # Errors
/// The path, numbers below 1, `offset` past the end, a binary file, cancellation.
pub fn read_file(
    workspace: &Workspace,
    input: &ReadFile,
    cancel: &CancellationToken,
) -> Result<TextFile, Error> {
    let selection = Selection::of(input)?;
    read_selection(&workspace.locate(&input.path)?, selection, MAX_TEXT_BYTES, cancel)
}

/// Which lines are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Selection {
    /// `lines` lines from line `first` on.
    From { first: u64, lines: u64 },
    /// The last lines.
    Last(u64),
}

impl Selection {
    /// The default: the first 2,000 lines.
    pub(super) const START: Self = Self::From { first: 1, lines: DEFAULT_LINES.unsigned_abs() };

    fn of(input: &ReadFile) -> Result<Self, Error> {
        let number = |name, value: Option<i64>| {
            let number = value.map(|_| ranged(name, value, i64::MAX, 1, POSITIVE)).transpose()?;
            Ok::<_, Error>(number.map(|number| number as u64))
        };
        let (offset, limit) = (number("offset", input.offset)?, number("limit", input.limit)?);
        match (number("head", input.head)?, number("tail", input.tail)?) {
            (None, None) => Ok(Self::From {
                first: offset.unwrap_or(1),
                lines: limit.unwrap_or(DEFAULT_LINES.unsigned_abs()),
            }),
            (Some(_), Some(_)) => Err(Error::Parameters("`head` and `tail` cannot both be given")),
            _ if offset.is_some() || limit.is_some() => {
                Err(Error::Parameters("`head` and `tail` cannot be combined with `offset` or `limit`"))
            }
            (Some(head), None) => Ok(Self::From { first: 1, lines: head }),
            (None, Some(tail)) => Ok(Self::Last(tail)),
        }
    }
}

/// Reads the lines of `selection`, at most `max_bytes` of them.
pub(super) fn read_selection(
    path: &ConfinedPath,
    selection: Selection,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> Result<TextFile, Error> {
    let (mut file, metadata) = path.open_read()?;
    let shown = path.shown();
    let failed = |source| Error::Path(workspace::Error::Io { action: "read", path: shown.clone(), source });

    let mut head = Vec::with_capacity(HEAD_BYTES);
    (&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    if let Some(kind) = looks_binary(&head) {
        let advice = match kind {
            "UTF-16 text" => "; convert it to UTF-8 first",
            _ if super::media::is_media(&head) => "; use read_media_file",
            _ => "",
        };
        return Err(Error::Binary { path: shown, kind, size: metadata.size, advice });
    }

    let found = match selection {
        Selection::From { first, lines } => {
            let found = if head.len() < HEAD_BYTES {
                scan(&*head, first, lines, max_bytes, cancel)
            } else {
                let rest = BufReader::with_capacity(BLOCK, &mut file);
                scan((&*head).chain(rest), first, lines, max_bytes, cancel)
            };
            found.map_err(failed)?
        }
        Selection::Last(lines) => {
            last_lines(file, metadata.size, lines, max_bytes, cancel).map_err(failed)?
        }
    };
    let Some(found) = found else { return Err(Error::Cancelled) };
    if let (Selection::From { first, .. }, 0, Some(total)) = (selection, found.lines, found.total)
        && first > 1
    {
        return Err(Error::PastEnd { path: shown, offset: first, lines: total });
    }
    Ok(found.into_text(shown, metadata.size, selection, max_bytes))
}

/// What a scan found.
#[derive(Debug, Default)]
struct Found {
    bytes: Vec<u8>,
    first: Option<u64>,
    lines: u64,
    total: Option<u64>,
    /// The line that alone is longer than the bound, of which only a part is given.
    cut_line: bool,
    /// More lines were asked for than fit the bound.
    cut_bytes: bool,
}

impl Found {
    fn into_text(self, path: String, size: u64, selection: Selection, max_bytes: usize) -> TextFile {
        let mut notes = Vec::new();
        let mut bytes = self.bytes;
        if self.first == Some(1) && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
            notes.push("the file begins with a UTF-8 byte order mark".to_owned());
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                notes.push("not valid UTF-8: bytes that are not are shown as U+FFFD".to_owned());
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        };
        match (selection, self.first) {
            (Selection::From { .. }, Some(first)) => {
                let next = first + self.lines;
                if self.cut_line {
                    notes.push(format!(
                        "line {first} is longer than {max_bytes} bytes: only its start is given"
                    ));
                }
                if self.total.is_none_or(|total| next <= total) {
                    let why =
                        if self.cut_bytes { format!("cut at {max_bytes} bytes; ") } else { String::new() };
                    notes.push(format!("{why}continue with offset={next}"));
                }
            }
            (Selection::Last(_), _) => {
                if self.cut_line {
                    notes.push(format!(
                        "the last line is longer than {max_bytes} bytes: only its end is given"
                    ));
                } else if self.cut_bytes {
                    notes.push(format!(
                        "cut at {max_bytes} bytes: only the last {} lines are given",
                        self.lines
                    ));
                }
            }
            _ => {}
        }
        TextFile {
            path,
            text,
            first_line: self.first,
            lines: self.lines,
            total_lines: self.total,
            size,
            notes,
        }
    }
}

/// Finds `lines` lines from line `first` on, then counts on. Nothing if cancelled.
fn scan(
    mut source: impl BufRead,
    first: u64,
    lines: u64,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> io::Result<Option<Found>> {
    let mut found = Found::default();
    // Newlines seen; whether anything follows the last of them; bytes read after the wanted lines.
    let (mut newlines, mut unfinished, mut counted) = (0_u64, false, 0_u64);
    let mut done = false;
    loop {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let mut rest = match source.fill_buf() {
            Ok([]) => break,
            Ok(block) => block,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let length = rest.len();
        unfinished = rest.last() != Some(&b'\n');
        let skip = (first - 1).saturating_sub(newlines);
        if skip > 0 {
            let here = memchr_iter(b'\n', rest).count() as u64;
            if here < skip {
                newlines += here;
                source.consume(length);
                continue;
            }
            // Within this block, so it fits.
            #[allow(clippy::cast_possible_truncation, reason = "at most the block's length")]
            let at = memchr_iter(b'\n', rest).nth(skip as usize - 1).unwrap_or(rest.len() - 1);
            newlines += skip;
            rest = &rest[at + 1..];
        }
        while !done && !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (piece, after) = rest.split_at(end);
            let continues = found.bytes.last().is_some_and(|&last| last != b'\n');
            if found.bytes.len() + piece.len() > max_bytes {
                // The line does not fit: whole lines before it are kept, or its start if it is the first.
                found.cut_bytes = true;
                done = true;
                if found.lines <= u64::from(continues) {
                    found.cut_line = true;
                    found.lines = 1;
                    found.bytes.extend_from_slice(&piece[..max_bytes - found.bytes.len()]);
                    keep_whole_characters(&mut found.bytes);
                } else if continues {
                    found.lines -= 1;
                    let line = memchr::memrchr(b'\n', &found.bytes).map_or(0, |at| at + 1);
                    found.bytes.truncate(line);
                }
                break;
            }
            found.bytes.extend_from_slice(piece);
            found.lines += u64::from(!continues);
            if piece.ends_with(b"\n") {
                newlines += 1;
                done = found.lines == lines;
            }
            rest = after;
        }
        if done {
            newlines += memchr_iter(b'\n', rest).count() as u64;
            counted += rest.len() as u64;
            if counted > MAX_COUNTED_BYTES {
                found.first = Some(first);
                return Ok(Some(found));
            }
        }
        source.consume(length);
    }
    found.total = Some(newlines + u64::from(unfinished));
    found.first = (found.lines > 0).then_some(first);
    Ok(Some(found))
}

/// Finds the last `lines` lines, reading backwards. Nothing if cancelled.
fn last_lines(
    mut file: File,
    size: u64,
    lines: u64,
    max_bytes: usize,
    cancel: &CancellationToken,
) -> io::Result<Option<Found>> {
    if size == 0 {
        // Empty, or a kernel's file that does not know its length and may not seek backwards.
        let mut content = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.take(MAX_COUNTED_BYTES).read_to_end(&mut content)?;
        return Ok(Some(tail_of(content, true, lines, max_bytes)));
    }
    // One byte more than may be given tells whether something was cut, one more whether a line begins there.
    let wanted = (max_bytes as u64 + 2).min(size);
    file.seek(SeekFrom::Start(size - wanted))?;
    let mut content = Vec::new();
    (&mut file).take(wanted).read_to_end(&mut content)?;
    let mut found = tail_of(content, wanted == size, lines, max_bytes);
    if found.total.is_none() && size <= MAX_COUNTED_BYTES {
        file.seek(SeekFrom::Start(0))?;
        let Some(whole) = scan(BufReader::with_capacity(BLOCK, file.take(size)), u64::MAX, 1, 0, cancel)?
        else {
            return Ok(None);
        };
        found.total = whole.total;
        found.first = whole.total.map(|total| total + 1 - found.lines);
    }
    Ok(Some(found))
}

/// The last `lines` lines of `content`, which is the whole file or, unless `whole`, its end.
fn tail_of(mut content: Vec<u8>, whole: bool, lines: u64, max_bytes: usize) -> Found {
    let body = content.strip_suffix(b"\n").unwrap_or(&content);
    let total = if content.is_empty() { 0 } else { memchr_iter(b'\n', body).count() as u64 + 1 };
    let nth = usize::try_from(lines - 1).unwrap_or(usize::MAX);
    let asked = memchr::memrchr_iter(b'\n', body).nth(nth).map(|at| at + 1);
    // Where whole lines that fit begin.
    let bound = content.len().saturating_sub(max_bytes);
    let fitting = if bound == 0 {
        (whole || asked.is_some()).then_some(0)
    } else {
        memchr::memchr(b'\n', &body[bound - 1..]).map(|at| bound + at)
    };
    let mut found = Found { total: whole.then_some(total), ..Found::default() };
    let start = match (asked, fitting) {
        (Some(asked), Some(fitting)) if asked >= fitting => asked,
        (_, Some(fitting)) => {
            found.cut_bytes = fitting > 0;
            fitting
        }
        // Not even the last line fits.
        (_, None) => {
            found.cut_line = true;
            found.cut_bytes = true;
            let mut start = bound;
            while content.get(start).is_some_and(|byte| byte & 0xc0 == 0x80) {
                start += 1;
            }
            start
        }
    };
    content.drain(..start);
    let body = content.strip_suffix(b"\n").unwrap_or(&content);
    found.lines = if content.is_empty() { 0 } else { memchr_iter(b'\n', body).count() as u64 + 1 };
    found.first = found.total.filter(|_| found.lines > 0).map(|total| total + 1 - found.lines);
    found.bytes = content;
    found
}

/// Drops the start of a character whose rest was cut off.
fn keep_whole_characters(bytes: &mut Vec<u8>) {
    let start = bytes.len().saturating_sub(4);
    if let Some(at) = bytes[start..].iter().rposition(|byte| byte & 0xc0 != 0x80) {
        let lead = bytes[start + at];
        let length = match lead {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        if start + at + length > bytes.len() {
            bytes.truncate(start + at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::super::testing::{Project, chain};
    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
    fn read(project: &Project, input: ReadFile) -> Result<TextFile, String> {
        read_file(&project.workspace, &input, &project.cancel).map_err(|error| chain(&error))
    }

    fn whole(path: &str) -> ReadFile {
        ReadFile { path: path.into(), ..ReadFile::default() }
    }

    fn from(offset: i64, limit: i64) -> ReadFile {
        ReadFile { offset: Some(offset), limit: Some(limit), ..whole("f") }
    }

    fn numbered(lines: usize) -> String {
        (1..=lines).map(|line| format!("line {line}\n")).collect()
    }

    #[test]
    fn a_small_file_comes_whole_and_without_remarks() {
        let project = Project::with(&[("f", "one\ntwo\n")]);
        let file = read(&project, whole("f")).unwrap();
        assert_eq!((file.lines, file.total_lines, file.first_line), (2, Some(2), Some(1)));
        assert_eq!(file.to_text(), "one\ntwo\n");
        assert_eq!(file.notes, Vec::<String>::new());
    }

    #[test]
    fn offset_limit_head_and_tail_choose_lines() {
        let project = Project::with(&[("f", numbered(10))]);
        let middle = read(&project, from(4, 2)).unwrap();
        assert_eq!(middle.to_text(), "line 4\nline 5\n[lines 4-5 of 10; continue with offset=6]\n");
        let head = read(&project, ReadFile { head: Some(1), ..whole("f") }).unwrap();
        assert_eq!(head.to_text(), "line 1\n[line 1 of 10; continue with offset=2]\n");
        let tail = read(&project, ReadFile { tail: Some(2), ..whole("f") }).unwrap();
        assert_eq!(tail.to_text(), "line 9\nline 10\n[lines 9-10 of 10]\n");
        let all = read(&project, ReadFile { tail: Some(10), ..whole("f") }).unwrap();
        assert_eq!(all.to_text(), numbered(10));
        let last = read(&project, from(10, 99)).unwrap();
        assert_eq!(last.to_text(), "line 10\n[line 10 of 10]\n");
    }

    #[test]
    fn two_thousand_lines_come_by_default_and_the_rest_is_announced() {
        let project = Project::with(&[("f", "x\n".repeat(2500))]);
        let file = read(&project, whole("f")).unwrap();
        assert_eq!((file.lines, file.total_lines), (2000, Some(2500)));
        assert!(file.to_text().ends_with("[lines 1-2000 of 2500; continue with offset=2001]\n"));
    }

    #[test]
    fn text_over_the_bound_is_cut_between_lines_and_can_be_continued() {
        let line = format!("{}\n", "y".repeat(999));
        let project = Project::with(&[("f", line.repeat(100))]);
        let first = read(&project, whole("f")).unwrap();
        assert_eq!((first.lines, first.total_lines), (40, Some(100)));
        assert_eq!(first.notes, ["cut at 40000 bytes; continue with offset=41"]);
        let next = read(&project, from(41, 2000)).unwrap();
        assert_eq!((next.first_line, next.lines), (Some(41), 40));
        let tail = read(&project, ReadFile { tail: Some(60), ..whole("f") }).unwrap();
        assert_eq!((tail.first_line, tail.lines), (Some(61), 40));
        assert_eq!(tail.notes, ["cut at 40000 bytes: only the last 40 lines are given"]);
    }

    #[test]
    fn one_enormous_line_is_cut_at_a_character_and_the_next_is_reachable() {
        let project = Project::with(&[("f", format!("{}\nafter\n", "é".repeat(60_001)))]);
        let file = read(&project, whole("f")).unwrap();
        assert_eq!((file.lines, file.total_lines, file.text.len()), (1, Some(2), MAX_TEXT_BYTES));
        assert!(file.notes[0].starts_with("line 1 is longer than 40000 bytes"), "{:?}", file.notes);
        assert_eq!(read(&project, from(2, 1)).unwrap().text, "after\n");
        // An odd byte before shifts the cut into a character.
        project.put("f", format!("x{}", "é".repeat(60_001)));
        let file = read(&project, whole("f")).unwrap();
        assert_eq!(file.text.len(), MAX_TEXT_BYTES - 1);
        let tail = read(&project, ReadFile { tail: Some(1), ..whole("f") }).unwrap();
        assert!(
            tail.text.ends_with('é') && tail.text.len() <= MAX_TEXT_BYTES && !tail.text.contains('\u{fffd}')
        );
        assert!(tail.notes[0].starts_with("the last line is longer"), "{:?}", tail.notes);
    }

    #[test]
    fn wrong_numbers_are_named_with_what_is_allowed() {
        let project = Project::with(&[("f", numbered(3))]);
        assert_eq!(read(&project, from(0, 1)).unwrap_err(), "`offset` must be 1 or more; 0 was given");
        assert_eq!(read(&project, from(1, -5)).unwrap_err(), "`limit` must be 1 or more; -5 was given");
        let zero = ReadFile { tail: Some(0), ..whole("f") };
        assert_eq!(read(&project, zero).unwrap_err(), "`tail` must be 1 or more; 0 was given");
        assert_eq!(read(&project, from(4, 1)).unwrap_err(), "`f` has only 3 lines, so there is no line 4");
        assert_eq!(
            read(&project, from(i64::MAX, i64::MAX)).unwrap_err(),
            format!("`f` has only 3 lines, so there is no line {}", i64::MAX)
        );
        let both = ReadFile { head: Some(1), tail: Some(1), ..whole("f") };
        assert!(read(&project, both).unwrap_err().contains("cannot both be given"));
        let mixed = ReadFile { head: Some(1), offset: Some(1), ..whole("f") };
        assert!(read(&project, mixed).unwrap_err().contains("cannot be combined"));
    }

    #[test]
    fn endings_marks_and_odd_bytes_are_kept_or_said() {
        let project = Project::with(&[
            ("crlf", b"a\r\nb\r\n".to_vec()),
            ("bom", b"\xef\xbb\xbfa\n".to_vec()),
            ("latin", b"caf\xe9\n".to_vec()),
            ("open", b"a\nb".to_vec()),
            ("empty", Vec::new()),
            ("newline", b"\n".to_vec()),
        ]);
        assert_eq!(read(&project, whole("crlf")).unwrap().text, "a\r\nb\r\n");
        let bom = read(&project, whole("bom")).unwrap();
        assert_eq!((bom.text.as_str(), bom.notes.len()), ("a\n", 1));
        let latin = read(&project, whole("latin")).unwrap();
        assert_eq!(latin.text, "caf\u{fffd}\n");
        assert!(latin.to_text().ends_with("[not valid UTF-8: bytes that are not are shown as U+FFFD]\n"));
        assert_eq!(read(&project, whole("open")).unwrap().total_lines, Some(2));
        let empty = read(&project, whole("empty")).unwrap();
        assert_eq!(
            (empty.total_lines, empty.first_line, empty.to_text().as_str()),
            (Some(0), None, "[no lines, 0 bytes]\n")
        );
        assert_eq!(read(&project, ReadFile { tail: Some(5), ..whole("empty") }).unwrap().lines, 0);
        assert_eq!(read(&project, whole("newline")).unwrap().total_lines, Some(1));
    }

    #[test]
    fn a_binary_file_is_refused_with_kind_size_and_the_right_tool() {
        let project = Project::with(&[
            ("x.png", b"\x89PNG\r\n\x1a\n\0\0".to_vec()),
            ("x.bin", b"ab\0cd".to_vec()),
            ("x.txt", b"\xff\xfeh\0i\0".to_vec()),
        ]);
        for (path, message) in [
            ("x.png", "`x.png` is not text but a PNG image of 10 bytes; use read_media_file"),
            ("x.bin", "`x.bin` is not text but a binary file of 5 bytes"),
            ("x.txt", "`x.txt` is not text but UTF-16 text of 6 bytes; convert it to UTF-8 first"),
        ] {
            assert_eq!(read(&project, whole(path)).unwrap_err(), message);
        }
    }

    #[test]
    fn a_missing_file_is_answered_with_the_nearest_name() {
        let project = Project::with(&[("src/lib.rs", "x")]);
        assert_eq!(
            read(&project, whole("src/lib.r")).unwrap_err(),
            "`src/lib.r` does not exist; did you mean `src/lib.rs`?"
        );
        assert_eq!(
            read(&project, whole("scr/lib.rs")).unwrap_err(),
            "`scr/lib.rs` does not exist: there is no `scr`; did you mean `src/lib.rs`?"
        );
        assert_eq!(read(&project, whole("src")).unwrap_err(), "`src` is a directory, not a regular file");
    }

    #[test]
    fn a_sparse_gigabyte_is_answered_at_once_with_its_count_given_up() {
        let project = Project::with(&[("f", "first\nsecond\n")]);
        // A hole takes no disk, and 1 GiB of NULs after the head is counted as fast as text.
        let mut head = "line\n".repeat(2000);
        head.push_str("end");
        project.put("f", head);
        #[allow(clippy::disallowed_methods, reason = "the test sets up the file")]
        let file = std::fs::OpenOptions::new().append(true).open(project.at("f")).unwrap();
        file.set_len(1 << 30).unwrap();
        let started = Instant::now();
        let head = read(&project, ReadFile { head: Some(3), ..whole("f") }).unwrap();
        assert_eq!((head.lines, head.total_lines), (3, None));
        assert!(head.to_text().contains("[lines 1-3 of many (1073741824 bytes); continue with offset=4]"));
        let tail = read(&project, ReadFile { tail: Some(3), ..whole("f") }).unwrap();
        assert_eq!((tail.first_line, tail.lines), (None, 1));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[test]
    fn cancelling_ends_a_long_read() {
        let project = Project::with(&[("f", numbered(10))]);
        project.cancel.cancel();
        assert_eq!(read(&project, from(5, 1)).unwrap_err(), "cancelled");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_the_kernel_that_knows_no_length_is_read() {
        let workspace = Workspace::new(["/proc/self"]).unwrap();
        let cancel = CancellationToken::new();
        let status = read_file(&workspace, &whole("status"), &cancel).unwrap();
        assert!(status.text.starts_with("Name:"));
        let tail = read_file(&workspace, &ReadFile { tail: Some(1), ..whole("status") }, &cancel).unwrap();
        assert!(status.text.ends_with(&tail.text) || tail.text.starts_with("nonvoluntary"), "{}", tail.text);
    }

    /// What a reader that simply splits the text would give.
    fn expected(text: &str, first: usize, count: usize) -> String {
        text.split_inclusive('\n').skip(first - 1).take(count).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn any_slice_is_what_splitting_gives(
            text in "([a-zé]{0,6}\r?\n){0,30}[a-z]{0,3}", skip in 1..35_usize, take in 1..35_usize,
        ) {
            let project = Project::with(&[("f", &text)]);
            let total = text.split_inclusive('\n').count();
            let (first, count) = (skip as i64, take as i64);
            match read(&project, from(first, count)) {
                Ok(file) => {
                    prop_assert_eq!(&file.text, &expected(&text, skip, take));
                    prop_assert_eq!(file.total_lines, Some(total as u64));
                }
                Err(_) => prop_assert!(skip > total),
            }
            let tail = read(&project, ReadFile { tail: Some(count), ..whole("f") }).unwrap();
            prop_assert_eq!(tail.text, expected(&text, total.saturating_sub(take) + 1, take));
            prop_assert_eq!(tail.lines, total.min(take) as u64);
        }

        #[test]
        fn pages_put_together_are_the_file(lines in prop::collection::vec("[a-z]{0,40}", 1..60), bound in 41..200_usize) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let project = Project::with(&[("f", &text)]);
            let path = project.workspace.locate("f").unwrap();
            let (mut first, mut pages) = (1, String::new());
            loop {
                let page = Selection::From { first, lines: 7 };
                let page = read_selection(&path, page, bound, &project.cancel).unwrap();
                prop_assert!(page.text.len() <= bound && page.lines > 0);
                pages += &page.text;
                first += page.lines;
                if page.notes.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(pages, text.clone());
            let tail = read_selection(&path, Selection::Last(7), bound, &project.cancel).unwrap();
            prop_assert!(text.ends_with(&tail.text) && tail.text.len() <= bound);
            prop_assert_eq!(tail.first_line, Some(lines.len() as u64 + 1 - tail.lines));
        }
    }
}
