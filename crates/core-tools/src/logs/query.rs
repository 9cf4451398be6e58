//! What is asked for, and what of the logs is that.

use super::Error;
use super::entry::{self, LogEntry, Read};
use super::forward::Group;
use super::level::Level;
use super::line::{Head, Shape};
use super::moment::{Moment, parse_bound};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// What `get_logs` takes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetLogs {
    /// Or worse; info
    // `debug` shows all there is, so `trace` need not be asked for. Entries without a level count as `info`.
    #[schemars(with = "Least")]
    #[serde(default)]
    pub level: Option<Level>,
    /// Default 100
    #[schemars(range(min = 1, max = 500))]
    #[serde(default)]
    pub limit: Option<u32>,
    /// Wait for new
    #[serde(default)]
    pub follow: bool,
    /// Name or glob
    #[serde(default)]
    pub source: Option<String>,
    /// RFC 3339 or 10m
    #[serde(default)]
    pub since: Option<String>,
    /// As `since`.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub until: Option<String>,
    /// Text that an entry must have.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub contains: Option<String>,
    /// As answered
    #[serde(default)]
    pub cursor: Option<String>,
    /// Exactly `level`.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub exact: bool,
    /// Show broken lines.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub malformed: bool,
}

/// The levels that a client may ask for; `debug` leaves nothing out.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
enum Least {
    Debug,
    Info,
    Warn,
    Error,
}

/// The most entries of one answer.
pub(super) const MOST_ENTRIES: u32 = 500;
const DEFAULT_ENTRIES: u32 = 100;

/// What of the logs is asked for.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    level: Level,
    exact: bool,
    since: Option<Moment>,
    until: Option<Moment>,
    contains: Option<String>,
    malformed: bool,
    pub(super) limit: usize,
}

/// Entries are written in about the order of their times.
const DISORDER: Duration = Duration::from_secs(5);

impl Filter {
    pub(super) fn new(query: &GetLogs) -> Result<Self, Error> {
        let now = Moment::now();
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
        if !(1..=MOST_ENTRIES).contains(&limit) {
            let reason = format!("{limit} is not from 1 to {MOST_ENTRIES}");
            return Err(Error::Argument { parameter: "limit", reason });
        }
        Ok(Self {
            // The least of the levels that a client is told of leaves nothing out.
            level: match query.level.unwrap_or(Level::Info) {
                Level::Debug if !query.exact => Level::Trace,
                level => level,
            },
            exact: query.exact,
            since,
            until,
            contains: query.contains.clone().filter(|text| !text.is_empty()),
            malformed: query.malformed,
            limit: limit as usize,
        })
    }

    /// Whether an entry that begins so may be asked for.
    pub(super) fn wants(&self, head: Head) -> bool {
        match (head.shape, head.level) {
            (Shape::Malformed, _) => self.malformed,
            (_, Some(level)) if self.exact => level == self.level,
            (_, Some(level)) => level >= self.level,
            (_, None) => !self.exact && self.level <= Level::Info,
        }
    }

    /// The entry, if it is asked for.
    pub(super) fn accept(&self, bytes: &[u8], group: &Group, malformed: &mut u64) -> Option<LogEntry> {
        if let Some(text) = &self.contains
            // What JSON escapes is seen once it is read.
            && memchr::memchr(b'\\', bytes).is_none()
            && memchr::memmem::find(bytes, text.as_bytes()).is_none()
            && !bytes.contains(&0x1b)
        {
            return None;
        }
        let Read { entry, malformed: broken, timestamp, .. } = entry::read(bytes, group.head);
        if broken && group.head.shape != Shape::Malformed {
            *malformed += 1;
            if !self.malformed {
                return None;
            }
        }
        let bounded = self.since.is_some() || self.until.is_some();
        let in_time = match timestamp {
            Some(time) => {
                self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time <= until)
            }
            None => !bounded,
        };
        let said = |text: &str| {
            entry.message.contains(text)
                || memchr::memmem::find(bytes, text.as_bytes()).is_some()
                || entry.fields.values().any(|value| value.as_str().is_some_and(|value| value.contains(text)))
        };
        (in_time && self.contains.as_deref().is_none_or(said)).then_some(entry)
    }

    pub(super) fn shows_malformed(&self) -> bool {
        self.malformed
    }

    /// Whether it is worth looking at the times of lines: what is older need not be read.
    pub(super) fn is_bounded_below(&self) -> bool {
        self.since.is_some()
    }

    /// Whether an entry that begins with `line` is so old that none before it is asked for. None where it has
    /// no time.
    pub(super) fn is_before(&self, line: &[u8], head: Head) -> Option<bool> {
        let time = entry::read(line, head).timestamp?;
        Some(self.since.is_some_and(|since| time < since.before(DISORDER)))
    }
}
