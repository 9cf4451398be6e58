//! Starts a program behind the layers of its confinement.
//!
//! A process can only confine itself, and `posix_spawn(3)` has no step for it. So the layers are entered before, by a
//! thread that does nothing but start the program and then ends; or, if there are namespaces, by a process that does
//! the same. The layers belong to that thread or process, and are inherited by what it starts. The other threads of
//! this process have none of them.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::child::{ProgramImage, in_child};
use super::landlock;
use super::landlock::ExtraGrant;
use super::namespaces::{self, FolderInside, Namespaces};
use super::seccomp::SystemCallFilter;
use super::sys::{self, ChildFolder, SpawnRequest};
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

/// The limits that a program is started behind.
pub(super) struct StartBoundary<'a> {
    pub(super) confinement: Option<&'a Confinement>,
    /// The network namespace in which the program runs.
    pub(super) network: Option<&'a NetworkNamespace>,
    /// A terminal that the program may use as well.
    pub(super) terminal: Option<&'a Path>,
}

/// Calls `retried` with a function that starts the program of `request` behind `boundary`.
pub(super) fn start<T: Send>(
    boundary: &StartBoundary<'_>,
    request: &SpawnRequest<'_>,
    retried: impl FnOnce(&mut dyn FnMut() -> Result<libc::pid_t, StartFailure>) -> Result<T, StartFailure> + Send,
) -> Result<T, StartFailure> {
    let mut spawn = || sys::spawn(request).map_err(StartFailure::Start);
    let StartBoundary { confinement, network, terminal } = *boundary;
    let confinement = confinement.filter(|asked| asked.chosen_level() > ConfinementLevel::None);
    // A command that demands what the system cannot enforce was refused before, so this one chose best effort.
    let (Some(confinement), Ok(supported)) = (confinement, supported_protections()) else {
        return match network {
            None => retried(&mut spawn),
            // Without the capabilities that it loses all the same, root cannot leave the namespace.
            Some(_) => {
                start_restricted(network, Restrictions { ruleset: None, filter: None }, request, retried)
            }
        };
    };
    let layers = Layers { confinement, network, supported, terminal };
    let needs_process = network.is_some_and(|network| network.handle().needs_process());
    if layers.has_namespaces() || needs_process {
        let prepare = || namespaces::prepared(confinement, network);
        let namespaces =
            layers.has_namespaces().then(prepare).transpose().map_err(StartFailure::Confinement)?;
        let folder = match request.directory {
            ChildFolder::Handle(handle) => FolderInside::of_handle(handle),
            ChildFolder::Path(path) => FolderInside::of_path(Path::new(OsStr::from_bytes(path.to_bytes()))),
        };
        let folder = folder.map_err(StartFailure::Start)?;
        return retried(&mut || layers.start_inside(namespaces.as_deref(), &folder, request));
    }
    let restrictions = layers.restrictions().map_err(StartFailure::Confinement)?;
    start_restricted(network, restrictions, request, retried)
}

/// Starts the program on a thread that is in the network namespace and has restricted itself.
fn start_restricted<T: Send>(
    network: Option<&NetworkNamespace>,
    restrictions: Restrictions,
    request: &SpawnRequest<'_>,
    retried: impl FnOnce(&mut dyn FnMut() -> Result<libc::pid_t, StartFailure>) -> Result<T, StartFailure> + Send,
) -> Result<T, StartFailure> {
    let started = on_thread(|| {
        // First, since it needs a capability that is dropped next.
        network.map_or(Ok(()), |network| network.handle().enter())?;
        restrictions.enter()?;
        Ok(retried(&mut || sys::spawn(request).map_err(StartFailure::Start)))
    });
    started.map_err(StartFailure::Confinement)?
}

/// The layers of one start.
struct Layers<'a> {
    confinement: &'a Confinement,
    network: Option<&'a NetworkNamespace>,
    supported: &'a SupportedProtections,
    terminal: Option<&'a Path>,
}

impl Layers<'_> {
    fn has_namespaces(&self) -> bool {
        self.has(ConfinementLevel::Namespaces, Protection::Mounts) && !self.confinement.must_outlive()
    }

    fn has(&self, level: ConfinementLevel, protection: Protection) -> bool {
        self.confinement.chosen_level() >= level && self.supported.protections.contains(&protection)
    }

    /// Starts the program in `namespaces` and in the network namespace.
    ///
    /// A process of ours enters them, restricts itself, and starts the program as its sibling: as a child of this
    /// process.
    fn start_inside(
        &self,
        namespaces: Option<&Namespaces>,
        folder: &FolderInside,
        request: &SpawnRequest<'_>,
    ) -> Result<libc::pid_t, StartFailure> {
        let work = || {
            // Before the others: a namespace of users that is entered first has no right to it.
            let entered = self.network.map_or(Ok(()), |network| network.handle().enter());
            entered.map_err(StartFailure::Confinement)?;
            namespaces.map_or(Ok(()), Namespaces::enter).map_err(StartFailure::Confinement)?;
            let folder = folder.open().map_err(|_| StartFailure::FolderOutside)?;
            // Their paths are looked up here, where the program will be.
            let restrictions = self.restrictions().map_err(StartFailure::Confinement)?;
            restrictions.enter().map_err(StartFailure::Confinement)?;
            let SpawnRequest { program, arguments, environment, stdio, terminal, .. } = *request;
            let image = ProgramImage::new(program, arguments, environment, folder.as_fd(), stdio, terminal);
            image.start_as_sibling().map_err(StartFailure::Start)
        };
        let (entering, result) = in_child(libc::SIGCHLD, work).map_err(StartFailure::Start)?;
        entering.reap();
        let died = || StartFailure::Confinement(io::Error::other("the process that enters the layers died"));
        match result.ok_or_else(died)?? {
            (program, None) => Ok(program.pid),
            (failed, Some(error)) => {
                failed.reap();
                Err(StartFailure::Start(error))
            }
        }
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
