//! [`RoutedEffects`]: what calls reach whose paths are on this machine or on another.

use super::routes::CallRoutes;
use role_policy::{EffectResolver, PatchedPath, ResolveError};
use std::fmt;
use std::sync::Arc;

/// Judges paths on this machine by what they reach, and paths on the machines of [`CallRoutes`] by their text, as
/// those of its roots there. The server there judges again, by what it finds.
pub struct RoutedEffects {
    routes: CallRoutes,
    here: Arc<dyn EffectResolver + Send + Sync>,
}

impl CallRoutes {
    /// Returns `effects`, which judges paths on this machine, with the paths on the others.
    pub fn effects(&self, effects: Arc<dyn EffectResolver + Send + Sync>) -> RoutedEffects {
        RoutedEffects { routes: self.clone(), here: effects }
    }
}

impl fmt::Debug for RoutedEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedEffects").field("routes", &self.routes).finish_non_exhaustive()
    }
}

impl RoutedEffects {
    fn there(&self, path: &str) -> Option<Result<String, ResolveError>> {
        let (index, there) = self.routes.find(path)?;
        self.routes.machines.get(index).map(|machine| machine.effects.resolve_path(there))
    }
}

impl EffectResolver for RoutedEffects {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        self.there(path).unwrap_or_else(|| self.here.resolve_path(path))
    }

    fn resolve_name(&self, path: &str) -> Result<String, ResolveError> {
        self.there(path).unwrap_or_else(|| self.here.resolve_name(path))
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        self.here.resolve_program(word)
    }

    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        self.here.split_command(line)
    }

    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        self.here.patched_paths(patch)
    }

    fn vector_words(&self, words: Vec<String>) -> Result<Vec<String>, ResolveError> {
        self.here.vector_words(words)
    }

    fn shell_words(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        self.here.shell_words(line)
    }
}
