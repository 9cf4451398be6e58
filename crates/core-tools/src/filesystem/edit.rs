//! `edit_file`: replaces exact pieces of a text file, all or none, and answers with the difference.

use std::fmt;
use std::io::Read;
use std::time::Duration;

use memchr::{memchr_iter, memmem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::error::Error;
use super::signature::{HEAD_BYTES, looks_binary};
use super::{MAX_TEXT_BYTES, mask};
use crate::workspace::{self, Expect, Workspace};

/// The largest file edited, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Line numbers named in an error.
const MAX_LINES_NAMED: usize = 10;
/// Lines compared in search of a near one.
const MAX_LINES_COMPARED: usize = 20_000;

/// What to change in a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// File to edit
    pub path: String,
    /// All or none
    #[schemars(length(min = 1))]
    pub edits: Vec<Edit>,
    /// Only show the diff
    #[serde(default)]
    pub dry_run: bool,
}

/// One replacement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Edit {
    /// Exact text; must occur once
    pub old_string: String,
    /// Text in its place
    pub new_string: String,
    /// Or any number of times
    #[serde(default)]
    pub replace_all: bool,
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edited {
    /// The file, relative to its root.
    pub path: String,
    /// The difference, in unified format.
    pub diff: String,
    /// How many pieces were replaced.
    pub replacements: u64,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// What was left out; what is odd about the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Edited {
    /// The difference under a line that says what was done, the notes in brackets at the end.
    pub fn to_text(&self) -> String {
        let done = if self.dry_run { "would change" } else { "changed" };
        let plural = if self.replacements == 1 { "" } else { "s" };
        let mut text =
            format!("{done} {} ({} replacement{plural})\n{}", self.path, self.replacements, self.diff);
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}

/// What is wrong with an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditProblem {
    /// `old_string` is empty.
    Empty,
    /// Both strings are the same.
    Same,
    /// `old_string` contains a mask, which stands for text the caller has not seen.
    Masked,
    /// `old_string` does not occur. Holds the lines that come nearest, with their numbers.
    NotFound {
        /// Number and text of the nearest lines; empty if none is near.
        nearest: Vec<(usize, String)>,
        /// Whether they differ in blanks only.
        blanks_only: bool,
    },
    /// `old_string` occurs more than once.
    NotUnique {
        /// How often.
        matches: usize,
        /// The lines where it begins, the first ten.
        lines: Vec<usize>,
    },
}

impl fmt::Display for EditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("old_string is empty; give the text to replace (write_file creates or appends)")
            }
            Self::Same => f.write_str("old_string and new_string are the same"),
            Self::Masked => f.write_str(
                "old_string contains [redacted:…], a mask shown in place of a secret; choose text beside it",
            ),
            Self::NotFound { nearest, .. } if nearest.is_empty() => {
                f.write_str("old_string was not found, nor anything like it; read the file again")
            }
            Self::NotFound { nearest, blanks_only } => {
                let how = if *blanks_only { "with other blanks or indentation " } else { "" };
                write!(f, "old_string was not found; the nearest text stands {how}at")?;
                for (number, line) in nearest {
                    write!(f, "\n{number}: {line}")?;
                }
                Ok(())
            }
            Self::NotUnique { matches, lines } => {
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                let more = if *matches > lines.len() { " and more" } else { "" };
                write!(
                    f,
                    "old_string occurs {matches} times, on lines {}{more}; add text around it until it is unique, or set replace_all",
                    lines.join(", ")
                )
            }
        }
    }
}

/// Edits a text file. Edits are made in order, each on the result of those before it; if one fails, nothing
/// is written. The write is atomic, keeps permissions, and follows a link to its file.
///
/// Text is matched exactly, byte by byte, save for line endings: in a file with CRLF, LF in `old_string`
/// matches it, and LF in `new_string` is written as CRLF. Two calls at once on one file are made one after
/// the other; if another process changes the file meanwhile, nothing is written.
///
/// # Errors
/// The path, a binary file, one over 64 MiB, masks of secrets, and every [`EditProblem`].
pub fn edit_file(workspace: &Workspace, input: &EditFile) -> Result<Edited, Error> {
    if input.edits.is_empty() {
        return Err(Error::Parameters("`edits` is empty; give at least one edit"));
    }
    let path = workspace.locate(&input.path)?;
    // Before anything else, for the hint that goes with a missing file.
    path.metadata()?;
    let target = path.target()?;
    let lock = target.lock();
    let (file, metadata) = target.open_read()?;
    let shown = path.shown();
    if metadata.size > MAX_BYTES {
        return Err(Error::TooLarge { path: shown, size: metadata.size, limit: MAX_BYTES });
    }
    let mut original = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut original).map_err(|source| {
        Error::Path(workspace::Error::Io { action: "read", path: shown.clone(), source })
    })?;
    if let Some(kind) = looks_binary(&original[..original.len().min(HEAD_BYTES)]) {
        return Err(Error::Binary {
            path: shown,
            kind,
            size: metadata.size,
            advice: "; edit_file edits text",
        });
    }

    let (edited, replacements) = apply(&original, &input.edits, &shown)?;
    let mut notes = Vec::new();
    if edited == original {
        notes.push("the edits cancel each other out: nothing to write".to_owned());
    } else if !input.dry_run {
        target.replace(&edited, Expect::Unchanged(metadata.stamp()))?;
    }
    drop(lock);
    let mut diff = unified(&original, &edited, &shown);
    if std::str::from_utf8(&edited).is_err() {
        notes.push("the file is not valid UTF-8: such bytes are kept, and shown as U+FFFD".to_owned());
    }
    if diff.len() > MAX_TEXT_BYTES {
        let whole = diff.len();
        let mut end = MAX_TEXT_BYTES;
        while !diff.is_char_boundary(end) {
            end -= 1;
        }
        diff.truncate(diff[..end].rfind('\n').map_or(end, |at| at + 1));
        notes.push(format!("the first {} of {whole} bytes of the diff are given", diff.len()));
    }
    Ok(Edited { path: shown, diff, replacements, dry_run: input.dry_run, notes })
}

/// Makes the edits on a copy.
fn apply(original: &[u8], edits: &[Edit], path: &str) -> Result<(Vec<u8>, u64), Error> {
    let mut text = original.to_vec();
    let mut replacements = 0;
    for (index, edit) in edits.iter().enumerate() {
        let failed =
            |problem| Error::Edit { path: path.to_owned(), number: index + 1, count: edits.len(), problem };
        if let Some(mask) = mask::first_new(edit.new_string.as_bytes(), original) {
            return Err(Error::Masked { path: path.to_owned(), mask });
        }
        let (changed, count) = apply_one(&text, edit).map_err(failed)?;
        text = changed;
        replacements += count as u64;
    }
    Ok((text, replacements))
}

fn apply_one(text: &[u8], edit: &Edit) -> Result<(Vec<u8>, usize), EditProblem> {
    if edit.old_string.is_empty() {
        return Err(EditProblem::Empty);
    }
    if edit.old_string == edit.new_string {
        return Err(EditProblem::Same);
    }
    let mut found = None;
    for crlf in endings(text) {
        let old = with_ending(&edit.old_string, crlf);
        let at: Vec<usize> = memmem::find_iter(text, &old).collect();
        if !at.is_empty() {
            found = Some((at, old.len(), with_ending(&edit.new_string, crlf)));
            break;
        }
    }
    let Some((at, length, new)) = found else {
        if mask::contains(edit.old_string.as_bytes()) {
            return Err(EditProblem::Masked);
        }
        return Err(nearest(text, &edit.old_string));
    };
    if at.len() > 1 && !edit.replace_all {
        return Err(EditProblem::NotUnique { matches: at.len(), lines: lines_of(text, &at) });
    }
    let mut changed = Vec::with_capacity(text.len() + at.len() * new.len().saturating_sub(length));
    let mut from = 0;
    for &start in &at {
        changed.extend_from_slice(&text[from..start]);
        changed.extend_from_slice(&new);
        from = start + length;
    }
    changed.extend_from_slice(&text[from..]);
    Ok((changed, at.len()))
}

/// How the strings' line endings are to be read, the likeliest first: as CRLF, as LF, or as they stand.
fn endings(text: &[u8]) -> [Option<bool>; 3] {
    let crlf = memmem::find_iter(text, b"\r\n").count();
    if crlf > memchr_iter(b'\n', text).count() / 2 {
        [Some(true), None, Some(false)]
    } else {
        [None, Some(false), Some(true)]
    }
}

/// `text` with CRLF, LF, or as it stands.
fn with_ending(text: &str, crlf: Option<bool>) -> Vec<u8> {
    match crlf {
        None => text.as_bytes().to_vec(),
        Some(false) => text.replace("\r\n", "\n").into_bytes(),
        Some(true) => text.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes(),
    }
}

/// The lines, from 1, in which the first places of `at` lie.
fn lines_of(text: &[u8], at: &[usize]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    at.iter()
        .take(MAX_LINES_NAMED)
        .map(|&at| {
            line += memchr_iter(b'\n', &text[from..at]).count();
            from = at;
            line
        })
        .collect()
}

/// Where the text comes nearest to `wanted`: its first line that is not blank decides.
fn nearest(text: &[u8], wanted: &str) -> EditProblem {
    /// Below this two lines have little in common.
    const SIMILAR: f64 = 0.6;
    const MAX_LINE: usize = 400;
    const SHOWN_LINES: usize = 5;
    const SHOWN_CHARACTERS: usize = 200;

    let none = EditProblem::NotFound { nearest: Vec::new(), blanks_only: false };
    let mut before = 0;
    let Some(first) = wanted.lines().find(|line| {
        let blank = line.trim().is_empty();
        before += usize::from(blank);
        !blank
    }) else {
        return none;
    };
    let first: String = first.trim().chars().take(MAX_LINE).collect();
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().take(MAX_LINES_COMPARED).collect();
    let squeezed = |line: &str| line.split_whitespace().collect::<String>();
    let wanted_squeezed = squeezed(&first);
    let best = lines.iter().enumerate().filter_map(|(index, line)| {
        let line = line.trim();
        let (shorter, longer) = (line.len().min(first.len()), line.len().max(first.len()));
        if longer > 2 * shorter || line.len() > 4 * MAX_LINE {
            return None;
        }
        if squeezed(line) == wanted_squeezed {
            return Some((index, 1.0));
        }
        let score = strsim::sorensen_dice(line, &first);
        (score >= SIMILAR).then_some((index, score))
    });
    // The first of equals.
    let Some((index, _)) = best.reduce(|best, next| if next.1 > best.1 { next } else { best }) else {
        return none;
    };
    let start = index.saturating_sub(before);
    let count = wanted.lines().count().clamp(1, SHOWN_LINES);
    let here: String = lines[start..].iter().take(wanted.lines().count()).copied().collect();
    let blanks_only = squeezed(&here) == squeezed(wanted);
    let nearest = lines[start..].iter().take(count).enumerate().map(|(offset, line)| {
        let mut shown: String = line.chars().take(SHOWN_CHARACTERS).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        (start + offset + 1, shown)
    });
    EditProblem::NotFound { nearest: nearest.collect(), blanks_only }
}

/// The difference in unified format, three lines of context.
fn unified(old: &[u8], new: &[u8], path: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().timeout(Duration::from_secs(1)).diff_lines(&*old, &*new);
    diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Project, chain};
    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old_string: old.into(), new_string: new.into(), replace_all: false }
    }

    fn run(project: &Project, edits: Vec<Edit>) -> Result<Edited, String> {
        let input = EditFile { path: "f".into(), edits, dry_run: false };
        edit_file(&project.workspace, &input).map_err(|error| chain(&error))
    }

    #[test]
    fn edits_are_made_in_order_and_answered_with_a_unified_diff() {
        let project = Project::with(&[("f", "one\ntwo\nthree\n")]);
        let edited = run(&project, vec![edit("two", "zwei"), edit("zwei\nthree", "zwei\ndrei")]).unwrap();
        assert_eq!(project.text("f"), "one\nzwei\ndrei\n");
        assert_eq!(
            edited.to_text(),
            "changed f (2 replacements)\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+zwei\n+drei\n"
        );
    }

    #[test]
    fn a_dry_run_shows_the_diff_and_writes_nothing() {
        let project = Project::with(&[("f", "a\n")]);
        let input = EditFile { path: "f".into(), edits: vec![edit("a", "b")], dry_run: true };
        let edited = edit_file(&project.workspace, &input).unwrap();
        assert!(edited.dry_run && edited.diff.contains("-a\n+b\n"));
        assert_eq!(project.text("f"), "a\n");
    }

    #[test]
    fn if_one_edit_fails_none_is_made() {
        let project = Project::with(&[("f", "a\nb\n")]);
        let error = run(&project, vec![edit("a", "A"), edit("nowhere to be seen", "x")]).unwrap_err();
        assert_eq!(
            error,
            "nothing was changed in `f`: edit 2 of 2: old_string was not found, nor anything like it; read the file again"
        );
        assert_eq!(project.text("f"), "a\nb\n");
    }

    #[test]
    fn what_occurs_more_than_once_is_named_with_its_lines() {
        let project = Project::with(&[("f", "x = 1\ny = 2\nx = 1\n")]);
        let error = run(&project, vec![edit("x = 1", "x = 3")]).unwrap_err();
        assert!(error.contains("occurs 2 times, on lines 1, 3; add text around it"), "{error}");
        let all = Edit { replace_all: true, ..edit("x = 1", "x = 3") };
        assert_eq!(run(&project, vec![all]).unwrap().replacements, 2);
        assert_eq!(project.text("f"), "x = 3\ny = 2\nx = 3\n");
        project.put("f", "a\n".repeat(500));
        assert!(run(&project, vec![edit("a", "b")]).unwrap_err().contains("9, 10 and more;"));
    }

    #[test]
    fn a_near_miss_is_shown_with_its_line_numbers() {
        let project =
            Project::with(&[("f", "fn main() {\n    let total = sum(&items);\n    print(total);\n}\n")]);
        let error = run(&project, vec![edit("let total = sum(items);\n", "x")]).unwrap_err();
        assert!(error.ends_with("the nearest text stands at\n2:     let total = sum(&items);"), "{error}");
        let error = run(&project, vec![edit("let total = sum(&items);\nprint(total);", "x")]).unwrap_err();
        assert!(
            error.ends_with(
                "with other blanks or indentation at\n2:     let total = sum(&items);\n3:     print(total);"
            ),
            "{error}"
        );
    }

    #[test]
    fn strings_that_make_no_sense_are_refused() {
        let project = Project::with(&[("f", "a\n")]);
        assert!(run(&project, vec![edit("", "x")]).unwrap_err().contains("old_string is empty"));
        assert!(run(&project, vec![edit("a", "a")]).unwrap_err().contains("are the same"));
        assert!(run(&project, vec![]).unwrap_err().contains("`edits` is empty"));
        project.put("f", "a\0b");
        assert!(run(&project, vec![edit("a", "b")]).unwrap_err().contains("a binary file of 3 bytes"));
    }

    #[test]
    fn line_endings_are_kept_whatever_the_caller_writes() {
        let project = Project::with(&[("f", "a\r\nb\r\nc\r\n")]);
        run(&project, vec![edit("a\nb\n", "a\nx\ny\n")]).unwrap();
        assert_eq!(project.text("f"), "a\r\nx\r\ny\r\nc\r\n");
        run(&project, vec![edit("c", "c\nd")]).unwrap();
        assert_eq!(project.text("f"), "a\r\nx\r\ny\r\nc\r\nd\r\n");
        run(&project, vec![edit("x\r\ny", "z")]).unwrap();
        assert_eq!(project.text("f"), "a\r\nz\r\nc\r\nd\r\n");
        project.put("f", "a\nb\n");
        run(&project, vec![edit("a\r\nb\r\n", "c\r\nd\r\n")]).unwrap();
        assert_eq!(project.text("f"), "c\nd\n");
        // Mixed endings: what is not touched keeps its own, what is takes those it replaces.
        project.put("f", "a\nb\r\nc\nd\n");
        run(&project, vec![edit("b\nc", "B\nC")]).unwrap();
        assert_eq!(project.text("f"), "a\nB\r\nC\nd\n");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_kept() {
        let project = Project::with(&[("f", b"\xef\xbb\xbfcaf\xe9 one\n")]);
        let edited = run(&project, vec![edit("one", "two")]).unwrap();
        assert_eq!(project.get("f"), b"\xef\xbb\xbfcaf\xe9 two\n");
        assert!(edited.notes[0].starts_with("the file is not valid UTF-8"));
    }

    #[test]
    fn masks_are_neither_matched_nor_written() {
        let project = Project::with(&[("f", "key = AKIA123\nname = x\n")]);
        let error = run(&project, vec![edit("key = [redacted:aws]", "key = none")]).unwrap_err();
        assert!(error.contains("a mask shown in place of a secret; choose text beside it"), "{error}");
        let error = run(&project, vec![edit("name = x", "name = y\nkey = [redacted:aws]")]).unwrap_err();
        assert!(error.contains("the text contains [redacted:aws]"), "{error}");
        assert_eq!(project.text("f"), "key = AKIA123\nname = x\n");
        // A text about masks is a text like any other.
        project.put("f", "shown as [redacted:aws]\n");
        run(&project, vec![edit("shown as [redacted:aws]", "given as [redacted:aws]")]).unwrap();
    }

    #[test]
    fn edits_of_one_file_at_once_lose_none() {
        const EACH: usize = 25;
        let lines: String = (0..4 * EACH).map(|line| format!("<{line}>\n")).collect();
        let project = Project::with(&[("f", lines)]);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let project = &project;
                scope.spawn(move || {
                    for line in worker * EACH..(worker + 1) * EACH {
                        run(project, vec![edit(&format!("<{line}>"), &format!("done {line};"))]).unwrap();
                    }
                });
            }
        });
        let expected: String = (0..4 * EACH).map(|line| format!("done {line};\n")).collect();
        assert_eq!(project.text("f"), expected);
    }

    #[cfg(unix)]
    #[test]
    fn the_mode_stays_and_a_file_that_may_not_be_written_is_left_alone() {
        use std::os::unix::fs::PermissionsExt;
        let project = Project::with(&[("f", "a\n")]);
        let mode = |mode| std::fs::set_permissions(project.at("f"), PermissionsExt::from_mode(mode)).unwrap();
        mode(0o755);
        run(&project, vec![edit("a", "b")]).unwrap();
        assert_eq!(std::fs::metadata(project.at("f")).unwrap().permissions().mode() & 0o777, 0o755);
        mode(0o444);
        let result = run(&project, vec![edit("b", "c")]);
        // Nothing is closed to root.
        if rustix::process::geteuid().is_root() {
            assert!(result.is_ok());
        } else {
            assert_eq!(result.unwrap_err(), "cannot write `f`: Permission denied (os error 13)");
        }
    }

    #[test]
    fn a_large_diff_is_cut_between_lines_and_says_so() {
        let project = Project::with(&[("f", "abcdefgh\n".repeat(10_000))]);
        let edited = run(&project, vec![Edit { replace_all: true, ..edit("abcdefgh", "ABCDEFGH") }]).unwrap();
        assert!(edited.diff.len() <= MAX_TEXT_BYTES && edited.diff.ends_with('\n'));
        assert!(edited.notes[0].contains("bytes of the diff are given"), "{:?}", edited.notes);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn a_unique_piece_is_replaced_as_str_replace_would(text in "[ab\n]{1,40}", from in 0..40_usize, length in 1..10_usize) {
            let start = from % text.len();
            let piece = &text[start..text.len().min(start + length)];
            let matches = text.match_indices(piece).count();
            let project = Project::with(&[("f", &text)]);
            match run(&project, vec![edit(piece, "XY")]) {
                Ok(_) => {
                    prop_assert_eq!(matches, 1);
                    prop_assert_eq!(project.text("f"), text.replacen(piece, "XY", 1));
                }
                Err(error) => {
                    prop_assert!(error.contains(&format!("occurs {matches} times")), "{}", error);
                    prop_assert_eq!(project.text("f"), text);
                }
            }
        }
    }
}
