//! What commands may reach: the workspace's roots, the toolchains, and a temporary folder of the server's own.
//!
//! ```no_run
//! use core_tools::ci::{Commands, Confine, PrivateTemp, ToolchainPlaces};
//! use core_tools::redact::Redactor;
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//!
//! # fn example(home: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Arc::new(Workspace::new(["/home/me/project"])?);
//! let places = ToolchainPlaces::usual(home, |name| std::env::var_os(name));
//! let confine = Confine::new(&workspace, &places, PrivateTemp::new_in("/run/user/1000")?).network(false);
//! println!("{confine}"); // Landlock ABI 7: files, truncation, devices, TCP, signals, abstract sockets
//! let commands = Commands::new(process_runner::Runner::new(), workspace, Redactor::new(Default::default())?)
//!     .confined(confine);
//! # Ok(())
//! # }
//! ```

use super::command::Commands;
use crate::workspace::Workspace;
use process_runner::{Command, Confinement};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Whether commands are confined, and how.
///
/// What a confined command can reach, and what no confinement stops (Unix sockets with a path, UDP, and what a
/// command leaves in a place where others run it), is told by [`Confinement`].
#[derive(Clone, Debug)]
pub struct Confine(Setting);

#[derive(Clone, Debug)]
enum Setting {
    Off { why: String },
    On { confinement: Confinement, best_effort: bool, temp: Arc<PrivateTemp> },
    Later(Arc<OnceLock<Confine>>),
}

/// Says how commands are confined whose tools are there already; see [`Confine::later`].
#[derive(Debug)]
pub struct Decide(Arc<OnceLock<Confine>>);

impl Decide {
    /// It is `confine` from now on.
    pub fn decide(self, confine: Confine) {
        // There is one of us, and this is its end.
        let _ = self.0.set(confine);
    }
}

impl Confine {
    /// Commands may reach what the server may. `why` is shown to who asks.
    pub fn off(why: impl Into<String>) -> Self {
        Self(Setting::Off { why: why.into() })
    }

    /// What is decided when more is known: how a caller's commands are confined follows from the policy, which judges
    /// tools that are there. Until then commands reach nothing, and so none starts.
    pub fn later() -> (Self, Decide) {
        let decided = Arc::default();
        (Self(Setting::Later(Arc::clone(&decided))), Decide(decided))
    }

    /// What was decided, where that was left for later.
    fn setting(&self) -> &Setting {
        match &self.0 {
            Setting::Later(decided) => decided.get().map_or(&self.0, Self::setting),
            setting => setting,
        }
    }

    /// Commands may read and write the roots of `workspace` and `temp`, read the system's programs and
    /// configuration, and use `places`; see [`Confinement::project`]. TCP is allowed. Where that cannot be
    /// enforced, no command starts.
    pub fn new(workspace: &Workspace, places: &ToolchainPlaces, temp: PrivateTemp) -> Self {
        let mut confinement = Confinement::project(workspace.roots(), temp.path());
        for path in &places.read {
            confinement = confinement.read(path);
        }
        for path in &places.write {
            confinement = confinement.write(path);
        }
        Self(Setting::On { confinement, best_effort: false, temp: Arc::new(temp) })
    }

    /// Whether commands may use TCP. True unless said. Nothing if confinement is off.
    #[must_use]
    pub fn network(self, allowed: bool) -> Self {
        self.map(|confinement| confinement.network(allowed))
    }

    /// Commands reach none of these files, wherever they lie but in the roots; see [`Confinement::without`].
    #[must_use]
    pub fn without(self, files: &[PathBuf]) -> Self {
        self.map(|confinement| confinement.without(files))
    }

    /// Whether commands start where not everything, or nothing, can be enforced. False unless said. What is
    /// missing is told by [`Display`](fmt::Display).
    #[must_use]
    pub fn best_effort(mut self, allowed: bool) -> Self {
        if let Setting::On { best_effort, .. } = &mut self.0 {
            *best_effort = allowed;
        }
        self.map(|confinement| confinement.best_effort(allowed))
    }

    fn narrowed(self, reach: &Reach) -> Self {
        self.map(|confinement| confinement.narrowed(reach.read.as_deref(), reach.write.as_deref()))
    }

    fn map(mut self, change: impl FnOnce(Confinement) -> Confinement) -> Self {
        self.0 = self.setting().clone();
        if let Setting::On { confinement, .. } = &mut self.0 {
            *confinement = change(std::mem::take(confinement));
        }
        self
    }

    /// The temporary folder that commands may write, where they may not write everything.
    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "reports of tests go there"))]
    pub(super) fn temp_folder(&self) -> Option<&Path> {
        match self.setting() {
            Setting::Off { .. } | Setting::Later(_) => None,
            Setting::On { temp, .. } => Some(temp.path()),
        }
    }

    /// `command`, confined if that is the setting.
    pub(crate) fn apply(&self, command: Command) -> Command {
        match self.setting() {
            Setting::Off { .. } => command,
            Setting::On { confinement, .. } => command.confined(confinement.clone()),
            Setting::Later(_) => command.confined(Confinement::default()),
        }
    }
}

impl fmt::Display for Confine {
    /// "off: …", "Landlock ABI 7: files, …", or "not available: …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.setting() {
            Setting::Off { why } => write!(f, "off: {why}"),
            Setting::Later(_) => f.write_str("not decided; so no command starts"),
            Setting::On { confinement, best_effort, .. } => {
                let refused = match Confinement::available() {
                    Ok(_) => {
                        let in_force = confinement.in_force();
                        in_force.fmt(f)?;
                        !in_force.missing.is_empty()
                    }
                    Err(why) => {
                        write!(f, "not available: {why}")?;
                        true
                    }
                };
                match (refused, best_effort) {
                    (true, false) => f.write_str("; so no command starts"),
                    (true, true) => f.write_str("; commands start all the same"),
                    (false, _) => Ok(()),
                }
            }
        }
    }
}

/// The part of the roots that one caller's commands may reach. Only ever less than the server's: what lies
/// outside the roots gains nothing by being named here.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// What they may read and execute. `None`: all roots.
    pub read: Option<Vec<PathBuf>>,
    /// What they may read and write. `None`: all roots, or what `read` names.
    pub write: Option<Vec<PathBuf>>,
    /// The workspace as far as the caller may use it, for the folder that a command runs in. `None`: the
    /// server's.
    pub workspace: Option<Arc<Workspace>>,
}

impl Commands {
    /// How commands are confined. Not at all by default.
    #[must_use]
    pub fn confined(mut self, confine: Confine) -> Self {
        self.confine = confine;
        self
    }

    /// The same for a caller whose commands may reach less. Where confinement is off, that holds for the folder
    /// they run in, and not for what they do there.
    #[must_use]
    pub fn narrowed(&self, reach: &Reach) -> Self {
        let mut commands = self.clone();
        if let Some(workspace) = &reach.workspace {
            commands.workspace = Arc::clone(workspace);
        }
        commands.confine = commands.confine.narrowed(reach);
        commands
    }

    /// The fence that they are behind, where there is one.
    #[cfg_attr(
        not(all(feature = "sessions", feature = "mcp")),
        allow(dead_code, reason = "sessions are behind it too")
    )]
    pub(crate) fn fence(&self) -> Option<Confinement> {
        match self.confine.setting() {
            Setting::Off { .. } => None,
            Setting::On { confinement, .. } => Some(confinement.clone()),
            Setting::Later(_) => Some(Confinement::default()),
        }
    }

    /// Where commands run.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// How commands are confined, in one line; see [`Confine`].
    pub fn confinement(&self) -> String {
        self.confine.to_string()
    }
}

/// A folder for temporary files that only this user can enter (mode 0700, a name that cannot be guessed).
/// Removed when it is dropped, with all that is in it; a server that is killed leaves it.
#[derive(Debug)]
pub struct PrivateTemp(tempfile::TempDir);

impl PrivateTemp {
    /// A new one in `folder`, such as `XDG_RUNTIME_DIR` or `/tmp`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new_in(folder: impl AsRef<Path>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("core-tools-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o700));
        }
        builder.tempdir_in(folder).map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Where toolchains and their caches lie outside the system's folders. Only what exists is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolchainPlaces {
    /// Programs, libraries, settings.
    pub read: Vec<PathBuf>,
    /// Caches that a build fills. What one project's build puts there, another's may run: to stop that, give a
    /// server caches of its own (`CARGO_HOME`, `npm_config_cache` …) and leave these out.
    pub write: Vec<PathBuf>,
}

/// Read, in the home folder.
const HOME_READ: [&str; 34] = [
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/config",
    ".cargo/env",
    ".rustup",
    ".nvm",
    ".volta",
    ".fnm",
    ".bun/bin",
    ".deno/bin",
    ".yarn/bin",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".sdkman",
    ".dotnet/sdk",
    ".dotnet/shared",
    ".dotnet/host",
    ".dotnet/packs",
    ".dotnet/tools",
    ".dotnet/dotnet",
    ".local/bin",
    ".local/lib",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/share/mise",
    ".local/share/fnm",
    ".local/share/pnpm",
    "go/bin",
    "miniconda3",
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
];

/// Written, in the home folder: package caches, and not the files beside them that hold tokens.
const HOME_WRITE: [&str; 18] = [
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".npm",
    ".bun/install/cache",
    ".yarn/cache",
    ".local/share/pnpm/store",
    "go/pkg",
    ".m2/repository",
    ".gradle/caches",
    ".gradle/wrapper",
    ".gradle/daemon",
    ".gradle/native",
    ".nuget/packages",
    ".local/share/NuGet",
    ".local/share/virtualenv",
];

/// Written, in the folder for caches (`XDG_CACHE_HOME`, `~/.cache`).
const CACHES: [&str; 14] = [
    "pip",
    "uv",
    "pypoetry",
    "pre-commit",
    "go-build",
    "golangci-lint",
    "node-gyp",
    "node",
    "yarn",
    "pnpm",
    "ccache",
    "sccache",
    "zig",
    "deno",
];

/// Variables that name a folder or file to read.
const VARIABLES_READ: [&str; 14] = [
    "RUSTUP_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "JAVA_HOME",
    "GOROOT",
    "GOBIN",
    "DOTNET_ROOT",
    "ANDROID_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "RUSTC_WRAPPER",
];

/// Variables that name a cache to write.
const VARIABLES_WRITE: [&str; 10] = [
    "GOCACHE",
    "GOMODCACHE",
    "npm_config_cache",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "POETRY_CACHE_DIR",
    "YARN_CACHE_FOLDER",
    "CCACHE_DIR",
    "SCCACHE_DIR",
    "NUGET_PACKAGES",
];

impl ToolchainPlaces {
    /// Where the toolchains of a user with this home folder usually lie, and where the environment says they
    /// do: `variable` gives its values (`PATH`, `CARGO_HOME`, `RUSTUP_HOME`, `GOPATH`, `XDG_CACHE_HOME` and
    /// the like). Folders of tokens and keys (`.ssh`, `.config/gh`, `.npmrc`, `.cargo/credentials.toml`) are
    /// not among them, and whatever would take the whole home folder in is left out.
    pub fn usual(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let below =
            |base: &Path, names: &[&str]| names.iter().map(|name| base.join(name)).collect::<Vec<_>>();
        let mut places = Self { read: below(home, &HOME_READ), write: below(home, &HOME_WRITE) };
        if let Some(cargo) = folder("CARGO_HOME") {
            let of_cargo = |names: &[&str]| {
                let names = names.iter().filter_map(|name| name.strip_prefix(".cargo/"));
                names.map(|name| cargo.join(name)).collect::<Vec<_>>()
            };
            places.read.extend(of_cargo(&HOME_READ));
            places.write.extend(of_cargo(&HOME_WRITE));
        }
        places.read.extend(VARIABLES_READ.into_iter().filter_map(folder));
        places.read.extend(variable("PATH").iter().flat_map(std::env::split_paths));
        places.write.extend(VARIABLES_WRITE.into_iter().filter_map(folder));
        for path in variable("GOPATH").iter().flat_map(std::env::split_paths) {
            places.read.push(path.join("bin"));
            places.write.push(path.join("pkg"));
        }
        places.write.extend(below(&folder("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache")), &CACHES));
        for list in [&mut places.read, &mut places.write] {
            list.retain(|path| path.is_absolute() && !home.starts_with(path) && path.exists());
        }
        places
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "the tests look at what commands did, with other means")]
mod tests {
    use super::*;
    use crate::ci::{
        Background, CommandReport, CommandText, ReadCommandOutput, RunCommand, ServerFacts, StartCommand,
        diagnose,
    };
    use crate::redact::Redactor;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};
    use tokio_util::sync::CancellationToken;

    struct Place {
        folder: tempfile::TempDir,
        root: PathBuf,
        token: PathBuf,
    }

    impl Place {
        /// `None` where nothing can be confined, which fails on the machines that must be able to.
        #[allow(clippy::print_stderr, reason = "what a test that could not run says")]
        fn new() -> Option<Self> {
            if let Err(why) = Confinement::available() {
                assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "nothing was tested: {why}");
                eprintln!("NOT TESTED: {why}");
                return None;
            }
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("root");
            fs::create_dir(&root).unwrap();
            let token = folder.path().join("token");
            fs::write(&token, "sesame").unwrap();
            Some(Self { folder, root, token })
        }

        fn commands(&self) -> Commands {
            let workspace = Arc::new(Workspace::new([&self.root]).unwrap());
            let redactor = Redactor::new(Default::default()).unwrap();
            Commands::new(process_runner::Runner::new(), workspace, redactor)
        }

        fn confine(&self, places: &ToolchainPlaces) -> Confine {
            let workspace = Workspace::new([&self.root]).unwrap();
            Confine::new(&workspace, places, PrivateTemp::new_in(self.folder.path()).unwrap())
        }

        fn confined(&self) -> Commands {
            self.commands().confined(self.confine(&ToolchainPlaces::default()))
        }

        fn read_token(&self) -> String {
            format!("cat {}", self.token.display())
        }
    }

    macro_rules! place {
        () => {
            match Place::new() {
                Some(place) => place,
                None => return,
            }
        };
    }

    async fn run(commands: &Commands, words: &[&str]) -> CommandReport {
        let mut command = RunCommand::new("");
        command.command = CommandText::Vector(words.iter().map(|word| (*word).to_owned()).collect());
        commands.run(&command, Duration::from_secs(120), &CancellationToken::new(), |_| {}).await.unwrap()
    }

    async fn sh(commands: &Commands, script: &str) -> CommandReport {
        run(commands, &["sh", "-c", script]).await
    }

    #[tokio::test]
    async fn a_command_reaches_the_roots_and_nothing_else_of_ours() {
        let place = place!();
        let (free, confined) = (place.commands(), place.confined());
        assert_eq!(sh(&free, &place.read_token()).await.stdout, "sesame");
        let report = sh(&confined, &place.read_token()).await;
        assert!(!report.is_success() && report.stderr.contains("Permission denied"), "{report:?}");
        assert!(sh(&confined, "echo text > file && cat file").await.is_success());
    }

    #[tokio::test]
    async fn a_background_command_is_confined_too() {
        let place = place!();
        let background = Background::new(place.confined());
        let script = format!("echo text > file; {}", place.read_token());
        let command = CommandText::Vector(vec!["sh".into(), "-c".into(), script]);
        let input = StartCommand { command, working_directory: None, timeout_ms: None, env: None };
        let said = async |reach: &Reach| {
            let id = background.start_within(&input, "", reach, None).await.unwrap().id;
            let read = ReadCommandOutput { id, cursor: None, wait_ms: None, max_bytes: None };
            loop {
                let output = background.read(&read, "", &CancellationToken::new()).await.unwrap();
                if output.state.state != "running" {
                    return output.output;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let text = said(&Reach::default()).await;
        assert_eq!(text.matches("Permission denied").count(), 1, "{text}");
        let text = said(&Reach { write: Some(Vec::new()), ..Reach::default() }).await;
        assert_eq!(text.matches("Permission denied").count(), 2, "{text}");
    }

    #[tokio::test]
    async fn a_narrower_caller_reaches_less_and_never_more() {
        let place = place!();
        for folder in ["src", "out"] {
            fs::create_dir(place.root.join(folder)).unwrap();
        }
        let parent = place.folder.path().to_owned();
        let reach = Reach {
            read: Some(vec![place.root.join("src"), parent]),
            write: Some(vec![place.root.join("out")]),
            ..Reach::default()
        };
        let confined = place.confined();
        let narrow = confined.narrowed(&reach);
        assert!(sh(&narrow, "ls src && echo text > out/file").await.is_success());
        assert!(!sh(&narrow, "echo text > src/file").await.is_success());
        assert!(!sh(&narrow, &place.read_token()).await.is_success());
        assert!(sh(&confined, "echo text > src/file").await.is_success(), "the others are as they were");
    }

    #[tokio::test]
    async fn before_it_is_decided_no_command_starts_and_then_all_are_confined_as_decided() {
        let place = place!();
        let (later, decide) = Confine::later();
        let commands = place.commands().confined(later);
        let mut command = RunCommand::new("");
        command.command = CommandText::Vector(vec!["true".into()]);
        let never = CancellationToken::new();
        let limit = Duration::from_secs(120);
        for commands in [&commands, &commands.narrowed(&Reach::default())] {
            let refused = commands.run(&command, limit, &never, |_| {}).await;
            assert!(!refused.is_ok_and(|report| report.is_success()));
        }
        assert_eq!(commands.confinement(), "not decided; so no command starts");
        decide.decide(place.confine(&ToolchainPlaces::default()));
        assert!(sh(&commands, "echo text > file && cat file").await.is_success());
        assert!(!sh(&commands, &place.read_token()).await.is_success());
        assert!(!sh(&commands.narrowed(&Reach::default()), &place.read_token()).await.is_success());
        assert!(commands.confinement().starts_with("Landlock"), "{}", commands.confinement());
    }

    #[tokio::test]
    async fn temporary_files_lie_in_a_folder_of_the_servers_own_that_goes_with_it() {
        let place = place!();
        let commands = place.confined();
        let report = sh(&commands, "mktemp").await;
        let file = PathBuf::from(report.stdout.trim_end());
        let folder = file.parent().unwrap().to_owned();
        assert!(folder.starts_with(place.folder.path()), "{report:?}");
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let narrowed = commands.narrowed(&Reach::default());
        drop(commands);
        assert!(file.exists(), "somebody still uses it");
        drop(narrowed);
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn diagnostics_say_what_is_in_force() {
        let place = place!();
        let facts =
            ServerFacts { name: "n".into(), version: "v".into(), started: Instant::now(), path: None };
        let told = |commands: &Commands| diagnose(commands, &facts, "dev", Vec::new()).confinement;
        assert_eq!(told(&place.commands()), "off: the server was started without");
        assert_eq!(
            told(&place.commands().confined(Confine::off("the role is full"))),
            "off: the role is full"
        );
        let text = told(&place.confined());
        assert!(text.starts_with("Landlock ABI ") && !text.contains("TCP"), "{text}");
        let confine = place.confine(&ToolchainPlaces::default()).network(false).best_effort(true);
        let text = told(&place.commands().confined(confine));
        assert!(text.contains("files") && text.contains("TCP") && !text.contains("not enforced"), "{text}");
    }

    #[test]
    fn the_usual_places_hold_no_secrets_and_never_the_whole_home() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let all = [
            ".cargo/bin",
            ".cargo/registry",
            ".ssh",
            ".config/gh",
            ".cache/pip",
            "go/pkg",
            "other/pkg",
            "bin",
        ];
        for folder in all {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in [".npmrc", ".cargo/credentials.toml", ".gitconfig", ".netrc", ".git-credentials"] {
            fs::write(home.join(file), "").unwrap();
        }
        let variables = [
            ("PATH", format!("{}:{}:/:bin::/no/such/folder", home.join("bin").display(), home.display())),
            ("GOPATH", home.join("other").display().to_string()),
            ("JAVA_HOME", String::new()),
            ("VIRTUAL_ENV", home.display().to_string()),
            ("XDG_CACHE_HOME", home.join(".cache").display().to_string()),
        ];
        let places = ToolchainPlaces::usual(home, |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into())
        });
        let below = |names: &[&str]| names.iter().map(|name| home.join(name)).collect::<Vec<_>>();
        assert_eq!(places.read, below(&[".cargo/bin", ".gitconfig", "bin"]));
        assert_eq!(places.write, below(&[".cargo/registry", "go/pkg", "other/pkg", ".cache/pip"]));
    }

    /// With the real toolchain of whoever runs this, and a dependency of this very crate from the cache.
    #[tokio::test]
    async fn cargo_builds_a_dependency_from_its_cache_with_the_usual_places() {
        let place = place!();
        fs::create_dir(place.root.join("src")).unwrap();
        let manifest =
            "[package]\nname = \"tiny\"\nedition = \"2021\"\n[workspace]\n[dependencies]\nmemchr = \"2\"\n";
        fs::write(place.root.join("Cargo.toml"), manifest).unwrap();
        fs::write(place.root.join("src/lib.rs"), "pub use memchr::memchr;").unwrap();
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        let places = ToolchainPlaces::usual(&home, |name| std::env::var_os(name));
        let commands = place.commands().confined(place.confine(&places).network(false));
        let target = place.root.join("target").display().to_string();
        let report = run(&commands, &["cargo", "check", "--offline", "--target-dir", &target]).await;
        assert!(report.is_success() && !report.stderr.contains("denied"), "{report:?}");
        for program in [["git", "--version"], ["python3", "--version"], ["git", "init"], ["git", "status"]] {
            let report = run(&commands, &program).await;
            assert!(report.is_success() && !report.stderr.contains("denied"), "{report:?}");
        }
    }
}
