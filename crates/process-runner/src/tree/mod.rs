//! Starting a process, and finding and ending everything that came of it. What differs by platform is in files
//! of that name.
//!
//! | | found when it must end | our own death by `SIGKILL` |
//! | --- | --- | --- |
//! | Linux | process group, session, environment marker | [`guardian`](crate::guardian), if opted in |
//! | macOS, other Unix | process group | [`guardian`](crate::guardian), process groups only |
//! | Windows | job object | job object |

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(unix)]
mod launch;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod macos;
#[cfg(unix)]
mod sys;
#[cfg(not(target_os = "linux"))]
mod unconfined;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(all(unix, not(target_os = "linux")))]
use macos as platform;

#[cfg(target_os = "linux")]
pub(crate) use landlock::{Refused, confined, enforceable};
#[cfg(unix)]
pub(crate) use launch::*;
#[cfg(unix)]
pub(crate) use platform::{SEES_HOLDERS, holds, pipe_id, scan, start_time};
#[cfg(unix)]
pub(crate) use sys::ignore_polite_signals;
#[cfg(not(target_os = "linux"))]
pub(crate) use unconfined::enforceable;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use unconfined::{Refused, confined};
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(unix)]
use std::time::Duration;

use crate::outcome::ExitStatus;

/// The number of a run in this process, from which its environment marker is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunNumber(pub(crate) u64);

impl RunNumber {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// `PROCESS_RUNNER_RUN_<this process>_<run>`: a *name* of its own for each run, so that a run within a
    /// run carries both.
    pub(crate) fn marker(self) -> String {
        format!("{}{}", marker_prefix(), self.0)
    }
}

/// What the names of all markers of this process begin with. Drawn at random: a process id comes again.
pub(crate) fn marker_prefix() -> &'static str {
    static PREFIX: OnceLock<String> = OnceLock::new();
    PREFIX.get_or_init(|| {
        use std::hash::{BuildHasher, RandomState};
        // The keys of `RandomState` come from the operating system's generator.
        format!("PROCESS_RUNNER_RUN_{:016x}_", RandomState::new().hash_one(std::process::id()))
    })
}

/// How the leader of a run ended and what it used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaped {
    pub(crate) status: ExitStatus,
    pub(crate) usage: Option<crate::outcome::Usage>,
}

/// Waits before the attempts of a start that the system refuses for the moment (`EAGAIN`).
#[cfg(unix)]
pub(crate) const AGAIN_RETRIES: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(25), Duration::from_millis(125)];
