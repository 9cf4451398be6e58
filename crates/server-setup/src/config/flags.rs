//! The flags of the command line.

use std::path::PathBuf;

/// The flags of the command line that configure a server; `None` and empty where one was not given.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags {
    /// `--config`: exactly this file, which must exist.
    pub config: Option<PathBuf>,
    /// `--root`, given any number of times.
    pub roots: Vec<PathBuf>,
    /// `--toolsets`, as it was given.
    pub toolsets: Option<String>,
    /// `--results`, as it was given.
    pub results: Option<String>,
    /// `--role`.
    pub role: Option<String>,
    /// `--policy`.
    pub policy: Option<PathBuf>,
    /// `--audit`.
    pub audit: Option<PathBuf>,
    /// `--remote`: the name of a remote, or its kind, target and root.
    pub remote: Option<String>,
    /// `--remote-option`, each `NAME=VALUE`.
    pub remote_options: Vec<String>,
    /// Further flags: key, flag, and the text that was given.
    pub others: Vec<(&'static str, &'static str, String)>,
}
