//! Starts a program behind the layers of its confinement.
//!
//! A process can only confine itself, and `posix_spawn(3)` has no step for it. So the layers are entered before: by a
//! thread that does nothing but start the program, and then ends. They belong to that thread and are inherited by what
//! it starts. The other threads of this process have none of them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::seccomp::SystemCallFilter;
use super::{landlock, sys};
use crate::confine::{
    Confinement, ConfinementLevel, ConfinementUnavailable, Protection, SupportedProtections,
};
use crate::network_namespace::NetworkNamespace;

/// The capabilities that a confined root keeps: those to work with its own files and users.
// With `CAP_SYS_ADMIN` or `CAP_PERFMON` it could read `/proc/PID/environ` of every process: `mm_access` of Linux 6.18
// asks for those before it asks Landlock (measured). With `no_new_privs` an `execve(2)` of root does not bring the
// others back (capabilities(7)).
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT);

/// Drops all capabilities of this thread but [`KEPT_CAPABILITIES`].
fn drop_capabilities() -> io::Result<()> {
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    if (effective | permitted | inheritable).difference(KEPT_CAPABILITIES).is_empty() {
        return Ok(()); // the usual case: the server does not run as root
    }
    let [effective, permitted, inheritable] =
        [effective, permitted, inheritable].map(|set| set.intersection(KEPT_CAPABILITIES));
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?)
}

/// Returns what this system can enforce, or the reason that it can enforce nothing. The kernel is asked once.
pub(crate) fn supported_protections() -> Result<&'static SupportedProtections, ConfinementUnavailable> {
    static ANSWER: OnceLock<Result<SupportedProtections, ConfinementUnavailable>> = OnceLock::new();
    ANSWER.get_or_init(detect).as_ref().map_err(Clone::clone)
}

fn detect() -> Result<SupportedProtections, ConfinementUnavailable> {
    let mut supported = landlock::detect()?;
    // A layer can be known and entering it forbidden, so a thread enters each.
    let everything = Confinement::new().level(ConfinementLevel::Filesystem);
    let ruleset = landlock::ruleset(&everything, &supported);
    let entered = ruleset
        .and_then(|ruleset| on_thread(|| Restrictions { ruleset: Some(ruleset), filter: None }.enter()));
    entered.map_err(|error| ConfinementUnavailable::Refused { reason: error.to_string() })?;
    let filter = SystemCallFilter::new(ConfinementLevel::Strict, &[], false);
    if let Some(filter) = filter
        && on_thread(|| Restrictions { ruleset: None, filter: Some(filter) }.enter()).is_ok()
    {
        supported.protections.extend([Protection::SystemCalls, Protection::AttributeChanges]);
    }
    Ok(supported)
}

/// The reason that a program was not started.
pub(crate) enum StartFailure {
    /// The confinement could not be set up.
    Confinement(io::Error),
    /// The start itself failed.
    Start(io::Error),
}

/// The limits that a program is started behind.
pub(crate) struct StartBoundary<'a> {
    pub(crate) confinement: Option<&'a Confinement>,
    pub(crate) namespace: Option<&'a NetworkNamespace>,
}

/// Calls `start` so that everything it starts is confined, and in the namespace.
pub(crate) fn confined<T: Send>(
    boundary: &StartBoundary<'_>,
    start: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, StartFailure> {
    let confinement = boundary.confinement.filter(|asked| asked.chosen_level() > ConfinementLevel::None);
    // A command that demands what the system cannot enforce was refused before, so this one chose best effort.
    let restrictions = match (confinement, supported_protections()) {
        (Some(confinement), Ok(supported)) => {
            Restrictions::new(confinement, supported).map_err(StartFailure::Confinement)?
        }
        // Without the capabilities that it loses all the same, root cannot leave the namespace.
        _ if boundary.namespace.is_some() => Restrictions { ruleset: None, filter: None },
        _ => return start().map_err(StartFailure::Start),
    };
    on_thread(|| {
        // First, since it needs a capability that is dropped next.
        boundary.namespace.map_or(Ok(()), |namespace| namespace.handle().enter())?;
        restrictions.enter()?;
        Ok(start())
    })
    .map_err(StartFailure::Confinement)?
    .map_err(StartFailure::Start)
}

/// The layers that a thread enters by restricting itself.
struct Restrictions {
    ruleset: Option<OwnedFd>,
    filter: Option<SystemCallFilter>,
}

impl Restrictions {
    /// Returns the restrictions that `confinement` asks for, as far as the system has them.
    fn new(confinement: &Confinement, supported: &SupportedProtections) -> io::Result<Self> {
        let ruleset = landlock::ruleset(confinement, supported)?;
        let level = confinement.chosen_level();
        let has_filter = level >= ConfinementLevel::SystemCalls
            && supported.protections.contains(&Protection::SystemCalls);
        let filter = has_filter
            .then(|| SystemCallFilter::new(level, confinement.permissions(), confinement.allows_network()))
            .flatten();
        Ok(Self { ruleset: Some(ruleset), filter })
    }

    /// Restricts the calling thread, and everything that it starts.
    fn enter(self) -> io::Result<()> {
        // `landlock_restrict_self(2)` and `seccomp(2)` demand it of a process without privileges. It also keeps
        // set-user-id programs from gaining any.
        set_no_new_privs(true)?;
        drop_capabilities()?;
        if let Some(ruleset) = self.ruleset {
            sys::landlock_restrict_thread(ruleset.as_fd())?;
        }
        // The last one, because it may refuse the calls that the others need.
        self.filter.map_or(Ok(()), |filter| filter.install())
    }
}

/// The stack of a thread that only starts one program. The default of 2 MiB would be mapped for every confined run.
const STARTER_STACK_BYTES: usize = 128 * 1024;

/// Calls `work` on a new thread.
///
/// # Errors
/// If the thread cannot be made, and those of `work`.
fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("confined-start".into()).stack_size(STARTER_STACK_BYTES);
        thread.spawn_scoped(scope, work)?.join().map_err(|_| io::Error::other("the thread panicked"))?
    })
}
