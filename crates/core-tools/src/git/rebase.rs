//! `git_rebase`: puts the commits of a branch onto another, and continues, skips or aborts where that stopped.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::commit::HOOKS_TIMEOUT;
use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::integration::{IntegrationOutcome, IntegrationResult, integration_overrides};
use super::invocation::{GitAccess, GitInvocation};
use super::operation::UnfinishedOperation;
use super::printed_text::{count_of, lossy};
use super::repository::Repository;
use super::repository_files::read_up_to;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// A rebase to start, continue or abort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitRebase {
    /// `start`, the default, puts the commits of the current branch onto `onto`; `continue` goes on after conflicts are
    /// resolved; `skip` leaves out the commit at which it stopped; `abort` takes the whole rebase back.
    pub action: Option<RebaseAction>,
    /// With `start`: the branch, tag or commit that the commits are put onto, such as `origin/main`.
    pub onto: Option<String>,
    /// With `start`: only the commits after this one. Default: those that `onto` has not.
    pub since: Option<String>,
    /// With `continue`: resolved files to stage first.
    #[schemars(length(min = 1), extend("alias" = "paths"))]
    pub files: Option<Vec<String>>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

/// The steps of a rebase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RebaseAction {
    /// Rebase the current branch.
    #[default]
    Start,
    /// Go on with a rebase that stopped.
    Continue,
    /// Leave out the commit at which it stopped, and go on.
    Skip,
    /// Take a rebase that stopped back.
    Abort,
}

impl GitRebase {
    /// An input that puts the commits of the current branch onto `onto`.
    pub fn new(onto: impl Into<String>) -> Self {
        Self { onto: Some(onto.into()), ..Self::default() }
    }
}

const ACTION: &str = "git_rebase";
const NEXT: &str = "resolve the files, then call git_rebase with action `continue` and the files in `files`; action `skip` \
                    leaves this commit out, and `abort` takes the whole rebase back";
/// The longest list of steps that is read.
const MAX_STEPS_BYTES: u64 = 8 * 1024 * 1024;

/// Returns true if a list of steps (git-rebase(1), "Interactive mode") runs a program.
fn runs_programs(steps: &[u8]) -> bool {
    let mut lines = steps.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    lines.any(|line| matches!(line.split(u8::is_ascii_whitespace).next(), Some(b"exec" | b"x")))
}

impl Git {
    /// Puts the commits of the current branch onto another commit, or goes on with a rebase that stopped, or takes it
    /// back. Hooks and signing run as in a terminal. Conflicts are a result, not an error.
    ///
    /// # Errors
    /// There is no such commit, another operation is in progress, there are changes that are not committed, protected or
    /// untracked files are in the way, the repository's own configuration names filters or merge drivers, the steps run
    /// programs, or git fails.
    pub async fn rebase(
        &self,
        input: &GitRebase,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        self.check_integration(&repository, ACTION, cancel).await?;
        let action = input.action.unwrap_or_default();
        if action == RebaseAction::Start {
            return self.start_rebase(&repository, input, cancel).await;
        }
        repository.check_in_progress(UnfinishedOperation::Rebase)?;
        let original = repository.rebase_commit("orig-head")?;
        if action == RebaseAction::Abort {
            self.check_way_back(&repository, &original, ACTION, cancel).await?;
            let run = GitInvocation::new(&repository, GitAccess::Write, cancel, &["rebase", "--abort"]);
            self.run_checked(ACTION, run.config(&integration_overrides())).await?;
            let summary = "aborted the rebase: branch and files are as they were before".to_owned();
            return self.integration_result(&repository, IntegrationOutcome::Aborted, summary, cancel).await;
        }
        // Not before an abort, which runs none of the steps.
        repository.refuse_programs_in_steps()?;
        let onto = repository.rebase_commit("onto")?;
        if action == RebaseAction::Skip {
            self.check_way_back(&repository, "HEAD", ACTION, cancel).await?;
            return self.run_rebase(&repository, &["rebase", "--skip"], &onto, None, cancel).await;
        }
        if let Some(files) = &input.files {
            self.stage_resolved(&repository, files, ACTION, cancel).await?;
        }
        self.refuse_conflicts(&repository, cancel).await?;
        let written =
            self.rebased_paths(&repository, "HEAD", &onto, &format!("{onto}..{original}"), cancel).await?;
        self.check_written(&repository, &written, ACTION, cancel).await?;
        self.run_rebase(&repository, &["rebase", "--continue"], &onto, None, cancel).await
    }

    async fn start_rebase(
        &self,
        repository: &Repository,
        input: &GitRebase,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        let Some(name) = &input.onto else {
            let reason = "it is missing; name the branch to rebase onto, such as `origin/main`".to_owned();
            return Err(Error::InvalidArgument { name: "onto", reason });
        };
        repository.refuse_unfinished()?;
        let onto = self.resolve_commit(repository, name, cancel).await?;
        let since = match &input.since {
            Some(since) => self.resolve_commit(repository, since, cancel).await?,
            None => onto.clone(),
        };
        let head = self.resolve_commit(repository, "HEAD", cancel).await?;
        if since == onto && self.is_ancestor(repository, &onto, &head, cancel).await? {
            let summary = format!("the branch is on top of {name} already");
            return self.integration_result(repository, IntegrationOutcome::UpToDate, summary, cancel).await;
        }
        let range = format!("{since}..{head}");
        let commits = self.count_in_range(repository, &["--no-merges"], &range, cancel).await?;
        let merges = self.count_in_range(repository, &["--merges"], &range, cancel).await?;
        let written = self.rebased_paths(repository, &head, &onto, &range, cancel).await?;
        self.check_written(repository, &written, ACTION, cancel).await?;
        let mut summary = format!("rebased {} onto {name}", count_of(commits, "commit", "commits"));
        if merges > 0 {
            let merges = count_of(merges, "merge", "merges");
            summary.push_str(&format!("; {merges} left out, since their commits now follow each other"));
        }
        // Each of these options overrides a setting (`rebase.autoSquash`, `rebase.rebaseMerges`, `rebase.forkPoint`,
        // `rebase.backend`): the commits that are rebased must be those that were counted and checked.
        let words = [
            "rebase",
            "--merge",
            "--no-autosquash",
            "--no-rebase-merges",
            "--no-fork-point",
            "--no-stat",
            "--onto",
            &onto,
            &since,
        ];
        self.run_rebase(repository, &words, &onto, Some((summary, commits)), cancel).await
    }

    /// Returns the paths that a rebase writes: those in which `onto` differs from `from`, and those that the commits of
    /// `range` change.
    async fn rebased_paths(
        &self,
        repository: &Repository,
        from: &str,
        onto: &str,
        range: &str,
        cancel: &CancellationToken,
    ) -> Result<GitOutput, Error> {
        let mut paths = self.differing_paths(repository, from, onto, cancel).await?;
        let words = [
            "log",
            "-z",
            "--no-merges",
            "--format=tformat:",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-relative",
            range,
            "--",
        ];
        let changed =
            self.run_checked(ACTION, GitInvocation::new(repository, GitAccess::Read, cancel, &words)).await?;
        let names = changed.bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        for name in names {
            paths.bytes.extend_from_slice(name);
            paths.bytes.push(0);
        }
        paths.is_complete &= changed.is_complete;
        Ok(paths)
    }

    /// Runs one step of a rebase. `begun` is the summary of one that began with this step, and the number of its commits.
    async fn run_rebase(
        &self,
        repository: &Repository,
        words: &[&str],
        onto: &str,
        begun: Option<(String, usize)>,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        let mut overrides = integration_overrides();
        // A file that follows a renamed folder would be at a path that was not checked.
        overrides.push(("merge.directoryRenames".to_owned(), "false".into()));
        let run = GitInvocation::new(repository, GitAccess::Commit, cancel, words)
            // The messages of the commits stay as they are.
            .variable("GIT_EDITOR", ":")
            // Advice on commands to type.
            .variable("GIT_ADVICE", "0")
            .config(&overrides)
            .timeout(HOOKS_TIMEOUT);
        let output = self.run(run).await?;
        let rebase = UnfinishedOperation::Rebase;
        // A rebase that was begun in a terminal may have a step `edit` or `break`, at which git stops with exit code 0.
        if !output.success() || repository.unfinished_operation()? == Some(rebase) {
            return self.stopped_result(repository, rebase, &output, (ACTION, NEXT), cancel).await;
        }
        let count = self.count_in_range(repository, &[], &format!("{onto}..HEAD"), cancel).await?;
        let now = format!("{} on top of {:.10}", count_of(count, "commit is", "commits are"), onto);
        let summary = match begun {
            None => format!("finished the rebase: {now}"),
            Some((summary, commits)) if commits > count => {
                let left_out = count_of(commits - count, "commit was", "commits were");
                format!("{summary}; {left_out} left out, since the same changes are there already; {now}")
            }
            Some((summary, _)) => format!("{summary}; {now}"),
        };
        self.integration_result(repository, IntegrationOutcome::Rebased, summary, cancel).await
    }
}

impl Repository {
    /// Returns the commit that a file of a rebase in progress names.
    fn rebase_commit(&self, name: &str) -> Result<String, Error> {
        // A rebase that was begun in a terminal with `--apply` keeps its state in the second folder.
        for folder in ["rebase-merge", "rebase-apply"] {
            let path = self.git_dir.join(folder)?.join(name)?;
            let Some(text) = read_up_to(&path, 1024)? else { continue };
            let commit = lossy(text.trim_ascii());
            if commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Ok(commit);
            }
        }
        Err(Error::UnsupportedLayout(format!("the rebase in progress has no usable `{name}`")))
    }

    /// Refuses to go on with a rebase whose steps run programs: the repository may have come with them.
    fn refuse_programs_in_steps(&self) -> Result<(), Error> {
        let steps = self.git_dir.join("rebase-merge")?.join("git-rebase-todo")?;
        if read_up_to(&steps, MAX_STEPS_BYTES)?.is_some_and(|steps| runs_programs(&steps)) {
            return Err(Error::ConfiguredPrograms {
                action: ACTION,
                keys: vec!["exec among its steps".to_owned()],
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_runs_a_program_is_found() {
        for steps in ["pick 1 a\nexec make\n", "x\ttrue", "  exec true"] {
            assert!(runs_programs(steps.as_bytes()), "{steps}");
        }
        for steps in ["", "pick 1 exec\n# exec make\nexecute\n", "reword 2 x\n"] {
            assert!(!runs_programs(steps.as_bytes()), "{steps}");
        }
    }
}
