//! `git_clean`: lists and removes files that git does not track.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, nul_fields, printable_line, relative_to};
use super::repository::Repository;
use super::revision::check_paths;
use crate::workspace::ConfinedPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// Untracked files to list or to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitClean {
    /// Only these files or folders. Default: everything below `repository_path`.
    #[schemars(length(min = 1), extend("alias" = "paths"))]
    pub files: Option<Vec<String>>,
    /// Lists the files and removes none. Default: true; false removes them, which cannot be undone.
    pub dry_run: Option<bool>,
    /// Takes files along that git ignores, such as build output and `.env`. Default: false.
    pub include_ignored: Option<bool>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

impl GitClean {
    /// An input that lists the untracked files.
    pub fn list() -> Self {
        Self::default()
    }

    /// An input that removes the untracked files.
    pub fn remove() -> Self {
        Self { dry_run: Some(false), ..Self::default() }
    }
}

/// The most files that one call removes.
const MAX_REMOVED: usize = 20_000;
/// The most files that an answer names.
const MAX_NAMED: usize = 300;
/// The most files that could not be removed and the most repositories that an answer names.
const MAX_LEFT: usize = 10;

/// The untracked files that were found, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CleanResult {
    /// True if nothing was removed.
    pub dry_run: bool,
    /// The first of the files, relative to `repository_path`.
    pub files: Vec<String>,
    /// The number of all of them.
    pub total: usize,
    /// Their size together, in bytes.
    pub bytes: u64,
    /// The first repositories within this one. They are left as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// The first files that are protected. They are left as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
    /// The first files that could not be removed, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The number of all of those.
    #[serde(skip_serializing_if = "is_zero")]
    pub total_failed: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl CleanResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let files = count_of(self.total, "untracked file", "untracked files");
        let size = count_of(usize::try_from(self.bytes).unwrap_or(usize::MAX), "byte", "bytes");
        let mut text = match (self.total, self.dry_run) {
            (0, _) => "there are no untracked files to remove".to_owned(),
            (_, true) => {
                format!("dry run: {files} of {size} would be removed, with `dry_run` false; nothing was")
            }
            (_, false) => format!("removed {files} of {size}"),
        };
        for file in &self.files {
            let _ = write!(text, "\n{}", printable_line(file));
        }
        if self.total > self.files.len() {
            let _ = write!(text, "\n[{} more]", self.total - self.files.len());
        }
        if self.total_failed > 0 {
            let _ = write!(text, "\nnot removed ({}):", self.total_failed);
            for failure in &self.failed {
                let _ = write!(text, "\n{}", printable_line(failure));
            }
        }
        for (what, names) in
            [("repositories of their own", &self.repositories), ("protected files", &self.protected)]
        {
            if !names.is_empty() {
                let names: Vec<_> = names.iter().map(|name| printable_line(name)).collect();
                let _ = write!(text, "\nleft, as they are {what}: {}", names.join(", "));
            }
        }
        text
    }

    /// Returns true if a file could not be removed.
    pub fn is_incomplete(&self) -> bool {
        self.total_failed > 0
    }
}

impl Git {
    /// Lists the untracked files, or removes them and the folders that this empties. Ignored files, other repositories and
    /// protected files stay.
    ///
    /// # Errors
    /// The repository may not be changed, there are too many files, or git fails: nothing was removed then. A
    /// cancelled call may have removed some of the files.
    pub async fn clean(&self, input: &GitClean, cancel: &CancellationToken) -> Result<CleanResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let top = repository.top_level("git_clean")?;
        let files = input.files.as_deref().unwrap_or_default();
        check_paths("files", files)?;
        let listed = self.untracked(&repository, input, files, cancel).await?;
        // A folder in this list is another repository: git does not look into it.
        let (nested, paths): (Vec<_>, Vec<_>) =
            nul_fields(&listed.bytes).partition(|path| path.ends_with(b"/"));
        let name = |path: &[u8]| relative_to(&repository.prefix, path);
        let mut result = CleanResult {
            dry_run: input.dry_run != Some(false),
            repositories: nested.into_iter().take(MAX_LEFT).map(name).collect(),
            ..CleanResult::default()
        };
        // A dry run fails as well: a list that is cut off would not say what a removal removes.
        if !listed.is_complete || paths.len() > MAX_REMOVED {
            let reason =
                format!("there are more than {MAX_REMOVED} untracked files; name folders in `files`");
            return Err(Error::TooLarge(reason));
        }
        let (mut found, mut protected) = (Vec::new(), Vec::new());
        // All files are judged before the first one is removed, so that an error here removes nothing.
        for path in paths {
            let file = repository.locate(top, path)?;
            if file.check_changeable().is_err() {
                protected.push(name(path));
                continue;
            }
            let size = file.link_metadata().map_or(0, |metadata| metadata.size);
            found.push(UntrackedFile { name: name(path), file, size });
        }
        result.protected = protected.into_iter().take(MAX_LEFT).collect();
        if !result.dry_run {
            // Listing needs no right to change the repository.
            repository.check_writable()?;
            let failed;
            (found, failed) = remove_all(found, top, cancel)?;
            result.total_failed = failed.len();
            result.failed = failed.into_iter().take(MAX_LEFT).collect();
        }
        result.total = found.len();
        result.bytes = found.iter().map(|found| found.size).fold(0, u64::saturating_add);
        result.files = found.into_iter().take(MAX_NAMED).map(|found| found.name).collect();
        Ok(result)
    }

    /// Lists the untracked files, also those in untracked folders, relative to the top folder.
    async fn untracked(
        &self,
        repository: &Repository,
        input: &GitClean,
        files: &[String],
        cancel: &CancellationToken,
    ) -> Result<GitOutput, Error> {
        // git only lists the files. They are removed through handles beneath the root, and protected files are left out
        // first.
        let words = ["ls-files", "--others", "-z", "--full-name"];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words)
            .args((input.include_ignored != Some(true)).then_some("--exclude-standard"));
        let invocation = if files.is_empty() { invocation } else { invocation.paths(files) };
        self.run_checked("git_clean", invocation).await
    }
}

/// An untracked file.
struct UntrackedFile {
    /// Its path, relative to the folder that the call names.
    name: String,
    file: ConfinedPath,
    size: u64,
}

/// Removes files, and the folders below `top` that this empties. Returns the files that are gone, and for each of the others
/// its name with the reason.
fn remove_all(
    files: Vec<UntrackedFile>,
    top: &ConfinedPath,
    cancel: &CancellationToken,
) -> Result<(Vec<UntrackedFile>, Vec<String>), Error> {
    let (mut removed, mut failed) = (Vec::new(), Vec::new());
    for untracked in files {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        match untracked.file.remove_file() {
            Ok(()) => {
                remove_empty_folders(&untracked.file, top);
                removed.push(untracked);
            }
            Err(error) => failed.push(format!("{}: {error}", untracked.name)),
        }
    }
    Ok((removed, failed))
}

/// Removes the folders around a file that are empty now, up to the top folder.
fn remove_empty_folders(file: &ConfinedPath, top: &ConfinedPath) {
    let mut folder = file.parent();
    while let Some(current) = folder.filter(|folder| folder.relative() != top.relative()) {
        if !current.remove_empty_folder() {
            break;
        }
        folder = current.parent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_what_was_removed_and_what_was_not() {
        let result = CleanResult {
            files: vec!["a".to_owned(), "b".to_owned()],
            total: 3,
            bytes: 7,
            repositories: vec!["nested/".to_owned()],
            failed: vec!["c: why".to_owned()],
            total_failed: 1,
            ..CleanResult::default()
        };
        let expected = "removed 3 untracked files of 7 bytes\na\nb\n[1 more]\nnot removed (1):\nc: why\nleft, as they are repositories of their own: nested/";
        assert_eq!(result.to_text(), expected);
        assert!(result.is_incomplete());
        let dry = CleanResult { dry_run: true, total_failed: 0, ..result };
        assert!(dry.to_text().starts_with("dry run: 3 untracked files of 7 bytes would be removed"));
        assert_eq!(CleanResult::default().to_text(), "there are no untracked files to remove");
    }
}
