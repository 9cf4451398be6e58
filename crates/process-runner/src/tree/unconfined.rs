//! Where nothing can be confined.

use crate::confine::Enforceable;

/// Nothing, and why.
pub(crate) fn enforceable() -> Result<&'static Enforceable, String> {
    Err("confinement needs Landlock, which is part of Linux".to_owned())
}

/// Why nothing was started.
#[cfg(unix)]
pub(crate) enum Refused {
    /// As on Linux; never made here.
    #[allow(dead_code, reason = "the caller is the same on all systems")]
    Confinement(std::io::Error),
    /// The start failed.
    Start(std::io::Error),
}

/// Calls `start`: a command that did not choose best effort was refused before.
#[cfg(unix)]
pub(crate) fn confined<T>(
    _confinement: Option<&crate::confine::Confinement>,
    start: impl FnOnce() -> std::io::Result<T>,
) -> Result<T, Refused> {
    start().map_err(Refused::Start)
}
