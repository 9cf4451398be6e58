//! `git_show`: shows a commit, or a file or folder as it was in one.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::diff::{DiffRequest, DiffResult, MAX_PATCH_BYTES};
use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::log::CommitEntry;
use super::printed_text::{count_of, lossy, nul_fields, printable_line, truncate_to_lines};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// An object to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitShow {
    /// A commit, branch or tag, or `COMMIT:path` for a file or folder as it was, such as `HEAD~3:src/main.rs` (a path from
    /// the top of the repository). Default: `HEAD`.
    pub revision: Option<String>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    #[schemars(extend("unlisted" = true))]
    pub repository_path: Option<String>,
    /// The most bytes of a file to show. Default: 30,000.
    #[schemars(range(min = 1_000, max = 1_000_000), extend("unlisted" = true))]
    pub max_bytes: Option<usize>,
}

/// The object that a revision names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ShowResult {
    /// A commit, and its differences from its first parent.
    Commit(Box<CommitEntry>, DiffResult),
    /// A file as it was.
    File {
        /// The content, or as much of it as fits.
        text: String,
        /// The length of the whole file in bytes, if `text` is only its beginning.
        truncated_from: Option<usize>,
    },
    /// The names in a folder as it was; folders end in `/`.
    Folder(Vec<String>),
}

impl ShowResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        match self {
            Self::Commit(commit, diff) => format!("{}\n\n{}", commit.to_text(), diff.to_text()),
            Self::File { text, truncated_from: None } => text.clone(),
            Self::File { text, truncated_from: Some(size) } => {
                format!("{text}\n[... of {size} bytes; max_bytes shows more ...]")
            }
            Self::Folder(names) => {
                let lines: Vec<_> = names.iter().map(|name| printable_line(name)).collect();
                format!("{}\n{}", count_of(names.len(), "entry", "entries"), lines.join("\n"))
            }
        }
    }
}

/// Bytes read past what is shown: longer than any secret that is recognized.
const MASK_MARGIN_BYTES: usize = 64 * 1024;

/// Parses `ls-tree -z`.
fn parse_tree(listed: &[u8]) -> Vec<String> {
    let entry = |entry: &[u8]| {
        let (attributes, name) = entry.split_at(entry.iter().position(|byte| *byte == b'\t')?);
        let is_folder = attributes.split(|byte| *byte == b' ').nth(1) == Some(b"tree");
        Some(lossy(name.get(1..)?) + if is_folder { "/" } else { "" })
    };
    nul_fields(listed).filter_map(entry).collect()
}

impl Git {
    /// Returns a commit with its patch, or a file or folder as it was in one.
    ///
    /// # Errors
    /// There is no repository, no such object, or git fails.
    pub async fn show(&self, input: &GitShow, cancel: &CancellationToken) -> Result<ShowResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let revision = input.revision.as_deref().unwrap_or("HEAD");
        let object = self.resolve_object(&repository, revision, "", cancel).await?;
        let invocation = |words: &[&str]| GitInvocation::new(&repository, GitAccess::Read, cancel, words);
        let kind = self.run_checked("git_show", invocation(&["cat-file", "-t", &object])).await?.bytes;
        let max_bytes = input.max_bytes.unwrap_or(MAX_PATCH_BYTES);
        match kind.trim_ascii() {
            b"blob" => {
                let size =
                    self.run_checked("git_show", invocation(&["cat-file", "-s", &object])).await?.bytes;
                let size =
                    lossy(size.trim_ascii()).parse().map_err(|_| Error::UnexpectedOutput("git cat-file"))?;
                // More than is shown, so that a secret at the cut is masked as a whole.
                let content = invocation(&["cat-file", "blob", &object])
                    .max_output_bytes(max_bytes + MASK_MARGIN_BYTES);
                let content = self.run_checked("git_show", content).await?;
                if content.bytes.contains(&0) {
                    let text = format!("[no text: {size} bytes]");
                    return Ok(ShowResult::File { text, truncated_from: None });
                }
                let text = self.mask(&content.bytes);
                let kept = truncate_to_lines(&text, max_bytes);
                let is_whole = content.is_complete && kept.len() == text.len();
                // Masking may make a beginning longer than the file: then there is nothing to announce.
                let truncated_from = (!is_whole && kept.len() < size).then_some(size);
                Ok(ShowResult::File { text: kept.to_owned(), truncated_from })
            }
            b"tree" => {
                let listed = self
                    .run_checked("git_show", invocation(&["ls-tree", "-z", "--full-tree", &object]))
                    .await?
                    .bytes;
                Ok(ShowResult::Folder(parse_tree(&listed)))
            }
            _ => {
                let commit = self.resolve_commit(&repository, &object, cancel).await?;
                let found = self.commits(&repository, std::slice::from_ref(&commit), 1, &[], cancel).await?;
                let entry = found.into_iter().next().ok_or(Error::UnexpectedOutput("git log"))?;
                let request = DiffRequest {
                    command: "show",
                    options: ["--format=", "--no-show-signature", "--diff-merges=first-parent"]
                        .map(str::to_owned)
                        .to_vec(),
                    revisions: vec![commit],
                    paths: &[],
                    overrides: Vec::new(),
                };
                let diff = self.compare(&repository, &request, true, cancel).await?;
                Ok(ShowResult::Commit(Box::new(entry), diff))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_in_a_tree_may_hold_anything() {
        let listed = b"100644 blob 1\ta\tb\n\x00040000 tree 2\tsub\x00160000 commit 3\tmodule\0";
        assert_eq!(parse_tree(listed), ["a\tb\n", "sub/", "module"]);
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            parse_tree(&listed);
        }
    }
}
