//! The parts that toolsets are built from: the runner of programs and the workspace.

use crate::client_settings;
use crate::config::FILE_NAME;
use crate::error::Error;
use crate::program::Program;
use crate::protected_files;
use crate::settings::Settings;
use core_tools::ci::ServerFacts;
use core_tools::workspace::Workspace;
use process_runner::Runner;
use process_runner::guardian::GuardianProgram;
use std::path::PathBuf;

/// Builds the runner of the server that `settings` describe: with a guardian, so that the programs that the server runs
/// do not outlive the server.
///
/// # Errors
/// This program's own file cannot be found.
pub fn runner(settings: &Settings) -> Result<Runner, Error> {
    // This program is its own guardian, so that nothing else has to be installed or found.
    let guardian = GuardianProgram::current_exe().map_err(Error::CurrentExecutable)?;
    let runner = Runner::builder().guardian(guardian).secrets(settings.secrets.clone());
    Ok(runner.withhold(&settings.withheld).adopt_orphans().build())
}

/// Returns the name, version and search path of the server, for the tools that report them.
pub fn server_facts(program: Program) -> ServerFacts {
    ServerFacts::new(program.name, program.version).path(std::env::var_os("PATH"))
}

/// Opens the folders that tools may use, without the configuration that limits the tools.
///
/// # Errors
/// One of them is no folder.
pub fn workspace(settings: &Settings) -> Result<Workspace, Error> {
    workspace_of(settings, &settings.roots)
}

/// Opens `roots`, which are roots of the settings or folders in them. The workspace is for a caller on this machine,
/// who may know the paths of the roots and has a home folder. A server for other callers changes the workspace.
///
/// # Errors
/// One of them is no folder.
pub fn workspace_of(settings: &Settings, roots: &[PathBuf]) -> Result<Workspace, Error> {
    let mut workspace = workspace_without_client_folders(settings, roots)?;
    if client_settings::is_hook_installed(roots) {
        workspace = workspace
            .protect(client_settings::loaded_files(roots))
            .protect_folders(client_settings::loaded_folders(roots));
    }
    // The next start of a client would run what a caller has written there.
    let mut files = client_settings::all_project_settings(roots);
    files.extend(client_settings::loaded_files(roots));
    Ok(workspace.protect_from_restricted(files, client_settings::loaded_folders(roots)))
}

/// Opens `roots` as [`workspace_of`] does, and leaves unprotected what clients load by themselves: a caller who may do
/// everything may write that too.
///
/// # Errors
/// One of them is no folder.
pub(crate) fn workspace_without_client_folders(
    settings: &Settings,
    roots: &[PathBuf],
) -> Result<Workspace, Error> {
    let workspace = Workspace::new(roots)?;
    // By name as well, or a tool could write the file that is found at the next start.
    let workspace = workspace.protect(protected_files::protected(settings)).protect_name(FILE_NAME);
    Ok(workspace.for_local_caller(home()))
}

/// Returns the home folder of the user that the server runs as.
fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_settings;

    // `.ci/run features` checks that this does not depend on the feature `hooks`, which `mcp-http` is built without.
    #[test]
    fn what_clients_load_is_protected_from_restricted_callers_in_every_build() {
        let project = tempfile::tempdir().unwrap();
        let settings = read_settings::defaults(Program::new("demo", "0.1.0")).unwrap();
        let workspace = workspace_of(&settings, &[project.path().to_owned()]).unwrap().restricted();
        for path in [
            ".mcp.json",
            ".claude/settings.json",
            ".vscode/tasks.json",
            ".envrc",
            ".claude/skills/a/SKILL.md",
        ] {
            let written = workspace.locate(&project.path().join(path)).unwrap().write(b"evil");
            assert!(written.is_err(), "{path}");
            assert!(!project.path().join(path).exists(), "{path}");
        }
        workspace.locate(&project.path().join("src/a.rs")).unwrap().write(b"fine").unwrap();
    }
}
