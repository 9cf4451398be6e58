//! What every way of taking a profile has at hand, and what it gives.

use super::artifacts::Files;
use super::parse::Cpu;
use super::profile::Summary;
use super::programs::Programs;
use super::{Error, TraceType};
use crate::inspect::proc;
use crate::inspect::target::Process;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often a target is looked at whether it is still there.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One capture.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// The target, where it is a process that can be seen.
    pub(super) process: Option<&'a Process>,
    pub(super) kind: TraceType,
    pub(super) duration: Duration,
    pub(super) cancel: &'a CancellationToken,
    pub(super) files: &'a Files,
    pub(super) programs: &'a Programs,
    /// The roots, which files are shown relative to.
    pub(super) roots: &'a [&'a Path],
}

/// What a capture gives.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) format: &'static str,
    pub(super) extension: &'static str,
    /// How long was looked.
    pub(super) lasted: Duration,
    /// The time on processors meanwhile, where what is done beside takes a part of it.
    pub(super) used: Option<Duration>,
    pub(super) samples: Option<u64>,
    pub(super) cpu: Option<Cpu>,
    pub(super) summary: Option<Summary>,
    pub(super) paused: Option<Duration>,
    pub(super) warnings: Vec<String>,
    /// Files and lines of functions whose profiler only knows their library.
    pub(super) places: Vec<super::native::Place>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// At its end.
    Whole,
    /// The target ended after so long.
    Gone(Duration),
}

impl Run<'_> {
    /// The target's process id.
    pub(super) fn pid(&self) -> u32 {
        self.process.map_or(0, |process| process.pid)
    }

    /// Waits for `time`, or until the target ends.
    ///
    /// # Errors
    /// The capture is cancelled.
    pub(super) async fn wait(&self, time: Duration) -> Result<Waited, Error> {
        let started = Instant::now();
        loop {
            let left = time.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(Waited::Whole);
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(LOOK_EVERY)) => {}
                () = self.cancel.cancelled() => return Err(Error::Cancelled),
            }
            if self.process.is_some_and(|process| !process.is_there()) {
                return Ok(Waited::Gone(started.elapsed()));
            }
        }
    }

    /// That the target ended, after so long.
    pub(super) fn gone(&self, after: Duration) -> Error {
        Error::Gone { pid: self.pid(), after_ms: millis(after) }
    }

    /// The folder of the profiles cannot be written.
    pub(super) fn unkept(&self, source: std::io::Error) -> Error {
        Error::Keep { folder: self.files.folder().display().to_string(), source }
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The time on processors that the system has counted for a process: its own, not that of its children.
#[cfg(unix)]
pub(super) fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = proc::text(pid, "stat").ok()?;
    // The name may hold blanks and parentheses.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()?.checked_add(fields.next()?.parse().ok()?)?;
    let second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(ticks.saturating_mul(1000) / second))
}

/// Nobody has been asked yet.
#[cfg(not(unix))]
pub(super) fn cpu_time(_: u32) -> Option<Duration> {
    None
}

/// Runs blocking work on a thread where it blocks nobody.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::Cancelled),
    }
}
