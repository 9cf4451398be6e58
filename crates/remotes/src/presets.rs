//! The kinds that are built in, one file each in the folder `presets`.

/// Name and text of each.
pub(crate) const PRESETS: &[(&str, &str)] = &[("sh", include_str!("presets/sh.toml"))];
