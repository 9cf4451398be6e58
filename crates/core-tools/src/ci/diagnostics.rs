//! What is there: the server, the machine, the roots, the toolchains.

use super::command::Commands;
use process_runner::{Command, Limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetDiagnostics {}

/// What a server knows of itself. Libraries read no environment, so it is told.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// When it started.
    pub started: Instant,
    /// Where programs are searched: the value of `PATH`.
    pub path: Option<OsString>,
}

/// What is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostics {
    /// The server's name and version.
    pub server: String,
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// The caller's role.
    pub role: String,
    /// Operating system, release and architecture.
    pub os: String,
    /// Processors it may use.
    pub cpus: usize,
    /// The folders that paths must lie in. Relative paths start at the first.
    pub roots: Vec<String>,
    /// How commands are confined: `off: …`, what is in force, or `not available: …`.
    pub confinement: String,
    /// The programs found, in the order they are looked for.
    pub toolchains: Vec<Toolchain>,
}

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Toolchain {
    /// What it is called.
    pub name: String,
    /// What it says of its version, or why it says nothing.
    pub version: String,
    /// Where it is.
    pub path: String,
}

/// Programs that are looked for, and how each is asked for its version.
const PROGRAMS: [(&str, &str); 25] = [
    ("git", "--version"),
    ("cargo", "--version"),
    ("rustc", "--version"),
    ("node", "--version"),
    ("npm", "--version"),
    ("pnpm", "--version"),
    ("yarn", "--version"),
    ("bun", "--version"),
    ("python3", "--version"),
    ("uv", "--version"),
    ("poetry", "--version"),
    ("pytest", "--version"),
    ("go", "version"),
    ("java", "-version"),
    ("mvn", "--version"),
    ("gradle", "--version"),
    ("dotnet", "--version"),
    ("cc", "--version"),
    ("cmake", "--version"),
    ("make", "--version"),
    ("just", "--version"),
    ("bats", "--version"),
    ("docker", "--version"),
    ("rg", "--version"),
    ("sh", "-c :"),
];

/// A program that takes longer than this to say its version is shown without one.
const PATIENCE: Duration = Duration::from_secs(5);

/// The programs that are found, asked for their versions side by side.
pub async fn toolchains(
    commands: &Commands,
    facts: &ServerFacts,
    cancel: &CancellationToken,
) -> Vec<Toolchain> {
    let asked: Vec<_> = PROGRAMS
        .into_iter()
        .filter_map(|(name, flag)| Some((name, flag, find(name, facts.path.as_ref())?)))
        .map(|(name, flag, path)| {
            let (commands, cancel) = (commands.clone(), cancel.clone());
            tokio::spawn(async move {
                let version = version(&commands, &path, flag, &cancel).await;
                Toolchain { name: name.to_owned(), version, path: path.display().to_string() }
            })
        })
        .collect();
    let mut toolchains = Vec::with_capacity(asked.len());
    for toolchain in asked {
        // A task that panicked found nothing.
        toolchains.extend(toolchain.await.ok());
    }
    toolchains
}

/// What is there, with the toolchains that were found before.
pub fn diagnose(
    commands: &Commands,
    facts: &ServerFacts,
    role: &str,
    toolchains: Vec<Toolchain>,
) -> Diagnostics {
    Diagnostics {
        server: format!("{} {}", facts.name, facts.version),
        pid: std::process::id(),
        uptime_s: facts.started.elapsed().as_secs(),
        role: role.to_owned(),
        os: os(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        roots: commands.workspace.roots().map(|root| root.display().to_string()).collect(),
        confinement: commands.confinement(),
        toolchains,
    }
}

fn find(name: &str, path: Option<&OsString>) -> Option<PathBuf> {
    which::WhichConfig::new().binary_name(name.into()).custom_path_list(path?.clone()).first_result().ok()
}

async fn version(
    commands: &Commands,
    program: &std::path::Path,
    flag: &str,
    cancel: &CancellationToken,
) -> String {
    let command = commands
        .in_environment(Command::new(program, "/").args(flag.split(' ')))
        .limits(Limits::default().timeout(PATIENCE).capture(4096))
        .cancel(cancel.clone());
    match commands.runner.run(command).await {
        // `java -version` answers on standard error; pyenv's shims fail where no version is chosen.
        Ok(output) => {
            let (stdout, stderr) = (output.stdout.clean(), output.stderr.clean());
            // Gradle draws a line first.
            let said = |line: &&str| line.contains(char::is_alphanumeric);
            let line = stdout.lines().chain(stderr.lines()).map(str::trim).find(said);
            match (output.success(), line) {
                (true, line) => line.unwrap_or("found").to_owned(),
                (false, Some(line)) => format!("unusable: {line}"),
                (false, None) => format!("unusable: {}", output.termination),
            }
        }
        Err(error) => format!("unusable: {error}"),
    }
}

#[cfg(unix)]
fn os() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        name.machine().to_string_lossy()
    )
}

#[cfg(not(unix))]
fn os() -> String {
    format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)
}
