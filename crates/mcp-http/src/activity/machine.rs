//! The machine: its processors, its memory and its disks.
#![allow(
    clippy::disallowed_methods,
    reason = "the files are those of the system in /proc and /sys; no client names them"
)]

use super::chart_number::as_f64;
use std::path::{Path, PathBuf};

/// The state of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineState {
    pub(crate) processors: usize,
    /// Processors that were busy since the sample before, with all that runs on the machine.
    pub(crate) busy_processors: Option<f64>,
    /// The memory that this process and its programs may use, in bytes: that of the machine, or of its cgroup.
    pub(crate) memory_total: Option<u64>,
    /// The part of it that is free, or can be freed.
    pub(crate) memory_available: Option<u64>,
}

/// The space of a file system.
#[derive(Clone, Debug)]
pub(crate) struct DiskSpace {
    pub(crate) path: PathBuf,
    pub(crate) total: u64,
    pub(crate) available: u64,
}

/// The time that the processors of the machine have spent, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessorTicks {
    busy: u64,
    total: u64,
}

impl ProcessorTicks {
    /// Reads the ticks since the machine started.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // user, nice, system, idle, iowait, irq, softirq, steal; the time of guests is in that of user (proc_stat(5)).
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().take(8).filter_map(|ticks| ticks.parse().ok()).collect();
        let total = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Some(Self { busy: total - idle, total })
    }

    /// Returns the share of the time since `before` in which the processors were busy.
    fn busy_share(self, before: Self) -> Option<f64> {
        let total = self.total.checked_sub(before.total).filter(|total| *total > 0)?;
        Some(as_f64(self.busy.saturating_sub(before.busy)) / as_f64(total))
    }
}

impl MachineState {
    /// Reads the state now. `ticks` are those of the sample before, and of this one.
    pub(super) fn read(ticks: Option<(ProcessorTicks, ProcessorTicks)>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let share = ticks.and_then(|(before, now)| now.busy_share(before));
        let (total, available) = memory(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default());
        let limit = cgroup_memory();
        let narrower = |machine: Option<u64>, group: Option<u64>| match (machine, group) {
            (Some(machine), Some(group)) => Some(machine.min(group)),
            (machine, group) => machine.or(group),
        };
        Self {
            processors,
            busy_processors: share.map(|share| share * as_f64(machine_processors() as u64)),
            memory_total: narrower(total, limit.map(|(limit, _)| limit)),
            memory_available: narrower(available, limit.map(|(limit, used)| limit.saturating_sub(used))),
        }
    }
}

/// Returns the number of processors of the machine, of which this process may use fewer.
fn machine_processors() -> usize {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count().max(1)
}

/// Returns the total and the available memory, in bytes.
fn memory(meminfo: &str) -> (Option<u64>, Option<u64>) {
    let bytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    (bytes("MemTotal:"), bytes("MemAvailable:"))
}

/// Returns the limit of memory of the cgroup of this process, and its use without files that can be dropped.
fn cgroup_memory() -> Option<(u64, u64)> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let read = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).ok();
    // A limit of a group above holds as well.
    let folders = Path::new(own).ancestors().map(|path| root.join(path));
    let limits = folders.filter_map(|folder| {
        let limit: u64 = read(&folder, "memory.max")?.trim().parse().ok()?;
        let current: u64 = read(&folder, "memory.current")?.trim().parse().ok()?;
        let stat = read(&folder, "memory.stat").unwrap_or_default();
        let inactive = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok());
        Some((limit, current.saturating_sub(inactive.unwrap_or(0))))
    });
    limits.min_by_key(|(limit, used)| limit.saturating_sub(*used))
}

impl DiskSpace {
    /// Returns the space of the file system of each path, once for each file system.
    pub(crate) fn of(paths: &[PathBuf]) -> Vec<Self> {
        let mut seen = Vec::new();
        paths
            .iter()
            .filter_map(|path| {
                let space = rustix::fs::statvfs(path).ok()?;
                if seen.contains(&space.f_fsid) && space.f_fsid != 0 {
                    return None;
                }
                seen.push(space.f_fsid);
                let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
                Some(Self {
                    path: path.clone(),
                    total: bytes(space.f_blocks),
                    available: bytes(space.f_bavail),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_busy_processors_is_that_between_two_reads() {
        let read = |text| ProcessorTicks::parse(text).unwrap();
        let before = read("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4\n");
        let after = read("cpu  150 0 75 860 65 0 0 0 7 0\n");
        assert_eq!(after.busy_share(before), Some(0.5));
        assert_eq!(before.busy_share(before), None);
        assert_eq!(
            memory("MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable:   8 kB\n"),
            (Some(16_384), Some(8192))
        );
        assert_eq!(memory(""), (None, None));
    }

    #[test]
    fn a_file_system_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let found = DiskSpace::of(&[folder.path().to_owned(), folder.path().to_owned()]);
        assert!(found[0].total >= found[0].available && found[0].total > 0, "{found:?}");
        assert_eq!(found.len(), 1);
    }
}
