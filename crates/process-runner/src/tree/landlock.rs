//! Starts a program in a Landlock domain (landlock(7)).
//!
//! `posix_spawn` runs no code of ours in the child, so the domain is entered before: by a thread that does nothing
//! but start the program, and then ends. The domain and `no_new_privs` belong to that thread and are inherited by
//! what it starts. The other threads of this process have neither.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::sys::{self, RulesetAttributes};
use crate::network_namespace::NetworkNamespace;
use crate::confine::{Confinement, ConfinementUnavailable, Protection, SupportedProtections};

// LANDLOCK_ACCESS_FS_*, <linux/landlock.h>.
const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
const CHANGE: u64 =
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM;
/// All rights of the first ABI.
const FIRST_ABI: u64 = READ | CHANGE | MAKE_CHAR | MAKE_BLOCK;
// `MAKE_CHAR` and `MAKE_BLOCK` are left out: a root that may make device files can read every disk.
const WRITE: u64 = READ | CHANGE | REFER | TRUNCATE | IOCTL_DEV;
/// The rights that a rule for a file may name. The kernel refuses a rule with any other.
const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// `LANDLOCK_ACCESS_NET_BIND_TCP` and `LANDLOCK_ACCESS_NET_CONNECT_TCP`.
const TCP: u64 = 0b11;
/// `LANDLOCK_SCOPE_*`.
const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
const SCOPE_SIGNALS: u64 = 1 << 1;

/// Each protection with the ABI that brought it and its part of a ruleset.
const PROTECTIONS: [(Protection, u32, RulesetAttributes); 6] = [
    (Protection::Files, 1, RulesetAttributes { files: FIRST_ABI, tcp: 0, scoped: 0 }),
    (Protection::Truncation, 3, RulesetAttributes { files: TRUNCATE, tcp: 0, scoped: 0 }),
    (Protection::Devices, 5, RulesetAttributes { files: IOCTL_DEV, tcp: 0, scoped: 0 }),
    (Protection::Tcp, 4, RulesetAttributes { files: 0, tcp: TCP, scoped: 0 }),
    (Protection::Signals, 6, RulesetAttributes { files: 0, tcp: 0, scoped: SCOPE_SIGNALS }),
    (Protection::AbstractSockets, 6, RulesetAttributes { files: 0, tcp: 0, scoped: SCOPE_ABSTRACT_SOCKETS }),
];

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
    let abi = sys::landlock_abi().map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOSYS) => ConfinementUnavailable::NoLandlock,
        Some(Errno::OPNOTSUPP) => ConfinementUnavailable::LandlockDisabled,
        Some(Errno::PERM) => ConfinementUnavailable::LandlockForbidden,
        _ => ConfinementUnavailable::Unknown { reason: error.to_string() },
    })?;
    // Each part is tried: a distribution's kernel may report an ABI without having all of it.
    let protections = PROTECTIONS
        .iter()
        .filter(|(_, since, part)| *since <= abi && sys::landlock_ruleset(part).is_ok())
        .map(|(what, ..)| *what)
        .collect();
    let supported = SupportedProtections { abi, protections };
    // A ruleset can be allowed and entering it forbidden, so a thread enters one.
    let ruleset = sys::landlock_ruleset(&attributes(&Confinement::new(), &supported));
    let entered = ruleset.and_then(|ruleset| on_confined_thread(None, Some(ruleset), || Ok(())));
    entered.map_err(|error| ConfinementUnavailable::Refused { reason: error.to_string() })?;
    Ok(supported)
}

/// Returns what the ruleset of `confinement` handles, as far as the kernel knows it.
// The kernel refuses a ruleset that names anything it does not know.
fn attributes(confinement: &Confinement, supported: &SupportedProtections) -> RulesetAttributes {
    let mut all = RulesetAttributes::default();
    for (what, _, part) in PROTECTIONS {
        if supported.protections.contains(&what) {
            all.files |= part.files;
            all.tcp |= part.tcp;
            all.scoped |= part.scoped;
        }
    }
    // Not a protection but a relaxation: the first ABI refuses every rename and link between folders.
    if supported.abi >= 2 {
        all.files |= REFER;
    }
    if confinement.allows_network() {
        all.tcp = 0;
    }
    all
}

fn ruleset(confinement: &Confinement, supported: &SupportedProtections) -> io::Result<OwnedFd> {
    let attributes = attributes(confinement, supported);
    let ruleset = sys::landlock_ruleset(&attributes)?;
    for grant in confinement.grants() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // The path's links were followed when it was granted. One that is there now was put there since, perhaps by
        // a confined program.
        let Ok(object) = openat2(CWD, &grant.path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
            continue; // nothing is there that could be granted
        };
        let mut rights = attributes.files & if grant.write { WRITE } else { READ };
        if FileType::from_raw_mode(fstat(&object)?.st_mode) != FileType::Directory {
            rights &= FILE_RIGHTS;
        }
        sys::landlock_allow(ruleset.as_fd(), object.as_fd(), rights)?;
    }
    Ok(ruleset)
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
    // A command that demands what the system cannot enforce was refused before, so this one chose best effort.
    let ruleset = match (boundary.confinement, supported_protections()) {
        (Some(confinement), Ok(supported)) => {
            Some(ruleset(confinement, supported).map_err(StartFailure::Confinement)?)
        }
        _ => None,
    };
    if ruleset.is_none() && boundary.namespace.is_none() {
        return start().map_err(StartFailure::Start);
    }
    on_confined_thread(boundary.namespace, ruleset, || Ok(start()))
        .map_err(StartFailure::Confinement)?
        .map_err(StartFailure::Start)
}

/// The stack of a thread that only starts one program. The default of 2 MiB would be mapped for every confined run.
const STARTER_STACK_BYTES: usize = 128 * 1024;

/// Calls `work` on a new thread that the ruleset confines, in the namespace.
///
/// # Errors
/// If the thread cannot be made or confined, and those of `work`.
fn on_confined_thread<T: Send>(
    namespace: Option<&NetworkNamespace>,
    ruleset: Option<OwnedFd>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("confined-start".into()).stack_size(STARTER_STACK_BYTES);
        let confined = move || {
            // First, since it needs a capability that is dropped below.
            if let Some(namespace) = namespace {
                namespace.handle().enter()?;
            }
            // `landlock_restrict_self(2)` demands it of a process without privileges. It also keeps set-user-id
            // programs from gaining any.
            set_no_new_privs(true)?;
            drop_capabilities()?;
            if let Some(ruleset) = ruleset {
                sys::landlock_restrict_thread(ruleset.as_fd())?;
            }
            work()
        };
        thread.spawn_scoped(scope, confined)?.join().map_err(|_| io::Error::other("the thread panicked"))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes_of(abi: u32, confinement: &Confinement) -> (u64, u64, u64) {
        let known = PROTECTIONS.iter().filter(|(_, since, _)| *since <= abi).map(|(what, ..)| *what);
        let supported = SupportedProtections { abi, protections: known.collect() };
        let attributes = attributes(confinement, &supported);
        (attributes.files, attributes.tcp, attributes.scoped)
    }

    #[test]
    fn an_older_kernel_is_asked_only_for_what_it_knows() {
        let all = Confinement::new();
        assert_eq!(attributes_of(1, &all), (0x1fff, 0, 0));
        assert_eq!(attributes_of(2, &all), (0x3fff, 0, 0));
        assert_eq!(attributes_of(3, &all), (0x7fff, 0, 0));
        assert_eq!(attributes_of(4, &all), (0x7fff, 0b11, 0));
        assert_eq!(attributes_of(5, &all), (0xffff, 0b11, 0));
        assert_eq!(attributes_of(6, &all), (0xffff, 0b11, 0b11));
        assert_eq!(attributes_of(9, &all), attributes_of(6, &all));
    }

    #[test]
    fn tcp_is_left_alone_where_the_network_is_allowed() {
        assert_eq!(attributes_of(6, &Confinement::new().network(true)), (0xffff, 0, 0b11));
    }

    #[test]
    fn write_access_to_a_folder_does_not_allow_device_files() {
        assert_eq!(WRITE & (MAKE_CHAR | MAKE_BLOCK), 0);
        assert_eq!(WRITE | MAKE_CHAR | MAKE_BLOCK, 0xffff);
    }
}
