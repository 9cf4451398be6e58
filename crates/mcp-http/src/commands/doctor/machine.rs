//! Checks of the machine: the clock, and its limits against those of the configuration.
#![allow(clippy::disallowed_methods, reason = "it reads settings of the kernel and of systemd")]

use rustix::process::{Resource, getrlimit};
use server_setup::finding::{DoctorFinding, note, ok};
use server_setup::settings::Settings;
use std::path::Path;

/// The memory of one connection and of one session of the `initialize` era, in bytes (docs/operating.md).
const CONNECTION_BYTES: u64 = 40 << 10;
const SESSION_BYTES: u64 = 88 << 10;
/// The descriptors that the server needs beside its connections: files, programs and their pipes.
const OTHER_DESCRIPTORS: u64 = 1024;

/// Checks the machine.
pub(super) fn check(settings: &Settings) -> Vec<DoctorFinding> {
    let http = &settings.config.http;
    let mut findings = vec![clock()];
    // The server raises the soft limit to the hard one.
    let needed = http.max_connections.saturating_add(OTHER_DESCRIPTORS);
    if let Some(limit) = getrlimit(Resource::Nofile).maximum.filter(|limit| *limit < needed) {
        findings.push(note(
            "limits",
            format!("{limit} files may be open at once, and http.max_connections needs {needed}"),
            format!("LimitNOFILE={needed} in the unit, or a lower http.max_connections"),
        ));
    }
    let processes = [getrlimit(Resource::Nproc).maximum, cgroup("pids.max")].into_iter().flatten().min();
    if let Some(limit) = processes.filter(|limit| *limit < *http.max_processes) {
        findings.push(note(
            "limits",
            format!(
                "{limit} processes may run, and http.max_processes allows {} programs",
                *http.max_processes
            ),
            "raise TasksMax in the unit, or lower http.max_processes",
        ));
    }
    let memory = [memory_of_machine(), cgroup("memory.max")].into_iter().flatten().min();
    let held = http
        .max_connections
        .saturating_mul(CONNECTION_BYTES)
        .saturating_add(http.max_sessions.saturating_mul(SESSION_BYTES));
    findings.extend(memory.map(|memory| match held > memory / 4 {
        true => note(
            "limits",
            format!(
                "connections and sessions may take {} MiB of {} MiB, which programs need as well",
                held >> 20,
                memory >> 20
            ),
            "lower http.max_connections and http.max_sessions, or use a larger machine",
        ),
        false => {
            let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            ok("limits", format!("{cpus} CPUs, {} MiB of memory; those of the server fit", memory >> 20))
        }
    }));
    findings
}

/// Reports whether the clock is synchronised, as far as this machine says.
fn clock() -> DoctorFinding {
    // systemd-timesyncd and chrony's unit leave this file.
    match Path::new("/run/systemd/timesync/synchronized").exists() {
        true => ok("clock", "synchronised"),
        false => note(
            "clock",
            "systemd does not say that it is synchronised; ends of tokens and certificates, and the audit, depend on it",
            "`timedatectl` shows it; containers have the clock of their host",
        ),
    }
}

/// Returns a limit of the control group of this process, if it has one.
fn cgroup(file: &str) -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let path = Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/')).join(file);
    // `max` is no number, and no limit.
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn memory_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}
