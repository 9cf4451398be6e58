//! The limits of a run.

use std::time::Duration;

use crate::spill::SpillOptions;

/// The limits of one run.
///
/// Every limit has a default. A run without a timeout must ask for it with [`Limits::unlimited`].
///
/// | limit | default | the run ends as |
/// | --- | --- | --- |
/// | `timeout` | 120 s | `TimedOut` |
/// | `idle_timeout` | none | `IdleTimedOut` |
/// | `max_output` | none: read to the end, keep `capture` | `OutputLimit` |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The time from the program's start until it must have ended. Waiting in the [`Runner`](crate::Runner)'s queue
    /// does not count. 120 s by default; `None` is no limit.
    pub timeout: Option<Duration>,
    /// The longest silence on both streams while the program runs. No limit by default.
    pub idle_timeout: Option<Duration>,
    /// The time from `SIGTERM` to `SIGKILL` when a run must end early. 2 s by default.
    pub term_grace: Duration,
    /// The longest silence, after the program's exit, on a stream that another process holds open. Then the stream is
    /// given up. The time starts again with each output, so that a hook that still prints is heard. 200 ms by default.
    pub drain_idle: Duration,
    /// The longest time, after the program's exit, for which such a stream is read. 2 s by default.
    pub drain_max: Duration,
    /// The most bytes of each stream that are kept: a quarter from its start, the rest from its end. 256 KiB by
    /// default.
    pub capture: usize,
    /// The most bytes of a line in an event or a line callback. The rest of a longer line is counted and dropped. 64
    /// KiB by default.
    pub max_line: usize,
    /// A bound on what one stream may print. Without it, the default, everything is read and counted, whether or not it
    /// is kept.
    pub max_output: Option<MaxOutput>,
    /// A private file for a stream that is longer than `capture`. None by default.
    pub spill: Option<SpillOptions>,
    /// The treatment of processes that outlive the program when it ends by itself.
    pub leftovers: LeftoverPolicy,
    /// The time for which a start is tried again while the program's file is open for writing (`ETXTBSY`: another
    /// thread's child still holds it for a moment). 2 s by default.
    pub busy_retry: Duration,
}

/// A bound on what one stream may print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaxOutput {
    /// The bytes that one stream may print.
    pub bytes: u64,
    /// The action at the byte after them.
    pub on_exceeded: OutputLimitAction,
}

impl MaxOutput {
    /// Returns a bound of `bytes` for each stream, with the action at the byte after them.
    pub fn new(bytes: u64, on_exceeded: OutputLimitAction) -> Self {
        Self { bytes, on_exceeded }
    }
}

/// The action on a program that prints more than [`MaxOutput::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputLimitAction {
    /// Kills the program and all it started.
    Kill,
    /// Closes our end of the stream, so that the program gets `EPIPE` or `SIGPIPE`, as with `head`.
    Close,
    /// Reads the rest and throws it away. The rest is not kept, not counted and not sent as events.
    Discard,
}

/// The treatment of processes that outlive a program that ended by itself.
///
/// The policy does not apply to a run that is timed out, cancelled, dropped or over its output limit. Such a run kills
/// all its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftoverPolicy {
    /// Kills the processes that still hold one of the output streams after [`Limits::drain_idle`] or
    /// [`Limits::drain_max`]. A daemon that has closed the streams (gpg-agent, sccache, a gradle daemon) is left alone.
    #[default]
    KillHolders,
    /// Kills all of them.
    KillAll,
    /// Kills no process. A process that holds a stream gets `SIGPIPE` if it writes after the run is over.
    Leave,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Longer than most builds and tests of one change, and short enough for a caller that waits.
            timeout: Some(Duration::from_secs(120)),
            idle_timeout: None,
            term_grace: Duration::from_secs(2),
            // Long enough for a `tee` or a hook that prints its last lines, and short beside the start of a program.
            drain_idle: Duration::from_millis(200),
            drain_max: Duration::from_secs(2),
            // With 64 runs at once both streams need at most 32 MiB.
            capture: 256 * 1024,
            max_line: 64 * 1024,
            max_output: None,
            spill: None,
            leftovers: LeftoverPolicy::default(),
            busy_retry: Duration::from_secs(2),
        }
    }
}

impl Limits {
    /// Returns the defaults without a timeout. The memory for output stays bounded.
    pub fn unlimited() -> Self {
        // Only the time: a server must not be able to run out of memory by an option.
        Self { timeout: None, ..Self::default() }
    }

    /// Sets [`Limits::timeout`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets [`Limits::idle_timeout`].
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Sets [`Limits::term_grace`].
    #[must_use]
    pub fn term_grace(mut self, grace: Duration) -> Self {
        self.term_grace = grace;
        self
    }

    /// Sets [`Limits::drain_idle`] and [`Limits::drain_max`].
    #[must_use]
    pub fn drain(mut self, idle: Duration, max: Duration) -> Self {
        self.drain_idle = idle;
        self.drain_max = max;
        self
    }

    /// Sets [`Limits::capture`], the most bytes kept of each stream.
    #[must_use]
    pub fn capture(mut self, bytes: usize) -> Self {
        self.capture = bytes;
        self
    }

    /// Sets [`Limits::max_line`].
    #[must_use]
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// Sets [`Limits::max_output`].
    #[must_use]
    pub fn max_output(mut self, bytes: u64, on_exceeded: OutputLimitAction) -> Self {
        self.max_output = Some(MaxOutput::new(bytes, on_exceeded));
        self
    }

    /// Sets [`Limits::spill`].
    #[must_use]
    pub fn spill(mut self, spill: SpillOptions) -> Self {
        self.spill = Some(spill);
        self
    }

    /// Sets [`Limits::busy_retry`].
    #[must_use]
    pub fn busy_retry(mut self, time: Duration) -> Self {
        self.busy_retry = time;
        self
    }

    /// Sets [`Limits::leftovers`].
    #[must_use]
    pub fn leftovers(mut self, leftovers: LeftoverPolicy) -> Self {
        self.leftovers = leftovers;
        self
    }
}
