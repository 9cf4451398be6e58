//! Overrides of the configuration that keep git from running the repository's content filters.

use std::collections::BTreeSet;
use std::ffi::OsString;

/// A key of the configuration with the value that replaces the repository's.
pub(super) struct ConfigOverride {
    pub(super) key: OsString,
    pub(super) value: &'static str,
}

/// The filters and diff drivers of a repository.
pub(super) struct ConfiguredFilters {
    pub(super) overrides: Vec<ConfigOverride>,
    /// True if there are content filters among them.
    pub(super) has_filters: bool,
}

impl ConfiguredFilters {
    /// Reads the NUL-separated keys `filter.*` and `diff.*.binary` of a configuration.
    pub(super) fn parse(keys: &[u8]) -> Self {
        let mut overrides = Vec::new();
        let mut has_filters = false;
        // `filter.NAME.clean` and `filter.NAME.smudge` are one filter: `filter.NAME`.
        let names: BTreeSet<&[u8]> = keys
            .split(|byte| *byte == 0)
            .filter_map(|key| Some(&key[..key.iter().rposition(|byte| *byte == b'.')?]))
            .collect();
        for name in names {
            let mut set = |last: &str, value| {
                let key = os_string([name, last.as_bytes()].concat());
                overrides.push(ConfigOverride { key, value });
            };
            if name.starts_with(b"filter.") {
                has_filters = true;
                // An empty `process` takes precedence over `clean` and `smudge`, and runs nothing.
                set(".process", "");
                // A required filter that does nothing would make git fail.
                set(".required", "false");
            } else if name.starts_with(b"diff.") {
                set(".binary", "auto");
            }
        }
        Self { overrides, has_filters }
    }
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> OsString {
    // git's own keys are UTF-8 there.
    String::from_utf8_lossy(&bytes).into_owned().into()
}
