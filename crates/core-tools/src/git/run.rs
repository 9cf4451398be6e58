//! How git is run: which programs it may run itself, in which environment, within which limits.

use super::error::Error;
use super::repository::Repository;
use super::text::line;
use crate::ci::{CommandError, Commands, Reach};
use process_runner::{Command, EnvPolicy, Limits, Output, OverLimit, Stdin, Termination, clean};
use std::ffi::OsString;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// git, in repositories beneath the roots of a workspace.
#[derive(Clone, Debug)]
pub struct Git {
    commands: Commands,
}

/// What git may do, and so what it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing is changed, and no program is run. Filters of the repository are off.
    Reads,
    /// Files or references are changed; no program of the repository is run.
    Writes,
    /// As in a terminal: hooks and signatures.
    Commits,
}

/// One run of git.
pub(super) struct Call<'a> {
    pub(super) repository: &'a Repository,
    pub(super) access: Access,
    pub(super) cancel: &'a CancellationToken,
    arguments: Vec<OsString>,
    capture: usize,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
    /// Paths mean themselves. Not where git is given none: its own commands among each other use patterns.
    literal: bool,
    /// git is to find the repository itself, and to judge it.
    finds: bool,
    /// Configuration by environment, which takes any key.
    configuration: Vec<(String, &'static str)>,
}

/// What is kept of an answer, and where git is stopped: a list of 100,000 paths is kept whole.
const CAPTURE: usize = 32 * 1024 * 1024;
/// What git gets for one answer that only reads, and for one that writes.
const PATIENCE: Duration = Duration::from_secs(60);
const WRITING_PATIENCE: Duration = Duration::from_secs(120);
/// What is shown of what git says when it fails.
const SAID_BYTES: usize = 2_000;

/// What git needs of the environment: to find itself, the user's configuration, and a place for its files.
const ENVIRONMENT: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    // Whose repositories are trusted beside root's own.
    "SUDO_UID",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "TEMP",
    "TMP",
    "PATHEXT",
];

/// What hooks and signatures need beside that, and who makes the commit.
const COMMIT_ENVIRONMENT: [&str; 27] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "EMAIL",
    "LANG",
    "LC_CTYPE",
    "SHELL",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "NVM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "UV_CACHE_DIR",
    "PRE_COMMIT_HOME",
    "SKIP",
];

/// Configuration that keeps git from running anything. Each wins over what any file says.
const NO_PROGRAMS: [&str; 22] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.quotePath=false",
    "credential.helper=",
    "protocol.allow=never",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "blame.ignoreRevsFile=",
    "color.ui=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Configuration that a person sets for their own eyes, as git has it where nobody has set anything. The rest is
/// said by options.
const PLAIN: [&str; 18] = [
    "checkout.guess=true",
    "color.advice=false",
    "core.abbrev=auto",
    "core.bigFileThreshold=512m",
    "diff.algorithm=default",
    "diff.indentHeuristic=true",
    "diff.interHunkContext=0",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.renameLimit=1000",
    "diff.suppressBlankEmpty=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "log.date=default",
    "log.follow=false",
    "log.showRoot=true",
    "mailmap.file=",
    "status.renameLimit=1000",
];

/// The same for commits, whose hooks are to run: no process may be left behind, no daemon be asked.
const COMMIT_CONFIGURATION: [&str; 6] = [
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // The message is given in it.
    "i18n.commitEncoding=UTF-8",
];

impl<'a> Call<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        access: Access,
        cancel: &'a CancellationToken,
        words: &[&str],
    ) -> Self {
        Self {
            repository,
            access,
            cancel,
            arguments: words.iter().map(OsString::from).collect(),
            capture: CAPTURE,
            stdin: None,
            timeout: if access == Access::Reads { PATIENCE } else { WRITING_PATIENCE },
            literal: false,
            finds: access == Access::Commits,
            configuration: Vec::new(),
        }
    }

    pub(super) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(super) fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// `--` and paths, which are taken literally.
    pub(super) fn paths(mut self, paths: &[String]) -> Self {
        self.literal = true;
        self.arg("--").args(paths)
    }

    /// Keeps at most so much of what git prints, and then stops it.
    pub(super) fn capture(mut self, bytes: usize) -> Self {
        self.capture = bytes;
        self
    }

    pub(super) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    pub(super) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(super) fn configured(mut self, configuration: &[(String, &'static str)]) -> Self {
        self.configuration.extend_from_slice(configuration);
        self
    }

    fn into_command(self) -> Result<Command, Error> {
        let Self { repository, access, .. } = self;
        let folder = &repository.folder;
        let command = Command::new("git", folder.shown());
        #[cfg(unix)]
        let command = command.folder_handle(folder.folder_handle()?);
        #[cfg(not(unix))]
        let command = {
            drop(command);
            Command::new("git", folder.to_absolute())
        };
        let mut allowed: Vec<OsString> = ENVIRONMENT.map(OsString::from).to_vec();
        if access == Access::Commits {
            allowed.extend(COMMIT_ENVIRONMENT.map(OsString::from));
        }
        let mut command = command
            .env_policy(EnvPolicy::Allow(allowed))
            .noninteractive()
            .env("GIT_EDITOR", "false")
            .env("GIT_SEQUENCE_EDITOR", "false")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_MESSAGES", "C")
            .arg("--no-pager");
        // Above this git looks for no other repository.
        if let Some(ceiling) =
            repository.workspace.roots().find(|root| folder.to_absolute().starts_with(root))
        {
            command = command.env("GIT_CEILING_DIRECTORIES", ceiling.parent().unwrap_or(ceiling));
        }
        let settings: [&[&str]; 2] =
            if access == Access::Commits { [&COMMIT_CONFIGURATION, &[]] } else { [&NO_PROGRAMS, &PLAIN] };
        for setting in settings.into_iter().flatten() {
            command = command.args(["-c", setting]);
        }
        if access != Access::Commits {
            command = command.env("LC_ALL", "C");
        }
        if !self.finds {
            // Found and judged already; git need not, and `core.worktree` is not asked. A commit's hooks would
            // inherit both, and every git that they run elsewhere.
            command = command.env("GIT_DIR", repository.git_dir.to_absolute());
            if let Some(top) = &repository.top {
                command = command.env("GIT_WORK_TREE", top.to_absolute());
            }
        }
        if self.literal {
            command = command.env("GIT_LITERAL_PATHSPECS", "1");
        }
        if access != Access::Commits {
            // Writing does without them too: git looks into submodules on the way, which stay as they are.
            command = command.env("GIT_OPTIONAL_LOCKS", "0");
        }
        if !self.configuration.is_empty() {
            command = command.env("GIT_CONFIG_COUNT", self.configuration.len().to_string());
            for (index, (key, value)) in self.configuration.iter().enumerate() {
                command = command
                    .env(format!("GIT_CONFIG_KEY_{index}"), key)
                    .env(format!("GIT_CONFIG_VALUE_{index}"), *value);
            }
        }
        let mut limits = Limits::default().timeout(self.timeout).capture(self.capture);
        if access == Access::Reads {
            limits = limits.max_output(self.capture as u64, OverLimit::Close);
        }
        command = command.args(self.arguments).limits(limits).cancel(self.cancel.clone()).label("git");
        if let Some(stdin) = self.stdin {
            command = command.stdin(Stdin::bytes(stdin));
        }
        Ok(command)
    }
}

impl Git {
    /// git, run as `commands` run theirs: beneath the same roots, behind the same fence.
    pub fn new(commands: Commands) -> Self {
        Self { commands }
    }

    /// The same for a caller who may reach less.
    #[must_use]
    pub fn narrowed(&self, reach: &Reach) -> Self {
        Self { commands: self.commands.narrowed(reach) }
    }

    /// The repository that `path` is in: see [`Repository::find`].
    ///
    /// # Errors
    /// There is none, or it leads outside the roots.
    pub fn find(&self, path: Option<&str>) -> Result<Repository, Error> {
        Repository::find(self.commands.workspace(), path)
    }

    /// `text` with secrets masked: before it is cut, since half a secret is not recognised.
    pub(super) fn mask(&self, text: &[u8]) -> String {
        self.commands.redactor.redact(&String::from_utf8_lossy(text)).into_owned()
    }

    /// Runs git, whatever its exit code, in a repository that git trusts.
    pub(super) async fn run(&self, call: Call<'_>) -> Result<Output, Error> {
        if call.repository.foreign {
            // Told where the repository is, git does not ask whose it is.
            let mut asked =
                Call::new(call.repository, Access::Reads, call.cancel, &["rev-parse", "--git-dir"]);
            asked.finds = true;
            let output = self.execute(asked).await?;
            if !output.success() {
                let said = self.said(&call.repository.workspace, &output);
                let whose = memchr::memmem::find(output.stderr.bytes(), b"safe.directory").is_some();
                return Err(if whose { Error::Owner } else { Error::Failed { action: "git", said } });
            }
        }
        self.execute(call).await
    }

    async fn execute(&self, call: Call<'_>) -> Result<Output, Error> {
        let command = self.commands.confine.apply(call.into_command()?);
        let output = self
            .commands
            .runner
            .run(command)
            .await
            .map_err(|error| Error::Run(CommandError::from(error).to_string()))?;
        match &output.termination {
            Termination::TimedOut { after, .. } => Err(Error::Run(format!(
                "git was ended at its time limit of {} s. A pipe where it reads a file (`.gitignore`, \
                     `.gitattributes`, what its configuration includes) makes it wait for ever; so does a hook",
                after.as_secs()
            ))),
            Termination::Cancelled { .. } => {
                Err(Error::Run("git was ended: the call was cancelled".to_owned()))
            }
            _ => Ok(output),
        }
    }

    /// Runs git, which must succeed, and returns what it printed. An answer that was too long ends somewhere,
    /// and the second value is false.
    pub(super) async fn ask(&self, action: &'static str, call: Call<'_>) -> Result<(Vec<u8>, bool), Error> {
        let roots = call.repository.workspace.clone();
        let capture = call.capture as u64;
        let output = self.run(call).await?;
        let whole = output.stdout.total_bytes < capture && !output.stdout.truncated();
        // Stopped by us.
        if output.success() || !whole {
            return Ok((
                if output.stdout.truncated() {
                    output.stdout.head().to_vec()
                } else {
                    output.stdout.into_bytes()
                },
                whole,
            ));
        }
        Err(Error::Failed { action, said: self.said(&roots, &output) })
    }

    /// What git and its hooks said, on both streams, without the roots' places.
    pub(super) fn said(&self, workspace: &crate::workspace::Workspace, output: &Output) -> String {
        let mut text = String::new();
        for stream in [&output.stderr, &output.stdout] {
            let part = self.mask(clean(&String::from_utf8_lossy(stream.bytes())).as_bytes());
            let part = part.trim();
            if !part.is_empty() {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(part);
            }
        }
        for root in workspace.roots() {
            if let Some(root) = root.to_str().filter(|root| root.len() > 1) {
                text = text.replace(&format!("{root}/"), "").replace(root, ".");
            }
        }
        if text.len() > SAID_BYTES {
            // What went wrong is said last.
            let mut from = text.len() - SAID_BYTES;
            while !text.is_char_boundary(from) {
                from += 1;
            }
            text = format!("[...] {}", text.get(from..).unwrap_or_default());
        }
        if text.is_empty() { line(&output.summary()) } else { text }
    }
}
