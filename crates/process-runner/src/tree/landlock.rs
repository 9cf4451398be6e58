//! Starting a program behind a fence (landlock(7)).
//!
//! Between our process and the new program no code of ours runs, so the fence is put up before: around a
//! thread that does nothing but start the program, and ends. A Landlock domain and `no_new_privs` belong to
//! the thread and go over to what it starts; the other threads of this process have neither.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::sys::{self, RulesetAttributes};
use crate::confine::{Confinement, Enforceable, Protection};

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
/// All of the first ABI.
const FIRST: u64 = READ | CHANGE | MAKE_CHAR | MAKE_BLOCK;
/// Not `MAKE_CHAR` and `MAKE_BLOCK`: who may make device files (root) has every disk.
const WRITE: u64 = READ | CHANGE | REFER | TRUNCATE | IOCTL_DEV;
/// Those that a rule for something other than a folder may name.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// `LANDLOCK_ACCESS_NET_BIND_TCP` and `LANDLOCK_ACCESS_NET_CONNECT_TCP`.
const TCP: u64 = 0b11;
/// `LANDLOCK_SCOPE_*`.
const ABSTRACT_SOCKETS: u64 = 1 << 0;
const SIGNALS: u64 = 1 << 1;

/// A protection, the ABI that brought it, and its part of a ruleset.
const PROTECTIONS: [(Protection, u32, RulesetAttributes); 6] = [
    (Protection::Files, 1, RulesetAttributes { files: FIRST, tcp: 0, scoped: 0 }),
    (Protection::Truncation, 3, RulesetAttributes { files: TRUNCATE, tcp: 0, scoped: 0 }),
    (Protection::Devices, 5, RulesetAttributes { files: IOCTL_DEV, tcp: 0, scoped: 0 }),
    (Protection::Tcp, 4, RulesetAttributes { files: 0, tcp: TCP, scoped: 0 }),
    (Protection::Signals, 6, RulesetAttributes { files: 0, tcp: 0, scoped: SIGNALS }),
    (Protection::AbstractSockets, 6, RulesetAttributes { files: 0, tcp: 0, scoped: ABSTRACT_SOCKETS }),
];

/// What root keeps: to work with its own files and users. With `CAP_SYS_ADMIN` or `CAP_PERFMON` it could read
/// `/proc/PID/environ` of everyone: `mm_access` of Linux 6.18 asks for those before it asks Landlock (measured).
/// With `no_new_privs` an `execve(2)` of root does not bring the others back (capabilities(7)).
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT);

fn drop_capabilities() -> io::Result<()> {
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    if (effective | permitted | inheritable).difference(KEPT).is_empty() {
        return Ok(()); // the usual case: not root
    }
    let [effective, permitted, inheritable] =
        [effective, permitted, inheritable].map(|set| set.intersection(KEPT));
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?)
}

/// What this system can enforce, or why nothing; asked once.
pub(crate) fn enforceable() -> Result<&'static Enforceable, String> {
    static ANSWER: OnceLock<Result<Enforceable, String>> = OnceLock::new();
    ANSWER.get_or_init(ask).as_ref().map_err(String::clone)
}

fn ask() -> Result<Enforceable, String> {
    let abi = sys::landlock_abi().map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOSYS) => "this kernel has no Landlock (Linux 5.13 and later can have it)".to_owned(),
        Some(Errno::OPNOTSUPP) => {
            "Landlock is switched off in this kernel (the boot parameter `lsm=` leaves it out)".to_owned()
        }
        Some(Errno::PERM) => {
            "Landlock is forbidden here, probably by a container's seccomp filter".to_owned()
        }
        _ => format!("the kernel does not say whether it has Landlock: {error}"),
    })?;
    // Tried, not only looked up: a distribution's kernel may have the number of an ABI without all of it.
    let protections = PROTECTIONS
        .iter()
        .filter(|(_, since, part)| *since <= abi && sys::landlock_ruleset(part).is_ok())
        .map(|(what, ..)| *what)
        .collect();
    let system = Enforceable { abi, protections };
    let ruleset = sys::landlock_ruleset(&attributes(&Confinement::new(), &system));
    let tried = ruleset.and_then(|ruleset| on_thread(ruleset, || Ok(())));
    tried.map_err(|error| format!("this process may not confine what it starts: {error}"))?;
    Ok(system)
}

/// What a ruleset refuses, as far as the kernel knows it: the kernel refuses a ruleset that names more.
fn attributes(confinement: &Confinement, system: &Enforceable) -> RulesetAttributes {
    let mut all = RulesetAttributes::default();
    for (what, _, part) in PROTECTIONS {
        if system.protections.contains(&what) {
            all.files |= part.files;
            all.tcp |= part.tcp;
            all.scoped |= part.scoped;
        }
    }
    if system.abi >= 2 {
        all.files |= REFER;
    }
    if confinement.allows_network() {
        all.tcp = 0;
    }
    all
}

fn ruleset(confinement: &Confinement, system: &Enforceable) -> io::Result<OwnedFd> {
    let attributes = attributes(confinement, system);
    let ruleset = sys::landlock_ruleset(&attributes)?;
    for grant in confinement.grants() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // Its links were followed when it was granted. One that is there now was put there since.
        let Ok(place) = openat2(CWD, &grant.path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
            continue; // it is not there: nothing to grant
        };
        let mut rights = attributes.files & if grant.write { WRITE } else { READ };
        if FileType::from_raw_mode(fstat(&place)?.st_mode) != FileType::Directory {
            rights &= OF_FILES;
        }
        sys::landlock_allow(ruleset.as_fd(), place.as_fd(), rights)?;
    }
    Ok(ruleset)
}

/// Why nothing was started.
pub(crate) enum Refused {
    /// The fence could not be put up.
    Confinement(io::Error),
    /// The start failed behind it.
    Start(io::Error),
}

/// Calls `start` where all that it starts is confined.
pub(crate) fn confined<T: Send>(
    confinement: Option<&Confinement>,
    start: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, Refused> {
    let Some(confinement) = confinement else { return start().map_err(Refused::Start) };
    // Without it, a command that did not choose best effort was refused before.
    let Ok(system) = enforceable() else { return start().map_err(Refused::Start) };
    let ruleset = ruleset(confinement, system).map_err(Refused::Confinement)?;
    on_thread(ruleset, || Ok(start())).map_err(Refused::Confinement)?.map_err(Refused::Start)
}

/// Calls `work` on a thread of its own, which the ruleset confines.
///
/// # Errors
/// If there is no such thread; of `work` otherwise.
fn on_thread<T: Send>(ruleset: OwnedFd, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("confined-start".into()).stack_size(128 * 1024);
        let confined = move || {
            // Who could gain privileges could leave the fence (`landlock_restrict_self(2)` demands it).
            set_no_new_privs(true)?;
            drop_capabilities()?;
            sys::landlock_restrict_thread(ruleset.as_fd())?;
            drop(ruleset);
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
        let system = Enforceable { abi, protections: known.collect() };
        let attributes = attributes(confinement, &system);
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
    fn a_writable_folder_is_no_place_for_device_files() {
        assert_eq!(WRITE & (MAKE_CHAR | MAKE_BLOCK), 0);
        assert_eq!(WRITE | MAKE_CHAR | MAKE_BLOCK, 0xffff);
    }
}
