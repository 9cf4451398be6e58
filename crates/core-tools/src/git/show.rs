//! One commit, or a file or folder as it was in one.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::diff::{Comparison, DEFAULT_BYTES, Diff};
use super::error::Error;
use super::log::CommitEntry;
use super::run::{Access, Call, Git};
use super::text::{beginning, fields, line, lossy, plural};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// What to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitShow {
    /// Commit or COMMIT:path
    pub revision: Option<String>,
    /// Folder
    pub repository_path: Option<String>,
    /// Default 30000
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub max_bytes: Option<usize>,
}

/// What was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Shown {
    /// A commit, and how it differs from its first parent.
    Commit(Box<CommitEntry>, Diff),
    /// The beginning of a file as it was, and its length in bytes.
    File(String, usize),
    /// The names in a folder as it was; folders end in `/`.
    Folder(Vec<String>),
}

impl Shown {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        match self {
            Self::Commit(commit, diff) => format!("{}\n\n{}", commit.to_text(), diff.to_text()),
            Self::File(text, size) => {
                let mut text = text.clone();
                if text.len() < *size {
                    let _ = write!(text, "\n[... of {size} bytes; max_bytes shows more ...]");
                }
                text
            }
            Self::Folder(names) => {
                let lines: Vec<_> = names.iter().map(|name| line(name)).collect();
                format!("{}\n{}", plural(names.len(), "entry").replace("entrys", "entries"), lines.join("\n"))
            }
        }
    }
}

/// `ls-tree -z`.
fn parse_tree(listed: &[u8]) -> Vec<String> {
    let entry = |entry: &[u8]| {
        let (facts, name) = entry.split_at(entry.iter().position(|byte| *byte == b'\t')?);
        let folder = facts.split(|byte| *byte == b' ').nth(1) == Some(b"tree");
        Some(lossy(name.get(1..)?) + if folder { "/" } else { "" })
    };
    fields(listed).filter_map(entry).collect()
}

impl Git {
    /// A commit with its patch, or a file or folder as it was in one.
    ///
    /// # Errors
    /// There is no repository, nothing is called so, or git fails.
    pub async fn show(&self, input: &GitShow, cancel: &CancellationToken) -> Result<Shown, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let revision = input.revision.as_deref().unwrap_or("HEAD");
        let object = self.object(&repository, revision, "", cancel).await?;
        let call = |words: &[&str]| Call::new(&repository, Access::Reads, cancel, words);
        let (kind, _) = self.ask("git_show", call(&["cat-file", "-t", &object])).await?;
        let most = input.max_bytes.unwrap_or(DEFAULT_BYTES);
        match kind.trim_ascii() {
            b"blob" => {
                let (size, _) = self.ask("git_show", call(&["cat-file", "-s", &object])).await?;
                let size = lossy(size.trim_ascii()).parse().map_err(|_| Error::Answer("git cat-file"))?;
                // Enough to mask what the cut goes through.
                let content = call(&["cat-file", "blob", &object]).capture(most + 64 * 1024);
                let (content, whole) = self.ask("git_show", content).await?;
                if content.contains(&0) {
                    return Ok(Shown::File(format!("[no text: {size} bytes]"), 0));
                }
                let text = self.mask(&content);
                let (kept, all) = beginning(&text, most);
                Ok(Shown::File(kept.to_owned(), if all && whole { 0 } else { size }))
            }
            b"tree" => {
                let (listed, _) =
                    self.ask("git_show", call(&["ls-tree", "-z", "--full-tree", &object])).await?;
                Ok(Shown::Folder(parse_tree(&listed)))
            }
            _ => {
                let commit = self.commit_of(&repository, &object, cancel).await?;
                let found = self.commits(&repository, &commit, 1, &[], cancel).await?;
                let entry = found.into_iter().next().ok_or(Error::Answer("git log"))?;
                let comparison = Comparison {
                    command: "show",
                    options: ["--format=", "--no-show-signature", "--diff-merges=first-parent"]
                        .map(str::to_owned)
                        .to_vec(),
                    revisions: vec![commit],
                    paths: &[],
                    configured: Vec::new(),
                };
                let diff = self.compare(&repository, &comparison, true, cancel).await?;
                Ok(Shown::Commit(Box::new(entry), diff))
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
