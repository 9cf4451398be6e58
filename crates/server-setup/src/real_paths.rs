//! The paths under which a file can be reached.

use std::path::PathBuf;

/// Returns the files, the same beneath folders without links, and what those that are links lead to.
pub(crate) fn with_real_paths(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    // The workspace compares with paths beneath its roots, which have no links.
    let real = |file: &PathBuf| {
        let folder = file.parent()?.canonicalize().ok()?;
        Some(folder.join(file.file_name()?))
    };
    let real_paths: Vec<PathBuf> = files.iter().filter_map(real).collect();
    // The target of a link is protected too, since that is what the server reads.
    let link_targets: Vec<PathBuf> = files.iter().filter_map(|file| file.canonicalize().ok()).collect();
    files.extend(real_paths);
    files.extend(link_targets);
    files
}
