//! From what a caller asks for to a command that is ready to run.

use super::confine::Confine;
use crate::redact::Redactor;
use crate::workspace::{self, ConfinedPath, Workspace};
use process_runner::{
    Command, CommandLine, CommandLineError, EnvPolicy, Runner, ShellSyntax, ShellSyntaxKind, SpawnErrorKind,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// A command: an array of program and arguments, or one line that is split as a shell splits words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandText {
    /// One line.
    Line(String),
    /// Program and arguments.
    Vector(#[schemars(length(min = 1))] Vec<String>),
}

/// Runs commands for callers: where they may run, and in which environment.
#[derive(Clone, Debug)]
pub struct Commands {
    pub(crate) runner: Runner,
    pub(super) workspace: Arc<Workspace>,
    pub(crate) redactor: Redactor,
    environment: EnvironmentPolicy,
    pub(crate) confine: Confine,
}

/// What of the server's own environment a command gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvironmentPolicy {
    /// All of it: right for a local server, whose user's toolchains are found through it.
    #[default]
    Inherit,
    /// What programs need to work at all: `PATH`, home, user, locale, time zone, temporary folder and the
    /// homes of toolchains. No variable that is likely to hold a secret.
    Minimal,
}

/// The variables of [`EnvironmentPolicy::Minimal`].
const MINIMAL: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "NVM_DIR",
    "PYENV_ROOT",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "SYSTEMROOT",
    "PATHEXT",
];

/// Why a command was not run, or its run was lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The line cannot be split.
    #[error("cannot split the command")]
    Split(#[from] CommandLineError),
    /// The line needs a shell, and there is none.
    #[error("{}", needs_shell(.0))]
    NeedsShell(ShellSyntax),
    /// The array has no program.
    #[error("`command` is empty: expected a program and its arguments")]
    Empty,
    /// The folder cannot be used.
    #[error("cannot run in that folder")]
    Folder(#[from] workspace::Error),
    /// The program did not start, or the run was lost.
    #[error("{}", whole(.0))]
    Run(process_runner::Error),
    /// The caller asks for more time than it may have.
    #[error(
        "`timeout_ms` is {asked}: this server allows at most {most}; longer work goes into start_command"
    )]
    TooLong {
        /// What was asked for, in milliseconds.
        asked: u128,
        /// What there is, in milliseconds.
        most: u128,
    },
    /// No background command has this number.
    #[error("no background command has the id {id}; {known}")]
    UnknownId {
        /// What was asked for.
        id: u32,
        /// Which there are.
        known: String,
    },
    /// As many run as may.
    #[error("{0} background commands are running, which is the most there may be; stop one first")]
    TooMany(usize),
    /// The command did not take all of its input.
    #[error("command {id} took {taken} bytes of input and not the other {rest}: {reason}")]
    NoInput {
        /// The command.
        id: u32,
        /// Bytes that it took.
        taken: usize,
        /// Bytes that it did not.
        rest: usize,
        /// Why.
        reason: String,
    },
}

fn needs_shell(syntax: &ShellSyntax) -> String {
    let way = match syntax.kind {
        ShellSyntaxKind::Assignment => "set the variable with `env`",
        _ => {
            "run a shell by name if one is meant ([\"sh\", \"-c\", \"…\"]), or quote it, or give the command as an \
             array, if it is meant literally"
        }
    };
    format!("{syntax}, and commands run without one: {way}")
}

/// The error, what led to it, and what to do about it.
fn whole(error: &process_runner::Error) -> String {
    if let process_runner::Error::Spawn(error) = error
        && let SpawnErrorKind::NotFound { searched, did_you_mean } = &error.kind
        && !searched.is_empty()
    {
        return no_such_program(&error.program, searched, did_you_mean.as_deref());
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    match error.hint() {
        Some(hint) => format!("{text}. {hint}"),
        None => text,
    }
}

/// That no folder of the `PATH` has `program`, in a line that a `PATH` of any length leaves short.
fn no_such_program(program: &str, searched: &[PathBuf], nearest: Option<&str>) -> String {
    const SHOWN: usize = 3;
    let first: Vec<_> = searched.iter().take(SHOWN).map(|folder| folder.display().to_string()).collect();
    let more = if searched.len() > SHOWN { ", …" } else { "" };
    let advice = match nearest {
        Some(name) => format!("; did you mean `{name}`?"),
        None => ". Install it, or add its folder to the PATH of the process that starts it.".to_owned(),
    };
    let (count, folders) = (searched.len(), if searched.len() == 1 { "folder" } else { "folders" });
    let first = first.join(", ");
    format!(
        "cannot start `{program}`: no such program in the {count} {folders} of PATH ({first}{more}){advice}"
    )
}

impl From<process_runner::Error> for CommandError {
    fn from(error: process_runner::Error) -> Self {
        Self::Run(error)
    }
}

impl Commands {
    /// Commands that `runner` runs in folders of `workspace`, with the server's own environment.
    ///
    /// `redactor` masks what they print before any of it is cut: half a secret is not recognised. Exact
    /// values are better hidden by the runner, which sees them wherever the output is cut.
    pub fn new(runner: Runner, workspace: Arc<Workspace>, redactor: Redactor) -> Self {
        let confine = Confine::off("the server was started without");
        Self { runner, workspace, redactor, environment: EnvironmentPolicy::default(), confine }
    }

    /// What of the server's own environment a command gets. All of it by default.
    #[must_use]
    pub fn environment(mut self, policy: EnvironmentPolicy) -> Self {
        self.environment = policy;
        self
    }

    /// A command, and what is worth knowing if it fails.
    pub(super) fn prepare(
        &self,
        text: &CommandText,
        folder: Option<&str>,
        env: Option<&BTreeMap<String, String>>,
    ) -> Result<(Command, Option<ShellSyntax>), CommandError> {
        let (program, arguments, literal) = match text {
            CommandText::Line(line) => {
                let line_of_words = CommandLine::parse(line)?;
                let syntax = line_of_words.shell_syntax().cloned();
                if let Some(syntax) = syntax.clone().filter(acts_in_a_shell) {
                    return Err(CommandError::NeedsShell(syntax));
                }
                (line_of_words.program, line_of_words.args, syntax)
            }
            CommandText::Vector(words) => match words.split_first() {
                Some((program, arguments)) if !program.is_empty() => {
                    (program.clone(), arguments.to_vec(), None)
                }
                _ => return Err(CommandError::Empty),
            },
        };
        let folder = self.workspace.locate(folder.unwrap_or("."))?;
        let mut command = self.at(program, &folder)?.args(arguments);
        if let Some(env) = env {
            command = command.envs(env.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        }
        Ok((command, literal))
    }

    /// A command in `folder`, with its environment and its fence.
    pub(crate) fn at(
        &self,
        program: impl Into<OsString>,
        folder: &ConfinedPath,
    ) -> Result<Command, CommandError> {
        // The folder that was checked is the one that is used, whatever its name leads to by then; its path
        // is for messages.
        #[cfg(unix)]
        let command = Command::new(program, folder.shown()).folder_handle(folder.folder_handle()?);
        #[cfg(not(unix))]
        let command = Command::new(program, folder.to_absolute());
        Ok(self.in_environment(command))
    }

    /// What runs them.
    pub(crate) fn runner(&self) -> &Runner {
        &self.runner
    }

    /// `text` without its secrets.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    /// A folder of its own, outside the project, that a program may write its report to.
    #[cfg(feature = "testing")]
    pub(crate) fn report_folder(&self) -> std::io::Result<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("report-");
        match self.confine.temp_folder() {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        }
    }

    /// `command` with what every command gets: its environment and its fence.
    pub(super) fn in_environment(&self, command: Command) -> Command {
        let command = self.confine.apply(command.noninteractive());
        match self.environment {
            EnvironmentPolicy::Inherit => command,
            EnvironmentPolicy::Minimal => {
                command.env_policy(EnvPolicy::Allow(MINIMAL.map(OsString::from).to_vec()))
            }
        }
    }

    /// A command as a person would type it, masked and then shortened.
    pub(super) fn shown(&self, command: &CommandText) -> String {
        const LONGEST: usize = 200;
        let line = match command {
            CommandText::Line(line) => line.clone(),
            CommandText::Vector(words) => words.join(" "),
        };
        let line = self.redactor.redact(&line);
        if line.chars().count() <= LONGEST {
            line.into_owned()
        } else {
            line.chars().take(LONGEST).chain("…".chars()).collect()
        }
    }
}

/// What a shell would have *done*, and nobody means literally in a line of words.
fn acts_in_a_shell(syntax: &ShellSyntax) -> bool {
    matches!(
        syntax.kind,
        ShellSyntaxKind::Operator | ShellSyntaxKind::Redirection | ShellSyntaxKind::Assignment
    )
}

/// What a server has in its environment because of how *it* was started: by cargo, under a test runner. In a
/// terminal it would not be there, and runners behave differently with it.
const OURS: [&str; 45] = [
    "CARGO",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_AUTHORS",
    "CARGO_PKG_DESCRIPTION",
    "CARGO_PKG_HOMEPAGE",
    "CARGO_PKG_LICENSE",
    "CARGO_PKG_LICENSE_FILE",
    "CARGO_PKG_NAME",
    "CARGO_PKG_README",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_RUST_VERSION",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
    "RUST_RECURSION_COUNT",
    "RUST_TEST_NOCAPTURE",
    "RUST_TEST_SHUFFLE",
    "RUSTUP_TOOLCHAIN",
    "__CARGO_DEFAULT_LIB_METADATA",
    "NEXTEST",
    "NEXTEST_ATTEMPT",
    "NEXTEST_BINARY_ID",
    "NEXTEST_EXECUTION_MODE",
    "NEXTEST_PROFILE",
    "NEXTEST_RUN_ID",
    "NEXTEST_TEST_NAME",
    "NEXTEST_TEST_GROUP",
    "NODE_TEST_CONTEXT",
    "NODE_CHANNEL_FD",
    "JEST_WORKER_ID",
    "VITEST",
    "PYTEST_CURRENT_TEST",
    "BATS_TEST_FILENAME",
    "BATS_RUN_TMPDIR",
    "MAKEFLAGS",
    "FORCE_COLOR",
];

/// `command` as it would be in a terminal: without [`OURS`], and with what keeps programs from colouring and
/// drawing.
pub(crate) fn without_ours(command: Command) -> Command {
    let command = OURS.into_iter().fold(command, Command::env_remove);
    command.env("CARGO_TERM_COLOR", "never").env("CARGO_TERM_PROGRESS_WHEN", "never")
}

/// A word as a shell would take it.
pub(crate) fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''")).into()
}
