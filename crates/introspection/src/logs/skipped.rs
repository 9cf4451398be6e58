//! [`SkippedEntries`]: what a query left out because something in it was not understood.

use super::entry::ParsedEntry;
use super::line_bytes::trim_start;
use super::message::{shorten, to_plain_text};
use serde::Serialize;

/// The entries that a query left out because one part of them was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotUnderstood {
    /// The part that was not understood.
    pub part: UnknownPart,
    /// The number of left out entries among the entries that were read.
    pub count: u64,
    /// True if there may be more: of a large file, what is older than `since` is read in places only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The beginning of one left out entry.
    pub sample: String,
}

/// A part of an entry that a query compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum UnknownPart {
    /// The level: the entry has none in a form that is known. `level: "info"` and lower includes such entries.
    Level,
    /// The time: the entry has none, or only a clock without a day. A query without `since` and `until` includes it.
    Time,
    /// The text behind the first 1 MiB of an entry, in which `contains` is not searched.
    Rest,
}

/// The maximum size of a sample, in bytes.
const MAX_SAMPLE_BYTES: usize = 200;

/// The entries that were left out so far.
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedEntries {
    level: SkippedCount,
    time: SkippedCount,
    rest: SkippedCount,
}

/// A count, and the first entry that was counted.
#[derive(Clone, Debug, Default)]
struct SkippedCount {
    count: u64,
    at_least: bool,
    sample: Option<String>,
}

impl SkippedCount {
    fn add(&mut self, bytes: &[u8]) {
        self.count += 1;
        if self.sample.is_none() {
            let line = trim_start(bytes).split(|byte| *byte == b'\n').next().unwrap_or_default();
            let mut sample =
                to_plain_text(line.get(..line.len().min(4 * MAX_SAMPLE_BYTES)).unwrap_or_default());
            shorten(&mut sample, MAX_SAMPLE_BYTES);
            self.sample = Some(sample);
        }
    }

    fn report(&self, part: UnknownPart) -> Option<NotUnderstood> {
        let sample = self.sample.clone()?;
        Some(NotUnderstood { part, count: self.count, at_least: self.at_least, sample })
    }
}

impl SkippedEntries {
    /// Counts the entry that begins with `bytes`, whose level is not known.
    pub(super) fn add_unlevelled(&mut self, bytes: &[u8]) {
        self.level.add(bytes);
    }

    /// Counts the entry with `bytes`, whose time is not known. A malformed line is counted elsewhere.
    pub(super) fn add_untimed(&mut self, bytes: &[u8], parsed: &ParsedEntry) {
        if !parsed.malformed {
            self.time.add(bytes);
        }
    }

    /// Counts the entry that begins with `bytes`, the rest of which was not searched.
    pub(super) fn add_unsearched(&mut self, bytes: &[u8]) {
        self.rest.add(bytes);
    }

    /// Adds what was counted since `self` was reported.
    pub(super) fn merge(&mut self, other: Self) {
        for (own, other) in
            [(&mut self.level, other.level), (&mut self.time, other.time), (&mut self.rest, other.rest)]
        {
            own.count += other.count;
            own.at_least |= other.at_least;
            own.sample = own.sample.take().or(other.sample);
        }
    }

    /// Adds the entries without a known time that were seen in places of a part that is not read.
    pub(super) fn merge_sampled(&mut self, mut sampled: Self) {
        sampled.time.at_least = sampled.time.count > 0;
        self.merge(Self { time: sampled.time, ..Self::default() });
    }

    /// Returns what an answer tells about it.
    pub(super) fn report(&self) -> Vec<NotUnderstood> {
        [
            self.level.report(UnknownPart::Level),
            self.time.report(UnknownPart::Time),
            self.rest.report(UnknownPart::Rest),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
