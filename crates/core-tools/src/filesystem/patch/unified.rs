//! Unified diffs, as `diff -u` and `git diff` write them, and as models do: with line counts that are not right.

use super::file_patch::{FilePatch, Hunk, HunkLine};
use super::hunk_range::{HunkRange, parse_range};
use super::syntax::{error_at, shown};
use crate::filesystem::error::Error;

pub(super) const DEV_NULL: &str = "/dev/null";
/// The prefixes that git puts before the paths of both sides.
const PREFIXES: [(&str, &str); 4] = [("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/")];
/// The suffixes of a copy that a file was compared with.
const COPY_SUFFIXES: [&str; 4] = [".orig", ".old", ".bak", "~"];

/// Returns true for a line that begins the part about a file.
pub(super) fn begins_file(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("diff --git ")
}

/// Parses the lines of a unified diff.
pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, Error> {
    let mut parser = DiffParser { lines, next: 0 };
    let mut files = Vec::new();
    while let Some(line) = parser.peek() {
        if parser.at_file_header() || line.starts_with("diff --git ") {
            files.push(parser.file()?);
        } else {
            // The message of a commit, `Index: …`, and what else stands between the parts about files.
            parser.next += 1;
        }
    }
    Ok(files)
}

/// The headers before the hunks of a file.
#[derive(Default)]
struct DiffFileHeader {
    old: Option<String>,
    new: Option<String>,
    from: Option<String>,
    to: Option<String>,
    is_new: bool,
    is_deleted: bool,
}

struct DiffParser<'a> {
    lines: &'a [&'a str],
    next: usize,
}

impl<'a> DiffParser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    fn line_after(&self, offset: usize) -> &'a str {
        self.lines.get(self.next + offset).copied().unwrap_or_default()
    }

    /// Returns true at `--- OLD` followed by `+++ NEW`.
    fn at_file_header(&self) -> bool {
        self.line_after(0).starts_with("--- ") && self.line_after(1).starts_with("+++ ")
    }

    fn file(&mut self) -> Result<FilePatch, Error> {
        let start = self.next + 1;
        let mut header = DiffFileHeader::default();
        if let Some(paths) = self.line_after(0).strip_prefix("diff --git ") {
            self.next += 1;
            (header.old, header.new) = git_paths(paths);
            self.extended_headers(&mut header)?;
        }
        if self.at_file_header() {
            header.old = Some(path_of(self.line_after(0)));
            header.new = Some(path_of(self.line_after(1)));
            self.next += 2;
        }
        let mut hunks = Vec::new();
        while let Some(line) = self.peek() {
            if line.starts_with("@@") {
                hunks.push(self.hunk()?);
            } else if line.trim().is_empty() {
                self.next += 1;
            } else if hunks.is_empty() || self.ends_hunks(line) {
                break;
            } else {
                return Err(error_at(
                    self.next + 1,
                    format!("`{}` begins with none of ` `, `-`, `+` and `@@`", shown(line)),
                ));
            }
        }
        header.into_patch(hunks, start)
    }

    /// Takes the lines of git between `diff --git` and `---`.
    fn extended_headers(&mut self, header: &mut DiffFileHeader) -> Result<(), Error> {
        while let Some(line) = self.peek() {
            if line.starts_with("diff --git ") || self.at_file_header() || line.starts_with("@@") {
                return Ok(());
            }
            if line.starts_with("copy from ") {
                return Err(error_at(self.next + 1, "copies are not applied; add the file with its lines"));
            }
            if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
                return Err(error_at(
                    self.next + 1,
                    "binary changes are not applied; only text can be patched",
                ));
            }
            if let Some(path) = line.strip_prefix("rename from ") {
                header.from = Some(unquote(path));
            } else if let Some(path) = line.strip_prefix("rename to ") {
                header.to = Some(unquote(path));
            }
            header.is_new |= line.starts_with("new file mode ");
            header.is_deleted |= line.starts_with("deleted file mode ");
            self.next += 1;
        }
        Ok(())
    }

    /// Returns true for a line that may follow the hunks of a file.
    fn ends_hunks(&self, line: &str) -> bool {
        self.at_file_header()
            || ["diff ", "Index: ", "===", "index ", "From ", "```", "-- "]
                .iter()
                .any(|start| line.starts_with(start))
    }

    fn hunk(&mut self) -> Result<Hunk, Error> {
        let start = self.next + 1;
        let header = self.line_after(0).trim_start_matches('@').trim();
        let range = parse_range(header);
        let mut hunk = Hunk { first_line: range.map(|range| range.first_line), ..Hunk::default() };
        if range.is_none() {
            // A header without numbers, as models write it; what it says instead is a line before the hunk.
            let anchor = header.trim_end_matches('@').trim();
            hunk.anchors.extend((!anchor.is_empty() && anchor != "...").then(|| anchor.to_owned()));
        }
        self.next += 1;
        while let Some(line) = self.peek() {
            // A removed line that begins with `-- ` looks like the header of a file, and like the end of a mail.
            let is_short = || range.is_some_and(|range| is_shorter(&hunk, range));
            let is_header = self.at_file_header() && (self.line_after(2).starts_with("@@") || !is_short());
            let is_end = is_header || (line == "-- " && self.is_signature() && !is_short());
            let parsed = match line.as_bytes().first() {
                _ if is_end => break,
                None => HunkLine::Context(String::new()),
                Some(b' ') => HunkLine::Context(line[1..].to_owned()),
                Some(b'+') => HunkLine::Add(line[1..].to_owned()),
                Some(b'-') => HunkLine::Remove(line[1..].to_owned()),
                Some(b'\\') => {
                    // Of the new side: after an added line, or one that stays.
                    let is_new = !matches!(hunk.lines.last(), Some(HunkLine::Remove(_)));
                    hunk.ends_without_newline |= is_new;
                    hunk.is_at_end = true;
                    self.next += 1;
                    continue;
                }
                Some(_) => break,
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

    /// Returns true at the line before the version of git that ends a mail: the last lines of the text.
    fn is_signature(&self) -> bool {
        self.lines[self.next + 1..].iter().filter(|line| !line.trim().is_empty()).count() <= 1
    }
}

/// Returns true if the hunk has fewer lines so far than its header says.
fn is_shorter(hunk: &Hunk, range: HunkRange) -> bool {
    hunk.old_lines().len() < range.old_lines || hunk.new_lines().len() < range.new_lines
}

impl DiffFileHeader {
    fn into_patch(self, hunks: Vec<Hunk>, start: usize) -> Result<FilePatch, Error> {
        let is_null = |path: &Option<String>| path.as_deref() == Some(DEV_NULL);
        let (is_new, is_deleted) = (self.is_new || is_null(&self.old), self.is_deleted || is_null(&self.new));
        let (old, new) = without_prefixes(self.old.unwrap_or_default(), self.new.unwrap_or_default());
        let named = |path: String| match path.as_str() {
            "" | DEV_NULL => Err(error_at(start, "the part names no file")),
            _ => Ok(path),
        };
        if is_new {
            let is_kept = |line: &HunkLine| !matches!(line, HunkLine::Add(_));
            if hunks.iter().flat_map(|hunk| &hunk.lines).any(is_kept) {
                return Err(error_at(start, "a new file has only lines that begin with `+`"));
            }
            let mut content: String =
                hunks.iter().flat_map(Hunk::new_lines).flat_map(|line| [line, "\n"]).collect();
            if hunks.last().is_some_and(|hunk| hunk.ends_without_newline) {
                content.pop();
            }
            return Ok(FilePatch::Add { path: named(new)?, content, overwrite: false });
        }
        if is_deleted {
            return Ok(FilePatch::Delete { path: named(old)?, hunks });
        }
        let (path, to) = match (self.from, self.to) {
            (Some(from), Some(to)) => (from, to),
            _ => (old, new),
        };
        let is_copy = COPY_SUFFIXES.iter().any(|suffix| path.strip_suffix(suffix) == Some(to.as_str()));
        let path = if is_copy || path.is_empty() { to.clone() } else { path };
        let move_to = (path != to && !to.is_empty()).then_some(to);
        if hunks.is_empty() && move_to.is_none() {
            return Err(error_at(
                start,
                "the part has no hunk; a change of permissions alone is not applied",
            ));
        }
        Ok(FilePatch::Update { path: named(path)?, move_to, hunks })
    }
}

/// Returns the path of a line `--- PATH` or `+++ PATH`, without the time behind a tab.
fn path_of(line: &str) -> String {
    let path = line.get(4..).unwrap_or_default();
    unquote(path.split('\t').next().unwrap_or_default().trim_end())
}

/// Returns both paths of `diff --git a/x b/x`. They are only needed where no other line has them, and are then equal.
fn git_paths(text: &str) -> (Option<String>, Option<String>) {
    if let Some((old, new)) = text.strip_prefix('"').and_then(|rest| rest.split_once("\" \"")) {
        return (Some(unquote(&format!("\"{old}\""))), Some(unquote(&format!("\"{new}"))));
    }
    let middle = text.len() / 2;
    match (text.get(..middle), text.get(middle + 1..)) {
        (Some(old), Some(new)) if text.as_bytes().get(middle) == Some(&b' ') => {
            (Some(old.to_owned()), Some(new.to_owned()))
        }
        _ => (None, None),
    }
}

/// Removes the prefixes of git where both sides have them.
fn without_prefixes(old: String, new: String) -> (String, String) {
    for (one, other) in PREFIXES {
        let stripped = match (old.strip_prefix(one), new.strip_prefix(other)) {
            (Some(old), Some(new)) => Some((old.to_owned(), new.to_owned())),
            (Some(old), None) if new == DEV_NULL => Some((old.to_owned(), new.clone())),
            (None, Some(new)) if old == DEV_NULL => Some((old.clone(), new.to_owned())),
            _ => None,
        };
        if let Some(stripped) = stripped {
            return stripped;
        }
    }
    (old, new)
}

/// Decodes a path in quotes, as git writes names with special characters.
fn unquote(path: &str) -> String {
    let Some(quoted) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) else {
        return path.to_owned();
    };
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    value = value.wrapping_mul(8).wrapping_add(digit - b'0');
                }
                bytes.push(value);
            }
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}
