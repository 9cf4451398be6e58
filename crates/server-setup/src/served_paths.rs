//! The paths that a host serves: the folders of its workspace, and the roots and paths on remotes.

use crate::settings::Settings;
use core_tools::workspace::Workspace;
use role_policy::EffectResolver;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the folders that a host shows its callers: those of `workspace`, and the roots on remotes.
pub fn served_roots(settings: &Settings, workspace: &Workspace) -> Vec<PathBuf> {
    let roots = workspace.roots().map(Path::to_owned);
    #[cfg(all(feature = "remotes", unix))]
    let roots = roots.chain(settings.chosen_remotes.iter().flat_map(crate::remote::ChosenRemotes::roots));
    #[cfg(not(all(feature = "remotes", unix)))]
    let _ = settings;
    roots.collect()
}

/// Returns what judges the paths in arguments: `effects` those on this machine, and the paths on remotes by their text.
pub fn effects_of(
    settings: &Settings,
    effects: impl EffectResolver + Send + Sync + 'static,
) -> Arc<dyn EffectResolver + Send + Sync> {
    let here: Arc<dyn EffectResolver + Send + Sync> = Arc::new(effects);
    #[cfg(all(feature = "remotes", unix))]
    if let Some(chosen) = &settings.chosen_remotes {
        return Arc::new(chosen.effects(here));
    }
    #[cfg(not(all(feature = "remotes", unix)))]
    let _ = settings;
    here
}
