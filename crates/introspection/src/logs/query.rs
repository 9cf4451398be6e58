//! [`GetLogs`], the arguments of a query, and [`LogEntryFilter`], which selects the entries that match them.

use super::Error;
use super::container;
use super::entry::{self, LogEntry};
use super::forward::{LogEntrySpan, LogReadLimits};
use super::level::EntryLevel;
use super::line::{LineFormat, LogEntryHead};
use super::log_time::{LogTime, parse_bound};
use super::skipped::SkippedEntries;
use redaction::Redactor;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The arguments of `get_logs`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GetLogs {
    /// The lowest level to return; `info` by default. Entries without a level count as `info`.
    // `debug` returns everything, so the schema leaves out `trace`.
    #[schemars(
        with = "MinimumLogLevel",
        description = "The lowest level to return: this one and worse. `info` by default; an entry without a level counts as `info`; of an access log, status 5xx is `error` and 4xx `warn`."
    )]
    #[serde(default)]
    pub level: Option<EntryLevel>,
    /// The most entries to return, the newest, or the most groups. 100 by default.
    #[schemars(range(min = 1, max = 500))]
    #[serde(default)]
    pub limit: Option<u32>,
    /// Waits about ten seconds for entries that are written from now on. False by default.
    #[serde(default)]
    pub follow: bool,
    /// The log: a file, a glob such as `logs/*.log`, or its name in the server's settings. By default it is found, and the
    /// answer names it.
    #[serde(default)]
    pub source: Option<String>,
    /// The earliest time: RFC 3339 (`2026-11-20T10:00:00Z`) or how long ago (`90s`, `10m`, `2h`, `1d`).
    #[serde(default)]
    pub since: Option<String>,
    /// The latest time, in the forms of `since`.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub until: Option<String>,
    /// Plain text that an entry must contain, in its message or its fields. Case counts.
    #[serde(default)]
    pub contains: Option<String>,
    /// Counts the entries by `message` (those that differ only in numbers and ids are one), `level`, `minute`, `hour`,
    /// `day`, `file` or a field, each with its count, first and last time and a sample, instead of listing them.
    #[serde(default)]
    pub group_by: Option<String>,
    /// A cursor of an earlier answer: `older_cursor` for the entries before it, `newer_cursor` for those since.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Leaves out entries that are worse than `level`. False by default.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub exact: bool,
    /// Shows lines that begin like JSON and are none. False by default; they are always counted.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub malformed: bool,
}

impl GetLogs {
    /// Sets the lowest level to return.
    #[must_use]
    pub fn level(mut self, level: EntryLevel) -> Self {
        self.level = Some(level);
        self
    }

    /// Sets the largest number of entries to return.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Has the query wait for new entries.
    #[must_use]
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// Sets the log: a configured name, a file or a glob.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the earliest time: RFC 3339, or an age such as `10m`.
    #[must_use]
    pub fn since(mut self, since: impl Into<String>) -> Self {
        self.since = Some(since.into());
        self
    }

    /// Sets the latest time, in the forms of [`since`](Self::since).
    #[must_use]
    pub fn until(mut self, until: impl Into<String>) -> Self {
        self.until = Some(until.into());
        self
    }

    /// Counts the entries in groups instead of returning them: `message`, `level`, `minute`, `hour`, `day`, `file`, or the
    /// name of a field.
    #[must_use]
    pub fn group_by(mut self, property: impl Into<String>) -> Self {
        self.group_by = Some(property.into());
        self
    }

    /// Sets a text that an entry must contain.
    #[must_use]
    pub fn contains(mut self, contains: impl Into<String>) -> Self {
        self.contains = Some(contains.into());
        self
    }

    /// Continues where an earlier page ended: the cursor is one of [`LogPage`](super::LogPage).
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Leaves out entries that are worse than the level.
    #[must_use]
    pub fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// Has lines shown that cannot be read as entries.
    #[must_use]
    pub fn malformed(mut self, malformed: bool) -> Self {
        self.malformed = malformed;
        self
    }
}

/// The levels that the schema offers; `debug` includes `trace`.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
enum MinimumLogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// The maximum number of entries in a page.
pub(super) const MAX_ENTRIES: u32 = 500;
const DEFAULT_ENTRIES: u32 = 100;

/// The conditions that an entry has to meet, parsed from a [`GetLogs`].
#[derive(Clone, Debug)]
pub(super) struct LogEntryFilter {
    level: EntryLevel,
    exact: bool,
    since: Option<LogTime>,
    until: Option<LogTime>,
    contains: Option<String>,
    malformed: bool,
    pub(super) limit: usize,
    /// Masks what `contains` may not search: the caller would learn a secret by asking for it letter by letter.
    redactor: Option<Arc<Redactor>>,
}

/// The counts of what was left out while entries were compared.
#[derive(Clone, Debug, Default)]
pub(super) struct OmittedCounts {
    pub(super) malformed: u64,
    pub(super) skipped: SkippedEntries,
    /// The number of bytes that were not read, as places among them have entries older than `since` alone.
    pub(super) older_bytes: u64,
}

// Threads and processes that share a file write an entry some time after they stamp it.
/// How much older than its predecessor an entry may be: reading ends only where entries are older than `since` by
/// more than this.
const MAX_DISORDER: Duration = Duration::from_secs(5);

/// Returns the size of an entry of which no more than `bytes` were read.
fn cut_size(bytes: &[u8], span: &LogEntrySpan) -> Option<u64> {
    let size = span.end - span.start;
    // Blank lines, and the last byte of a cut line, are not kept.
    let is_cut = bytes.len() + 2 > LogReadLimits::DEFAULT.max_line_bytes && size > bytes.len() as u64 + 2;
    is_cut.then_some(size)
}

/// Counts an entry that does not have the text in what was read of it, where that is not all.
fn count_unsearched(bytes: &[u8], span: &LogEntrySpan, omissions: &mut OmittedCounts) {
    if cut_size(bytes, span).is_some() {
        omissions.skipped.add_unsearched(bytes);
    }
}

/// An entry that matches, before the secrets in it are masked. What is taken of it for an answer is masked by a
/// [`LogEntryFilter`].
#[derive(Clone, Debug)]
pub(super) struct UnmaskedEntry {
    entry: LogEntry,
    time: Option<LogTime>,
}

impl UnmaskedEntry {
    pub(super) fn time(&self) -> Option<LogTime> {
        self.time
    }

    /// Returns the time as an answer has it.
    pub(super) fn timestamp(&self) -> Option<&str> {
        self.entry.timestamp.as_deref()
    }

    pub(super) fn level(&self) -> &'static str {
        self.entry.level
    }

    /// Returns the message with its secrets masked.
    pub(super) fn message<'e>(&'e self, filter: &LogEntryFilter) -> Cow<'e, str> {
        filter.mask_text(&self.entry.message)
    }

    /// Returns the fields, whose secrets are not masked.
    pub(super) fn unmasked_fields(&self) -> &Map<String, Value> {
        &self.entry.fields
    }

    /// Sets where the entry stands.
    pub(super) fn set_place(&mut self, line: u64, file: Option<&str>) {
        (self.entry.line, self.entry.file) = (Some(line), file.map(str::to_owned));
    }

    /// Returns the entry with its secrets masked.
    pub(super) fn mask(self, filter: &LogEntryFilter) -> LogEntry {
        let mut entry = self.entry;
        filter.mask_entry(&mut entry);
        entry
    }
}

impl LogEntryFilter {
    pub(super) fn new(query: &GetLogs) -> Result<Self, Error> {
        let now = LogTime::now();
        let bound = |parameter, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => parse_bound(text, now).map(Some).ok_or_else(|| Error::Argument {
                parameter,
                reason: format!(
                    "{:?} is no time; give RFC 3339 (2026-11-20T10:00:00Z), seconds since 1970, or how long \
                     ago (90s, 10m, 2h, 1d)",
                    text.chars().take(60).collect::<String>()
                ),
            }),
        };
        let (since, until) = (bound("since", &query.since)?, bound("until", &query.until)?);
        if let (Some(since), Some(until)) = (since, until)
            && until < since
        {
            return Err(Error::Argument {
                parameter: "until",
                reason: format!("{until} is before `since`, {since}"),
            });
        }
        let limit = query.limit.unwrap_or(DEFAULT_ENTRIES);
        if !(1..=MAX_ENTRIES).contains(&limit) {
            let reason = format!("{limit} is not from 1 to {MAX_ENTRIES}");
            return Err(Error::Argument { parameter: "limit", reason });
        }
        Ok(Self {
            // `debug` is the lowest level in the schema, so it includes `trace`.
            level: match query.level.unwrap_or(EntryLevel::Info) {
                EntryLevel::Debug if !query.exact => EntryLevel::Trace,
                level => level,
            },
            exact: query.exact,
            since,
            until,
            contains: query.contains.clone().filter(|text| !text.is_empty()),
            malformed: query.malformed,
            limit: limit as usize,
            redactor: None,
        })
    }

    /// Sets the redactor that masks the answers.
    #[must_use]
    pub(super) fn redactor(mut self, redactor: Option<Arc<Redactor>>) -> Self {
        self.redactor = redactor;
        self
    }

    /// Returns whether an entry with this head may match, before anything else of it is read.
    pub(super) fn may_match(&self, head: LogEntryHead) -> bool {
        match (head.format, head.level) {
            (LineFormat::Malformed, _) => self.malformed,
            // Its level is known once it is parsed, or the rest of a cut line would tell it.
            (LineFormat::Late | LineFormat::Cut, None) => true,
            (_, level) => self.accepts(level),
        }
    }

    fn accepts(&self, level: Option<EntryLevel>) -> bool {
        match level {
            Some(level) if self.exact => level == self.level,
            Some(level) => level >= self.level,
            None => !self.exact && self.level <= EntryLevel::Info,
        }
    }

    /// Counts an entry that [`may_match`](Self::may_match) refused, if nothing but its unknown level was the reason.
    // Called for every line that is passed over.
    #[inline]
    pub(super) fn count_refused(&self, head: LogEntryHead, line: &[u8], omissions: &mut OmittedCounts) {
        if head.level.is_none() && head.format != LineFormat::Malformed {
            omissions.skipped.add_unlevelled(line);
        }
    }

    /// Parses the entry and returns it masked if it matches, with its time. Counts in `omissions` what is left out because
    /// it is not understood.
    pub(super) fn parse_if_matching(
        &self,
        bytes: &[u8],
        span: &LogEntrySpan,
        reference: LogTime,
        omissions: &mut OmittedCounts,
    ) -> Option<(LogEntry, Option<LogTime>)> {
        let found = self.find_if_matching(bytes, span, reference, omissions)?;
        let time = found.time();
        Some((found.mask(self), time))
    }

    /// Parses the entry and returns it if it matches, as [`parse_if_matching`](Self::parse_if_matching) does, and leaves
    /// the masking to the caller, who may need only a part of it.
    pub(super) fn find_if_matching(
        &self,
        bytes: &[u8],
        span: &LogEntrySpan,
        reference: LogTime,
        omissions: &mut OmittedCounts,
    ) -> Option<UnmaskedEntry> {
        if let Some(text) = &self.contains
            // Bytes cannot be compared where JSON escapes or colours may interrupt the text, or where an entry is put
            // together from pieces: parse those first.
            && span.head.format != LineFormat::Late
            && !container::is_cut(bytes)
            && memchr::memchr(b'\\', bytes).is_none()
            && memchr::memmem::find(bytes, text.as_bytes()).is_none()
            && !bytes.contains(&0x1b)
        {
            count_unsearched(bytes, span, omissions);
            return None;
        }
        let mut parsed = entry::parse(bytes, span.head, reference);
        if let Some(size) = cut_size(bytes, span) {
            let note = format!(" [the entry has {size} bytes, of which only the first 1 MiB was read]");
            parsed.entry.message.push_str(&note);
        }
        if parsed.malformed && span.head.format != LineFormat::Malformed {
            omissions.malformed += 1;
            if !self.malformed {
                return None;
            }
        }
        // A line that was cut is shown even if its level was in the rest.
        if span.head.format == LineFormat::Late && !self.accepts(parsed.level) {
            if parsed.level.is_none() {
                omissions.skipped.add_unlevelled(bytes);
            }
            return None;
        }
        if let Some(text) = &self.contains
            && !self.contains(text, bytes, &parsed.entry)
        {
            count_unsearched(bytes, span, omissions);
            return None;
        }
        let bounded = self.since.is_some() || self.until.is_some();
        let in_time = match parsed.timestamp {
            Some(time) => {
                self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time <= until)
            }
            None => !bounded,
        };
        if parsed.timestamp.is_none() && bounded {
            omissions.skipped.add_untimed(bytes, &parsed);
        }
        in_time.then_some(UnmaskedEntry { entry: parsed.entry, time: parsed.timestamp })
    }

    /// Returns whether the entry has the text, in what a caller may see of it.
    fn contains(&self, text: &str, bytes: &[u8], entry: &LogEntry) -> bool {
        let in_value = |entry: &LogEntry| {
            entry.message.contains(text)
                || entry.fields.values().any(|value| match value {
                    Value::String(value) => value.contains(text),
                    value => value.to_string().contains(text),
                })
        };
        if !in_value(entry) && memchr::memmem::find(bytes, text.as_bytes()).is_none() {
            return false;
        }
        let Some(redactor) = &self.redactor else { return true };
        // The text as it is answered: names that reveal a secret stand beside it there.
        let mut shown = entry.clone();
        let is_masked = self.mask_entry(&mut shown);
        let shown = shown.to_text();
        let masked = redactor.redact_log(&shown);
        let line = String::from_utf8_lossy(bytes);
        let masked_line = redactor.redact_log(&line);
        let is_masked = is_masked || matches!(masked, Cow::Owned(_));
        if !is_masked && matches!(masked_line, Cow::Borrowed(_)) {
            return true;
        }
        let quoted = serde_json::to_string(text).unwrap_or_default();
        let quoted = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        masked.contains(text) || masked.contains(quoted) || !is_masked && masked_line.contains(text)
    }

    /// Returns the value of a field of an entry with what the redactor finds in it masked.
    pub(super) fn mask_field(&self, name: &str, value: &Value) -> Value {
        let mut masked = value.clone();
        if let Some(redactor) = &self.redactor {
            redactor.redact_log_member(name, &mut masked);
        }
        masked
    }

    /// Masks what the redactor finds in an entry. Returns whether it found anything.
    fn mask_entry(&self, entry: &mut LogEntry) -> bool {
        let Some(redactor) = &self.redactor else { return false };
        let mut is_masked = false;
        if let Cow::Owned(masked) = redactor.redact_log(&entry.message) {
            (entry.message, is_masked) = (masked, true);
        }
        for (name, value) in &mut entry.fields {
            is_masked |= redactor.redact_log_member(name, value);
        }
        is_masked
    }

    /// Returns a text of a log with what the redactor finds in it masked.
    pub(super) fn mask_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.as_ref().map_or(Cow::Borrowed(text), |redactor| redactor.redact_log(text))
    }

    /// Returns whether the redactor that masks the answers masks anything in `text`.
    pub(super) fn masks(&self, text: &str) -> bool {
        self.redactor.as_ref().is_some_and(|redactor| matches!(redactor.redact(text), Cow::Owned(_)))
    }

    /// Returns whether malformed lines are answered too.
    pub(super) fn includes_malformed(&self) -> bool {
        self.malformed
    }

    /// Returns whether the query has `since`, so that reading can end at entries that are older.
    pub(super) fn has_since(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the time of the entry that begins with `line`.
    pub(super) fn time_of(&self, line: &[u8], head: LogEntryHead, reference: LogTime) -> Option<LogTime> {
        entry::parse(line, head, reference).timestamp
    }

    /// Returns whether no entry before one of this time can match.
    pub(super) fn ends_before(&self, time: LogTime) -> bool {
        self.since.is_some_and(|since| time < since.before(MAX_DISORDER))
    }

    /// Returns whether the entry that begins with `line` is so old that no earlier one can match. `None` where
    /// the line has no time.
    pub(super) fn is_too_old(&self, line: &[u8], head: LogEntryHead, reference: LogTime) -> Option<bool> {
        Some(self.ends_before(self.time_of(line, head, reference)?))
    }
}
