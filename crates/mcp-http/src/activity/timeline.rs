//! The pieces of time of one span: those of the last hour, or of the last day.

use super::activity_counts::ActivityCounts;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// A span of time that the page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSpan {
    Hour,
    Day,
}

impl TimeSpan {
    /// Both of them.
    pub(crate) const ALL: [Self; 2] = [Self::Hour, Self::Day];

    /// Returns the number of its pieces.
    pub(crate) fn pieces(self) -> usize {
        match self {
            // The numbers of pieces make a chart of about a hundred bars in both spans.
            Self::Hour => 120,
            Self::Day => 96,
        }
    }

    /// Returns the length of a piece.
    pub(crate) fn piece(self) -> Duration {
        match self {
            Self::Hour => Duration::from_secs(30),
            Self::Day => Duration::from_secs(15 * 60),
        }
    }
}

/// The load of the server, at most in a piece of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerLoad {
    /// Calls that ran.
    pub(crate) running: usize,
    /// Calls that waited for a permit.
    pub(crate) waiting: usize,
    /// The CPU time of this process, without the programs.
    pub(crate) cpu: Duration,
    /// The memory of this process, in bytes.
    pub(crate) memory: u64,
}

/// The names that have counts of their own in one piece of time. What others do is counted together.
const MAX_NAMES: usize = 150;
/// The name of all others. No caller and no tool has it.
pub(super) const OTHERS: &str = "(others)";

/// One piece of time.
#[derive(Clone, Debug)]
pub(super) struct TimeBucket {
    /// Its number, counted from the start of the server.
    pub(super) number: u64,
    pub(super) total: ActivityCounts,
    pub(super) callers: HashMap<String, ActivityCounts>,
    pub(super) tools: HashMap<String, ActivityCounts>,
    pub(super) load: ServerLoad,
}

/// The pieces of one span, the oldest first. A piece in which nothing happened may be missing.
#[derive(Debug)]
pub(super) struct ActivityTimeline {
    pub(super) span: TimeSpan,
    pub(super) pieces: VecDeque<TimeBucket>,
}

impl ActivityTimeline {
    pub(super) fn new(span: TimeSpan) -> Self {
        Self { span, pieces: VecDeque::new() }
    }

    /// Returns the number of the piece that `elapsed` after the start of the server lies in.
    pub(super) fn number_at(&self, elapsed: Duration) -> u64 {
        elapsed.as_secs() / self.span.piece().as_secs()
    }

    /// Returns the piece that is now, which is made if it is missing, and forgets those that are too old.
    pub(super) fn now(&mut self, elapsed: Duration) -> Option<&mut TimeBucket> {
        let number = self.number_at(elapsed);
        let oldest = (number + 1).saturating_sub(self.span.pieces() as u64);
        while self.pieces.front().is_some_and(|piece| piece.number < oldest) {
            self.pieces.pop_front();
        }
        if self.pieces.back().is_none_or(|piece| piece.number < number) {
            self.pieces.push_back(TimeBucket {
                number,
                total: ActivityCounts::default(),
                callers: HashMap::new(),
                tools: HashMap::new(),
                load: ServerLoad::default(),
            });
        }
        self.pieces.back_mut()
    }
}

/// Changes the counts of `name`, or those of all others where there are too many names.
pub(super) fn change_counts(
    counts: &mut HashMap<String, ActivityCounts>,
    name: &str,
    change: impl FnOnce(&mut ActivityCounts),
) {
    // Without a copy of the name where it is known, as it is for nearly every call.
    if let Some(counts) = counts.get_mut(name) {
        return change(counts);
    }
    // Callers choose the names of tools that do not exist, so that the number of names must be bounded.
    let name = if counts.len() < MAX_NAMES { name } else { OTHERS };
    change(counts.entry(name.to_owned()).or_default());
}
