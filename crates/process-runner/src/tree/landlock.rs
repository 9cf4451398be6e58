//! The rules of a confinement as Landlock takes them (landlock(7)).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::sys::{self, RulesetAttributes};
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

/// Returns what Landlock can enforce here, or the reason that it can enforce nothing.
pub(super) fn detect() -> Result<SupportedProtections, ConfinementUnavailable> {
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
    Ok(SupportedProtections { abi, protections })
}

/// Returns what the ruleset of `confinement` handles, as far as the kernel knows it.
// The kernel refuses a ruleset that names anything it does not know.
fn attributes(network: bool, supported: &SupportedProtections) -> RulesetAttributes {
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
    if network {
        all.tcp = 0;
    }
    all
}

/// A path and the access to it, beside those of a confinement.
pub(super) struct ExtraGrant<'a> {
    pub(super) path: &'a Path,
    pub(super) write: bool,
}

/// Creates the ruleset of `confinement` and `extra`. `network` is true if TCP is not restricted. The paths mean what
/// they mean to the calling process, so this is called where the program will be.
pub(super) fn ruleset(
    confinement: &Confinement,
    extra: &[ExtraGrant<'_>],
    network: bool,
    supported: &SupportedProtections,
) -> io::Result<OwnedFd> {
    let attributes = attributes(network, supported);
    let ruleset = sys::landlock_ruleset(&attributes)?;
    let grants =
        confinement.grants().iter().map(|grant| ExtraGrant { path: &grant.path, write: grant.write });
    for ExtraGrant { path, write } in
        grants.chain(extra.iter().map(|extra| ExtraGrant { path: extra.path, write: extra.write }))
    {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // The path's links were followed when it was granted. One that is there now was put there since, perhaps by
        // a confined program.
        let Ok(object) = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
            continue; // nothing is there that could be granted
        };
        let mut rights = attributes.files & if write { WRITE } else { READ };
        if FileType::from_raw_mode(fstat(&object)?.st_mode) != FileType::Directory {
            rights &= FILE_RIGHTS;
        }
        sys::landlock_allow(ruleset.as_fd(), object.as_fd(), rights)?;
    }
    Ok(ruleset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes_of(abi: u32, confinement: &Confinement) -> (u64, u64, u64) {
        let known = PROTECTIONS.iter().filter(|(_, since, _)| *since <= abi).map(|(what, ..)| *what);
        let supported = SupportedProtections { abi, protections: known.collect() };
        let attributes = attributes(confinement.allows_network(), &supported);
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
