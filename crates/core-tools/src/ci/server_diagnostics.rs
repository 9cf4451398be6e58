//! The server, the machine, the roots and the toolchains, for `get_diagnostics`.

use super::command::Commands;
use super::environment::CommandEnvironment;
use super::server_facts::ServerFacts;
use super::toolchains::Toolchain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The empty input of `get_diagnostics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetDiagnostics {}

/// The server, its machine and its toolchains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ServerDiagnostics {
    /// The server's name and version.
    pub server: String,
    /// The process id of the server.
    pub pid: u32,
    /// The seconds since the server started.
    pub uptime_s: u64,
    /// The caller's role.
    pub role: String,
    /// Operating system, release and architecture.
    pub os: String,
    /// The number of processors that the server may use.
    pub cpus: usize,
    /// The folders that paths must lie in. Relative paths start at the first.
    pub roots: Vec<String>,
    /// A restriction of the whole server, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// The confinement of commands: `off: …`, what is in force, or `not available: …`.
    pub confinement: String,
    /// The means by which memory, processes and processor time of commands are limited, if the role limits them.
    pub resource_limits: String,
    /// The part of the server's environment that commands get.
    pub environment: CommandEnvironment,
    /// The programs found, in the order they are looked for.
    pub toolchains: Vec<Toolchain>,
}

/// Returns what there is to know of the server, with the toolchains that were found before.
pub fn diagnose(
    commands: &Commands,
    facts: &ServerFacts,
    role: &str,
    toolchains: Vec<Toolchain>,
) -> ServerDiagnostics {
    ServerDiagnostics {
        server: format!("{} {}", facts.name, facts.version),
        pid: std::process::id(),
        uptime_s: facts.started.elapsed().as_secs(),
        role: role.to_owned(),
        os: operating_system(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        roots: commands.workspace.roots().map(|root| root.display().to_string()).collect(),
        notice: facts.notice.clone(),
        confinement: commands.confinement_summary(),
        resource_limits: commands.resource_controls(),
        environment: commands.environment_policy().summary(),
        toolchains,
    }
}

#[cfg(unix)]
fn operating_system() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        name.machine().to_string_lossy()
    )
}

#[cfg(not(unix))]
fn operating_system() -> String {
    format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)
}
