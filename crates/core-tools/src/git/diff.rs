//! Differences: statistics first, then as much of the patch as is wanted.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::programs::Overrides;
use super::repository::Repository;
use super::revision::{Range, check_paths};
use super::run::{Access, Call, Git};
use super::status::verb;
use super::text::{beginning, fields, line, lossy, plural, seen_from};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitDiff {
    /// Folder
    pub repository_path: Option<String>,
    /// Index against HEAD
    pub staged: Option<bool>,
    /// Or A..B
    pub revision: Option<String>,
    /// Only these
    pub paths: Option<Vec<String>>,
    /// Statistics only
    pub stat: Option<bool>,
}

/// The patch that is shown of several files.
pub(super) const DEFAULT_BYTES: usize = 30_000;
/// The patch that is shown of one file alone.
pub(super) const ALONE_BYTES: usize = 200_000;
/// Of the patch, one file gets at most this part where there are several.
const PART: usize = 4;
/// Files whose statistics are shown.
const MOST_FILES: usize = 500;

/// Differences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diff {
    /// Files that differ, the first 500.
    pub files: Vec<FileDiff>,
    /// Files that differ, listed or not.
    pub total: usize,
    /// Lines that came, in all files.
    pub insertions: u64,
    /// Lines that went, in all files.
    pub deletions: u64,
    /// The patch, as far as it is shown. It says itself what is left out.
    pub patch: String,
}

/// How one file differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileDiff {
    /// As seen from the folder that was named.
    pub path: String,
    /// Where it was, if it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `added`, `modified`, `deleted`, `renamed`, `copied`, `type changed` or `unmerged`.
    pub change: &'static str,
    /// Lines that came. Absent for what is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// Lines that went. Absent for what is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
}

/// `--raw --numstat -z` (git-diff(1), "Raw output format", "Other diff formats").
pub(super) fn parse(listed: &[u8], prefix: &[u8]) -> Diff {
    let mut diff = Diff::default();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut fields = fields(listed);
    while let Some(entry) = fields.next() {
        if let Some(raw) = entry.strip_prefix(b":") {
            let letter = raw.split(|byte| *byte == b' ').nth(4).and_then(<[u8]>::first).copied();
            let letter = letter.unwrap_or_default();
            let Some(first) = fields.next() else { break };
            let moved = matches!(letter, b'R' | b'C');
            let (from, path) =
                if moved { (Some(first), fields.next().unwrap_or_default()) } else { (None, first) };
            // A file in conflict has two entries.
            if let Some(file) = places.get(path).and_then(|place| diff.files.get_mut(*place)) {
                file.change = "unmerged";
                continue;
            }
            places.insert(path, diff.files.len());
            diff.files.push(FileDiff {
                path: seen_from(prefix, path),
                from: from.map(|from| seen_from(prefix, from)),
                change: verb(letter).unwrap_or("modified"),
                ..FileDiff::default()
            });
            continue;
        }
        let mut columns = entry.splitn(3, |byte| *byte == b'\t');
        let mut number = || columns.next().and_then(|column| lossy(column).parse::<u64>().ok());
        let (insertions, deletions) = (number(), number());
        let path = match columns.next() {
            Some(b"") => {
                let _from = fields.next();
                fields.next().unwrap_or_default()
            }
            Some(path) => path,
            None => continue,
        };
        diff.insertions = diff.insertions.saturating_add(insertions.unwrap_or(0));
        diff.deletions = diff.deletions.saturating_add(deletions.unwrap_or(0));
        if let Some(file) = places.get(path).and_then(|place| diff.files.get_mut(*place)) {
            (file.insertions, file.deletions) = (insertions, deletions);
        }
    }
    diff.total = diff.files.len();
    diff.files.truncate(MOST_FILES);
    diff
}

/// The parts of a patch, one a file. Within one, every line begins with a character of its own.
fn parts(patch: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> = memchr::memmem::find_iter(patch, b"\ndiff --").map(|at| at + 1).collect();
    starts.insert(0, 0);
    starts.push(patch.len());
    let parts = starts.windows(2).filter_map(|ends| match ends {
        [from, to] => patch.get(*from..*to),
        _ => None,
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// At most `most` bytes of a patch, and of each file its share; masked before it is cut.
fn cut(patch: &[u8], most: usize, whole: bool, mask: impl Fn(&[u8]) -> String) -> String {
    let parts = parts(patch);
    let share = if parts.len() == 1 { most } else { most / PART };
    let mut text = String::new();
    let mut left_out = 0;
    for part in &parts {
        let room = most.saturating_sub(text.len());
        // A beginning that is too short says nothing.
        if room < Ord::min(share, part.len()) {
            left_out += 1;
            continue;
        }
        let masked = mask(part);
        let (kept, all) = beginning(&masked, Ord::min(share, room));
        text.push_str(kept);
        if !all {
            let missing = masked.len() - kept.len();
            let _ = writeln!(
                text,
                "[... {missing} bytes of this file left out; git_diff shows more of one that is named alone in `paths` ...]"
            );
        }
    }
    if left_out > 0 || !whole {
        let _ = writeln!(
            text,
            "[... the patch of {} left out; git_diff with `paths` shows it ...]",
            if whole { plural(left_out, "file") } else { "the other files".to_owned() }
        );
    }
    text
}

impl Diff {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        if self.total == 0 {
            return "no differences".to_owned();
        }
        let mut text = format!("{}, +{} -{}", plural(self.total, "file"), self.insertions, self.deletions);
        for file in &self.files {
            let _ = write!(text, "\n{} {}", file.change, line(&file.path));
            if let Some(from) = &file.from {
                let _ = write!(text, " from {}", line(from));
            }
            match (file.insertions, file.deletions) {
                (Some(insertions), Some(deletions)) => {
                    let _ = write!(text, " +{insertions} -{deletions}");
                }
                _ if file.change != "unmerged" => text.push_str(" (binary)"),
                _ => {}
            }
        }
        if self.files.len() < self.total {
            let _ = write!(text, "\n[... {} left out ...]", plural(self.total - self.files.len(), "file"));
        }
        if !self.patch.is_empty() {
            let _ = write!(text, "\n\n{}", self.patch.trim_end());
        }
        text
    }
}

/// What git is told of every comparison: no program, one layout whatever the configuration says.
pub(super) const OPTIONS: [&str; 11] = [
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-indent-heuristic",
    "-O/dev/null",
];

/// A comparison, ready to be asked for its statistics and its patch.
pub(super) struct Comparison<'a> {
    pub(super) command: &'static str,
    pub(super) options: Vec<String>,
    pub(super) revisions: Vec<String>,
    pub(super) paths: &'a [String],
    pub(super) configured: Overrides,
}

impl Git {
    /// What differs: the files from the index, the index from HEAD, or either from a revision.
    ///
    /// # Errors
    /// There is no repository, no such revision, or git fails.
    pub async fn diff(&self, input: &GitDiff, cancel: &CancellationToken) -> Result<Diff, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let paths = input.paths.as_deref().unwrap_or_default();
        check_paths("paths", paths)?;
        let range = match &input.revision {
            Some(revision) => Some(self.range(&repository, revision, cancel).await?),
            None => None,
        };
        let staged = input.staged == Some(true);
        let (options, revisions) = match range {
            Some(Range::Two { .. }) if staged => {
                return Err(Error::Argument {
                    name: "staged",
                    reason: "a range compares two commits, and not what is staged".to_owned(),
                });
            }
            Some(Range::Two { from, to, symmetric }) => {
                (if symmetric { vec!["--merge-base".to_owned()] } else { Vec::new() }, vec![from, to])
            }
            Some(Range::One(commit)) => (Vec::new(), vec![commit]),
            None => (Vec::new(), Vec::new()),
        };
        if revisions.len() < 2 {
            repository.top("comparing files")?;
        }
        let configured = self.without_filters(&repository, cancel).await?;
        let options = options.into_iter().chain(staged.then(|| "--cached".to_owned())).collect();
        let comparison = Comparison { command: "diff", options, revisions, paths, configured };
        let patch = input.stat != Some(true);
        self.compare(&repository, &comparison, patch, cancel).await
    }

    /// The statistics of a comparison, and its patch if that is wanted.
    pub(super) async fn compare(
        &self,
        repository: &Repository,
        comparison: &Comparison<'_>,
        patch: bool,
        cancel: &CancellationToken,
    ) -> Result<Diff, Error> {
        let call = |formats: &[&str]| {
            Call::new(repository, Access::Reads, cancel, &[comparison.command])
                .args(OPTIONS)
                .args(formats)
                .args(&comparison.options)
                .configured(&comparison.configured)
                .arg("--end-of-options")
                .args(&comparison.revisions)
                .paths(comparison.paths)
        };
        let (listed, _) = self.ask("git_diff", call(&["--raw", "--numstat", "-z"])).await?;
        let mut diff = parse(&listed, &repository.prefix);
        if patch && diff.total > 0 {
            let most = if diff.total == 1 { ALONE_BYTES } else { DEFAULT_BYTES };
            // What is masked may be longer than what is left of it, and a share may be left unused.
            let call = call(&["--patch", "--unified=3"]).capture(most * 4 + 64 * 1024);
            let (patch, whole) = self.ask("git_diff", call).await?;
            diff.patch = cut(&patch, most, whole, |text| self.mask(text));
        }
        Ok(diff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_entry_is_understood() {
        let diff = parse(
            b":100644 100644 7898192 7898192 R100\0old\nname\0new name\0:000000 100644 0000000 1111111 A\0-rf\0\
            :100644 100644 1 2 M\0bin\0:000000 000000 0 0 U\0both\0:100644 100644 1 2 M\0both\0\
            0\t0\t\0old\nname\0new name\x003\t0\t-rf\0-\t-\tbin\x001\t2\tboth\0",
            b"",
        );
        assert_eq!(diff.total, 4);
        assert_eq!((diff.insertions, diff.deletions), (4, 2));
        assert_eq!(diff.files[0].from.as_deref(), Some("old\nname"));
        assert_eq!((diff.files[0].path.as_str(), diff.files[0].change), ("new name", "renamed"));
        assert_eq!((diff.files[1].insertions, diff.files[2].insertions), (Some(3), None));
        assert_eq!(diff.files[3].change, "unmerged");
        let text = diff.to_text();
        assert!(text.contains("renamed new name from old\\nname") && text.contains("bin (binary)"), "{text}");
    }

    #[test]
    fn a_patch_is_cut_by_file_and_in_all_and_says_so() {
        let file =
            |name: &str, lines: usize| format!("diff --git a/{name} b/{name}\n{}", "+x\n".repeat(lines));
        let patch = file("big", 3_000) + &file("small", 2) + &file("other", 3_000) + &file("last", 3_000);
        let text = cut(patch.as_bytes(), 4_000, true, lossy);
        assert!(text.len() < 4_500, "{}", text.len());
        assert!(text.contains("bytes of this file left out") && text.contains("b/small\n+x\n+x\n"), "{text}");
        let text = cut(patch.as_bytes(), 1_000, true, lossy);
        assert!(!text.contains("the patch of") || text.contains("left out; name files"), "{text}");
        let alone = cut(file("big", 300).as_bytes(), 1_000, true, lossy);
        assert_eq!(alone, file("big", 300));
    }

    #[test]
    fn a_secret_at_the_cut_is_masked_first() {
        let patch = format!("diff --git a/x b/x\n{}+SECRET\n", "+a\n".repeat(300));
        let at = patch.find("SECRET").unwrap() + 3;
        let text = cut(patch.as_bytes(), at, true, |text| lossy(text).replace("SECRET", "[redacted]"));
        assert!(!text.contains("SEC"), "{text}");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>, most in 0_usize..100, whole: bool) {
            parse(&listed, b"a/b").to_text();
            cut(&listed, most, whole, lossy);
        }

        #[test]
        fn no_entry_is_a_panic(listed in "(:|\0|\t|[0-9A-Z -]|\ndiff --)*") {
            parse(listed.as_bytes(), b"").to_text();
            cut(listed.as_bytes(), 10, true, lossy);
        }
    }
}
