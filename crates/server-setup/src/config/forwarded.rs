//! The keys that the server in front tells the far end of a remote.

use super::error::Error;
use super::file;
use super::keys;
use super::tables::Config;
use std::path::Path;

/// These keys hold at the far end as they do in front. Every other key is a matter of the server in front, or of the
/// machine that it names files of.
pub(super) const FORWARDED: [&str; 15] = [
    "toolsets",
    "results",
    "limits.call_timeout_ms",
    "limits.max_timeout_ms",
    "limits.max_concurrent_calls",
    "limits.max_output_bytes",
    "commands.environment",
    "commands.variables",
    "logs.sources",
    "redaction.enabled",
    "redaction.environment_values",
    "redaction.variables",
    "policy.confinement",
    "policy.confinement_level",
    "policy.network",
];

/// The name of the text in errors.
const SOURCE: &str = "the configuration of the server in front";

impl Config {
    /// Returns the keys that the far end of a remote is told, as TOML.
    pub fn forwarded(&self) -> String {
        let line = |key| keys::show(self, key).map(|entry| format!("{key} = {}\n", entry.value));
        FORWARDED.into_iter().filter_map(line).collect()
    }

    /// Reads what [`forwarded`](Self::forwarded) has written.
    ///
    /// # Errors
    /// The text is no TOML, or has a key that the far end is not told.
    pub fn from_forwarded(text: &str) -> Result<Self, Error> {
        let mut config = Self::default();
        file::apply_text(&mut config, Path::new(SOURCE), text, |key| FORWARDED.contains(&key))?;
        if *config.limits.call_timeout_ms > *config.limits.max_timeout_ms {
            return Err(Error::Contradiction {
                first: "`limits.call_timeout_ms` of the server in front".to_owned(),
                second: "`limits.max_timeout_ms` is less".to_owned(),
            });
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingFlags;

    #[test]
    fn what_is_forwarded_is_read_again_as_it_was() {
        let variables = [
            ("CORETOOLS_TOOLSETS", "filesystem,git_status"),
            ("CORETOOLS_LIMITS_CALL_TIMEOUT_MS", "1234"),
            ("CORETOOLS_COMMANDS_VARIABLES", "FOO,BAR_*"),
            ("CORETOOLS_POLICY_NETWORK", "git.example.com,*.packages.example:443"),
            ("CORETOOLS_POLICY_CONFINEMENT", "required"),
            ("CORETOOLS_RESULTS", "text"),
            ("CORETOOLS_LOGS_SOURCES", "api=logs/api.log"),
            ("CORETOOLS_POLICY_AUDIT", "/var/log/audit.jsonl"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let folder = std::env::temp_dir();
        let config = Config::load(&folder, variables, &SettingFlags::default()).unwrap();
        let text = config.forwarded();
        assert!(!text.contains("audit"), "{text}");
        assert_eq!(Config::from_forwarded(&text).unwrap().forwarded(), text);
        assert!(text.contains("limits.call_timeout_ms = 1234") && text.contains("git.example.com"), "{text}");
    }
}
