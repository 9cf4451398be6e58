//! Refuses system calls that builds and tests do not need (seccomp(2)).
//!
//! A filter is a BPF program that the kernel runs at each system call. [`refused`] lists what is refused, [`assembler`]
//! makes the program of it.

mod assembler;
mod refused;

use std::io;

use assembler::assemble;
use refused::refusals;

use super::sys;
use crate::confine::{ConfinementLevel, SystemCallPermission};

/// The kernel's name of the architecture whose system calls a filter judges (`AUDIT_ARCH_*`, `<linux/audit.h>`).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_00B7);
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_00F3);
// The order of the arguments of `clone(2)` differs elsewhere.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const ARCHITECTURE: Option<u32> = None;

/// A filter that is ready to be installed.
pub(super) struct SystemCallFilter(Vec<libc::sock_filter>);

impl SystemCallFilter {
    /// Returns the filter of a level with these permissions. `network` is false if only local sockets may be made.
    /// `None` if there is none for this architecture.
    pub(super) fn new(
        level: ConfinementLevel,
        permissions: &[SystemCallPermission],
        network: bool,
    ) -> Option<Self> {
        let refusals = refusals(level, permissions, network);
        ARCHITECTURE.map(|architecture| Self(assemble(architecture, &refusals)))
    }

    /// Installs the filter for the calling thread and everything that it starts. It cannot be removed.
    ///
    /// # Errors
    /// `EACCES` if the thread has no `no_new_privs`; `ENOSYS` and `EINVAL` if the kernel has no filters.
    pub(super) fn install(&self) -> io::Result<()> {
        sys::install_seccomp_filter(&self.0)
    }
}
