//! Chooses the means by which the resources of a run are limited.

use std::io;
use std::sync::Arc;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::system::uname;

use super::cgroup::{Cgroup, Cgroups, LimitWatch, OwnCgroup};
use crate::resource_limits::{CgroupUnavailable, ResourceControl, ResourceControls, ResourceLimits};

/// The first Linux whose PID namespaces have a `kernel.pid_max` of their own. Before, it is that of the whole system.
const NAMESPACE_PID_MAX_SINCE: (u32, u32) = (6, 14);

/// The file with the largest process number of the PID namespace that reads or writes it.
pub(super) const PID_MAX_FILE: &str = "/proc/sys/kernel/pid_max";

/// The limits behind which a run is started.
pub(super) struct ResourceBoundary {
    pub(super) limits: ResourceLimits,
    owner: Option<Arc<str>>,
    pub(super) group: Option<Arc<Cgroup>>,
}

/// The most processes of a PID namespace, and the owner who alone uses it then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamespaceLimit {
    pub(super) processes: u32,
    owner: Option<Arc<str>>,
}

impl ResourceBoundary {
    /// Prepares the limits of a run of `owner`; `None` if it has none.
    ///
    /// # Errors
    /// There is a cgroup, and the limits cannot be set in it.
    pub(super) fn prepare(limits: ResourceLimits, owner: Option<Arc<str>>) -> io::Result<Option<Self>> {
        if limits.is_unlimited() {
            return Ok(None);
        }
        let groups = Cgroups::get().ok();
        let group = groups.map(|groups| groups.group(owner.clone(), limits)).transpose()?;
        Ok(Some(Self { limits, owner, group }))
    }

    /// Returns what notices from now on that a limit is met.
    pub(super) fn watch(&self) -> Option<LimitWatch> {
        self.group.clone().map(LimitWatch::new)
    }

    /// Returns the limit of the PID namespace in which the run is started, if that limits its processes.
    pub(super) fn namespace_limit(&self) -> Option<NamespaceLimit> {
        let processes = self.limits.processes.filter(|_| self.group.is_none() && has_namespace_pid_max())?;
        Some(NamespaceLimit { processes, owner: self.owner.clone() })
    }

    /// Returns the limits that the program itself gets.
    pub(super) fn process_limits(&self, in_namespaces: bool) -> Vec<(Resource, u64)> {
        if self.group.is_some() {
            return Vec::new();
        }
        // Not the address space: a virtual machine of Java, Go or JavaScript reserves much more of it than it uses.
        let memory = self.limits.memory_bytes.map(|bytes| (Resource::Data, bytes));
        let processes = self
            .limits
            .processes
            .filter(|_| processes_without_cgroup(in_namespaces) == ResourceControl::EachProcess);
        memory.into_iter().chain(processes.map(|count| (Resource::Nproc, count.into()))).collect()
    }

    /// Returns how many steps lower the priority of the program is (nice(2)), if no cgroup gives it its share.
    pub(super) fn nice(&self) -> libc::c_int {
        let has_group =
            self.group.is_some() && Cgroups::known().is_some_and(|known| known.is_ok_and(Cgroups::has_cpu));
        self.limits.cpu_weight.filter(|_| !has_group).map_or(0, nice_of)
    }
}

/// The weight of programs without one.
const USUAL_CPU_WEIGHT: f64 = 100.0;

/// The factor between the shares of two processes whose niceness differs by one (sched(7)).
const SHARE_OF_ONE_STEP: f64 = 1.25;

/// Returns the steps of niceness by which a process gets the share of `weight`. A higher share needs a privilege, and is not
/// given.
fn nice_of(weight: u32) -> libc::c_int {
    let steps = (USUAL_CPU_WEIGHT / f64::from(weight.max(1))).log(SHARE_OF_ONE_STEP).round();
    #[allow(clippy::cast_possible_truncation, reason = "between 0 and 19")]
    let steps = steps.clamp(0.0, 19.0) as libc::c_int;
    steps
}

/// Lowers a limit of the calling process. One that is lower stays.
pub(super) fn lower_limit(resource: Resource, value: u64) -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(resource);
    let lowered = |limit: Option<u64>| Some(limit.map_or(value, |limit| limit.min(value)));
    Ok(setrlimit(resource, Rlimit { current: lowered(current), maximum: lowered(maximum) })?)
}

/// Returns the means for programs with namespaces of their own, or without.
pub(crate) fn resource_controls(in_namespaces: bool) -> ResourceControls {
    let has_cpu = match Cgroups::known() {
        Some(known) => known.map(Cgroups::has_cpu).map_err(Clone::clone),
        None => OwnCgroup::find().map(|own| own.has_cpu()),
    };
    match has_cpu {
        Ok(has_cpu) => ResourceControls {
            memory: ResourceControl::Cgroup,
            processes: ResourceControl::Cgroup,
            cpu_weight: if has_cpu { ResourceControl::Cgroup } else { ResourceControl::EachProcess },
            no_cgroup: None,
        },
        Err(reason) => without_cgroup(in_namespaces, reason),
    }
}

fn without_cgroup(in_namespaces: bool, reason: CgroupUnavailable) -> ResourceControls {
    ResourceControls {
        memory: ResourceControl::EachProcess,
        processes: processes_without_cgroup(in_namespaces),
        cpu_weight: ResourceControl::EachProcess,
        no_cgroup: Some(reason),
    }
}

/// Returns the means for the number of processes. Without namespaces there is none: the limit that a process can have
/// counts all processes of its user, and none of root.
fn processes_without_cgroup(in_namespaces: bool) -> ResourceControl {
    match (in_namespaces, has_namespace_pid_max()) {
        (true, true) => ResourceControl::Namespace,
        // Counted in the user namespace that an unprivileged user's namespaces belong to.
        (true, false) if !geteuid().is_root() => ResourceControl::EachProcess,
        _ => ResourceControl::None,
    }
}

/// Returns true if a PID namespace has a `kernel.pid_max` of its own that can be set. In a container it is often read-only.
fn has_namespace_pid_max() -> bool {
    if statvfs(PID_MAX_FILE).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        return false;
    }
    let name = uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|end: char| !end.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= NAMESPACE_PID_MAX_SINCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_weight_is_a_higher_niceness() {
        assert_eq!([10_000, 100, 80, 50, 10, 1, 0].map(nice_of), [0, 0, 1, 3, 10, 19, 19]);
    }
}
