//! What to run.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;

use crate::confine::Confinement;
use crate::environment::{EnvPolicy, Environment, Inherited};
use crate::error::{Error, SpawnError, SpawnErrorKind};
use crate::events::EventOptions;
use crate::limits::Limits;
use crate::lines::Line;
use crate::outcome::{Output, Stream};
use crate::run::Runner;
use crate::secrets::Secrets;

/// A program, its arguments, the folder it runs in and everything else about one run.
///
/// Nothing is checked until it is run or [validated](Command::validate). `Debug` shows the names of
/// environment variables without their values, and no secret argument.
#[derive(Clone)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) folder: Folder,
    pub(crate) environment: Environment,
    pub(crate) stdin: Stdin,
    #[cfg(unix)]
    pub(crate) stdout: Option<Arc<File>>,
    pub(crate) merge_stderr: bool,
    pub(crate) limits: Option<Limits>,
    pub(crate) cancel: CancellationToken,
    pub(crate) label: Option<String>,
    pub(crate) secrets: Option<Secrets>,
    pub(crate) marker: bool,
    pub(crate) confinement: Option<Confinement>,
    pub(crate) events: Option<EventOptions>,
    pub(crate) on_line: Option<LineCallback>,
}

/// Called with each line as it comes.
pub(crate) type LineCallback = Arc<dyn Fn(Stream, Line<'_>) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Argument {
    pub(crate) value: OsString,
    secret: bool,
}

/// The folder a program runs in: a path, and what it stands for if that has been opened already.
#[derive(Clone)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    #[cfg(unix)]
    pub(crate) handle: Option<Arc<std::os::fd::OwnedFd>>,
}

/// What the program reads from its standard input. It never gets ours.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Stdin {
    /// `/dev/null`: the program reads the end at once.
    #[default]
    Null,
    /// These bytes, and the end.
    Bytes(Arc<Vec<u8>>),
    /// An opened file, from where it stands, without passing through us.
    File(Arc<File>),
    /// Whatever this reader gives, until it ends. See [`Stdin::reader`].
    Reader(SharedReader),
    /// What [`Running::write_stdin`](crate::Running::write_stdin) writes.
    Piped,
    /// This terminal, a device such as `/dev/pts/3` that controls no session yet. It is opened in the program's own new
    /// session, whose controlling terminal it becomes (`open(2)`, `O_NOCTTY`; Linux). Behind a fence it must
    /// be granted. The program's output goes there only where [`Command::stdout`] is the same terminal.
    #[cfg(unix)]
    Terminal(PathBuf),
}

/// A reader that the first run of a [`Command`] takes.
#[derive(Clone)]
pub struct SharedReader(pub(crate) Arc<Mutex<Option<Box<dyn AsyncRead + Send + Unpin>>>>);

impl Stdin {
    /// These bytes, and the end.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(Arc::new(bytes.into()))
    }

    /// Whatever `reader` gives, until it ends. A run ends with its program, whatever the reader does. It can
    /// be used once: a second run of the same command is refused.
    pub fn reader(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::Reader(SharedReader(Arc::new(Mutex::new(Some(Box::new(reader))))))
    }

    fn is_used_up(&self) -> bool {
        match self {
            Self::Reader(shared) => shared.0.lock().unwrap_or_else(PoisonError::into_inner).is_none(),
            _ => false,
        }
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::File(_) => f.write_str("File"),
            Self::Reader(_) => f.write_str("Reader"),
            Self::Piped => f.write_str("Piped"),
            #[cfg(unix)]
            Self::Terminal(path) => write!(f, "Terminal({})", path.display()),
        }
    }
}

impl Command {
    /// A command that runs `program` in `folder` with no arguments.
    ///
    /// A name without a `/` is searched for in the `PATH` that the *child* gets, and never in a folder that
    /// `PATH` gives relative to something; one with a `/` is relative to `folder`. The folder has no
    /// default: a server works on several projects, and the folder it was itself started in is the wrong
    /// answer for all of them.
    pub fn new(program: impl Into<OsString>, folder: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            folder: Folder {
                path: folder.into(),
                #[cfg(unix)]
                handle: None,
            },
            environment: Environment::default(),
            stdin: Stdin::default(),
            #[cfg(unix)]
            stdout: None,
            merge_stderr: false,
            limits: None,
            cancel: CancellationToken::new(),
            label: None,
            secrets: None,
            marker: true,
            confinement: None,
            events: None,
            on_line: None,
        }
    }

    /// Runs in the folder that this handle has open, wherever its path leads by now. The path given to
    /// [`Command::new`] is then only for messages.
    #[cfg(unix)]
    #[must_use]
    pub fn folder_handle(mut self, handle: impl Into<Arc<std::os::fd::OwnedFd>>) -> Self {
        self.folder.handle = Some(handle.into());
        self
    }

    /// Adds an argument. It reaches the program as it stands: there is no shell.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(Argument { value: argument.into(), secret: false });
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|argument| Argument { value: argument.into(), secret: false }));
        self
    }

    /// Adds an argument that `Debug` and errors do not show. Other users of the machine can see it while the
    /// program runs; to keep it out of the output too, name it in [`Command::secrets`].
    #[must_use]
    pub fn secret_arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(Argument { value: argument.into(), secret: true });
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

    /// Leaves an environment variable out.
    #[must_use]
    pub fn env_remove(mut self, key: impl Into<OsString>) -> Self {
        self.environment.changes.insert(key.into(), None);
        self
    }

    /// Where the environment begins. All of ours by default.
    #[must_use]
    pub fn env_policy(mut self, policy: EnvPolicy) -> Self {
        self.environment.policy = policy;
        self
    }

    /// Whether the child gets the environment variable by which processes that leave its session are found
    /// again (`PROCESS_RUNNER_RUN_…=1`, another name for each run). True; a tool whose cache depends on the
    /// whole environment may need it off, and containment is then less.
    #[must_use]
    pub fn marker(mut self, marker: bool) -> Self {
        self.marker = marker;
        self
    }

    /// Runs it, and everything it starts, behind this fence. There is none by default. `TMPDIR` is set to the
    /// fence's temporary folder, if it has one; a later [`Command::env`] wins.
    #[must_use]
    pub fn confined(mut self, confinement: Confinement) -> Self {
        if let Some(folder) = confinement.temp_folder() {
            self = self.env("TMPDIR", folder.to_owned());
        }
        self.confinement = Some(confinement);
        self
    }

    /// What the program reads. `/dev/null` by default.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Gives the program this file or pipe end as its standard output. Nothing of what it prints there passes
    /// through the run: it is neither captured nor limited, and whoever holds the other end reads it.
    #[cfg(unix)]
    #[must_use]
    pub fn stdout(mut self, file: File) -> Self {
        self.stdout = Some(Arc::new(file));
        self
    }

    /// Gives the program one pipe for both streams, which is the only way to keep their order. Everything is
    /// then in `stdout`.
    #[must_use]
    pub fn merge_stderr(mut self) -> Self {
        self.merge_stderr = true;
        self
    }

    /// The limits of this run, instead of the runner's.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Ends the run, and everything it started, when the token is cancelled: `SIGTERM`, the grace time,
    /// `SIGKILL`.
    #[must_use]
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }

    /// What messages call the run. The program's name by default.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Values to keep out of everything that leaves the run, instead of the runner's.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Makes the run tell what happens: see [`Running::events`](crate::Running::events).
    #[must_use]
    pub fn events(mut self, options: EventOptions) -> Self {
        self.events = Some(options);
        self
    }

    /// Calls `callback` with each line as it comes, in order, from the task that reads the streams: it must
    /// be quick. If it panics the program is killed, and the panic goes on at the caller of
    /// [`run`](Command::run) or [`wait`](crate::Running::wait).
    #[must_use]
    pub fn on_line(mut self, callback: impl Fn(Stream, Line<'_>) + Send + Sync + 'static) -> Self {
        self.on_line = Some(Arc::new(callback));
        self
    }

    /// Tells git, ssh, package managers and pagers not to ask, page or colour: nobody would answer.
    ///
    /// Sets `GIT_TERMINAL_PROMPT=0`, `GCM_INTERACTIVE=never`, `GIT_ASKPASS`, `SSH_ASKPASS` and
    /// `SUDO_ASKPASS` empty, `SSH_ASKPASS_REQUIRE=never`, `GIT_SSH_COMMAND=ssh -oBatchMode=yes`,
    /// `GIT_EDITOR=true`, `GIT_SEQUENCE_EDITOR=true`, `PAGER=cat`, `GIT_PAGER=cat`,
    /// `DEBIAN_FRONTEND=noninteractive`, `NO_COLOR=1`, `TERM=dumb`. Later calls of [`Command::env`] win.
    #[must_use]
    pub fn noninteractive(self) -> Self {
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

    /// Runs it to its end with a [`Runner`] of this process's own, default limits and no bound on how many
    /// run at once but that runner's. Dropping the future ends the program and all it started.
    ///
    /// # Errors
    /// If it never started, or our own part failed; see [`Error`].
    pub async fn run(self) -> Result<Output, Error> {
        Runner::shared().run(self).await
    }

    /// Checks everything that can be checked without starting it.
    ///
    /// # Errors
    /// What [`run`](Command::run) would give.
    pub fn validate(&self) -> Result<(), SpawnError> {
        self.check_input()?;
        crate::tree::validate(self, &Inherited::without(&[]))
    }

    /// What messages call the run.
    pub(crate) fn label_text(&self) -> String {
        self.label.clone().unwrap_or_else(|| {
            let program = Path::new(&self.program);
            program.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
        })
    }

    pub(crate) fn error(&self, kind: SpawnErrorKind, source: Option<std::io::Error>) -> SpawnError {
        SpawnError {
            program: self.program.to_string_lossy().into_owned(),
            folder: self.folder.path.clone(),
            kind,
            source,
        }
    }

    /// NUL bytes and bad names, before anything is opened.
    pub(crate) fn check_input(&self) -> Result<(), SpawnError> {
        let check = |place: &dyn Fn() -> String, value: &OsStr| {
            if !has_nul(value) {
                return Ok(());
            }
            Err(self.error(SpawnErrorKind::InvalidInput { place: place(), problem: "has a NUL byte" }, None))
        };
        check(&|| "the program".into(), &self.program)?;
        if self.program.is_empty() {
            let kind = SpawnErrorKind::InvalidInput { place: "the program".into(), problem: "is empty" };
            return Err(self.error(kind, None));
        }
        for (index, argument) in self.arguments.iter().enumerate() {
            check(&|| format!("argument {}", index + 1), &argument.value)?;
        }
        check(&|| "the folder".into(), self.folder.path.as_os_str())?;
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
        if let Some(Err(problem)) = self.confinement.as_ref().map(Confinement::check) {
            return Err(self.error(SpawnErrorKind::Confinement { problem }, None));
        }
        if self.stdin.is_used_up() {
            let kind = SpawnErrorKind::InvalidInput {
                place: "the reader for stdin".into(),
                problem: "was used by an earlier run",
            };
            return Err(self.error(kind, None));
        }
        Ok(())
    }
}

fn has_nul(value: &OsStr) -> bool {
    // In both encodings of `OsStr` (bytes, WTF-8) a zero byte is a NUL and nothing else.
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
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret { f.write_str("[redacted]") } else { self.value.fmt(f) }
    }
}
