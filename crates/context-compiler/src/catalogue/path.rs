//! Paths in a catalogue.

/// Returns true if `path` is relative and does not climb above its beginning, judged by its text alone.
pub(crate) fn is_path_beneath_root(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.contains(['\\', '\0'])
        && path.split('/').all(|component| component != "..")
}
