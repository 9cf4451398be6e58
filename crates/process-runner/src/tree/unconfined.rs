//! Systems without Landlock, where nothing can be confined.

use crate::confine::{ConfinementUnavailable, SupportedProtections};

/// Returns the reason that nothing can be enforced.
pub(crate) fn supported_protections() -> Result<&'static SupportedProtections, ConfinementUnavailable> {
    Err(ConfinementUnavailable::NotLinux)
}

/// The limits that a program is started behind.
#[cfg(unix)]
#[allow(dead_code, reason = "the caller is the same on all systems")]
pub(crate) struct StartBoundary<'a> {
    pub(crate) confinement: Option<&'a crate::confine::Confinement>,
    pub(crate) namespace: Option<&'a crate::network_namespace::NetworkNamespace>,
}

/// The reason that a program was not started.
#[cfg(unix)]
pub(crate) enum StartFailure {
    /// The confinement could not be set up. It does not occur on this system.
    #[allow(dead_code, reason = "the caller is the same on all systems")]
    Confinement(std::io::Error),
    /// The start itself failed.
    Start(std::io::Error),
}

/// Calls `start` without a confinement.
// A command that demands one was refused before it came here.
#[cfg(unix)]
pub(crate) fn confined<T>(
    _boundary: &StartBoundary<'_>,
    start: impl FnOnce() -> std::io::Result<T>,
) -> Result<T, StartFailure> {
    start().map_err(StartFailure::Start)
}
