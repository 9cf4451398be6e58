//! Counts entries in groups: alike messages, levels, hours, or the values of a field.

use super::error::Error;
use super::files::LogFile;
use super::fold::fold;
use super::forward::{ForwardReader, LogReadLimits};
use super::line::LineFormat;
use super::log_group::{LogGroup, MessageCount};
use super::log_time::LogTime;
use super::message::shorten;
use super::page::{LogPage, MAX_PAGE_BYTES};
use super::query::{LogEntryFilter, OmittedCounts, UnmaskedEntry};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// The number of groups that are counted; entries of further ones are counted together.
const MAX_GROUPS: usize = 10_000;
/// The number of different texts that are counted one by one: of every group, and of all groups together beyond that.
const MAX_TEXTS: usize = 200;
const MAX_SHARED_TEXTS: usize = 100_000;
/// The number of these texts that an answer names.
const MAX_NAMED_TEXTS: usize = 5;
/// The size of such a text, and of the message of a sample, in bytes.
const MAX_TEXT_BYTES: usize = 300;
/// The number of bytes that are read: a longer log is counted from its newest file back.
const MAX_READ_BYTES: u64 = 4 << 30;
/// The text in the place of a value that is masked.
const MASKED: &str = "[masked]";
/// The text in the place of a value that an entry does not have.
const ABSENT: &str = "(none)";

/// The property by which entries are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GroupBy {
    /// The level and the message, without what numbers and ids tell apart.
    Message,
    Level,
    /// The first characters of the time: 10 for a day, 13 for an hour, 16 for a minute.
    Time(usize),
    File,
    /// The value of a field.
    Field(String),
}

impl GroupBy {
    /// Reads the value of the parameter.
    pub(super) fn parse(text: &str) -> Self {
        match text {
            "message" => Self::Message,
            "level" => Self::Level,
            "day" => Self::Time(10),
            "hour" => Self::Time(13),
            "minute" => Self::Time(16),
            "file" => Self::File,
            field => Self::Field(field.to_owned()),
        }
    }
}

/// Returns the keys of entries by one property.
struct GroupKeys<'a> {
    by: &'a GroupBy,
    filter: &'a LogEntryFilter,
    /// The keys of values of the field that were seen: of a member of this name, and of a nested one. Most fields by
    /// which entries are grouped have few values.
    keys_of_values: [HashMap<String, String>; 2],
}

impl<'a> GroupKeys<'a> {
    fn new(by: &'a GroupBy, filter: &'a LogEntryFilter) -> Self {
        Self { by, filter, keys_of_values: Default::default() }
    }

    /// Returns the key of an entry with this masked message. Entries of different levels are different groups only for
    /// messages.
    fn key(&mut self, entry: &UnmaskedEntry, message: &str, file: &str) -> String {
        match self.by {
            GroupBy::Message => fold(message),
            GroupBy::Level => entry.level().to_owned(),
            GroupBy::Time(chars) => entry
                .timestamp()
                .map_or_else(|| ABSENT.to_owned(), |time| time.chars().take(*chars).collect()),
            GroupBy::File => file.to_owned(),
            GroupBy::Field(name) => self.key_of_field(entry.unmasked_fields(), name),
        }
    }

    /// Returns the value of a field as text; a secret is masked, as its name would not stand beside it.
    fn key_of_field(&mut self, fields: &Map<String, Value>, name: &str) -> String {
        let (member_name, path) = match name.split_once('.') {
            Some((first, rest)) if !fields.contains_key(name) => (first, Some(rest)),
            _ => (name, None),
        };
        let Some(member) = fields.get(member_name) else { return ABSENT.to_owned() };
        let Some(value) = nested(member, path) else { return ABSENT.to_owned() };
        let raw = value_text(value);
        let [own_keys, nested_keys] = &mut self.keys_of_values;
        let known = if path.is_none() { own_keys } else { nested_keys };
        if let Some(key) = known.get(raw.as_ref()) {
            return key.clone();
        }
        let masked = self.filter.mask_field(member_name, member);
        let key = match nested(&masked, path).map(value_text) {
            Some(text) if !text.starts_with("[redacted:") => {
                match self.filter.masks(&json!({ (name): text }).to_string()) {
                    true => MASKED.to_owned(),
                    false => {
                        let mut text = text.into_owned();
                        shorten(&mut text, MAX_TEXT_BYTES);
                        text
                    }
                }
            }
            _ => MASKED.to_owned(),
        };
        if known.len() < MAX_GROUPS && raw.len() <= MAX_TEXT_BYTES {
            known.insert(raw.into_owned(), key.clone());
        }
        key
    }
}

/// Returns the member of `value` at a path of names with dots between them; `value` itself without a path.
fn nested<'v>(value: &'v Value, path: Option<&str>) -> Option<&'v Value> {
    path.map_or(Some(value), |path| path.split('.').try_fold(value, |value, name| value.get(name)))
}

fn value_text(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

/// A group while it is counted.
struct LogGroupCount {
    count: u64,
    rank: usize,
    level: &'static str,
    first: Option<LogTime>,
    last: Option<LogTime>,
    messages: HashMap<String, u64>,
    /// The largest number of texts that were counted at a time, where the rarest of them were forgotten.
    most_texts: Option<usize>,
    sample: UnmaskedEntry,
}

/// Returns the rank of a level by its name; the worst has the highest.
fn rank(level: &str) -> usize {
    ["malformed", "trace", "debug", "unknown", "info", "warn", "error", "fatal"]
        .iter()
        .position(|name| *name == level)
        .unwrap_or_default()
}

impl LogGroupCount {
    fn new(entry: UnmaskedEntry) -> Self {
        Self {
            count: 0,
            rank: 0,
            level: entry.level(),
            first: None,
            last: None,
            messages: HashMap::new(),
            most_texts: None,
            sample: entry,
        }
    }

    /// Adds an entry with this masked message. `shared_texts` is the number of texts that groups may still count beyond
    /// their own.
    fn add(&mut self, entry: UnmaskedEntry, message: &str, shared_texts: &mut usize) {
        self.count += 1;
        let (level, time) = (entry.level(), entry.time());
        if self.count == 1 || (level != self.level && rank(level) > self.rank) {
            (self.rank, self.level) = (rank(level), level);
        }
        let mut text = Cow::Borrowed(message.lines().next().unwrap_or_default());
        if text.len() > MAX_TEXT_BYTES {
            shorten(text.to_mut(), MAX_TEXT_BYTES);
        }
        match self.messages.get_mut(text.as_ref()) {
            Some(count) => *count += 1,
            None => {
                if self.messages.len() >= MAX_TEXTS {
                    if *shared_texts == 0 {
                        *shared_texts += self.forget_rarest();
                    }
                    *shared_texts = shared_texts.saturating_sub(1);
                }
                self.messages.insert(text.into_owned(), 1);
            }
        }
        if let Some(time) = time {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
        }
        // Without times, the order of the files is that of the entries.
        if time.is_none() || self.last.is_none_or(|last| Some(last) <= time) {
            self.last = time.or(self.last);
            self.sample = entry;
        }
    }

    /// Forgets the rarer half of the texts, so that one that becomes frequent later has room. Returns the number of them.
    fn forget_rarest(&mut self) -> usize {
        let before = self.messages.len();
        self.most_texts = self.most_texts.max(Some(before));
        let mut counts: Vec<u64> = self.messages.values().copied().collect();
        let half = counts.len() / 2;
        let median = *counts.select_nth_unstable(half).1;
        self.messages.retain(|_, count| *count > median);
        before - self.messages.len()
    }

    fn finish(self, group: String, filter: &LogEntryFilter) -> LogGroup {
        let distinct_messages = self.messages.len().max(self.most_texts.unwrap_or_default());
        let mut messages: Vec<_> =
            self.messages.into_iter().map(|(message, count)| MessageCount { message, count }).collect();
        messages.sort_by(|a, b| (b.count, &a.message).cmp(&(a.count, &b.message)));
        // Of many messages that came once each, the sample says as much as a few.
        messages.retain(|message| message.count > 1 || distinct_messages <= MAX_NAMED_TEXTS);
        messages.truncate(if distinct_messages > 1 { MAX_NAMED_TEXTS } else { 0 });
        let mut sample = self.sample.mask(filter);
        shorten(&mut sample.message, MAX_TEXT_BYTES);
        // Not cut: a part of an object would be no JSON, or would look like the whole.
        if Value::Object(sample.fields.clone()).to_string().len() > 2 * MAX_TEXT_BYTES {
            sample.fields.clear();
        }
        LogGroup {
            count: self.count,
            group,
            level: self.level,
            first: self.first.map(|time| time.to_string()),
            last: self.last.map(|time| time.to_string()),
            messages,
            distinct_messages,
            distinct_at_least: self.most_texts.is_some(),
            sample,
        }
    }
}

/// Reads all of `files` and counts the entries that match, in groups: the largest first, as many as the query allows.
pub(super) fn read(
    files: &[LogFile],
    by: &GroupBy,
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<LogPage, Error> {
    let mut groups: HashMap<(String, &'static str), LogGroupCount> = HashMap::new();
    let (mut total, mut ungrouped) = (0_u64, 0_u64);
    let mut shared_texts = MAX_SHARED_TEXTS;
    let mut keys = GroupKeys::new(by, filter);
    let mut page = each_matching(files, MAX_READ_BYTES, filter, cancel, |mut entry, line, file| {
        total += 1;
        let message = entry.message(filter).into_owned();
        let key = keys.key(&entry, &message, file);
        // An error and a notice with one text are not one thing.
        let level = if *by == GroupBy::Message { entry.level() } else { "" };
        if groups.len() >= MAX_GROUPS && !groups.contains_key(&(key.clone(), level)) {
            ungrouped += 1;
            return;
        }
        entry.set_place(line, Some(file).filter(|_| files.len() > 1));
        groups.entry((key, level)).or_insert_with(|| LogGroupCount::new(entry.clone())).add(
            entry,
            &message,
            &mut shared_texts,
        );
    })?;
    let group_count = groups.len();
    let mut counted: Vec<LogGroup> =
        groups.into_iter().map(|((key, _), group)| group.finish(key, filter)).collect();
    counted.sort_by(|a, b| match by {
        GroupBy::Time(_) => a.group.cmp(&b.group),
        _ => (b.count, &a.group, a.level).cmp(&(a.count, &b.group, b.level)),
    });
    let mut bytes = 0;
    let fits = |group: &LogGroup| {
        bytes += group.to_text().len() + 2;
        bytes <= MAX_PAGE_BYTES
    };
    let limit = filter.limit;
    page.groups = counted
        .into_iter()
        .take(limit)
        .enumerate()
        .take_while({
            let mut fits = fits;
            // The first group is listed whatever its size, or the answer could be empty.
            move |(index, group)| fits(group) || *index == 0
        })
        .map(|(_, group)| group)
        .collect();
    if page.groups.len() < group_count {
        page.notes.push(format!("{} of {group_count} groups are listed", page.groups.len()));
    }
    if ungrouped > 0 {
        page.notes.push(format!("{ungrouped} entries are in further groups, beyond the first {MAX_GROUPS}"));
    }
    page.total = Some(total);
    Ok(page)
}

/// Counts the entries that match. `None` if the files are larger than `max_bytes`, or the work was cancelled.
pub(super) fn total(
    files: &[LogFile],
    max_bytes: u64,
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
) -> Result<Option<u64>, Error> {
    let size = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    // The size of a compressed file says nothing of its content, which would have to be read to be counted.
    if size > max_bytes || files.iter().any(LogFile::is_decoded) {
        return Ok(None);
    }
    let mut total = 0;
    each_matching(files, max_bytes, filter, cancel, |_, _, _| total += 1)?;
    Ok((!cancel.is_cancelled()).then_some(total))
}

/// Passes each entry that matches to `on_entry`, with the number of its line and the name of its file. Files are read from the newest
/// back, as far as `max_bytes` go, each from its beginning.
fn each_matching(
    files: &[LogFile],
    max_bytes: u64,
    filter: &LogEntryFilter,
    cancel: &CancellationToken,
    mut on_entry: impl FnMut(UnmaskedEntry, u64, &str),
) -> Result<LogPage, Error> {
    let mut page = LogPage::default();
    let mut omissions = OmittedCounts::default();
    for file in files.iter().rev() {
        if page.scanned_bytes > 0 && page.scanned_bytes.saturating_add(file.size) > max_bytes {
            page.notes.push(format!(
                "{} and older files are not counted: they are too large together",
                file.display_path
            ));
            break;
        }
        page.files.insert(0, file.display_path.clone());
        let reference = file.reference_time();
        let mut reader = ForwardReader::new(file.decoded(), 0, 0, LogReadLimits::DEFAULT);
        let mut read = 0;
        loop {
            let found = match reader.next() {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) if file.is_decoded() => {
                    page.notes.push(format!("{} is damaged after {read} bytes: {error}", file.display_path));
                    break;
                }
                Err(source) => return Err(Error::Read { path: file.display_path.clone(), source }),
            };
            read = found.span.end;
            if cancel.is_cancelled() {
                page.notes
                    .push("stopped before all was counted; narrow it with `since` or `source`".to_owned());
                page.scanned_bytes += read;
                page.add_omissions(&omissions, filter);
                return Ok(page);
            }
            omissions.malformed += u64::from(found.span.head.format == LineFormat::Malformed);
            if !filter.may_match(found.span.head) {
                filter.count_refused(found.span.head, &found.bytes, &mut omissions);
                continue;
            }
            let matching = filter.find_if_matching(&found.bytes, &found.span, reference, &mut omissions);
            if let Some(entry) = matching {
                on_entry(entry, found.lines + 1, &file.display_path);
            }
        }
        page.scanned_bytes += read;
    }
    page.add_omissions(&omissions, filter);
    Ok(page)
}
