//! The query for changes, and the rounds of questions that answer it.

use super::client::{GitAnswer, GitClient, failed};
use super::filters::{ConfigOverride, ConfiguredFilters};
use super::output::{FileTable, parse_changed_files, parse_patches, split_nul};
use crate::catalogue::DiffDetail;
use crate::changes::{ChangedFile, FileChangeKind, RepositoryChanges, RepositoryChangesOutcome};
use crate::error::{ContextRequestField, Error};
use process_runner::{Command, Output};
use std::time::{Duration, Instant};

/// A query for the changes of a repository.
#[derive(Clone, Debug)]
pub struct ChangesQuery {
    since: String,
    detail: DiffDetail,
    time_limit: Duration,
    max_diff_bytes: usize,
}

impl Default for ChangesQuery {
    fn default() -> Self {
        Self {
            since: "HEAD".to_owned(),
            detail: DiffDetail::Full,
            time_limit: Duration::from_secs(5),
            max_diff_bytes: 4 * 1024 * 1024,
        }
    }
}

impl ChangesQuery {
    /// A query for everything that changed since `HEAD`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares with this revision instead of `HEAD`.
    #[must_use]
    pub fn since(mut self, revision: impl Into<String>) -> Self {
        self.since = revision.into();
        self
    }

    /// Asks for the changed lines ([`DiffDetail::Full`], the default), for line counts, or for nothing.
    #[must_use]
    pub fn detail(mut self, detail: DiffDetail) -> Self {
        self.detail = detail;
        self
    }

    /// Gives git this time for each question. 5 seconds by default.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Reads at most this many bytes of the changed lines. 4 MiB by default: far more than fits a document, so that small
    /// changes are found behind large ones.
    #[must_use]
    pub fn max_diff_bytes(mut self, max_bytes: usize) -> Self {
        self.max_diff_bytes = max_bytes;
        self
    }
}

/// The longest revision, in bytes.
const MAX_REVISION_BYTES: usize = 1_000;
/// The most bytes that are read of a list of names.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;
/// The most bytes that are read of the names of filters. A repository with more is not compared.
const MAX_FILTER_BYTES: usize = 64 * 1024;
/// A change of more lines is asked for after the others.
const LARGE_CHANGE_LINES: u64 = 5_000;
/// The most files that are large by their line counts and are asked for one by one.
const MAX_LARGE_FILES: usize = 32;
/// The rounds in which the other files are asked for, each without the files at which an earlier answer was cut.
const MAX_ROUNDS: usize = 4;

/// The arguments of every diff, which keep the configuration from showing in it. `-O/dev/null` overrides an order of
/// files. Of a submodule only its commit is compared: to look at its files, git would run what *its* configuration names.
const DIFF_ARGUMENTS: [&str; 14] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--relative",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--diff-algorithm=myers",
    "--inter-hunk-context=0",
    "--full-index",
    "-O/dev/null",
];

/// The reason why a query ended early.
enum ChangesQueryError {
    /// The query is invalid.
    Invalid(Error),
    /// git gave no answer; this is the outcome.
    NoAnswer(RepositoryChangesOutcome),
}

impl From<RepositoryChangesOutcome> for ChangesQueryError {
    fn from(outcome: RepositoryChangesOutcome) -> Self {
        Self::NoAnswer(outcome)
    }
}

/// Asks git for the changes of a repository. If git fails, the [outcome](RepositoryChanges::outcome) says so, and the
/// function returns no error.
///
/// `command` returns a command that runs git in the root of the project, as [`command()`](super::command()) does, and `run`
/// runs it. A caller with folder handles, a sandbox or cancellation tokens applies them in either.
///
/// ```no_run
/// # async fn example(root: &std::path::Path) -> Result<(), context_compiler::Error> {
/// use context_compiler::ContextRequest;
/// use context_compiler::git::{ChangesQuery, collect_changes, command};
///
/// let runner = process_runner::Runner::new();
/// let query = ChangesQuery::new().since("main");
/// let changes = collect_changes(|| command(root), |command| runner.run(command), &query).await?;
/// let request = ContextRequest::new("dev").changes(changes);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Error::InvalidRequest`] if the revision cannot be one, or names no commit.
pub async fn collect_changes<R, F>(
    command: impl Fn() -> Command,
    run: R,
    query: &ChangesQuery,
) -> Result<RepositoryChanges, Error>
where
    R: Fn(Command) -> F,
    F: Future<Output = Result<Output, process_runner::Error>>,
{
    check_revision(&query.since)?;
    let mut changes = RepositoryChanges::new(&query.since, RepositoryChangesOutcome::Clean);
    if query.detail == DiffDetail::Off {
        return Ok(changes);
    }
    let client = GitClient { command, run, time_limit: query.time_limit };
    match client.fill(&mut changes, query).await {
        Ok(()) => {}
        Err(ChangesQueryError::NoAnswer(outcome)) => changes.outcome = outcome,
        Err(ChangesQueryError::Invalid(error)) => return Err(error),
    }
    Ok(changes)
}

/// Refuses text that git could take for an option, and text that no revision can contain.
fn check_revision(revision: &str) -> Result<(), Error> {
    let reason = if revision.is_empty() {
        "is empty"
    } else if revision.starts_with('-') {
        "begins with `-`"
    } else if revision.len() > MAX_REVISION_BYTES {
        "is longer than 1000 bytes"
    } else if revision.contains(char::is_control) {
        "has a control character"
    } else {
        return Ok(());
    };
    Err(Error::invalid(ContextRequestField::Since, reason))
}

impl<C, R, F> GitClient<C, R>
where
    C: Fn() -> Command,
    R: Fn(Command) -> F,
    F: Future<Output = Result<Output, process_runner::Error>>,
{
    /// Fills in outcome and files of `changes`, in two rounds of questions that git answers side by side.
    async fn fill(
        &self,
        changes: &mut RepositoryChanges,
        query: &ChangesQuery,
    ) -> Result<(), ChangesQueryError> {
        let revision = format!("{}^{{commit}}", query.since);
        // `^{commit}`, since a tag may name an object that is no commit. `--end-of-options`, since a revision is text
        // of the caller.
        let resolve = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
        let list_filters = [
            "config",
            "--null",
            "--name-only",
            "--includes",
            "--get-regexp",
            r"^(filter\.|diff\..*\.binary$)",
        ];
        let (resolved, listed) = tokio::join!(
            self.ask(&resolve, &[], MAX_LIST_BYTES),
            self.ask(&list_filters, &[], MAX_FILTER_BYTES)
        );
        let (resolved, listed) = (resolved?, listed?);
        let base = self.base(changes, &query.since, &resolved).await?;
        let filters = configured_filters(&listed)?;
        changes.filters_disabled = filters.has_filters;
        let overrides = &filters.overrides;

        let diff: Vec<&str> =
            DIFF_ARGUMENTS.into_iter().chain(["--raw", "--numstat", "-z", &base, "--"]).collect();
        let list_untracked = ["ls-files", "--others", "--exclude-standard", "-z"];
        let (tracked, untracked) = tokio::join!(
            self.ask(&diff, overrides, MAX_LIST_BYTES),
            self.ask(&list_untracked, overrides, MAX_LIST_BYTES)
        );
        let (tracked, untracked) = (tracked?, untracked?);
        for answer in [&tracked, &untracked] {
            if answer.is_complete() && !answer.succeeded() {
                return Err(answer.failure().into());
            }
            changes.truncated |= !answer.is_complete();
        }
        let mut files = parse_changed_files(tracked.bytes());
        if query.detail == DiffDetail::Full && !files.is_empty() {
            let complete = self.fill_hunks(&base, &mut files, overrides, query.max_diff_bytes).await?;
            changes.truncated |= !complete;
        }
        for path in split_nul(untracked.bytes(), untracked.is_complete()) {
            let file = ChangedFile::new(path.clone(), FileChangeKind::Untracked);
            // A path that was removed from the index and is still there is both; the change says more.
            files.entry(path).or_insert(file);
        }
        changes.files = files.into_values().collect();
        if changes.outcome != RepositoryChangesOutcome::Unborn && !changes.files.is_empty() {
            changes.outcome = RepositoryChangesOutcome::Changed;
        }
        Ok(())
    }

    /// Returns the name of the object to compare with.
    async fn base(
        &self,
        changes: &mut RepositoryChanges,
        since: &str,
        resolved: &GitAnswer,
    ) -> Result<String, ChangesQueryError> {
        let base = match resolved.code() {
            Some(0) => resolved.name(),
            Some(1) if since != "HEAD" => {
                let reason = format!("is `{since}`, and no commit, branch or tag is called that here");
                return Err(ChangesQueryError::Invalid(Error::invalid(ContextRequestField::Since, reason)));
            }
            Some(1) => {
                changes.outcome = RepositoryChangesOutcome::Unborn;
                // Everything is compared with the empty tree. Its name depends on how the repository hashes objects.
                self.ask(&["hash-object", "-t", "tree", "--stdin"], &[], MAX_LIST_BYTES).await?.name()
            }
            _ => return Err(resolved.failure().into()),
        };
        // The name becomes an argument, so it must not begin with a dash. SHA-1 has 40 digits and SHA-256 has 64.
        if base.len() < 40 || !base.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(failed("git named no commit").into());
        }
        Ok(base)
    }

    /// Fills in the hunks of small changes first, then of large ones. Returns false if some are missing.
    async fn fill_hunks(
        &self,
        base: &str,
        files: &mut FileTable,
        overrides: &[ConfigOverride],
        max_bytes: usize,
    ) -> Result<bool, RepositoryChangesOutcome> {
        let mut large = large_files(files);
        let started = Instant::now();
        let mut complete = true;
        for round in 1..=MAX_ROUNDS {
            let excluded: Vec<String> =
                large.iter().map(|path| format!(":(exclude,literal){path}")).collect();
            let Some(cut_at) = self.fill_patch(base, &excluded, files, overrides, max_bytes).await? else {
                complete = true;
                break;
            };
            complete = round < MAX_ROUNDS;
            if cut_at.is_empty() || started.elapsed() > self.time_limit {
                complete = false;
                break;
            }
            // The next round is without this file, which is asked for with the large ones.
            if complete {
                large.push(cut_at);
            }
        }
        for path in large {
            if started.elapsed() > self.time_limit {
                return Ok(false);
            }
            let only = [format!(":(literal){path}")];
            complete &= self.fill_patch(base, &only, files, overrides, max_bytes / 8).await?.is_none();
        }
        Ok(complete)
    }

    /// Fills in the hunks of the files that `pathspecs` match. Returns the file at which the answer was cut, which is empty
    /// if not even one name was complete.
    async fn fill_patch(
        &self,
        base: &str,
        pathspecs: &[String],
        files: &mut FileTable,
        overrides: &[ConfigOverride],
        max_bytes: usize,
    ) -> Result<Option<String>, RepositoryChangesOutcome> {
        let arguments: Vec<&str> = DIFF_ARGUMENTS
            .into_iter()
            .chain(["-U3", "--patch", base, "--"])
            .chain(pathspecs.iter().map(String::as_str))
            .collect();
        let answer = self.ask(&arguments, overrides, max_bytes).await?;
        if answer.is_complete() && !answer.succeeded() {
            return Err(answer.failure());
        }
        let mut last = None;
        for patch in parse_patches(&String::from_utf8_lossy(answer.bytes()), answer.is_complete()) {
            if let Some(file) = files.get_mut(&patch.path) {
                file.hunks = patch.hunks;
            }
            last = Some(patch.path);
        }
        Ok((!answer.is_complete()).then(|| last.unwrap_or_default()))
    }
}

/// Returns the filters that git listed. A filter that is not known cannot be disabled, so an incomplete list is a failure.
fn configured_filters(listed: &GitAnswer) -> Result<ConfiguredFilters, RepositoryChangesOutcome> {
    if !listed.is_complete() {
        return Err(failed("its configuration names too many filters"));
    }
    // Code 1: no key matches.
    if !matches!(listed.code(), Some(0 | 1)) {
        return Err(listed.failure());
    }
    Ok(ConfiguredFilters::parse(listed.bytes()))
}

/// Returns the files with large changes, smallest first. Of too many, the smallest are asked for together with the others.
fn large_files(files: &FileTable) -> Vec<String> {
    let changed_lines =
        |file: &ChangedFile| file.line_counts.map_or(0, |counts| counts.added.saturating_add(counts.removed));
    let mut large: Vec<(u64, String)> = files
        .values()
        .map(|file| (changed_lines(file), file.path.clone()))
        .filter(|(lines, _)| *lines > LARGE_CHANGE_LINES)
        .collect();
    large.sort_unstable();
    let skipped = large.len().saturating_sub(MAX_LARGE_FILES);
    large.into_iter().skip(skipped).map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_could_be_an_option_is_no_revision() {
        for invalid in ["", "-p", "--output=/etc/x", "a\nb", "a\0b", &"x".repeat(1_001)] {
            assert!(check_revision(invalid).is_err(), "{invalid:?}");
        }
        assert!(check_revision("HEAD~2").is_ok());
    }
}
