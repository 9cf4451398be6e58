//! The protections of a confinement, and the reasons that they cannot be enforced.

use std::fmt;

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
}

impl Protection {
    pub(crate) const ALL: [Self; 6] =
        [Self::Files, Self::Truncation, Self::Devices, Self::Tcp, Self::Signals, Self::AbstractSockets];
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
        })
    }
}

/// The protections that a program runs under, and those that were asked for and cannot be enforced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ConfinementStatus {
    /// The version of the kernel's Landlock ABI. `None` if nothing is enforced.
    pub landlock_abi: Option<u32>,
    /// The protections that are enforced.
    pub enforced: Vec<Protection>,
    /// The protections that were asked for and cannot be enforced on this system.
    pub missing: Vec<Protection>,
}

impl fmt::Display for ConfinementStatus {
    /// Writes "Landlock ABI 4: files, truncation, TCP; not enforced: devices, signals, abstract sockets".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, protections: &[Protection]| {
            protections.iter().enumerate().try_for_each(|(index, protection)| {
                write!(f, "{}{protection}", if index == 0 { "" } else { ", " })
            })
        };
        match self.landlock_abi {
            Some(abi) => {
                write!(f, "Landlock ABI {abi}: ")?;
                list(f, &self.enforced)?;
            }
            None => return f.write_str("nothing is enforced"),
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
    NotEnforced(ConfinementStatus),
    /// The program or its interpreter is not granted.
    #[error("the program, or its interpreter, lies outside what it may read")]
    ProgramOutside,
    /// A network namespace was chosen without a confinement, which keeps a program in it.
    #[error("a network namespace keeps a program in only with a confinement")]
    NamespaceUnconfined,
    /// The system call that confines failed; the error's source has the reason.
    #[error("the system refused")]
    SystemRefused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_is_missing() {
        let status = ConfinementStatus {
            landlock_abi: Some(3),
            enforced: vec![Protection::Files, Protection::Truncation],
            missing: vec![Protection::Devices, Protection::Tcp],
        };
        assert_eq!(status.to_string(), "Landlock ABI 3: files, truncation; not enforced: devices, TCP");
        let nothing = ConfinementStatus { missing: vec![Protection::Files], ..ConfinementStatus::default() };
        assert_eq!(nothing.to_string(), "nothing is enforced");
    }
}
