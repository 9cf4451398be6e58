//! What bounds a run.

use std::time::Duration;

use crate::spill::Spill;

/// The bounds of one run. Every one has a default; [`Limits::unlimited`] must be asked for by name.
///
/// | limit | default | ends the run as |
/// | --- | --- | --- |
/// | `timeout` | 120 s | `TimedOut` |
/// | `idle_timeout` | none | `IdleTimedOut` |
/// | `max_output` | none: read to the end, keep `capture` | `OutputLimit` |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// From the start of the program until it must have ended. Waiting for a free place in the
    /// [`Runner`](crate::Runner) does not count. 120 s; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Longest silence on both streams while the program runs. None.
    pub idle_timeout: Option<Duration>,
    /// From `SIGTERM` to `SIGKILL` when a run must end early. 2 s.
    pub term_grace: Duration,
    /// After the exit, how long a stream that some other process holds open may stay silent until it is
    /// given up. Output re-arms it: a hook that still prints is heard. 200 ms.
    pub drain_idle: Duration,
    /// After the exit, how long such a stream is read at most. 2 s.
    pub drain_max: Duration,
    /// Bytes of each stream that are kept: a quarter from its start, the rest from its end. 256 KiB.
    pub capture: usize,
    /// Longest line of an event or a line callback, in bytes; what is beyond is counted, not kept. 64 KiB.
    pub max_line: usize,
    /// What to do with a program that prints without end. None: it is read, counted and not kept.
    pub max_output: Option<MaxOutput>,
    /// A private file for what `capture` cannot hold. None.
    pub spill: Option<Spill>,
    /// What to do with processes that outlive the program when it ends by itself.
    pub leftovers: Leftovers,
    /// How long a start is tried again while the program's file is open for writing (`ETXTBSY`: another
    /// thread's child still holds it for a moment). 2 s.
    pub busy_retry: Duration,
}

/// A bound on what one stream may print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxOutput {
    /// Bytes that one stream may print.
    pub bytes: u64,
    /// What happens at the byte after them.
    pub then: OverLimit,
}

/// What happens to a program that prints more than [`MaxOutput::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverLimit {
    /// The program and all it started are killed.
    Kill,
    /// Our end of the stream is closed, so that the program gets `EPIPE` or `SIGPIPE`, as under `head`.
    Close,
    /// The rest is read and thrown away without being kept, counted or sent as events.
    Discard,
}

/// What becomes of processes that outlive a program that ended by itself. Whatever this says, everything
/// ends when a run is timed out, cancelled, dropped or over its output limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leftovers {
    /// Those that still hold one of the output streams when a drain clock has run out are killed. A daemon
    /// that has closed them (gpg-agent, sccache, a gradle daemon) is left alone.
    #[default]
    KillHolders,
    /// All are killed.
    KillAll,
    /// None is killed. One that holds a stream gets `SIGPIPE` if it writes after the run has returned.
    Leave,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(120)),
            idle_timeout: None,
            term_grace: Duration::from_secs(2),
            drain_idle: Duration::from_millis(200),
            drain_max: Duration::from_secs(2),
            capture: 256 * 1024,
            max_line: 64 * 1024,
            max_output: None,
            spill: None,
            leftovers: Leftovers::default(),
            busy_retry: Duration::from_secs(2),
        }
    }
}

impl Limits {
    /// The defaults without a timeout. What is kept stays bounded: memory is not the caller's to waive.
    pub fn unlimited() -> Self {
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

    /// Sets [`Limits::capture`], the bytes kept of each stream.
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
    pub fn max_output(mut self, bytes: u64, then: OverLimit) -> Self {
        self.max_output = Some(MaxOutput { bytes, then });
        self
    }

    /// Sets [`Limits::spill`].
    #[must_use]
    pub fn spill(mut self, spill: Spill) -> Self {
        self.spill = Some(spill);
        self
    }

    /// Sets [`Limits::leftovers`].
    #[must_use]
    pub fn leftovers(mut self, leftovers: Leftovers) -> Self {
        self.leftovers = leftovers;
        self
    }
}
