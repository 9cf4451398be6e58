//! [`CaptureRun`], the context that every profiler gets, and [`CaptureOutput`], the output that it returns.

use super::artifacts::ProfileFiles;
use super::call_tree::FunctionLocation;
use super::error::Error;
use super::parse::CpuProfile;
use super::profile::ProfileSummary;
use super::programs::ProfilerPrograms;
use super::request::TraceType;
use crate::inspect::proc;
use crate::inspect::target::Process;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The time between two checks that the target still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The context of one capture.
#[derive(Debug)]
pub(super) struct CaptureRun<'a> {
    /// The target, where its process is visible.
    pub(super) process: Option<&'a Process>,
    pub(super) kind: TraceType,
    pub(super) duration: Duration,
    pub(super) cancel: &'a CancellationToken,
    pub(super) files: &'a ProfileFiles,
    pub(super) programs: &'a ProfilerPrograms,
    /// The roots, which paths in summaries are relative to.
    pub(super) roots: &'a [&'a Path],
}

/// The output of a profiler, from which the answer is made.
#[derive(Debug, Default)]
pub(super) struct CaptureOutput {
    pub(super) format: &'static str,
    pub(super) extension: &'static str,
    /// The time that the profile covers.
    pub(super) elapsed: Duration,
    /// The CPU time of the target during the capture, where the profiler measured it: starting it may cost CPU time too.
    pub(super) used_cpu: Option<Duration>,
    pub(super) samples: Option<u64>,
    /// The call tree of a CPU profile, which is summed up and drawn later.
    pub(super) cpu: Option<CpuProfile>,
    /// The summary of every other kind of profile.
    pub(super) summary: Option<ProfileSummary>,
    /// The longest time that the capture may have halted the target.
    pub(super) paused: Option<Duration>,
    pub(super) warnings: Vec<String>,
    /// The source locations of functions for which the profiler only knows a library.
    pub(super) locations: Vec<FunctionLocation>,
}

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptureWaitOutcome {
    /// The time is over.
    Elapsed,
    /// The target exited after this time.
    TargetExited(Duration),
}

impl CaptureRun<'_> {
    /// Returns the target's process id; 0 where its process is not visible.
    pub(super) fn pid(&self) -> u32 {
        self.process.map_or(0, |process| process.pid)
    }

    /// Waits for `time`, or until the target exits.
    ///
    /// # Errors
    /// The capture is cancelled.
    pub(super) async fn wait(&self, time: Duration) -> Result<CaptureWaitOutcome, Error> {
        let started = Instant::now();
        loop {
            let remaining = time.saturating_sub(started.elapsed());
            if remaining.is_zero() {
                return Ok(CaptureWaitOutcome::Elapsed);
            }
            tokio::select! {
                () = tokio::time::sleep(remaining.min(POLL_INTERVAL)) => {}
                () = self.cancel.cancelled() => return Err(Error::Cancelled),
            }
            // Polled: a pidfd would need a descriptor for each capture, and 50 ms are exact enough.
            if self.process.is_some_and(|process| !process.is_running()) {
                return Ok(CaptureWaitOutcome::TargetExited(started.elapsed()));
            }
        }
    }

    /// Returns the error for a target that exited after `after`.
    pub(super) fn target_exited(&self, after: Duration) -> Error {
        Error::Gone { pid: self.pid(), after_ms: millis(after) }
    }

    /// Returns the error for a profile that cannot be written to the folder for profiles.
    pub(super) fn store_error(&self, source: std::io::Error) -> Error {
        Error::Store { folder: self.files.folder().display().to_string(), source }
    }
}

/// Returns `time` in whole milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns `time` in whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the CPU time that the system has counted for a process, without its children.
#[cfg(unix)]
pub(super) fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = proc::text(pid, "stat").ok()?;
    // The second field, the name, may hold blanks and parentheses. After it, `utime` and `stime` are the 12th and 13th
    // (proc_pid_stat(5)).
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()?.checked_add(fields.next()?.parse().ok()?)?;
    let second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(ticks.saturating_mul(1000) / second))
}

/// Returns nothing: other systems are not supported.
#[cfg(not(unix))]
pub(super) fn cpu_time(_: u32) -> Option<Duration> {
    None
}

/// Runs `work` on a thread where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        // A panic of the work is that of the caller, and not a cancellation.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::Cancelled),
    }
}
