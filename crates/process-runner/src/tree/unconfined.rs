//! Systems without Landlock, where nothing can be confined.

use crate::confine::{ConfinementUnavailable, SupportedProtections};

/// Returns the reason that nothing can be enforced.
pub(crate) fn supported_protections() -> Result<&'static SupportedProtections, ConfinementUnavailable> {
    Err(ConfinementUnavailable::NotLinux)
}

/// The limits that a program is started behind.
#[cfg(unix)]
#[allow(dead_code, reason = "the caller is the same on all systems")]
pub(super) struct StartBoundary<'a> {
    pub(super) confinement: Option<&'a crate::confine::Confinement>,
    pub(super) network: Option<&'a crate::network_namespace::NetworkNamespace>,
    pub(super) terminal: Option<&'a std::path::Path>,
}

/// The reason that a program was not started. The first two do not occur on this system.
#[cfg(unix)]
#[allow(dead_code, reason = "the caller is the same on all systems")]
pub(crate) enum StartFailure {
    /// The confinement could not be set up.
    Confinement(std::io::Error),
    /// The folder does not exist where the program would run.
    FolderOutside,
    /// The start itself failed.
    Start(std::io::Error),
}

/// Calls `retried` with a function that starts the program without a confinement.
// A command that demands one was refused before it came here.
#[cfg(unix)]
pub(super) fn start<T>(
    _boundary: &StartBoundary<'_>,
    request: &super::sys::SpawnRequest<'_>,
    retried: impl FnOnce(&mut dyn FnMut() -> Result<libc::pid_t, StartFailure>) -> Result<T, StartFailure>,
) -> Result<T, StartFailure> {
    retried(&mut || super::sys::spawn(request).map_err(StartFailure::Start))
}
