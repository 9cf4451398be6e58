//! Whether what the tools run is confined, and to what.

use crate::identity;
use crate::settings::Settings;
use core_tools::ci::{Confine, PrivateTemp, ToolchainPlaces};
use core_tools::config::ConfinementMode;
use core_tools::workspace::Workspace;
use process_runner::Confinement;
use role_policy::{Caller, Policy, ToolFacts};
use std::path::{Path, PathBuf};

/// What `settings` say of the programs that `caller` has run.
///
/// # Errors
/// They say that programs must be confined, and no temporary folder can be made for them.
pub fn confine(
    settings: &Settings,
    workspace: &Workspace,
    policy: &Policy,
    caller: &Caller,
    tools: &[ToolFacts<'_>],
) -> Result<Confine, String> {
    if *settings.config.policy.confinement == ConfinementMode::Auto && is_full(policy, caller, tools) {
        return Ok(Confine::off("the role may do everything; `policy.confinement = \"on\"` confines it too"));
    }
    confine_all(settings, workspace)
}

/// What `settings` say of the programs that any of several callers has run: the fence is about them all.
///
/// # Errors
/// As [`confine`].
pub fn confine_all(settings: &Settings, workspace: &Workspace) -> Result<Confine, String> {
    let best_effort = match *settings.config.policy.confinement {
        ConfinementMode::Off => return Ok(Confine::off("the configuration says so")),
        ConfinementMode::Auto => match Confinement::available() {
            Err(why) => return Ok(Confine::off(format!("this system has not the means: {why}"))),
            Ok(_) => true,
        },
        ConfinementMode::On => false,
    };
    // The session's own, where it has one that can be used.
    let usual = std::env::temp_dir();
    let own = settings.temporary_folder.as_deref().filter(|folder| folder.is_absolute());
    let temporary = own
        .and_then(|folder| PrivateTemp::new_in(folder).ok())
        .map_or_else(|| PrivateTemp::new_in(if own.is_some() { Path::new("/tmp") } else { &usual }), Ok)
        .map_err(|error| format!("cannot make a temporary folder for commands: {error}"))?;
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/nonexistent"), PathBuf::from);
    let places = ToolchainPlaces::usual(&home, |name| std::env::var_os(name));
    // What programs make in a root is theirs, so nothing there can be left out.
    for file in identity::protected(settings) {
        if file.exists() && workspace.roots().any(|root| file.starts_with(root)) {
            tracing::warn!(
                "{} lies in a root: tools cannot change it, but commands that they run can; keep it elsewhere",
                file.display()
            );
        }
    }
    Ok(Confine::new(workspace, &places, temporary)
        .without(&identity::secret(settings))
        .network(*settings.config.policy.network)
        .best_effort(best_effort))
}

/// Whether the caller may do everything there is, so that a fence would only be in its way.
fn is_full(policy: &Policy, caller: &Caller, tools: &[ToolFacts<'_>]) -> bool {
    caller.roles().all(|role| {
        policy.excluded_tools(role).is_empty()
            && tools
                .iter()
                .all(|tool| policy.sees(caller, tool) && policy.requirements(role, tool).is_empty())
    })
}
