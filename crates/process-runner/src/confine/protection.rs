//! The protections of a confinement, and the reasons that they cannot be enforced.

use std::fmt;

use super::level::ConfinementLevel;

/// One kind of access that a confinement refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Protection {
    /// Reads and changes of files and folders that were not granted.
    Files,
    /// Shortening a file that may not be written (`truncate(2)`).
    Truncation,
    /// `ioctl(2)` on devices that were not granted.
    Devices,
    /// TCP, as client and as server.
    Tcp,
    /// Signals to processes outside the confinement.
    Signals,
    /// Connections to abstract Unix sockets of processes outside the confinement.
    AbstractSockets,
    /// System calls that builds and tests do not need.
    SystemCalls,
    /// Names, metadata and Unix sockets of what was not granted; changes of attributes of what may not be written.
    Mounts,
    /// Other processes: they cannot be seen or named.
    Processes,
    /// Message queues, semaphores and shared memory of others (System V and POSIX).
    Ipc,
    /// Every network but a loopback interface of its own.
    Network,
    /// Changes of a file's mode, owner, times and other attributes, anywhere.
    AttributeChanges,
}

impl Protection {
    pub(crate) const ALL: [Self; 12] = [
        Self::Files,
        Self::Truncation,
        Self::Devices,
        Self::Tcp,
        Self::Signals,
        Self::AbstractSockets,
        Self::SystemCalls,
        Self::Mounts,
        Self::Processes,
        Self::Ipc,
        Self::Network,
        Self::AttributeChanges,
    ];

    /// Returns the lowest level that has this protection.
    pub fn level(self) -> ConfinementLevel {
        match self {
            Self::Files
            | Self::Truncation
            | Self::Devices
            | Self::Tcp
            | Self::Signals
            | Self::AbstractSockets => ConfinementLevel::Filesystem,
            Self::SystemCalls => ConfinementLevel::SystemCalls,
            Self::Mounts | Self::Processes | Self::Ipc | Self::Network => ConfinementLevel::Namespaces,
            Self::AttributeChanges => ConfinementLevel::Strict,
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Truncation => "truncation",
            Self::Devices => "devices",
            Self::Tcp => "TCP",
            Self::Signals => "signals",
            Self::AbstractSockets => "abstract sockets",
            Self::SystemCalls => "system calls",
            Self::Mounts => "mounts",
            Self::Processes => "processes",
            Self::Ipc => "IPC",
            Self::Network => "network",
            Self::AttributeChanges => "attribute changes",
        })
    }
}

/// The protections that a program runs under, and those that were asked for and cannot be enforced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ConfinementStatus {
    /// The highest level whose protections are all enforced, as far as they were asked for.
    pub level: ConfinementLevel,
    /// The version of the kernel's Landlock ABI. `None` if nothing is enforced.
    pub landlock_abi: Option<u32>,
    /// The protections that are enforced.
    pub enforced: Vec<Protection>,
    /// The protections that were asked for and cannot be enforced on this system.
    pub missing: Vec<Protection>,
}

impl ConfinementStatus {
    /// Returns the status of a confinement that asks for `requested` at `level`, on a system that enforces those for
    /// which `is_enforced` is true.
    pub(crate) fn new(
        level: ConfinementLevel,
        landlock_abi: Option<u32>,
        requested: impl Iterator<Item = Protection>,
        is_enforced: impl Fn(Protection) -> bool,
    ) -> Self {
        let (enforced, missing): (Vec<_>, Vec<_>) =
            requested.partition(|protection| is_enforced(*protection));
        // The levels below the first that lacks something.
        let lowest_missing = missing.iter().map(|protection| protection.level()).min();
        let complete = |candidate: &ConfinementLevel| {
            *candidate <= level && lowest_missing.is_none_or(|missing| *candidate < missing)
        };
        let level = ConfinementLevel::ALL.into_iter().rev().find(complete).unwrap_or(ConfinementLevel::None);
        Self { level, landlock_abi, enforced, missing }
    }
}

impl fmt::Display for ConfinementStatus {
    /// Writes "level `system_calls`: files, truncation, TCP (Landlock ABI 4), system calls (seccomp); not enforced:
    /// devices, signals".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, protections: &[Protection]| {
            protections.iter().enumerate().try_for_each(|(index, protection)| {
                write!(f, "{}{protection}", if index == 0 { "" } else { ", " })
            })
        };
        if self.enforced.is_empty() {
            return f.write_str("nothing is enforced");
        }
        write!(f, "level `{}`", self.level)?;
        let layer = |protection: &Protection| match protection.level() {
            // The strictest level is a longer filter of system calls, and no mechanism of its own.
            ConfinementLevel::Strict => ConfinementLevel::SystemCalls,
            level => level,
        };
        let mut separator = ": ";
        for (level, mechanism) in [
            (ConfinementLevel::Filesystem, "Landlock"),
            (ConfinementLevel::SystemCalls, "seccomp"),
            (ConfinementLevel::Namespaces, "namespaces"),
        ] {
            let part: Vec<_> =
                self.enforced.iter().filter(|protection| layer(protection) == level).copied().collect();
            if part.is_empty() {
                continue;
            }
            f.write_str(separator)?;
            separator = ", ";
            list(f, &part)?;
            match (level, self.landlock_abi) {
                (ConfinementLevel::Filesystem, Some(abi)) => write!(f, " ({mechanism} ABI {abi})")?,
                _ => write!(f, " ({mechanism})")?,
            }
        }
        if !self.missing.is_empty() {
            f.write_str("; not enforced: ")?;
            list(f, &self.missing)?;
        }
        Ok(())
    }
}

/// The protections that this system can enforce.
#[derive(Debug)]
pub(crate) struct SupportedProtections {
    pub(crate) abi: u32,
    pub(crate) protections: Vec<Protection>,
}

/// The reason that this system can confine nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfinementUnavailable {
    /// The system is not Linux.
    #[error("confinement needs Landlock, which is part of Linux")]
    NotLinux,
    /// The kernel was built without Landlock (`ENOSYS`).
    #[error("this kernel has no Landlock (Linux 5.13 and later can have it)")]
    NoLandlock,
    /// The kernel was booted without Landlock (`EOPNOTSUPP`).
    #[error("Landlock is switched off in this kernel (the boot parameter `lsm=` leaves it out)")]
    LandlockDisabled,
    /// The system call is refused (`EPERM`).
    #[error("Landlock is forbidden here, probably by a container's seccomp filter")]
    LandlockForbidden,
    /// The kernel gave another error when it was asked for its Landlock ABI.
    #[error("the kernel does not say whether it has Landlock: {reason}")]
    Unknown {
        /// The error of the system call.
        reason: String,
    },
    /// The kernel has Landlock, and this process may not use it.
    #[error("this process may not confine what it starts: {reason}")]
    Refused {
        /// The error of the system call.
        reason: String,
    },
}

/// The reason that a program cannot run under the confinement that its command asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfinementProblem {
    /// This system can confine nothing.
    #[error(transparent)]
    Unavailable(ConfinementUnavailable),
    /// Some of the protections cannot be enforced on this system.
    #[error("{0}")]
    // In a box, because every error of a run would be as large.
    NotEnforced(Box<ConfinementStatus>),
    /// The program or its interpreter is not granted.
    #[error("the program, or its interpreter, lies outside what it may read")]
    ProgramOutside,
    /// A network namespace was chosen without a confinement, which keeps a program in it.
    #[error("a network namespace keeps a program in only with a confinement")]
    NamespaceUnconfined,
    /// The folder to run in is not granted, and neither is anything in it.
    #[error("the folder lies outside what it may reach")]
    FolderOutside,
    /// The system call that confines failed; the error's source has the reason.
    #[error("the system refused")]
    SystemRefused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_the_level_the_layers_and_what_is_missing() {
        let requested = [
            Protection::Files,
            Protection::Truncation,
            Protection::Devices,
            Protection::Tcp,
            Protection::SystemCalls,
            Protection::Mounts,
        ];
        let status = |missing: &[Protection]| {
            ConfinementStatus::new(
                ConfinementLevel::Namespaces,
                Some(3),
                requested.into_iter(),
                |protection| !missing.contains(&protection),
            )
        };
        assert_eq!(
            status(&[Protection::Mounts]).to_string(),
            "level `system_calls`: files, truncation, devices, TCP (Landlock ABI 3), system calls (seccomp); not \
             enforced: mounts"
        );
        assert_eq!(
            status(&[Protection::Devices, Protection::Tcp, Protection::SystemCalls]).to_string(),
            "level `none`: files, truncation (Landlock ABI 3), mounts (namespaces); not enforced: devices, TCP, \
             system calls"
        );
        assert_eq!(status(&[]).level, ConfinementLevel::Namespaces);
        assert_eq!(status(&requested).to_string(), "nothing is enforced");
    }
}
