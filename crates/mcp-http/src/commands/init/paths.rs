//! The paths of what is written.

use std::path::{Path, PathBuf};

/// The folder of a server that systemd starts for a whole machine.
const SYSTEM_FOLDER: &str = "/etc/coretools";
/// The folder of its audit, which the unit makes.
const SYSTEM_LOGS: &str = "/var/log/coretools";

/// The paths of what is written.
#[derive(Debug)]
pub(super) struct InitPaths {
    pub(super) config: PathBuf,
    pub(super) policy: PathBuf,
    pub(super) tokens: PathBuf,
    pub(super) unit: PathBuf,
    /// The folder of the audit.
    pub(super) logs: PathBuf,
    /// The unit makes the folder of the audit.
    pub(super) unit_makes_logs: bool,
}

impl InitPaths {
    /// Returns the paths of an installation in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        let is_system = folder == Path::new(SYSTEM_FOLDER);
        Self {
            config: folder.join("coretools.toml"),
            policy: folder.join("roles.toml"),
            tokens: folder.join("tokens.toml"),
            unit: folder.join("mcp-http.service"),
            logs: if is_system { PathBuf::from(SYSTEM_LOGS) } else { folder.join("log") },
            unit_makes_logs: is_system,
        }
    }
}
