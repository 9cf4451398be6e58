//! Running git so that the repository decides nothing but the answer.

use super::filters::ConfigOverride;
use crate::changes::RepositoryChangesOutcome;
use process_runner::{Command, EnvPolicy, Limits, Output, OutputLimitAction, SpawnErrorKind, Termination};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The variables that git needs to be found and to start.
const ENVIRONMENT: [&str; 5] = ["PATH", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// Settings that every call makes, over those of the repository.
const SETTINGS: [&str; 14] = [
    // A folder that looks like a bare repository stays a folder.
    "safe.bareRepository=explicit",
    // A monitor is a program that the repository names.
    "core.fsmonitor=false",
    // The cache would be written to the index.
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    // The files of the user would make the result differ between machines.
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    // git's default. A repository could set a small one, and its text files would be compared as binary.
    "core.bigFileThreshold=512m",
    // The form of the patch: git's defaults, whatever the repository has.
    "diff.indentHeuristic=true",
    "diff.suppressBlankEmpty=false",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "color.ui=false",
];

/// Returns the command that runs git in the folder `root`. Repositories above it are not searched for.
pub fn command(root: &Path) -> Command {
    Command::new("git", root).env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root).as_os_str())
}

/// A git to ask: how its commands are made, and what runs them.
pub(super) struct GitClient<C, R> {
    pub(super) command: C,
    pub(super) run: R,
    pub(super) time_limit: Duration,
}

impl<C, R, F> GitClient<C, R>
where
    C: Fn() -> Command,
    R: Fn(Command) -> F,
    F: Future<Output = Result<Output, process_runner::Error>>,
{
    /// Runs git with `arguments` and reads at most `max_bytes` of its output. A git that fails is an answer.
    pub(super) async fn ask(
        &self,
        arguments: &[&str],
        overrides: &[ConfigOverride],
        max_bytes: usize,
    ) -> Result<GitAnswer, RepositoryChangesOutcome> {
        let limits = Limits::default()
            .timeout(self.time_limit)
            .capture(max_bytes)
            .max_output(max_bytes as u64, OutputLimitAction::Close);
        let command = self.isolated_command(overrides).args(arguments).limits(limits).label("git");
        match (self.run)(command).await {
            Ok(output) => match output.termination {
                Termination::TimedOut { .. } | Termination::IdleTimedOut { .. } => {
                    Err(RepositoryChangesOutcome::TimedOut)
                }
                Termination::Cancelled { .. } => Err(failed("asking git was cancelled")),
                _ => Ok(GitAnswer { output, max_bytes }),
            },
            Err(process_runner::Error::Spawn(error))
                if matches!(error.kind, SpawnErrorKind::NotFound { .. }) =>
            {
                Err(RepositoryChangesOutcome::GitMissing)
            }
            Err(
                process_runner::Error::SpawnTimedOut { .. } | process_runner::Error::QueueTimedOut { .. },
            ) => Err(RepositoryChangesOutcome::TimedOut),
            // The message of the system may contain paths, which a document must not show.
            Err(_) => Err(failed("git could not be run")),
        }
    }

    /// Returns the command with the environment and the settings that every call has.
    fn isolated_command(&self, overrides: &[ConfigOverride]) -> Command {
        let mut command = (self.command)()
            .env_policy(EnvPolicy::Allow(ENVIRONMENT.map(OsString::from).to_vec()))
            .noninteractive()
            .envs([
                ("LC_ALL", "C"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                // Without it, git would refresh and write the index.
                ("GIT_OPTIONAL_LOCKS", "0"),
                // In a partial clone, git would fetch missing objects from another machine.
                ("GIT_NO_LAZY_FETCH", "1"),
                ("GIT_ATTR_NOSYSTEM", "1"),
            ])
            // Over `core.worktree`, which could name a folder outside the project.
            .args(["--no-pager", "--work-tree=."]);
        for setting in SETTINGS {
            command = command.args(["-c", setting]);
        }
        // Through the environment, because `-c` has no form for a key with an arbitrary character or invalid UTF-8.
        for (index, ConfigOverride { key, value }) in overrides.iter().enumerate() {
            command = command
                .env(format!("GIT_CONFIG_KEY_{index}"), key)
                .env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        if !overrides.is_empty() {
            command = command.env("GIT_CONFIG_COUNT", overrides.len().to_string());
        }
        command
    }
}

/// The output of one run of git.
pub(super) struct GitAnswer {
    output: Output,
    max_bytes: usize,
}

impl GitAnswer {
    pub(super) fn code(&self) -> Option<u32> {
        self.output.code()
    }

    pub(super) fn succeeded(&self) -> bool {
        self.output.success()
    }

    /// Returns true if the output was not cut at its limit.
    pub(super) fn is_complete(&self) -> bool {
        // An output of exactly the limit may have been cut there.
        self.output.stdout.total_bytes < self.max_bytes as u64 && !self.output.stdout.truncated()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // The parsers read from the beginning, so the end of a cut output is of no use.
        if self.output.stdout.truncated() { self.output.stdout.head() } else { self.output.stdout.bytes() }
    }

    /// Returns the first line of the output, where it is a name.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(self.bytes().trim_ascii()).into_owned()
    }

    /// Returns the reason why git failed, in words of our own: git's messages contain paths.
    pub(super) fn failure(&self) -> RepositoryChangesOutcome {
        // git has no exit code for these; the messages are stable, and `LC_ALL=C` keeps them in English.
        const NO_REPOSITORY: [&str; 3] =
            ["not a git repository", "must be run in a work tree", "cannot use bare repository"];
        let message = self.output.stderr.text();
        if NO_REPOSITORY.iter().any(|part| message.contains(part)) {
            return RepositoryChangesOutcome::NotARepository;
        }
        if message.contains("dubious ownership") {
            return failed("the repository belongs to another user");
        }
        match self.code() {
            Some(code) => failed(format!("git ended with code {code}")),
            None => failed("git was ended"),
        }
    }
}

pub(super) fn failed(reason: impl Into<String>) -> RepositoryChangesOutcome {
    RepositoryChangesOutcome::Failed { reason: reason.into() }
}
