//! One run of git: its arguments, its limits, and what it may do.

use super::environment::{
    COMMIT_CONFIGURATION, COMMIT_ENVIRONMENT, ENVIRONMENT, FETCH_CONFIGURATION, NO_PROGRAMS, PLAIN_OUTPUT,
    PUSH_CONFIGURATION, REMOTE_ENVIRONMENT,
};
use super::error::Error;
use super::repository::Repository;
use process_runner::{Command, EnvPolicy, Limits, OutputLimitAction, Stdin};
use std::borrow::Cow;
use std::ffi::OsString;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The output that is kept unless an invocation says otherwise, in bytes: a list of 100,000 paths fits.
const DEFAULT_MAX_OUTPUT_BYTES: usize = 32 * 1024 * 1024;
/// The time limit of a run that only reads.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit of a run that writes: a checkout of a large tree takes long.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// The protocols by which git may reach a repository. Others are programs that a repository could name (`ext::`).
const ALLOWED_PROTOCOLS: &str = "file:git:http:https:ssh";

/// Configuration for one run: keys and values.
pub(super) type ConfigOverrides = Vec<(String, Cow<'static, str>)>;

/// The access that a run of git has. It decides which programs git may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitAccess {
    /// Nothing is changed, and no program is run. Filters of the repository are off.
    Read,
    /// Files or references are changed; no program of the repository is run.
    Write,
    /// As in a terminal: hooks and signatures run.
    Commit,
    /// Another repository is read from; no program of this repository is run.
    Fetch,
    /// Another repository is written to. Hooks run, as in a terminal: some of them send files (`git lfs`).
    Push,
}

impl GitAccess {
    /// Returns true if hooks run.
    fn runs_hooks(self) -> bool {
        matches!(self, Self::Commit | Self::Push)
    }

    /// Returns true if git may connect to another repository.
    fn connects(self) -> bool {
        matches!(self, Self::Fetch | Self::Push)
    }

    fn settings(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::Read | Self::Write => [&NO_PROGRAMS, &PLAIN_OUTPUT],
            Self::Commit => [&COMMIT_CONFIGURATION, &[]],
            Self::Fetch => [&FETCH_CONFIGURATION, &[]],
            Self::Push => [&COMMIT_CONFIGURATION, &PUSH_CONFIGURATION],
        }
    }

    /// Returns true if git, or what it runs, may use the user's SSH agent: to connect, or to sign.
    fn reaches_ssh_agent(self) -> bool {
        self.runs_hooks() || self.connects()
    }

    /// Returns the names of the variables that git gets from the server's environment.
    fn environment(self) -> Vec<OsString> {
        let hooks: &[&str] = if self.runs_hooks() { &COMMIT_ENVIRONMENT } else { &[] };
        let remote: &[&str] = if self.connects() { &REMOTE_ENVIRONMENT } else { &[] };
        ENVIRONMENT.iter().chain(hooks).chain(remote).map(OsString::from).collect()
    }
}

/// One run of git.
pub(super) struct GitInvocation<'a> {
    pub(super) repository: &'a Repository,
    pub(super) cancel: &'a CancellationToken,
    pub(super) max_output_bytes: usize,
    access: GitAccess,
    arguments: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
    /// Paths mean themselves. Not set where there are none: git's own commands use patterns among each other.
    literal_paths: bool,
    /// git finds the repository itself, and judges whose it is.
    discovers_repository: bool,
    config: ConfigOverrides,
    variables: Vec<(&'static str, String)>,
}

impl<'a> GitInvocation<'a> {
    /// Returns true if git, or what it runs, may use the user's SSH agent.
    pub(super) fn reaches_ssh_agent(&self) -> bool {
        self.access.reaches_ssh_agent()
    }

    /// Returns true if the repository's hooks run, which are programs of the caller.
    pub(super) fn runs_hooks(&self) -> bool {
        self.access.runs_hooks()
    }

    /// A run of git with `words` as its first arguments.
    pub(super) fn new(
        repository: &'a Repository,
        access: GitAccess,
        cancel: &'a CancellationToken,
        words: &[&str],
    ) -> Self {
        Self {
            repository,
            cancel,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
            access,
            arguments: words.iter().map(OsString::from).collect(),
            stdin: None,
            timeout: if access == GitAccess::Read { READ_TIMEOUT } else { WRITE_TIMEOUT },
            literal_paths: false,
            discovers_repository: access.runs_hooks(),
            config: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// A run that prints the names of the files that differ from `commit`, each ended by NUL. Nothing that the repository
    /// configures is run for it, and names count from the top level.
    pub(super) fn changed_names(
        repository: &'a Repository,
        cancel: &'a CancellationToken,
        commit: &str,
    ) -> Self {
        let words = [
            "diff",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-relative",
            "--ignore-submodules=dirty",
            commit,
        ];
        Self::new(repository, GitAccess::Read, cancel, &words)
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub(super) fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds `--` and paths, which are taken literally.
    pub(super) fn paths(mut self, paths: &[String]) -> Self {
        self.literal_paths = true;
        self.arg("--").args(paths)
    }

    /// Keeps at most `bytes` of the output. A run that only reads is stopped there.
    pub(super) fn max_output_bytes(mut self, bytes: usize) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Writes `bytes` to git's standard input.
    pub(super) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Sets the time limit.
    pub(super) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Adds configuration that wins over every file.
    pub(super) fn config(mut self, overrides: &[(String, Cow<'static, str>)]) -> Self {
        self.config.extend_from_slice(overrides);
        self
    }

    /// Sets an environment variable.
    pub(super) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Lets git find the repository itself instead of telling it.
    pub(super) fn discovers_repository(mut self) -> Self {
        self.discovers_repository = true;
        self
    }

    /// Builds the command.
    pub(super) fn into_command(self) -> Result<Command, Error> {
        let mut limits = Limits::default().timeout(self.timeout).capture(self.max_output_bytes);
        if self.access == GitAccess::Read {
            // Only a run that changes nothing may be stopped in the middle.
            limits = limits.max_output(self.max_output_bytes as u64, OutputLimitAction::Close);
        }
        let mut command = self
            .with_environment(self.in_folder()?)
            .arg("--no-pager")
            .args(self.access.settings().into_iter().flatten().flat_map(|setting| ["-c", setting]))
            .args(self.arguments)
            .limits(limits)
            .cancel(self.cancel.clone())
            .label("git");
        if let Some(stdin) = self.stdin {
            command = command.stdin(Stdin::bytes(stdin));
        }
        Ok(command)
    }

    /// Returns git in the folder of the repository, by its handle where the system allows that: the folder may have
    /// been replaced by a link since it was checked.
    #[cfg(unix)]
    fn in_folder(&self) -> Result<Command, Error> {
        let folder = &self.repository.folder;
        Ok(Command::new("git", folder.display_path()).folder_handle(folder.folder_handle()?))
    }

    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps, reason = "on Unix the folder is opened")]
    fn in_folder(&self) -> Result<Command, Error> {
        Ok(Command::new("git", self.repository.folder.to_absolute()))
    }

    fn with_environment(&self, command: Command) -> Command {
        let repository = self.repository;
        let mut command = command
            .env_policy(EnvPolicy::Allow(self.access.environment()))
            .noninteractive()
            .env("GIT_EDITOR", "false")
            .env("GIT_SEQUENCE_EDITOR", "false")
            // In a partial clone, git would fetch missing objects from another machine.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_MESSAGES", "C");
        // git looks for no other repository above the root.
        let folder = repository.folder.to_absolute();
        if let Some(root) = repository.workspace.roots().find(|root| folder.starts_with(root)) {
            command = command.env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root));
        }
        if self.access.connects() {
            command = command.env("GIT_ALLOW_PROTOCOL", ALLOWED_PROTOCOLS);
        }
        if !self.access.runs_hooks() {
            // Writing does without optional locks too: git refreshes the indexes of submodules on the way, which
            // stay as they are.
            command = command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        }
        if !self.discovers_repository {
            // The repository was found and judged already, and `core.worktree` is not followed. Not for a commit:
            // its hooks would inherit both variables, and so would every git that they run elsewhere.
            command = command.env("GIT_DIR", repository.git_dir.to_absolute());
            if let Some(top_level) = &repository.top_level {
                command = command.env("GIT_WORK_TREE", top_level.to_absolute());
            }
        }
        if self.literal_paths {
            command = command.env("GIT_LITERAL_PATHSPECS", "1");
        }
        command = command.envs(self.variables.iter().map(|(name, value)| (*name, value.as_str())));
        if self.config.is_empty() {
            return command;
        }
        // By environment and not by `-c`, which takes no key with an `=` in it.
        command = command.env("GIT_CONFIG_COUNT", self.config.len().to_string());
        for (index, (key, value)) in self.config.iter().enumerate() {
            command = command
                .env(format!("GIT_CONFIG_KEY_{index}"), key)
                .env(format!("GIT_CONFIG_VALUE_{index}"), value.as_ref());
        }
        command
    }
}
