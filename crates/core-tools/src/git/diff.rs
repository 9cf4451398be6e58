//! `git_diff`: compares files, the index and commits. Statistics come first, then as much of the patch as fits.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::change_kind::GitChangeKind;
use super::error::Error;
use super::git_process::Git;
use super::invocation::{ConfigOverrides, GitAccess, GitInvocation};
use super::printed_text::{count_of, lossy, nul_fields, printable_line, relative_to, truncate_to_lines};
use super::repository::Repository;
use super::revision::{RevisionRange, check_paths};
use crate::redact::{KEY_CONTEXT_LINES, KeyLines, may_be_key_line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// A comparison to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitDiff {
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
    /// Compares what is staged with the last commit, or with `revision`: what a commit would contain. Default: false.
    pub staged: Option<bool>,
    /// The commit, branch or tag to compare the files with, such as `HEAD`; `A..B` compares two, and `A...B` shows what B
    /// has changed since it left A, as a pull request does (`main...HEAD`).
    pub revision: Option<String>,
    /// Only these files or folders. One file alone is shown up to 200,000 bytes.
    #[schemars(extend("alias" = "files"))]
    pub paths: Option<Vec<String>>,
    /// Lists the files with their counts of lines, without the patch. Default: false.
    pub stat: Option<bool>,
}

/// The most bytes of a patch of several files.
pub(super) const MAX_PATCH_BYTES: usize = 30_000;
/// The most bytes of a patch of one file: its caller asked for that file alone.
const MAX_SINGLE_FILE_PATCH_BYTES: usize = 200_000;
/// The divisor that gives one file's largest share of a patch of several, so that a generated file does not take
/// the place of all others.
const SHARE_DIVISOR: usize = 4;
/// The most files whose statistics are listed.
const MAX_FILES: usize = 500;

/// The differences between two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct DiffResult {
    /// Files that differ, the first 500.
    pub files: Vec<FileDiff>,
    /// The number of files that differ, listed or not.
    pub total: usize,
    /// The number of lines added, in all files.
    pub insertions: u64,
    /// The number of lines removed, in all files.
    pub deletions: u64,
    /// The patch, as far as it fits. Remarks in it say what is left out.
    pub patch: String,
    /// True if files are compared and there are submodules: the changes of files inside them were not looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_submodules: bool,
}

/// The difference of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FileDiff {
    /// The path, relative to the folder that was named.
    pub path: String,
    /// The old path, if it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `added`, `modified`, `deleted`, `renamed`, `copied`, `type changed` or `unmerged`.
    #[schemars(with = "String")]
    pub change: GitChangeKind,
    /// The number of lines added. Absent for binary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// The number of lines removed. Absent for binary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
}

/// Parses `--raw --numstat -z` (git-diff(1), "Raw output format", "Other diff formats"): entries of the first begin with
/// a colon, those of the second with a number.
pub(super) fn parse(listed: &[u8], prefix: &[u8]) -> DiffResult {
    let mut diff = DiffResult::default();
    let mut indexes: HashMap<&[u8], usize> = HashMap::new();
    let mut fields = nul_fields(listed);
    while let Some(entry) = fields.next() {
        if let Some(raw) = entry.strip_prefix(b":") {
            let letter = raw.split(|byte| *byte == b' ').nth(4).and_then(<[u8]>::first).copied();
            let letter = letter.unwrap_or_default();
            let Some(first) = fields.next() else { break };
            let has_old_path = matches!(letter, b'R' | b'C');
            let (from, path) =
                if has_old_path { (Some(first), fields.next().unwrap_or_default()) } else { (None, first) };
            // A file in conflict has two entries.
            if let Some(file) = indexes.get(path).and_then(|index| diff.files.get_mut(*index)) {
                file.change = GitChangeKind::Unmerged;
                continue;
            }
            indexes.insert(path, diff.files.len());
            diff.files.push(FileDiff {
                path: relative_to(prefix, path),
                from: from.map(|from| relative_to(prefix, from)),
                change: GitChangeKind::from_letter(letter).unwrap_or(GitChangeKind::Modified),
                insertions: None,
                deletions: None,
            });
            continue;
        }
        let mut columns = entry.splitn(3, |byte| *byte == b'\t');
        let mut number = || columns.next().and_then(|column| lossy(column).parse::<u64>().ok());
        let (insertions, deletions) = (number(), number());
        let path = match columns.next() {
            // With `-z` a renamed file has both paths in fields of their own.
            Some(b"") => {
                let _from = fields.next();
                fields.next().unwrap_or_default()
            }
            Some(path) => path,
            None => continue,
        };
        diff.insertions = diff.insertions.saturating_add(insertions.unwrap_or(0));
        diff.deletions = diff.deletions.saturating_add(deletions.unwrap_or(0));
        if let Some(file) = indexes.get(path).and_then(|index| diff.files.get_mut(*index)) {
            (file.insertions, file.deletions) = (insertions, deletions);
        }
    }
    diff.total = diff.files.len();
    diff.files.truncate(MAX_FILES);
    diff
}

/// The most bytes of a patch that are read for what stands around lines of private keys.
const MAX_KEY_CONTEXT_BYTES: usize = 16 << 20;

/// Returns a line of a patch without the sign before it.
fn changed_line(line: &str) -> &str {
    line.strip_prefix(['+', '-', ' ']).unwrap_or(line)
}

/// Masks the lines of private keys in a patch, behind the signs of its lines.
fn mask_changed_lines(patch: &str, keys: &KeyLines) -> String {
    if keys.is_empty() {
        return patch.to_owned();
    }
    let lines = patch.split_inclusive('\n').flat_map(|line| {
        let content = changed_line(line);
        [line[..line.len() - content.len()].to_owned(), keys.mask(content)]
    });
    lines.collect()
}

/// Splits a patch into the parts of its files. Within a part every line has a prefix, so none begins with `diff`.
fn split_by_file(patch: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> = memchr::memmem::find_iter(patch, b"\ndiff --").map(|at| at + 1).collect();
    starts.insert(0, 0);
    starts.push(patch.len());
    let parts = starts.windows(2).filter_map(|ends| match ends {
        [from, to] => patch.get(*from..*to),
        _ => None,
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns at most `max_bytes` of a patch, and of each file its share. It is masked before it is cut: half a secret is not
/// recognized. `is_complete` is false if the patch was cut already.
fn shorten_patch(
    patch: &[u8],
    max_bytes: usize,
    is_complete: bool,
    mask: impl Fn(&[u8]) -> String,
) -> String {
    let parts = split_by_file(patch);
    let share = if parts.len() == 1 { max_bytes } else { max_bytes / SHARE_DIVISOR };
    let mut text = String::new();
    let mut omitted_files = 0;
    for part in &parts {
        let free_bytes = max_bytes.saturating_sub(text.len());
        // A file that would get less than its share is left out: a few lines of a patch are of no use.
        if free_bytes < Ord::min(share, part.len()) {
            omitted_files += 1;
            continue;
        }
        let masked = mask(part);
        let kept = truncate_to_lines(&masked, Ord::min(share, free_bytes));
        text.push_str(kept);
        let missing = masked.len() - kept.len();
        if missing > 0 {
            let _ = writeln!(
                text,
                "[... {missing} bytes of this file left out; git_diff shows more of one that is named alone in `paths` ...]"
            );
        }
    }
    if omitted_files > 0 || !is_complete {
        let _ = writeln!(
            text,
            "[... the patch of {} left out; git_diff with `paths` shows it ...]",
            if is_complete { count_of(omitted_files, "file", "files") } else { "the other files".to_owned() }
        );
    }
    text
}

impl FileDiff {
    /// Returns the change in one line: `modified src/main.rs +1 -2`.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{} {}", self.change, printable_line(&self.path));
        if let Some(from) = &self.from {
            let _ = write!(text, " from {}", printable_line(from));
        }
        match (self.insertions, self.deletions) {
            (Some(insertions), Some(deletions)) => {
                let _ = write!(text, " +{insertions} -{deletions}");
            }
            _ if self.change != GitChangeKind::Unmerged => text.push_str(" (binary)"),
            _ => {}
        }
        text
    }
}

impl DiffResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        if self.total == 0 {
            let submodules = "; changes inside submodules were not looked at";
            return format!("no differences{}", if self.has_submodules { submodules } else { "" });
        }
        let mut text =
            format!("{}, +{} -{}", count_of(self.total, "file", "files"), self.insertions, self.deletions);
        for file in &self.files {
            text.push('\n');
            text.push_str(&file.to_text());
        }
        if self.files.len() < self.total {
            let _ = write!(
                text,
                "\n[... {} left out ...]",
                count_of(self.total - self.files.len(), "file", "files")
            );
        }
        if !self.patch.is_empty() {
            let _ = write!(text, "\n\n{}", self.patch.trim_end());
        }
        text
    }
}

/// The options of every comparison: no program is run, and output has one form whatever the configuration says.
const OPTIONS: [&str; 11] = [
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    // To see changed files inside a submodule, git would run in it, with its configuration.
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-indent-heuristic",
    // Overrides `diff.orderFile`, which would change the order of the files.
    "-O/dev/null",
];

/// A comparison whose arguments are checked.
pub(super) struct DiffRequest<'a> {
    /// `diff` or `show`.
    pub(super) command: &'static str,
    pub(super) options: Vec<String>,
    pub(super) revisions: Vec<String>,
    pub(super) paths: &'a [String],
    pub(super) overrides: ConfigOverrides,
}

impl Git {
    /// Compares the files with the index, the index with HEAD, or either with a revision.
    ///
    /// # Errors
    /// There is no repository, no such revision, or git fails.
    pub async fn diff(&self, input: &GitDiff, cancel: &CancellationToken) -> Result<DiffResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let paths = input.paths.as_deref().unwrap_or_default();
        check_paths("paths", paths)?;
        let range = match &input.revision {
            Some(revision) => Some(self.resolve_range(&repository, revision, cancel).await?),
            None => None,
        };
        let staged = input.staged == Some(true);
        let (options, revisions) = match range {
            Some(RevisionRange::Between { .. } | RevisionRange::Only { .. }) if staged => {
                return Err(Error::InvalidArgument {
                    name: "staged",
                    reason: "a range compares two commits, and not what is staged".to_owned(),
                });
            }
            Some(RevisionRange::Between { from, to, symmetric }) => {
                (if symmetric { vec!["--merge-base".to_owned()] } else { Vec::new() }, vec![from, to])
            }
            Some(RevisionRange::Only { commit, parents }) => match parents.into_iter().next() {
                Some(parent) => (Vec::new(), vec![parent, commit]),
                None => {
                    return Err(Error::InvalidArgument {
                        name: "revision",
                        reason: "the commit has no parent to compare it with; git_show shows it".to_owned(),
                    });
                }
            },
            Some(RevisionRange::Single(commit)) => (Vec::new(), vec![commit]),
            None => (Vec::new(), Vec::new()),
        };
        let has_submodules = revisions.len() < 2 && !staged && repository.names_submodules()?;
        // With two commits no file of the work tree is compared, so a bare repository will do.
        if revisions.len() < 2 {
            repository.top_level("comparing files")?;
        }
        let overrides = self.filter_overrides(&repository, cancel).await?;
        let options = options.into_iter().chain(staged.then(|| "--cached".to_owned())).collect();
        let request = DiffRequest { command: "diff", options, revisions, paths, overrides };
        let with_patch = input.stat != Some(true);
        let diff = self.compare(&repository, &request, with_patch, cancel).await?;
        self.check_paths_exist(&repository, &request, &diff, cancel).await?;
        Ok(DiffResult { has_submodules, ..diff })
    }

    /// Refuses a path that is nowhere: no differences there would read as if it had not changed.
    async fn check_paths_exist(
        &self,
        repository: &Repository,
        request: &DiffRequest<'_>,
        diff: &DiffResult,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        for path in request.paths {
            let prefix = format!("{}/", path.trim_end_matches('/'));
            let is_listed = |listed: &str| listed == path || listed.starts_with(&prefix);
            let is_in_work_tree = || {
                let located = match Path::new(path).is_absolute() {
                    true => repository.workspace.locate(path),
                    false => repository.folder.join(path),
                };
                located.is_ok_and(|path| path.link_metadata().is_ok())
            };
            if diff
                .files
                .iter()
                .any(|file| is_listed(&file.path) || file.from.as_deref().is_some_and(is_listed))
                || is_in_work_tree()
            {
                continue;
            }
            let only = std::slice::from_ref(path);
            let listed = |command: &[&str]| {
                GitInvocation::new(repository, GitAccess::Read, cancel, command).max_output_bytes(4096)
            };
            let mut places = Vec::new();
            if repository.top_level.is_some() {
                places.push(listed(&["ls-files", "-z"]));
            }
            let head = self.head_commit(repository, cancel).await?;
            for commit in request.revisions.iter().chain(&head) {
                places.push(listed(&["ls-tree", "-r", "--name-only", "-z", commit]));
            }
            let mut is_known = false;
            for place in places {
                is_known |= !self.run_checked("git_diff", place.paths(only)).await?.bytes.is_empty();
            }
            if !is_known {
                let reason = format!(
                    "there is no `{}` in the work tree, in the index or in the commits that are compared; paths are \
                     relative to `repository_path`",
                    printable_line(path)
                );
                return Err(Error::InvalidArgument { name: "paths", reason });
            }
        }
        Ok(())
    }

    /// Returns the lines of the private keys in a patch, file by file: old and new lines of one key stand between its BEGIN
    /// and its END.
    fn key_lines(&self, patch: &[u8]) -> KeyLines {
        let mut keys = KeyLines::default();
        for file in split_by_file(patch) {
            let text: String = lossy(file).lines().flat_map(|line| [changed_line(line), "\n"]).collect();
            keys.extend(self.commands.redactor.key_lines(&text));
        }
        keys
    }

    /// Returns the statistics of a comparison, and its patch if that is wanted.
    pub(super) async fn compare(
        &self,
        repository: &Repository,
        request: &DiffRequest<'_>,
        with_patch: bool,
        cancel: &CancellationToken,
    ) -> Result<DiffResult, Error> {
        let invocation = |formats: &[&str]| {
            GitInvocation::new(repository, GitAccess::Read, cancel, &[request.command])
                .args(OPTIONS)
                .args(formats)
                .args(&request.options)
                .config(&request.overrides)
                .arg("--end-of-options")
                .args(&request.revisions)
                .paths(request.paths)
        };
        let listed = self.run_checked("git_diff", invocation(&["--raw", "--numstat", "-z"])).await?.bytes;
        let mut diff = parse(&listed, &repository.prefix);
        // In a second run: how much of the patch is read depends on the number of files.
        if with_patch && diff.total > 0 {
            let max_bytes = if diff.total == 1 { MAX_SINGLE_FILE_PATCH_BYTES } else { MAX_PATCH_BYTES };
            // More is read than is shown: masking makes text shorter, and files may leave a part of their share.
            let narrow = invocation(&["--patch", "--unified=3"]).max_output_bytes(max_bytes * 4 + 64 * 1024);
            let patch = self.run_checked("git_diff", narrow).await?;
            // A line of a private key is one by what stands around it, which a hunk need not have.
            let has_key_lines = lossy(&patch.bytes).lines().any(|line| may_be_key_line(changed_line(line)));
            let keys = match has_key_lines {
                true => {
                    let context = format!("--unified={KEY_CONTEXT_LINES}");
                    let wide = invocation(&["--patch", &context]).max_output_bytes(MAX_KEY_CONTEXT_BYTES);
                    let wide = self.run_checked("git_diff", wide).await?;
                    let mut keys = self.key_lines(&wide.bytes);
                    if !wide.is_complete {
                        // What stands around the lines beyond the cut is not known.
                        let text = lossy(&patch.bytes);
                        keys.extend(KeyLines::of_lines(text.lines().map(changed_line)));
                    }
                    keys
                }
                false => KeyLines::default(),
            };
            diff.patch = shorten_patch(&patch.bytes, max_bytes, patch.is_complete, |text| {
                mask_changed_lines(&self.mask(text), &keys)
            });
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
        assert_eq!((diff.files[0].path.as_str(), diff.files[0].change), ("new name", GitChangeKind::Renamed));
        assert_eq!((diff.files[1].insertions, diff.files[2].insertions), (Some(3), None));
        assert_eq!(diff.files[3].change, GitChangeKind::Unmerged);
        let text = diff.to_text();
        assert!(text.contains("renamed new name from old\\nname") && text.contains("bin (binary)"), "{text}");
    }

    #[test]
    fn a_patch_is_cut_by_file_and_in_all_and_says_so() {
        let file =
            |name: &str, lines: usize| format!("diff --git a/{name} b/{name}\n{}", "+x\n".repeat(lines));
        let patch = file("big", 3_000) + &file("small", 2) + &file("other", 3_000) + &file("last", 3_000);
        let text = shorten_patch(patch.as_bytes(), 4_000, true, lossy);
        assert!(text.len() < 4_500, "{}", text.len());
        assert!(text.contains("bytes of this file left out") && text.contains("b/small\n+x\n+x\n"), "{text}");
        let text = shorten_patch(patch.as_bytes(), 1_000, true, lossy);
        assert!(!text.contains("the patch of") || text.contains("left out; name files"), "{text}");
        let alone = shorten_patch(file("big", 300).as_bytes(), 1_000, true, lossy);
        assert_eq!(alone, file("big", 300));
    }

    #[test]
    fn a_secret_at_the_cut_is_masked_first() {
        let patch = format!("diff --git a/x b/x\n{}+SECRET\n", "+a\n".repeat(300));
        let at = patch.find("SECRET").unwrap() + 3;
        let text =
            shorten_patch(patch.as_bytes(), at, true, |text| lossy(text).replace("SECRET", "[redacted]"));
        assert!(!text.contains("SEC"), "{text}");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>, max_bytes in 0_usize..100, is_complete: bool) {
            parse(&listed, b"a/b").to_text();
            shorten_patch(&listed, max_bytes, is_complete, lossy);
        }

        #[test]
        fn no_entry_is_a_panic(listed in "(:|\0|\t|[0-9A-Z -]|\ndiff --)*") {
            parse(listed.as_bytes(), b"").to_text();
            shorten_patch(listed.as_bytes(), 10, true, lossy);
        }
    }
}
