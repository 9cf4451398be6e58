//! The name a misspelt one was probably meant to be.

use std::ffi::{OsStr, OsString};

use super::Folder;

/// Entries looked at: a hint is not worth reading a huge folder for.
const MAX_ENTRIES: usize = 10_000;

/// The name in `folder` nearest to `wanted`, if it is near: case aside, at most a third of it mistyped.
pub(super) fn nearest_name(folder: &Folder, wanted: &OsStr) -> Option<OsString> {
    let wanted = wanted.to_str()?.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(1);
    folder
        .entries()
        .ok()?
        .take(MAX_ENTRIES)
        .filter_map(|entry| {
            let name = entry.ok()?.name;
            let distance = strsim::damerau_levenshtein(&wanted, &name.to_str()?.to_lowercase());
            (distance <= allowed).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name)
}
