//! [`RemoteCommands`]: the commands of one remote, with their values.

use crate::error::Error;
use crate::settings::RemoteSettings;
use crate::shown::shown;
use crate::template::{CommandTemplate, Placeholder, TemplateValues};
use process_runner::{Command, EnvPolicy, Limits, Output, Runner, Stdin, Termination};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The variables that every program needs, and those by which a user's programs find each other.
const VARIABLES: [&str; 13] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
];

/// The bytes of output that are kept for messages.
const KEPT_BYTES: usize = 4096;

/// The characters of a line of output that a message repeats.
const MAX_LINE_CHARS: usize = 300;

/// A command with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteCommand {
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<String>,
}

/// The commands of one remote for one lease.
#[derive(Clone, Debug)]
pub(crate) struct RemoteCommands {
    pub(crate) connect: RemoteCommand,
    pub(crate) create: Option<RemoteCommand>,
    pub(crate) ready: Option<RemoteCommand>,
    pub(crate) destroy: Option<RemoteCommand>,
    pub(crate) list: Option<RemoteCommand>,
    pub(crate) copy: Option<RemoteCommand>,
    pub(crate) architecture: Option<RemoteCommand>,
}

/// The values that are not in the settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandValues<'a> {
    /// The name of this program, which is that of the program there unless the kind says otherwise.
    pub(crate) program: &'a str,
    pub(crate) caller: &'a str,
    pub(crate) lease: Option<&'a str>,
    /// Name and hash of the program that is copied there.
    pub(crate) copied: Option<(&'a str, &'a str)>,
}

impl RemoteCommands {
    /// Puts the values into the commands of a remote.
    pub(crate) fn new(settings: &RemoteSettings, given: &CommandValues<'_>) -> Result<Self, Error> {
        let RemoteSettings { kind, .. } = settings;
        let mut values = TemplateValues::default();
        values.set(Placeholder::Target, settings.target.clone());
        values.set(Placeholder::Root, settings.roots.first().cloned());
        values.set(Placeholder::Lease, given.lease.map(str::to_owned));
        values.set(Placeholder::Caller, Some(given.caller.to_owned()));
        values.set(Placeholder::Cache, Some(kind.cache().to_owned()));
        values.set(Placeholder::LifeSeconds, settings.life.map(|life| life.as_secs().to_string()));
        for (name, option) in &kind.options {
            let value = settings.options.get(name).or(option.default.as_ref()).cloned();
            values.set(Placeholder::Option(name.clone()), value);
        }
        let binary = match (given.copied, &kind.binary) {
            (Some((name, _)), _) => format!("{}/{name}", kind.cache()),
            (None, Some(binary)) => binary.expand(&values).map_err(|error| Error::value(settings, error))?,
            (None, None) => given.program.to_owned(),
        };
        values.set(Placeholder::Binary, Some(binary));
        values.set(Placeholder::Sha256, given.copied.map(|(_, hash)| hash.to_owned()));
        let expand = |template: &CommandTemplate| {
            let arguments = template.expand(&values).map_err(|error| Error::value(settings, error))?;
            Ok::<_, Error>(RemoteCommand { arguments, variables: kind.variables.clone() })
        };
        let optional = |template: &Option<CommandTemplate>| template.as_ref().map(expand).transpose();
        let commands = &kind.commands;
        let connect = commands.connect.as_ref().ok_or_else(|| Error::NoConnect(settings.label()))?;
        // Only a copy needs the values of a copy.
        let with_copy = |template| if settings.copy_binary { optional(template) } else { Ok(None) };
        Ok(Self {
            connect: expand(connect)?,
            create: optional(&commands.create)?,
            ready: optional(&commands.ready)?,
            destroy: optional(&commands.destroy)?,
            list: optional(&commands.list)?,
            copy: if given.copied.is_some() { with_copy(&commands.copy)? } else { None },
            architecture: with_copy(&commands.architecture)?,
        })
    }
}

impl RemoteCommand {
    /// Returns the command in a folder. It inherits the variables of the kind, and nothing that is meant for this server.
    pub(crate) fn in_folder(&self, folder: &Path, runner: &Runner) -> Result<Command, Error> {
        let (program, arguments) = self.arguments.split_first().ok_or(Error::NoProgram)?;
        let is_passed = |name: &str| {
            // A pattern of a kind must not pass on the server's own settings, which may hold tokens.
            !name.starts_with("CORETOOLS_")
                && VARIABLES.iter().copied().chain(self.variables.iter().map(String::as_str)).any(|allowed| {
                    match allowed.strip_suffix('*') {
                        Some(start) => name.starts_with(start),
                        None => name == allowed,
                    }
                })
        };
        let names = runner.environment_names().filter(|name| name.to_str().is_some_and(is_passed));
        let names: Vec<OsString> = names.map(ToOwned::to_owned).collect();
        let command = Command::new(program, folder).args(arguments.iter().cloned());
        // The monitor of one caller's container must not be taken for a process of another caller's connection.
        Ok(command.env_policy(EnvPolicy::Allow(names)).starts_daemons(true))
    }

    /// Runs the command to its end, with the bytes of `stdin`.
    pub(crate) async fn run(
        &self,
        runner: &Runner,
        stdin: Option<Vec<u8>>,
        timeout: Duration,
    ) -> Result<Output, Error> {
        let command = self
            .in_folder(&PathBuf::from("/"), runner)?
            .stdin(stdin.map_or(Stdin::Null, Stdin::bytes))
            .limits(Limits::default().timeout(timeout).capture(KEPT_BYTES));
        let output = runner
            .run(command)
            .await
            .map_err(|source| Error::Command { command: self.shown(), source: Box::new(source) })?;
        match output.success() {
            true => Ok(output),
            false if matches!(output.termination, Termination::TimedOut { .. }) => {
                Err(Error::TimedOut { command: self.shown(), outcome: outcome(&output) })
            }
            false => Err(Error::CommandFailed { command: self.shown(), outcome: outcome(&output) }),
        }
    }

    /// Returns program and first argument, for messages.
    pub(crate) fn shown(&self) -> String {
        // The other arguments may hold secrets, such as the value of an option.
        self.arguments.iter().take(2).map(|argument| shown(argument)).collect::<Vec<_>>().join(" ")
    }
}

/// Describes how a command ended, with the last lines that it printed.
pub(crate) fn outcome(output: &Output) -> String {
    let mut text = output.termination.to_string();
    let stderr = output.stderr.text();
    // A command that printed no error may have told the reason on standard output.
    let printed = if stderr.trim().is_empty() { output.stdout.text() } else { stderr };
    let shown = |line: &str| line.chars().take(MAX_LINE_CHARS).collect::<String>();
    let lines: Vec<String> =
        printed.lines().map(str::trim).filter(|line| !line.is_empty()).map(shown).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    if !last.is_empty() {
        text.push_str(": ");
        text.push_str(&last);
    }
    text
}
