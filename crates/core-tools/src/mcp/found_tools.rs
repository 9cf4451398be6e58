//! The tools that a client has found beyond its list.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The tools that one client has found beyond its list. They are listed to it from then on, since many clients let their
/// models call nothing else. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundTools(Arc<Mutex<HashSet<String>>>);

impl FoundTools {
    /// Adds tools by name.
    pub(crate) fn add(&self, names: impl IntoIterator<Item = String>) {
        self.names().extend(names);
    }

    /// Returns true if the tool has been found.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Returns the number of tools that have been found.
    pub(crate) fn len(&self) -> usize {
        self.names().len()
    }

    fn names(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
