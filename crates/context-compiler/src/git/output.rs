//! Parsing of git's output.

use crate::changes::{ChangedFile, ChangedLineCounts, FileChangeKind};
use crate::source::name::printable_name;
use std::collections::BTreeMap;

/// Changed files by path.
pub(super) type FileTable = BTreeMap<String, ChangedFile>;

/// The hunks of one file of a patch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedFilePatch {
    pub(super) path: String,
    pub(super) hunks: Vec<String>,
}

/// Returns the fields that are terminated by a NUL, as UTF-8. If the output is not complete, its last field is dropped.
pub(super) fn split_nul(bytes: &[u8], is_complete: bool) -> Vec<String> {
    let mut fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    // After the last NUL there is nothing, or a part of a field.
    let _ = if is_complete { fields.pop_if(|last| last.is_empty()) } else { fields.pop() };
    fields.into_iter().map(|field| printable_name(field).0).collect()
}

/// Parses the output of `git diff --raw --numstat -z`: first the kind of each change, then its line counts.
pub(super) fn parse_changed_files(output: &[u8]) -> FileTable {
    let mut files = FileTable::new();
    let fields = split_nul(output, true);
    let mut fields = fields.iter();
    while let Some(field) = fields.next() {
        // With `-z`, `--raw` gives two fields for a file, the modes with the letter and then the path; `--numstat`
        // gives one.
        if field.starts_with(':') {
            let Some(path) = fields.next() else { break };
            let kind = match field.rsplit(' ').next().and_then(|letters| letters.chars().next()) {
                Some('A') => FileChangeKind::Added,
                Some('D') => FileChangeKind::Deleted,
                _ => FileChangeKind::Modified,
            };
            files.entry(path.clone()).or_insert_with(|| ChangedFile::new(path, kind));
        } else {
            let mut parts = field.splitn(3, '\t');
            // Both are `-` for a binary file.
            let counts = (parts.next().map(str::parse), parts.next().map(str::parse));
            let file = parts.next().and_then(|path| files.get_mut(path));
            if let (Some(file), (Some(Ok(added)), Some(Ok(removed)))) = (file, counts) {
                file.line_counts = Some(ChangedLineCounts { added, removed });
            }
        }
    }
    files
}

/// Parses a patch of several files. If it is not complete, its last hunk is dropped.
///
/// A line of content begins with a sign or a backslash, and a name with a line feed is quoted, so no file can forge a
/// header.
pub(super) fn parse_patches(text: &str, is_complete: bool) -> Vec<ChangedFilePatch> {
    let mut files: Vec<(Option<String>, Vec<String>)> = Vec::new();
    let mut in_hunks = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            files.push((None, Vec::new()));
            in_hunks = false;
            continue;
        }
        let Some((path, hunks)) = files.last_mut() else { continue };
        if line.starts_with("@@ ") {
            in_hunks = true;
            // The function after the second `@@` is found by patterns of the repository, and is no part of the change.
            let end =
                line.get(3..).and_then(|rest| rest.find(" @@")).map_or(line.len(), |offset| 3 + offset + 3);
            hunks.push(format!("{}\n", line.get(..end).unwrap_or(line).trim_end_matches('\n')));
        } else if in_hunks {
            if let Some(hunk) = hunks.last_mut() {
                hunk.push_str(line);
            }
        } else if let Some(name) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
            // The second header wins, unless it is /dev/null.
            *path = parse_header_path(name).or(path.take());
        }
    }
    if !is_complete && let Some((_, hunks)) = files.last_mut() {
        hunks.pop();
    }
    files.into_iter().filter_map(|(path, hunks)| Some(ChangedFilePatch { path: path?, hunks })).collect()
}

/// Parses the path after `+++ ` or `--- `. git quotes it if it has special characters, and adds a tab if it has spaces.
/// `None` for `/dev/null`.
fn parse_header_path(text: &str) -> Option<String> {
    let text = text.trim_end_matches('\n');
    let text = text.strip_suffix('\t').unwrap_or(text);
    let path = match text.strip_prefix('"') {
        Some(quoted) => printable_name(&unquote(quoted.strip_suffix('"')?)).0,
        None => text.to_owned(),
    };
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).map(str::to_owned)
}

/// Returns the bytes that git's quotation of a name stands for.
fn unquote(quoted: &str) -> Vec<u8> {
    let mut bytes = quoted.bytes().peekable();
    let mut out = Vec::with_capacity(quoted.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                out.push(u8::try_from(value & 0xff).unwrap_or_default());
            }
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'v') => out.push(11),
            Some(b'f') => out.push(12),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::filters::ConfiguredFilters;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_in_every_way_that_git_writes_them() {
        assert_eq!(parse_header_path("b/a b\t\n").unwrap(), "a b");
        assert_eq!(parse_header_path("\"b/a\\nb\\\"c\\303\\251\"\n").unwrap(), "a\nb\"cé");
        assert_eq!(parse_header_path("/dev/null\n"), None);
    }

    #[test]
    fn a_patch_that_was_cut_loses_its_last_hunk() {
        let text = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+diff --git\n@@ -5 +5 @@\n-c\n";
        let hunks = ["@@ -1 +1 @@\n-a\n+diff --git\n".to_owned(), "@@ -5 +5 @@\n-c\n".to_owned()];
        let patch = |hunks: &[String]| ChangedFilePatch { path: "x".to_owned(), hunks: hunks.to_vec() };
        assert_eq!(parse_patches(text, true), [patch(&hunks)]);
        assert_eq!(parse_patches(text, false), [patch(&hunks[..1])]);
    }

    proptest! {
        #[test]
        fn no_output_makes_the_parsers_panic(
            bytes: Vec<u8>, text in "(diff --git |@@ |[+]{3} |\"b/\\\\|\n|[ -~]){0,40}",
        ) {
            parse_changed_files(&bytes);
            ConfiguredFilters::parse(&bytes);
            parse_patches(&text, false);
        }
    }
}
