//! The resources that this process uses, for the metrics.
#![allow(
    clippy::disallowed_methods,
    reason = "the files are those of this process in /proc; no client names them"
)]

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::time::Duration;

/// The resources that this process uses, by the names that Prometheus' client libraries agree on. Empty where the system has
/// no `/proc`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessUsage {
    cpu_seconds: Option<f64>,
    gauges: Vec<(&'static str, &'static str, i64)>,
}

impl ProcessUsage {
    /// Reads what this process uses now.
    #[cfg(target_os = "linux")]
    pub(crate) fn now() -> Self {
        let mut usage = Self::default();
        let (ticks, page) = (rustix::param::clock_ticks_per_second(), rustix::param::page_size() as u64);
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program, in parentheses, may hold anything. `proc_pid_stat(5)` counts the fields from 1, and this
        // begins with the third.
        let fields: Vec<u64> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .map(|field| field.parse().unwrap_or_default())
            .collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let mut add = |name, help, value: Option<u64>| {
            if let Some(value) = value.and_then(|value| i64::try_from(value).ok()) {
                usage.gauges.push((name, help, value));
            }
        };
        add("process_resident_memory_bytes", "Resident memory.", field(24).map(|pages| pages * page));
        add("process_virtual_memory_bytes", "Virtual memory.", field(23));
        add("process_threads", "Threads.", field(20));
        let descriptors = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64);
        add("process_open_fds", "File descriptors that are open.", descriptors);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        add("process_max_fds", "File descriptors that may be open.", limit);
        let boot = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<u64>().ok());
        let start = boot.zip(field(22)).map(|(boot, started)| boot + started / ticks);
        add("process_start_time_seconds", "The start of the process, in seconds since 1970.", start);
        #[allow(clippy::cast_precision_loss, reason = "centuries of CPU time are counted exactly")]
        let cpu = field(14).zip(field(15)).map(|(user, system)| (user + system) as f64 / ticks as f64);
        usage.cpu_seconds = cpu;
        usage
    }

    /// Returns nothing: this system has no `/proc`.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn now() -> Self {
        Self::default()
    }

    /// Returns the CPU time.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.cpu_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// Returns the resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        self.gauge("process_resident_memory_bytes")
    }

    /// Returns the number of open file descriptors, and how many may be open.
    pub(crate) fn descriptors(&self) -> Option<(u64, u64)> {
        self.gauge("process_open_fds").zip(self.gauge("process_max_fds"))
    }

    fn gauge(&self, name: &str) -> Option<u64> {
        let gauge = self.gauges.iter().find(|(known, ..)| *known == name)?;
        u64::try_from(gauge.2).ok()
    }

    /// Writes the metrics.
    pub(crate) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(seconds) = self.cpu_seconds {
            let help = "CPU time, in user mode and in the kernel.";
            let counter =
                encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(counter)?;
        }
        for (name, help, value) in &self.gauges {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(*value).encode(gauge)?;
        }
        Ok(())
    }
}
