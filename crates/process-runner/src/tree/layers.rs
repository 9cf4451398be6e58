//! Starts a program behind the layers of its confinement.
//!
//! A process can only confine itself, and `posix_spawn(3)` has no step for it. So the layers are entered before, by a
//! thread that does nothing but start the program and then ends; or, if there are namespaces, by a process that does
//! the same. The layers belong to that thread or process, and are inherited by what it starts. The other threads of
//! this process have none of them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::child::{ChildProcess, ProgramImage, in_child, in_child_of_cgroup};
use super::landlock;
use super::landlock::ExtraGrant;
use super::leader::StartedProcess;
use super::namespaces::{self, FolderInside, NamespaceOwner, Namespaces};
use super::resource_control::ResourceBoundary;
use super::seccomp::SystemCallFilter;
use super::sys::{self, SpawnPlacement, SpawnRequest};
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

/// Drops all capabilities of this thread, for root all but [`KEPT_CAPABILITIES`].
fn drop_capabilities() -> io::Result<()> {
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    if (effective | permitted | inheritable).difference(KEPT_CAPABILITIES).is_empty() {
        return Ok(()); // the usual case: the server does not run as root
    }
    let kept = if geteuid().is_root() { KEPT_CAPABILITIES } else { CapabilitySet::empty() };
    let [effective, permitted, inheritable] =
        [effective, permitted, inheritable].map(|set| set.intersection(kept));
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
    let ruleset = landlock::ruleset(&everything, &[], false, &supported);
    let entered = ruleset
        .and_then(|ruleset| on_thread(|| Restrictions { ruleset: Some(ruleset), filter: None }.enter()));
    entered.map_err(|error| ConfinementUnavailable::Refused { reason: error.to_string() })?;
    let filter = SystemCallFilter::new(ConfinementLevel::Strict, &[], false);
    if let Some(filter) = filter
        && on_thread(|| Restrictions { ruleset: None, filter: Some(filter) }.enter()).is_ok()
    {
        supported.protections.extend([Protection::SystemCalls, Protection::AttributeChanges]);
    }
    if namespaces::try_out().is_ok() {
        supported.protections.extend([
            Protection::Mounts,
            Protection::Processes,
            Protection::Ipc,
            Protection::Network,
        ]);
    }
    Ok(supported)
}

/// The reason that a program was not started.
pub(crate) enum StartFailure {
    /// The confinement could not be set up.
    Confinement(io::Error),
    /// The folder does not exist where the program would run.
    FolderOutside,
    /// The start itself failed.
    Start(io::Error),
}

/// One attempt to start a program.
pub(super) type StartAttempt<'a> = dyn FnMut() -> Result<StartedProcess, StartFailure> + 'a;

/// Starts the program in the namespaces of the calling thread.
fn spawn_beside(request: &SpawnRequest<'_>) -> Result<StartedProcess, StartFailure> {
    sys::spawn(request).and_then(StartedProcess::beside).map_err(StartFailure::Start)
}

/// The limits that a program is started behind.
pub(super) struct StartBoundary<'a> {
    pub(super) confinement: Option<&'a Confinement>,
    /// The network namespace in which the program runs.
    pub(super) network: Option<&'a NetworkNamespace>,
    /// A terminal that the program may use as well.
    pub(super) terminal: Option<&'a Path>,
    /// The limits on memory, processes and processor time.
    pub(super) resources: Option<&'a ResourceBoundary>,
    /// The caller for whom the program is started, whose namespaces nobody else enters.
    pub(super) owner: Option<Arc<str>>,
}

/// Calls `retried` with a function that starts the program of `request` behind `boundary`.
pub(super) fn start<T: Send>(
    boundary: &StartBoundary<'_>,
    request: &SpawnRequest<'_>,
    retried: impl FnOnce(&mut StartAttempt<'_>) -> Result<T, StartFailure> + Send,
) -> Result<T, StartFailure> {
    let mut spawn = || spawn_beside(request);
    let StartBoundary { confinement, network, terminal, resources, ref owner } = *boundary;
    let confinement = confinement.filter(|asked| asked.chosen_level() > ConfinementLevel::None);
    // A command that demands what the system cannot enforce was refused before, so this one chose best effort.
    let (Some(confinement), Ok(supported)) = (confinement, supported_protections()) else {
        if resources.is_some() {
            let folder = FolderInside::of(request.directory).map_err(StartFailure::Start)?;
            let restrictions = || Ok(network.map(|_| Restrictions { ruleset: None, filter: None }));
            let entry = ProcessEntry { network, namespaces: None, resources, restrictions: &restrictions };
            return retried(&mut || entry.start(&folder, request));
        }
        return match network {
            None => retried(&mut spawn),
            // Without the capabilities that it loses all the same, root cannot leave the namespace.
            Some(_) => {
                start_restricted(network, Restrictions { ruleset: None, filter: None }, request, retried)
            }
        };
    };
    let layers = ConfinementLayers { confinement, supported, terminal };
    let needs_process =
        resources.is_some() || network.is_some_and(|network| network.handle().needs_process());
    if layers.has_namespaces() || needs_process {
        let limit = resources.and_then(ResourceBoundary::namespace_limit);
        let namespace_owner = NamespaceOwner {
            name: owner.clone(),
            memory_bytes: resources.and_then(|resources| resources.limits.memory_bytes),
        };
        let prepare = || namespaces::prepared(confinement, network, limit.clone(), &namespace_owner);
        let mut namespaces =
            layers.has_namespaces().then(prepare).transpose().map_err(StartFailure::Confinement)?;
        let folder = FolderInside::of(request.directory).map_err(StartFailure::Start)?;
        let restrictions = || layers.restrictions().map(Some);
        let start_in = |namespaces: Option<&Namespaces>| {
            let entry = ProcessEntry { network, namespaces, resources, restrictions: &restrictions };
            entry.start(&folder, request)
        };
        return retried(&mut || {
            let started = start_in(namespaces.as_deref());
            if started.is_err() && namespaces.as_deref().is_some_and(Namespaces::confirm_end) {
                // Nothing was started: the namespaces ended between their preparation and this start.
                namespaces = Some(prepare().map_err(StartFailure::Confinement)?);
                return start_in(namespaces.as_deref());
            }
            started
        });
    }
    let restrictions = layers.restrictions().map_err(StartFailure::Confinement)?;
    start_restricted(network, restrictions, request, retried)
}

/// Starts the program on a thread that is in the network namespace and has restricted itself.
fn start_restricted<T: Send>(
    network: Option<&NetworkNamespace>,
    restrictions: Restrictions,
    request: &SpawnRequest<'_>,
    retried: impl FnOnce(&mut StartAttempt<'_>) -> Result<T, StartFailure> + Send,
) -> Result<T, StartFailure> {
    let started = on_thread(|| {
        // First, since it needs a capability that is dropped next.
        network.map_or(Ok(()), |network| network.handle().enter())?;
        restrictions.enter()?;
        Ok(retried(&mut || spawn_beside(request)))
    });
    started.map_err(StartFailure::Confinement)?
}

/// The start of a program by a process of ours, which enters the layers and starts the program as its sibling: as a child of
/// this process.
struct ProcessEntry<'a> {
    network: Option<&'a NetworkNamespace>,
    namespaces: Option<&'a Namespaces>,
    resources: Option<&'a ResourceBoundary>,
    /// Makes the restrictions. Paths in them are looked up where the program will be.
    restrictions: &'a dyn Fn() -> io::Result<Option<Restrictions>>,
}

impl ProcessEntry<'_> {
    fn start(
        &self,
        folder: &FolderInside,
        request: &SpawnRequest<'_>,
    ) -> Result<StartedProcess, StartFailure> {
        let work = || {
            // Before the others: a namespace of users that is entered first has no right to it.
            let entered = self.network.map_or(Ok(()), |network| network.handle().enter());
            entered.map_err(StartFailure::Confinement)?;
            self.namespaces.map_or(Ok(()), Namespaces::enter).map_err(StartFailure::Confinement)?;
            let folder = folder.open().map_err(|_| StartFailure::FolderOutside)?;
            let restrictions = (self.restrictions)().map_err(StartFailure::Confinement)?;
            restrictions.map_or(Ok(()), Restrictions::enter).map_err(StartFailure::Confinement)?;
            let SpawnRequest { program, arguments, environment, stdio, terminal, ref placement, .. } =
                *request;
            let limits = self.resources.map(|limits| limits.process_limits(self.namespaces.is_some()));
            let image = ProgramImage::new(program, arguments, environment, folder.as_fd(), stdio, terminal)
                .limits(limits.unwrap_or_default())
                .nice(self.resources.map_or(0, ResourceBoundary::nice))
                .foreground(match placement {
                    SpawnPlacement::Foreground(mask) => Some(mask),
                    SpawnPlacement::OwnSession => None,
                });
            image.start_as_sibling().map_err(StartFailure::Start)
        };
        let (entering, result) = self.in_group(&work).map_err(StartFailure::Start)?;
        entering.reap();
        let died = || StartFailure::Confinement(io::Error::other("the process that enters the layers died"));
        match result.ok_or_else(died)?? {
            (program, None) => {
                let started = StartedProcess::beside(program.pid).map_err(StartFailure::Start)?;
                Ok(StartedProcess {
                    namespace_init: self.namespaces.and_then(Namespaces::init_pid),
                    ..started
                })
            }
            (failed, Some(error)) => {
                failed.reap();
                Err(StartFailure::Start(error))
            }
        }
    }

    /// Calls `work` in a process that is in the cgroup of the run's owner.
    fn in_group<T>(
        &self,
        work: &dyn Fn() -> Result<T, StartFailure>,
    ) -> io::Result<(ChildProcess, Option<Result<T, StartFailure>>)> {
        let Some(group) = self.resources.and_then(|resources| resources.group.as_deref()) else {
            return in_child(libc::SIGCHLD, work);
        };
        match in_child_of_cgroup(group.handle(), work) {
            // An old kernel, a filter that does not know the call, another architecture.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) =>
            {
                let moved = || {
                    group.enter().map_err(StartFailure::Confinement)?;
                    work()
                };
                in_child(libc::SIGCHLD, moved)
            }
            made => made,
        }
    }
}

/// The layers of one start.
struct ConfinementLayers<'a> {
    confinement: &'a Confinement,
    supported: &'a SupportedProtections,
    terminal: Option<&'a Path>,
}

impl ConfinementLayers<'_> {
    fn has_namespaces(&self) -> bool {
        self.has(ConfinementLevel::Namespaces, Protection::Mounts) && !self.confinement.must_outlive()
    }

    fn has(&self, level: ConfinementLevel, protection: Protection) -> bool {
        self.confinement.chosen_level() >= level && self.supported.protections.contains(&protection)
    }

    /// Returns the restrictions of the confinement, as far as the system has them.
    fn restrictions(&self) -> io::Result<Restrictions> {
        let has_namespaces = self.has_namespaces();
        // A network of its own has no way out, so nothing of it needs to be refused.
        let network = self.confinement.allows_network() || has_namespaces;
        let mut extra: Vec<_> =
            self.terminal.map(|path| ExtraGrant { path, write: true }).into_iter().collect();
        if has_namespaces && self.confinement.has_private_temp() {
            extra.push(ExtraGrant { path: Path::new("/tmp"), write: true });
        }
        if has_namespaces && namespaces::may_write_proc(self.confinement) {
            extra.push(ExtraGrant { path: Path::new("/proc"), write: true });
        }
        let ruleset = landlock::ruleset(self.confinement, &extra, network, self.supported)?;
        let filter = self
            .has(ConfinementLevel::SystemCalls, Protection::SystemCalls)
            .then(|| {
                let level = self.confinement.chosen_level();
                SystemCallFilter::new(level, self.confinement.permissions(), network)
            })
            .flatten();
        Ok(Restrictions { ruleset: Some(ruleset), filter })
    }
}

/// The layers that a thread enters by restricting itself.
struct Restrictions {
    ruleset: Option<OwnedFd>,
    filter: Option<SystemCallFilter>,
}

impl Restrictions {
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
