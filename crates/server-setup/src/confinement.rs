//! The confinement of the programs that tools run.

use crate::config::ConfinementMode;
use crate::error::Error;
use crate::protected_files;
use crate::settings::Settings;
use core_tools::ci::{ConfinementPolicy, PrivateTempDir, ToolchainPaths};
use core_tools::workspace::Workspace;
use process_runner::Confinement;
use role_policy::{Caller, Policy, ToolFacts};
use std::path::{Path, PathBuf};

/// Returns the confinement of the programs that `caller` runs.
///
/// # Errors
/// The settings demand confinement, and no temporary folder can be made for the programs.
pub fn confine(
    settings: &Settings,
    workspace: &Workspace,
    policy: &Policy,
    caller: &Caller,
    tools: &[ToolFacts<'_>],
) -> Result<ConfinementPolicy, Error> {
    if *settings.config.policy.confinement == ConfinementMode::Auto
        && settings.config.policy.network.is_unrestricted()
        && is_full(policy, caller, tools)
    {
        return Ok(ConfinementPolicy::off(
            "the role may do everything; `policy.confinement = \"required\"` confines it too",
        ));
    }
    confine_all(settings, workspace)
}

/// Returns the one confinement of the programs that several callers run.
///
/// # Errors
/// As [`confine`].
pub fn confine_all(settings: &Settings, workspace: &Workspace) -> Result<ConfinementPolicy, Error> {
    let network = &*settings.config.policy.network;
    let best_effort = match *settings.config.policy.confinement {
        ConfinementMode::Off => {
            return Ok(ConfinementPolicy::off("the configuration says so").network(network));
        }
        ConfinementMode::Auto => match Confinement::available() {
            Err(reason) => {
                return Ok(ConfinementPolicy::off(format!("this system has not the means: {reason}"))
                    .network(network));
            }
            Ok(_) => true,
        },
        ConfinementMode::Required => false,
    };
    // The session's own folder, if it has one. If that cannot be used it is `/tmp`, as `temp_dir` would name it again.
    let default_folder = std::env::temp_dir();
    let session_folder = settings.temporary_folder.as_deref().filter(|folder| folder.is_absolute());
    let fallback = if session_folder.is_some() { Path::new("/tmp") } else { &default_folder };
    let temporary = session_folder
        .and_then(|folder| PrivateTempDir::new_in(folder).ok())
        .map_or_else(|| PrivateTempDir::new_in(fallback), Ok)
        .map_err(Error::TemporaryFolder)?;
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/nonexistent"), PathBuf::from);
    let toolchains = ToolchainPaths::discover(&home, |name| std::env::var_os(name));
    // Confinement grants a root as a whole, so a protected file inside one cannot be kept from programs.
    for file in protected_files::protected(settings) {
        if file.exists() && workspace.roots().any(|root| file.starts_with(root)) {
            tracing::warn!(
                "{} lies in a root: tools cannot change it, but commands that they run can; keep it elsewhere",
                file.display()
            );
        }
    }
    Ok(ConfinementPolicy::new(workspace, &toolchains, temporary)
        .without(&protected_files::server_only(settings))
        .network(network)
        .level(*settings.config.policy.confinement_level)
        .best_effort(best_effort))
}

/// Returns true if the caller may do everything there is, so that confinement would only be in its way.
pub(crate) fn is_full(policy: &Policy, caller: &Caller, tools: &[ToolFacts<'_>]) -> bool {
    caller.roles().all(|role| {
        policy.excluded_tools(role).is_empty()
            && tools
                .iter()
                .all(|tool| policy.sees(caller, tool) && policy.requirements(role, tool).is_empty())
    })
}
