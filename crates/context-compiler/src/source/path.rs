//! Paths of a source tree.

/// Returns the path of the entry `name` in `folder`, where `""` is the root.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns true if `path` is `folder` or lies beneath it.
pub(crate) fn is_at_or_beneath(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
