//! Runs a search over a folder or one file.

use tokio_util::sync::CancellationToken;

use super::collector::MatchCollector;
use super::query::SearchQuery;
use super::request::{SearchFiles, SearchResult};
use super::worker::SearchWorker;
use crate::filesystem::error::Error;
use crate::filesystem::walk::{WalkFilter, WalkOutcome, walk};
use crate::redact::Redactor;
use crate::workspace::{ConfinedPath, PathKind, Workspace};

/// Searches files line by line, or across lines if the pattern asks for it, and shows the first matches in the order of path and line.
///
/// Binary files (with a NUL) are left out, and so is what `.gitignore` names; links are not followed, `.git` is
/// never entered. UTF-16 with a byte order mark is read as text. Everything is counted, whatever is shown; and
/// the answer is the same whatever order the threads worked in.
///
/// # Errors
/// The path, the pattern, a glob, numbers out of range, cancellation.
pub fn search_files(
    workspace: &Workspace,
    input: &SearchFiles,
    cancel: &CancellationToken,
) -> Result<SearchResult, Error> {
    search(workspace, input, None, cancel)
}

/// Searches files as [`search_files`] does, for a caller that sees them as `redactor` masks them: a line of a private key is
/// masked although the match has none of the lines around it.
///
/// # Errors
/// As [`search_files`].
pub fn search_files_with_secrets(
    workspace: &Workspace,
    input: &SearchFiles,
    redactor: &Redactor,
    cancel: &CancellationToken,
) -> Result<SearchResult, Error> {
    search(workspace, input, Some(redactor), cancel)
}

fn search(
    workspace: &Workspace,
    input: &SearchFiles,
    redactor: Option<&Redactor>,
    cancel: &CancellationToken,
) -> Result<SearchResult, Error> {
    let start = workspace.locate(&input.path)?;
    let query = SearchQuery::new(input, cancel)?;
    let (mut matches, unreadable_folders) = run(&start, input, &query)?;
    if let Some(redactor) = redactor {
        matches.mask_key_lines(&start, redactor);
    }
    Ok(matches.into_result(&start, input, query.max_results, unreadable_folders))
}

/// Returns the paths of the files that match, in their order, and the number of all of them, which may be larger.
///
/// # Errors
/// As [`search_files`].
pub(in crate::filesystem) fn files_with_matches(
    workspace: &Workspace,
    input: &SearchFiles,
    cancel: &CancellationToken,
) -> Result<(Vec<String>, u64), Error> {
    let start = workspace.locate(&input.path)?;
    let query = SearchQuery::new(input, cancel)?;
    let (matches, _) = run(&start, input, &query)?;
    Ok(matches.into_paths(&start))
}

fn run(
    start: &ConfinedPath,
    input: &SearchFiles,
    query: &SearchQuery<'_>,
) -> Result<(MatchCollector, u64), Error> {
    let cancel = query.cancel;
    let (matches, unreadable_folders) = if start.metadata()?.kind == PathKind::Directory {
        let filter = WalkFilter { gitignore: !input.include_ignored, hidden: true };
        let WalkOutcome { visitors, unreadable_folders } =
            walk(start, filter, cancel, || SearchWorker::new(query))?;
        let parts = visitors.into_iter().map(SearchWorker::into_matches);
        (MatchCollector::merge(parts, query), unreadable_folders)
    } else {
        let mut worker = SearchWorker::new(query);
        worker.search_one(start)?;
        (worker.into_matches(), 0)
    };
    // A search that is cancelled within a file ends early, and its counts would be wrong.
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    Ok((matches, unreadable_folders))
}
