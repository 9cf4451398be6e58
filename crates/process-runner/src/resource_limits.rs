//! The limits on memory, processes and processor time that the programs of one caller share.

use std::fmt;

/// The limits of what the programs of one [owner](crate::owned_by) use together. `None` is no limit.
///
/// A cgroup holds the programs of an owner, if this process has a cgroup v2 that is delegated to it. Elsewhere some of the
/// limits hold in a weaker form; [`ResourceControls`] says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct ResourceLimits {
    /// The most bytes of memory. A process that needs more is killed, or is refused the memory.
    pub memory_bytes: Option<u64>,
    /// The most processes and threads. More are not started (`EAGAIN`).
    pub processes: Option<u32>,
    /// The share of the processors where there is not enough for all, from 1 to 10000. Programs without it have 100.
    pub cpu_weight: Option<u32>,
}

impl ResourceLimits {
    /// Sets [`ResourceLimits::memory_bytes`].
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Sets [`ResourceLimits::processes`].
    #[must_use]
    pub fn processes(mut self, count: u32) -> Self {
        self.processes = Some(count);
        self
    }

    /// Sets [`ResourceLimits::cpu_weight`].
    #[must_use]
    pub fn cpu_weight(mut self, weight: u32) -> Self {
        self.cpu_weight = Some(weight);
        self
    }

    /// Returns the limits of programs for which these limits and `other` both hold.
    #[must_use]
    pub fn narrowed_by(self, other: Self) -> Self {
        fn lower<T: Ord>(first: Option<T>, second: Option<T>) -> Option<T> {
            match (first, second) {
                (Some(first), Some(second)) => Some(first.min(second)),
                (first, second) => first.or(second),
            }
        }
        Self {
            memory_bytes: lower(self.memory_bytes, other.memory_bytes),
            processes: lower(self.processes, other.processes),
            cpu_weight: lower(self.cpu_weight, other.cpu_weight),
        }
    }

    /// Returns true if nothing is limited.
    pub fn is_unlimited(self) -> bool {
        self == Self::default()
    }
}

/// The means by which one resource is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceControl {
    /// A cgroup, for all programs of an owner together.
    Cgroup,
    /// The PID namespace of the owner's confinement, for all programs of the owner together.
    Namespace,
    /// A limit of each process (`setrlimit(2)`), or its priority (`nice(2)`).
    EachProcess,
    /// None: the resource is not limited.
    None,
}

/// The means by which this system limits the resources of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceControls {
    /// The means for [`ResourceLimits::memory_bytes`].
    pub memory: ResourceControl,
    /// The means for [`ResourceLimits::processes`].
    pub processes: ResourceControl,
    /// The means for [`ResourceLimits::cpu_weight`].
    pub cpu_weight: ResourceControl,
    /// The reason that there is no cgroup.
    pub no_cgroup: Option<CgroupUnavailable>,
}

impl fmt::Display for ResourceControls {
    /// Writes "cgroup v2: memory, processes, CPU weight", or what else there is and why there is no cgroup.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [("memory", self.memory), ("processes", self.processes), ("CPU weight", self.cpu_weight)];
        let of = |control| {
            let names: Vec<_> = all.iter().filter(|(_, of)| *of == control).map(|(name, _)| *name).collect();
            names.join(", ")
        };
        let controls = [
            (ResourceControl::Cgroup, "cgroup v2"),
            (ResourceControl::Namespace, "PID namespace"),
            (ResourceControl::EachProcess, "limit of each process"),
            (ResourceControl::None, "not limited"),
        ];
        let parts: Vec<_> = controls
            .into_iter()
            .map(|(control, name)| (name, of(control)))
            .filter(|(_, resources)| !resources.is_empty())
            .map(|(name, resources)| format!("{name}: {resources}"))
            .collect();
        f.write_str(&parts.join("; "))?;
        self.no_cgroup.as_ref().map_or(Ok(()), |reason| write!(f, " (no cgroup: {reason})"))
    }
}

/// The reason that this process has no cgroup in which it can limit its programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupUnavailable {
    /// The system is not Linux.
    #[error("only Linux has cgroups")]
    NotLinux,
    /// No cgroup v2 hierarchy is mounted, or this process is not in it.
    #[error("no cgroup v2 with this process is mounted")]
    NotMounted,
    /// A controller is not there.
    #[error("`{path}` does not have the controllers {missing}; a systemd unit gets them by `Delegate=yes`")]
    NoControllers {
        /// The folder of the cgroup.
        path: String,
        /// The names of the controllers.
        missing: String,
    },
    /// This user may not change the cgroup.
    #[error("`{path}` is not delegated to this user; a systemd unit gets it by `Delegate=yes`")]
    NotDelegated {
        /// The folder of the cgroup.
        path: String,
    },
    /// Programs that this process has not started are in the cgroup.
    #[error("other programs are in `{path}`; a systemd unit with `Delegate=yes` has a cgroup of its own")]
    NotAlone {
        /// The folder of the cgroup.
        path: String,
    },
    /// The kernel refused a change of the cgroup.
    #[error("`{path}` cannot be divided: {reason}")]
    Refused {
        /// The folder of the cgroup.
        path: String,
        /// The error of the kernel.
        reason: String,
    },
}

/// A limit that the programs of an owner met while a run went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ExceededLimit {
    /// A process was killed because there was no more memory.
    Memory {
        /// The limit in bytes.
        bytes: u64,
    },
    /// A process was not started because there were as many as may be.
    Processes {
        /// The limit.
        count: u32,
    },
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1024 * 1024;
        match self {
            Self::Memory { bytes } if bytes % MIB == 0 => write!(
                f,
                "a process was killed, because the programs of this caller used all the memory that they may have \
                 together: {} MiB",
                bytes / MIB
            ),
            Self::Memory { bytes } => write!(
                f,
                "a process was killed, because the programs of this caller used all the memory that they may have \
                 together: {bytes} bytes"
            ),
            Self::Processes { count } => write!(
                f,
                "a process was not started, because the programs of this caller may have {count} processes and threads \
                 together"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_limits_the_lower_one_holds_and_one_alone_holds_by_itself() {
        let first = ResourceLimits::default().memory_bytes(100).processes(5);
        let second = ResourceLimits::default().memory_bytes(200).cpu_weight(50);
        let both = ResourceLimits::default().memory_bytes(100).processes(5).cpu_weight(50);
        assert_eq!(first.narrowed_by(second), both);
        assert_eq!(second.narrowed_by(first), both);
    }

    #[test]
    fn what_limits_a_resource_is_named_and_what_does_not() {
        let cgroup = ResourceControls {
            memory: ResourceControl::Cgroup,
            processes: ResourceControl::Cgroup,
            cpu_weight: ResourceControl::Cgroup,
            no_cgroup: None,
        };
        assert_eq!(cgroup.to_string(), "cgroup v2: memory, processes, CPU weight");
        let without = ResourceControls {
            memory: ResourceControl::EachProcess,
            processes: ResourceControl::Namespace,
            cpu_weight: ResourceControl::None,
            no_cgroup: Some(CgroupUnavailable::NotMounted),
        };
        assert_eq!(
            without.to_string(),
            "PID namespace: processes; limit of each process: memory; not limited: CPU weight (no cgroup: no cgroup v2 \
             with this process is mounted)"
        );
    }
}
