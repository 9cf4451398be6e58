//! The name in a folder that a misspelt one was probably meant to be.

use std::ffi::{OsStr, OsString};

use crate::folder::Folder;

/// Entries that are looked at. A hint is not worth reading a huge folder for.
const MAX_ENTRIES: usize = 10_000;

/// Returns the name in `folder` that is nearest to `wanted`, if one is near.
pub(crate) fn nearest_name(folder: &Folder, wanted: &OsStr) -> Option<OsString> {
    let names =
        folder.entries().ok()?.take(MAX_ENTRIES).filter_map(|entry| entry.ok()?.name.into_string().ok());
    did_you_mean::nearest_file_name(wanted.to_str()?, names).map(OsString::from)
}
