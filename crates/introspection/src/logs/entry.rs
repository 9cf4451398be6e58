//! [`LogEntry`]: one entry, whichever logger wrote it.

use super::head::FormatFamily;
use super::level::EntryLevel;
use super::line::{LineFormat, LogEntryHead};
use super::line_bytes::{trim_start, without_colour};
use super::log_time::LogTime;
use super::message::{self, MAX_CONTENT_BYTES};
use super::{container, journal, json, logfmt, plain, syslog, web_server};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One entry, whichever logger wrote it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogEntry {
    /// The time in RFC 3339, in UTC; a time without an offset counts as UTC. Absent where the entry has no time.
    pub timestamp: Option<String>,
    /// The level: `trace`, `debug`, `info`, `warn`, `error` or `fatal`; `unknown` where the entry has none, and
    /// `malformed` for a line that begins as a JSON object and is not one.
    pub level: &'static str,
    /// The message, and after it the lines that continue the entry, such as a stack trace.
    pub message: String,
    /// Every other field of the entry.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// The number of the entry's first line, from 1. Absent where counting would read more than 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The file that holds the entry. Absent where the source is one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The size that each text among the fields is cut to where the fields are too large together, in bytes.
const MAX_FIELD_TEXT_BYTES: usize = 512;

/// An entry with the values that a filter compares.
#[derive(Debug)]
pub(super) struct ParsedEntry {
    pub(super) entry: LogEntry,
    pub(super) malformed: bool,
    pub(super) level: Option<EntryLevel>,
    pub(super) timestamp: Option<LogTime>,
}

/// The parts of an entry while its lines are read.
#[derive(Debug, Default)]
struct LogEntryParts {
    level: Option<EntryLevel>,
    timestamp: Option<LogTime>,
    message: String,
    fields: Map<String, Value>,
    malformed: bool,
}

/// Parses `bytes`, the lines of one entry whose first line was classified as `head`. `reference` is the time of the
/// file's last change, which tells the year of a time without one.
pub(super) fn parse(bytes: &[u8], head: LogEntryHead, reference: LogTime) -> ParsedEntry {
    if head.format == LineFormat::Late && journal::is_head(bytes) {
        let journal::JournaldEntry { level, time, message, fields } = journal::parse(bytes);
        let message = message::to_plain_text_lines(message.as_bytes());
        return finish(LogEntryParts { level, timestamp: time, message, fields, malformed: false }, &[]);
    }
    // A carriage return ends a line of text too. In JSON it is white space.
    let is_text = matches!(head.format, LineFormat::Text | LineFormat::Logfmt | LineFormat::Unrecognized);
    let mut lines = bytes.split(|byte| *byte == b'\n').flat_map(move |line| {
        line.strip_suffix(b"\r").unwrap_or(line).split(move |byte| is_text && *byte == b'\r')
    });
    let raw = trim_start(lines.next().unwrap_or_default());
    let wrapped = container::open(raw);
    let mut first = Cow::Borrowed(raw);
    let mut runtime = None;
    if let Some(container::ContainerLine { content, time, field: (name, value), piece }) = wrapped {
        runtime = Some((time, name, String::from_utf8_lossy(value).into_owned()));
        first = content;
        let mut partial = piece.partial;
        while partial && let Some(next) = lines.next().and_then(container::open) {
            first.to_mut().extend_from_slice(&next.content);
            partial = next.piece.partial;
        }
    }
    let first = trim_start(&first).trim_ascii_end();
    let is_wrapped = runtime.is_some();
    let mut lines = lines.map(move |line| {
        let wrapped = if is_wrapped { container::open(line) } else { None };
        wrapped.map_or(Cow::Borrowed(line), |wrapped| wrapped.content)
    });
    let mut parts = parse_first(first, head, reference, &mut lines);
    if let Some((time, name, value)) = runtime {
        parts.timestamp = parts.timestamp.or(time);
        parts.fields.entry(name).or_insert(value.into());
    }
    let rest: Vec<String> = lines
        .map(|line| {
            message::to_plain_text(without_colour(&line).as_deref().unwrap_or(&line).trim_ascii_end())
        })
        .filter(|line| !line.is_empty())
        .collect();
    finish(parts, &rest)
}

/// Parses the first line of an entry, and as many of `lines` as belong to it in its format.
fn parse_first<'a>(
    first: &[u8],
    head: LogEntryHead,
    reference: LogTime,
    lines: &mut impl Iterator<Item = Cow<'a, [u8]>>,
) -> LogEntryParts {
    let plain = without_colour(first);
    let text = plain.as_deref().unwrap_or(first);
    let malformed = head.format == LineFormat::Malformed;
    let mut parts = LogEntryParts { level: head.level, malformed, ..LogEntryParts::default() };
    match head.format {
        // The classifier trusts a line that begins and ends like an object; only parsing proves it.
        LineFormat::Json => match json::parse(first) {
            Some(parsed) => parts.take_json(parsed),
            None => {
                (parts.malformed, parts.level) = (true, None);
                parts.message = message::to_plain_text(first);
            }
        },
        LineFormat::Cut => parts.take_json(json::parse_prefix(first)),
        // The pieces that a runtime cut a line into are together now.
        LineFormat::Late if first.first() == Some(&b'{') => match json::parse(first) {
            Some(parsed) => {
                parts.level = parsed.level;
                parts.take_json(parsed);
            }
            None => parts.take_json(json::parse_prefix(first)),
        },
        LineFormat::Logfmt => match logfmt::pairs(text) {
            Some(pairs) => {
                let (time, message, rest) = logfmt::map(pairs);
                (parts.timestamp, parts.fields) = (time, rest);
                parts.message = message.unwrap_or_default();
            }
            None => parts.message = message::to_plain_text(text),
        },
        LineFormat::W3c(layout) => match layout.row(text) {
            Some(row) => {
                parts.timestamp = row.stamp.and_then(|stamp| stamp.resolve(reference));
                parts.message = message::to_plain_text(&row.message);
                parts.fields = row.fields;
            }
            None => parts.message = message::to_plain_text(text),
        },
        LineFormat::Text | LineFormat::Late => parts.take_text(text, reference, lines),
        LineFormat::Unrecognized | LineFormat::Malformed => parts.message = message::to_plain_text(text),
    }
    parts
}

impl LogEntryParts {
    fn take_json(&mut self, parsed: json::ParsedJsonLine) {
        self.level = self.level.or(parsed.level);
        (self.timestamp, self.fields) = (parsed.timestamp, parsed.fields);
        self.message = parsed.message.unwrap_or_default();
    }

    /// Parses a line of text.
    fn take_text<'a>(
        &mut self,
        text: &[u8],
        reference: LogTime,
        lines: &mut impl Iterator<Item = Cow<'a, [u8]>>,
    ) {
        let Some(head) = plain::head(text) else {
            self.message = message::to_plain_text(text);
            return;
        };
        self.timestamp = head.stamp.and_then(|stamp| stamp.resolve(reference));
        self.message = message::to_plain_text(text.get(head.message..).unwrap_or_default());
        match head.family {
            FormatFamily::Access => {
                if let Some((request, fields)) = web_server::details(text) {
                    (self.message, self.fields) = (message::to_plain_text(request.as_bytes()), fields);
                }
                return;
            }
            FormatFamily::Syslog => self.fields = syslog::fields(text),
            FormatFamily::JavaUtil => {
                // Without the second line, this is a message that looks like a class and a method.
                let Some(second) = lines.next().filter(|line| !line.trim_ascii().is_empty()) else { return };
                let second = second.trim_ascii_end();
                let own = plain::head(second);
                self.level = own.and_then(|own| own.level);
                let caller = std::mem::take(&mut self.message);
                self.fields.insert("caller".to_owned(), caller.into());
                let start = own.map_or(0, |own| own.message);
                self.message = message::to_plain_text(second.get(start..).unwrap_or_default());
                return;
            }
            FormatFamily::Plain => {}
        }
        // A shipper or a logger may end a line with an object that has the message, the level and the rest.
        if (head.level.is_none() || head.family == FormatFamily::Syslog)
            && let Some(at) = json::embedded(text).filter(|at| *at >= head.message)
            && let Some(parsed) = json::parse(text.get(at..).unwrap_or_default())
            && let Some(message) = parsed.message
        {
            let before = message::to_plain_text(text.get(head.message..at).unwrap_or_default().trim_ascii());
            if !before.is_empty() {
                self.fields.insert("prefix".to_owned(), before.into());
            }
            self.message = message;
            self.timestamp = self.timestamp.or(parsed.timestamp);
            self.fields.extend(parsed.fields);
        }
    }
}

/// Builds the entry from its parts, and the lines that continue it.
fn finish(mut parts: LogEntryParts, rest: &[String]) -> ParsedEntry {
    message::append(&mut parts.message, rest);
    limit_fields(&mut parts.fields);
    let LogEntryParts { level, timestamp, message, fields, malformed } = parts;
    let name = match level {
        _ if malformed => "malformed",
        Some(level) => level.as_str(),
        None => "unknown",
    };
    let entry = LogEntry {
        timestamp: timestamp.map(|moment| moment.to_string()),
        level: name,
        message,
        fields,
        line: None,
        file: None,
    };
    ParsedEntry { entry, malformed, level, timestamp }
}

/// Reduces `fields` to the size limit: cuts long texts first, then drops the last members.
fn limit_fields(fields: &mut Map<String, Value>) {
    // The serialized size is what counts against the page. Most entries are so small that a bound of it decides.
    let size = |fields: &Map<String, Value>| Value::Object(fields.clone()).to_string().len();
    if largest_size(fields) <= MAX_CONTENT_BYTES || size(fields) <= MAX_CONTENT_BYTES {
        return;
    }
    // Long texts are cut before whole fields are dropped, because the name of a field says something too.
    fields.values_mut().for_each(shorten_value);
    let mut left_out = 0;
    let mut kept = Map::new();
    let mut bytes = 0;
    for (key, value) in std::mem::take(fields) {
        bytes += key.len() + value.to_string().len() + 4;
        if bytes <= MAX_CONTENT_BYTES && key.len() <= MAX_FIELD_TEXT_BYTES {
            kept.insert(key, value);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        // Hardly a logger has a field of this name, so that the note replaces none.
        kept.insert("...".to_owned(), format!("{left_out} fields left out").into());
    }
    *fields = kept;
}

/// Returns the largest number of bytes that `fields` may have as JSON.
fn largest_size(fields: &Map<String, Value>) -> usize {
    // An escaped control character has six bytes, and no number more than 32.
    fn value_size(value: &Value) -> usize {
        match value {
            Value::String(text) => 6 * text.len() + 2,
            Value::Array(values) => values.iter().map(|value| value_size(value) + 1).sum::<usize>() + 2,
            Value::Object(members) => largest_size(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        }
    }
    fields.iter().map(|(name, value)| 6 * name.len() + 4 + value_size(value)).sum::<usize>() + 2
}

fn shorten_value(value: &mut Value) {
    match value {
        Value::String(text) => message::shorten(text, MAX_FIELD_TEXT_BYTES),
        Value::Array(values) => values.iter_mut().for_each(shorten_value),
        Value::Object(members) => members.values_mut().for_each(shorten_value),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::{LineRole, PreviousLine};
    use super::super::line_classifier::LineClassifier;
    use super::*;
    use proptest::prelude::*;

    fn entry(text: &str) -> LogEntry {
        let kind = LineClassifier::default().classify(text.lines().next().unwrap_or_default().as_bytes());
        match kind.role(PreviousLine::Other) {
            LineRole::Head(head) => parse(text.as_bytes(), head, LogTime::now()).entry,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_stack_trace_follows_the_message() {
        let entry = entry(
            "2026-11-20 10:00:00 ERROR failed\njava.lang.IllegalStateException: bad\n\n\tat a.B(B.java:1)\r\n",
        );
        assert_eq!(entry.message, "failed\njava.lang.IllegalStateException: bad\n\tat a.B(B.java:1)");
    }

    #[test]
    fn what_a_terminal_would_obey_is_left_out() {
        assert_eq!(entry("\u{1b}[31mERROR\u{1b}[0m a\u{7}b\u{1b}[2Jc").message, "abc");
    }

    #[test]
    fn json_that_breaks_off_later_is_malformed() {
        let entry = entry(r#"{"level":50,"msg":"x",,}"#);
        assert_eq!((entry.level, entry.message.as_str()), ("malformed", r#"{"level":50,"msg":"x",,}"#));
    }

    #[test]
    fn a_huge_entry_is_cut_and_says_so() {
        let big = "x".repeat(100_000);
        let members: String = (0..1000).map(|number| format!(r#","k{number}":"{}""#, &big[..100])).collect();
        let entry = entry(&format!(r#"{{"level":50,"msg":"{big}","big":"{big}"{members}}}"#));
        let size = serde_json::to_string(&entry).unwrap().len();
        assert!(size < 2 * MAX_CONTENT_BYTES + 512, "{size}");
        assert!(entry.message.ends_with("bytes left out]"));
        assert!(entry.fields["big"].as_str().unwrap().ends_with("bytes left out]"));
        assert!(entry.fields["..."].as_str().unwrap().ends_with("fields left out"));
    }

    proptest! {
        #[test]
        fn the_bound_of_the_size_is_never_below_the_size(texts in prop::collection::vec("(?s).{0,20}", 0..6), number in any::<f64>()) {
            let mut fields: Map<String, Value> = texts.iter().map(|text| (text.clone(), text.as_str().into())).collect();
            fields.insert("list".to_owned(), serde_json::json!([texts, number, i64::MIN, null, { "a": texts }]));
            prop_assert!(largest_size(&fields) >= Value::Object(fields.clone()).to_string().len());
        }

        #[test]
        fn no_bytes_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            start in prop::sample::select(vec![
                "", "2026-11-20T10:00:00Z stdout P {", "{\"log\":\"", "Nov 20, 2026 10:00:00 AM a.B c\n", "__CURSOR=s\nMESSAGE\n",
                "<34>1 2026-11-20T10:00:00Z h a - - ", "h - - [20/Nov/2026:10:00:00 +0000] \"", "2026-11-20 10:00:00 {\"",
            ]),
        ) {
            let bytes = [start.as_bytes(), &bytes].concat();
            let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if let LineRole::Head(head) = LineClassifier::default().classify(first).role(PreviousLine::Other) {
                parse(&bytes, head, LogTime::now());
            }
        }
    }
}
