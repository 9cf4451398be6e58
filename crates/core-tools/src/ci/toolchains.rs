//! The toolchains on the server's `PATH`, and their versions.

use super::command::Commands;
use super::server_facts::ServerFacts;
use process_runner::{Command, Limits};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A program that was found on `PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Toolchain {
    /// The name of the program.
    pub name: String,
    /// The first line that it prints of its version, or `unusable: ` and the reason.
    pub version: String,
    /// The path of the program.
    pub path: String,
}

/// The programs that are looked for, and the arguments that make each print its version.
const KNOWN_PROGRAMS: [(&str, &str); 25] = [
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

/// The time that a program has to print its version; one that takes longer is shown as unusable.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the known programs that are on `PATH`, in the order they are looked for. All are asked for their
/// versions at once.
pub async fn toolchains(
    commands: &Commands,
    facts: &ServerFacts,
    cancel: &CancellationToken,
) -> Vec<Toolchain> {
    let pending: Vec<_> = KNOWN_PROGRAMS
        .into_iter()
        .filter_map(|(name, arguments)| Some((name, arguments, find(name, facts.path.as_ref())?)))
        .map(|(name, arguments, path)| {
            let (commands, cancel) = (commands.clone(), cancel.clone());
            tokio::spawn(async move {
                let version = version(&commands, &path, arguments, &cancel).await;
                Toolchain { name: name.to_owned(), version, path: path.display().to_string() }
            })
        })
        .collect();
    let mut toolchains = Vec::with_capacity(pending.len());
    for toolchain in pending {
        // A task that panicked found nothing; the others still count.
        toolchains.extend(toolchain.await.ok());
    }
    toolchains
}

fn find(name: &str, path: Option<&OsString>) -> Option<PathBuf> {
    which::WhichConfig::new().binary_name(name.into()).custom_path_list(path?.clone()).first_result().ok()
}

async fn version(commands: &Commands, program: &Path, arguments: &str, cancel: &CancellationToken) -> String {
    let command = match commands.apply_policies(Command::new(program, "/").args(arguments.split(' '))) {
        Ok(command) => command,
        Err(error) => return format!("unusable: {error}"),
    };
    let command =
        command.limits(Limits::default().timeout(VERSION_TIMEOUT).capture(4096)).cancel(cancel.clone());
    match commands.runner.run(command).await {
        // `java -version` answers on standard error; pyenv's shims fail where no version is chosen.
        Ok(output) => {
            let (stdout, stderr) = (output.stdout.clean(), output.stderr.clean());
            // Gradle draws a line of dashes first.
            let has_text = |line: &&str| line.contains(char::is_alphanumeric);
            let line = stdout.lines().chain(stderr.lines()).map(str::trim).find(has_text);
            match (output.success(), line) {
                (true, line) => line.unwrap_or("found").to_owned(),
                (false, Some(line)) => format!("unusable: {line}"),
                (false, None) => format!("unusable: {}", output.termination),
            }
        }
        Err(error) => format!("unusable: {error}"),
    }
}
