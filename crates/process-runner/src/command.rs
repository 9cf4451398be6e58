//! A command: the program to run, and everything about one run.

use std::ffi::{OsStr, OsString};
use std::fmt;
#[cfg(unix)]
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::confine::{Confinement, ConfinementProblem};
use crate::environment::{EnvPolicy, RequestedEnvironment};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::events::EventOptions;
use crate::leftover::RunOwner;
use crate::limits::Limits;
use crate::line_splitter::OutputLine;
use crate::network_namespace::NetworkNamespace;
use crate::outcome::Stream;
use crate::resource_limits::ResourceLimits;
use crate::secrets::SecretValues;
use crate::stdin::Stdin;

/// A program, its arguments, the folder it runs in and everything else about one run.
///
/// Nothing is checked until the command is run or [validated](Command::validate). `Debug` shows the names of
/// environment variables without their values, and no secret argument.
#[derive(Clone)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<CommandArgument>,
    pub(crate) folder: WorkingFolder,
    pub(crate) environment: RequestedEnvironment,
    pub(crate) stdin: Stdin,
    #[cfg(unix)]
    pub(crate) stdout: Option<Arc<File>>,
    pub(crate) terminal: Option<TerminalSize>,
    pub(crate) merge_stderr: bool,
    pub(crate) limits: Option<Limits>,
    pub(crate) cancel: CancellationToken,
    pub(crate) label: Option<String>,
    pub(crate) secrets: Option<SecretValues>,
    pub(crate) marker: bool,
    #[cfg_attr(not(unix), allow(dead_code, reason = "only Unix adopts the orphans of runs"))]
    pub(crate) starts_daemons: bool,
    /// The caller whose run it is; see [`owned_by`](crate::owned_by).
    pub(crate) owner: Option<Arc<dyn RunOwner>>,
    pub(crate) confinement: Option<Confinement>,
    pub(crate) resource_limits: ResourceLimits,
    pub(crate) network_namespace: Option<NetworkNamespace>,
    pub(crate) events: Option<EventOptions>,
    pub(crate) on_line: Option<LineCallback>,
}

/// The size of a terminal's window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// The number of columns.
    pub columns: u16,
    /// The number of rows.
    pub rows: u16,
}

impl Default for TerminalSize {
    /// Returns the size that programs expect of a terminal: 80 columns and 24 rows.
    fn default() -> Self {
        Self { columns: 80, rows: 24 }
    }
}

/// A function that is called with each line of output.
pub(crate) type LineCallback = Arc<dyn Fn(Stream, OutputLine<'_>) + Send + Sync>;

/// One argument, which `Debug` hides if it is secret.
#[derive(Clone)]
pub(crate) struct CommandArgument {
    pub(crate) value: OsString,
    secret: bool,
}

/// The folder that a program runs in: its path, and a handle if the caller has it open.
#[derive(Clone)]
pub(crate) struct WorkingFolder {
    pub(crate) path: PathBuf,
    #[cfg(unix)]
    pub(crate) handle: Option<Arc<std::os::fd::OwnedFd>>,
}

impl Command {
    /// Returns the name of the caller for whom the command is run, if that is known.
    pub(crate) fn owner_name(&self) -> Option<Arc<str>> {
        self.owner.as_ref().map(|owner| owner.name().into())
    }

    /// Returns a command that runs `program` in `folder` with no arguments.
    ///
    /// A name without a `/` is searched for in the `PATH` that the *child* gets, in its absolute folders alone. A name
    /// with a `/` is relative to `folder`. The folder has no default: a server works on several projects, and the
    /// folder it was itself started in is the wrong answer for all of them.
    pub fn new(program: impl Into<OsString>, folder: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            folder: WorkingFolder {
                path: folder.into(),
                #[cfg(unix)]
                handle: None,
            },
            environment: RequestedEnvironment::default(),
            stdin: Stdin::default(),
            #[cfg(unix)]
            stdout: None,
            terminal: None,
            merge_stderr: false,
            limits: None,
            cancel: CancellationToken::new(),
            label: None,
            secrets: None,
            marker: true,
            starts_daemons: false,
            owner: None,
            confinement: None,
            resource_limits: ResourceLimits::default(),
            network_namespace: None,
            events: None,
            on_line: None,
        }
    }

    /// Runs the program in the folder that this handle has open, even if the folder was renamed or replaced since. The
    /// path that was passed to [`Command::new`] is then used only in messages.
    #[cfg(unix)]
    #[must_use]
    pub fn folder_handle(mut self, handle: impl Into<Arc<std::os::fd::OwnedFd>>) -> Self {
        self.folder.handle = Some(handle.into());
        self
    }

    /// Adds an argument. The argument reaches the program unchanged, because there is no shell.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(CommandArgument { value: argument.into(), secret: false });
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(
            arguments.into_iter().map(|argument| CommandArgument { value: argument.into(), secret: false }),
        );
        self
    }

    /// Adds an argument that `Debug` and errors do not show. Other users of the machine can see it while the program
    /// runs; to hide the argument in the output too, pass it to [`Command::secrets`].
    #[must_use]
    pub fn secret_arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(CommandArgument { value: argument.into(), secret: true });
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.changes.insert(key.into(), Some(value.into()));
        self
    }

    /// Sets environment variables.
    #[must_use]
    pub fn envs<K: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(key, value)| (key.into(), Some(value.into())));
        self.environment.changes.extend(variables);
        self
    }

    /// Returns the value of an environment variable that [`env`](Self::env) or [`envs`](Self::envs) set. Returns `None`
    /// for a variable that the program may inherit.
    pub fn env_value(&self, key: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.environment.changes.get(key.as_ref())?.as_deref()
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn env_remove(mut self, key: impl Into<OsString>) -> Self {
        self.environment.changes.insert(key.into(), None);
        self
    }

    /// Sets which variables of this process the program inherits. The default is all of them.
    #[must_use]
    pub fn env_policy(mut self, policy: EnvPolicy) -> Self {
        self.environment.policy = policy;
        self
    }

    /// Sets or leaves out the environment variable by which processes that leave the session are found
    /// (`PROCESS_RUNNER_RUN_…=1`, another name for each run). The variable is set by default. A tool whose cache
    /// depends on the whole environment may need a run without the variable. Without the variable, a process that
    /// leaves the session escapes.
    #[must_use]
    pub fn marker(mut self, marker: bool) -> Self {
        self.marker = marker;
        self
    }

    /// Sets whether the program starts daemons that are not part of the run, as a container engine starts the monitor of a
    /// container. By default it does not, and a process that shows no run may be taken for one of this run and end with it.
    /// If several such programs may have started a process that shows no run, the process ends with none of their runs. A
    /// process that shows this run, by its session or the [marker](Self::marker), is always one of the run.
    #[must_use]
    pub fn starts_daemons(mut self, starts_daemons: bool) -> Self {
        self.starts_daemons = starts_daemons;
        self
    }

    /// Limits what the programs of this command's [owner](crate::owned_by) use together. Nothing is limited by default.
    #[must_use]
    pub fn resource_limits(mut self, limits: ResourceLimits) -> Self {
        self.resource_limits = limits;
        self
    }

    /// Confines the program and everything it starts. The default is no confinement. `TMPDIR` is set to the
    /// confinement's temporary folder, if it has one; a later [`Command::env`] overrides it.
    #[must_use]
    pub fn confined(mut self, confinement: Confinement) -> Self {
        // The usual temporary folder lies outside the confinement, where the program could not write.
        if let Some(folder) = confinement.temp_folder() {
            self = self.env("TMPDIR", folder.to_owned());
        }
        self.confinement = Some(confinement);
        self
    }

    /// Starts the program in a network namespace. The default is the network namespace of this process.
    ///
    /// The command also needs a [confinement](Self::confined), because root could leave the namespace without one. A
    /// command without a confinement does not start. The program loses the capabilities that a confined root loses,
    /// also on kernels without Landlock.
    #[must_use]
    pub fn network_namespace(mut self, namespace: NetworkNamespace) -> Self {
        self.network_namespace = Some(namespace);
        self
    }

    /// Sets the standard input. The default is `/dev/null`.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Gives the program this file or pipe end as its standard output. The run does not read this output, and therefore
    /// neither captures nor limits it.
    #[cfg(unix)]
    #[must_use]
    pub fn stdout(mut self, file: File) -> Self {
        self.stdout = Some(Arc::new(file));
        self
    }

    /// Gives the program one pipe for both streams, which is the only way to keep their order. All output is
    /// then in [`Output::stdout`](crate::Output::stdout).
    #[must_use]
    pub fn merge_stderr(mut self) -> Self {
        self.merge_stderr = true;
        self
    }

    /// Gives the program a new terminal of this size for all three streams. The terminal controls the session of the
    /// program. By default there is no terminal. The terminal replaces [`Command::stdout`] and a
    /// [`Stdin::File`](crate::Stdin::File).
    ///
    /// The output of the program and the echo of the terminal are its standard output. Text that is written to a
    /// [`Stdin::Piped`](crate::Stdin::Piped) is typed into the terminal. Closing the input types nothing, so write
    /// `\x04` to end the input. When the run is over, the terminal hangs up. On Windows the command does not start.
    #[must_use]
    pub fn terminal(mut self, size: TerminalSize) -> Self {
        self.terminal = Some(size);
        self.merge_stderr = true;
        self
    }

    /// Sets the limits of this run. The default is the runner's.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets a token whose cancellation ends the run and everything it started: by `SIGTERM`, and by `SIGKILL` after
    /// the [grace time](Limits::term_grace).
    #[must_use]
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }

    /// Sets the name of the run in messages. The default is the program's name.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets the values to hide in everything that leaves the run. The default is the runner's.
    #[must_use]
    pub fn secrets(mut self, secrets: SecretValues) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Asks for events, which [`Running::events`](crate::Running::events) receives. The default is none.
    #[must_use]
    pub fn events(mut self, options: EventOptions) -> Self {
        self.events = Some(options);
        self
    }

    /// Calls `callback` with each line as it comes, in order. The task that reads the streams calls it, so it must
    /// return quickly. If it panics, the program is killed and the panic is resumed in the caller of
    /// [`run`](Command::run) or [`wait`](crate::Running::wait).
    #[must_use]
    pub fn on_line(mut self, callback: impl Fn(Stream, OutputLine<'_>) + Send + Sync + 'static) -> Self {
        self.on_line = Some(Arc::new(callback));
        self
    }

    /// Tells git, ssh, package managers and pagers not to ask questions, page or colour. Nobody could answer.
    ///
    /// Sets `GIT_TERMINAL_PROMPT=0`, `GCM_INTERACTIVE=never`, `GIT_ASKPASS`, `SSH_ASKPASS` and
    /// `SUDO_ASKPASS` empty, `SSH_ASKPASS_REQUIRE=never`, `GIT_SSH_COMMAND=ssh -oBatchMode=yes`,
    /// `GIT_EDITOR=true`, `GIT_SEQUENCE_EDITOR=true`, `PAGER=cat`, `GIT_PAGER=cat`,
    /// `DEBIAN_FRONTEND=noninteractive`, `NO_COLOR=1`, `TERM=dumb`. Later calls of [`Command::env`] override them.
    #[must_use]
    pub fn noninteractive(self) -> Self {
        // As variables and not as arguments, since git and package managers pass them on to what they start.
        self.envs([
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GCM_INTERACTIVE", "never"),
            ("GIT_ASKPASS", ""),
            ("SSH_ASKPASS", ""),
            ("SSH_ASKPASS_REQUIRE", "never"),
            ("SUDO_ASKPASS", ""),
            ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
            ("GIT_EDITOR", "true"),
            ("GIT_SEQUENCE_EDITOR", "true"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("DEBIAN_FRONTEND", "noninteractive"),
            ("NO_COLOR", "1"),
            ("TERM", "dumb"),
        ])
    }

    /// Returns the name of the run in messages.
    pub(crate) fn label_text(&self) -> String {
        self.label.clone().unwrap_or_else(|| {
            let program = Path::new(&self.program);
            program.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
        })
    }

    /// Returns the error of a start of this command.
    pub(crate) fn error(&self, kind: SpawnErrorKind, source: Option<std::io::Error>) -> SpawnError {
        SpawnError {
            program: self.program.to_string_lossy().into_owned(),
            folder: self.folder.path.clone(),
            kind,
            source,
        }
    }

    /// Checks for NUL bytes, bad names and a confinement that cannot be enforced. It opens nothing.
    pub(crate) fn check_input(&self) -> Result<(), SpawnError> {
        let check = |part: &dyn Fn() -> String, value: &OsStr| {
            if !has_nul(value) {
                return Ok(());
            }
            Err(self.error(SpawnErrorKind::InvalidInput { part: part(), problem: "has a NUL byte" }, None))
        };
        // The part is a closure, since its text is needed only for an error.
        check(&|| "the program".into(), &self.program)?;
        if self.program.is_empty() {
            let kind = SpawnErrorKind::InvalidInput { part: "the program".into(), problem: "is empty" };
            return Err(self.error(kind, None));
        }
        for (index, argument) in self.arguments.iter().enumerate() {
            check(&|| format!("argument {}", index + 1), &argument.value)?;
        }
        check(&|| "the folder".into(), self.folder.path.as_os_str())?;
        // The kernel takes any text, and `A=B=C` would set `A`, which nobody meant.
        for (key, value) in &self.environment.changes {
            let key_text = key.to_string_lossy();
            check(&|| "the name of an environment variable".into(), key)?;
            if key.is_empty() || key_text.contains('=') {
                return Err(self.error(SpawnErrorKind::InvalidEnv { key: key_text.into_owned() }, None));
            }
            if let Some(value) = value {
                check(&|| format!("the environment value of `{key_text}`"), value)?;
            }
        }
        if self.terminal.is_some() && !cfg!(unix) {
            let (part, problem) = ("the terminal".to_owned(), "is not to be had on this system");
            return Err(self.error(SpawnErrorKind::InvalidInput { part, problem }, None));
        }
        if self.network_namespace.is_some() && self.confinement.is_none() {
            let problem = ConfinementProblem::NamespaceUnconfined;
            return Err(self.error(SpawnErrorKind::Confinement { problem }, None));
        }
        if let Some(Err(problem)) = self.confinement.as_ref().map(Confinement::check) {
            return Err(self.error(SpawnErrorKind::Confinement { problem }, None));
        }
        if self.stdin.is_used_up() {
            let kind = SpawnErrorKind::InvalidInput {
                part: "the reader for stdin".into(),
                problem: "was used by an earlier run",
            };
            return Err(self.error(kind, None));
        }
        Ok(())
    }
}

fn has_nul(value: &OsStr) -> bool {
    // In both encodings of `OsStr` (bytes, WTF-8) a zero byte is always a NUL.
    value.as_encoded_bytes().contains(&0)
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("folder", &self.folder.path)
            .field("env_policy", &self.environment.policy)
            .field("env", &self.environment.changes.keys())
            .field("stdin", &self.stdin)
            .field("merge_stderr", &self.merge_stderr)
            .field("limits", &self.limits)
            .field("confinement", &self.confinement)
            .field("resource_limits", &self.resource_limits)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CommandArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret { f.write_str("[redacted]") } else { self.value.fmt(f) }
    }
}
