//! Systems without Landlock, where nothing can be confined.

use crate::confine::{ConfinementUnavailable, SupportedProtections};
use crate::resource_limits::{CgroupUnavailable, ResourceControl, ResourceControls};

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
    pub(super) resources: Option<&'a ResourceBoundary>,
    pub(super) owner: Option<std::sync::Arc<str>>,
}

/// The limits behind which a run is started: on this system there are none.
#[cfg(unix)]
pub(super) enum ResourceBoundary {}

#[cfg(unix)]
impl ResourceBoundary {
    pub(super) fn prepare(
        _limits: crate::resource_limits::ResourceLimits,
        _owner: Option<std::sync::Arc<str>>,
    ) -> std::io::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) fn watch(&self) -> Option<LimitWatch> {
        match *self {}
    }
}

/// Notices that a limit is met, which does not occur on this system.
#[derive(Debug)]
pub(crate) enum LimitWatch {}

impl LimitWatch {
    pub(crate) fn exceeded(&self) -> Vec<crate::resource_limits::ExceededLimit> {
        match *self {}
    }
}

/// Returns that nothing is limited.
pub(crate) fn resource_controls(_in_namespaces: bool) -> ResourceControls {
    ResourceControls {
        memory: ResourceControl::None,
        processes: ResourceControl::None,
        cpu_weight: ResourceControl::None,
        no_cgroup: Some(CgroupUnavailable::NotLinux),
    }
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
    retried: impl FnOnce(&mut StartAttempt<'_>) -> Result<T, StartFailure>,
) -> Result<T, StartFailure> {
    use super::leader::StartedProcess;
    retried(&mut || super::sys::spawn(request).and_then(StartedProcess::beside).map_err(StartFailure::Start))
}

/// One attempt to start a program.
#[cfg(unix)]
pub(super) type StartAttempt<'a> = dyn FnMut() -> Result<super::leader::StartedProcess, StartFailure> + 'a;
