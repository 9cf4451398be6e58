//! [`LogEntry`]: one entry, whichever logger wrote it.

use super::line::{Head, Shape, trim_start, without_colour};
use super::moment::Moment;
use super::{json, logfmt, plain};
use serde::Serialize;
use serde_json::{Map, Value};

/// One entry, whichever logger wrote it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEntry {
    /// RFC 3339, in UTC. A time without an offset is taken for UTC; none where the entry has none.
    pub timestamp: Option<String>,
    /// `trace`, `debug`, `info`, `warn`, `error`, `fatal`; `unknown` where the entry has none, `malformed` for
    /// a line that was to be a JSON object and is none.
    pub level: &'static str,
    /// What was said. The lines that go on with the entry, such as a stack trace, follow.
    pub message: String,
    /// Everything else.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// The line it begins at, from 1. None where that would mean reading more than 64 MiB for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The file, where the source has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Bytes of a message, and of all fields together, that an entry keeps.
const MOST: usize = 8 << 10;
/// Bytes of one text among the fields, where they are too long together.
const MOST_TEXT: usize = 512;

/// An entry, and what is asked of it.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) entry: LogEntry,
    pub(super) malformed: bool,
    pub(super) timestamp: Option<Moment>,
}

/// The entry that `bytes` are.
pub(super) fn read(bytes: &[u8], head: Head) -> Read {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let first = trim_start(lines.next().unwrap_or_default()).trim_ascii_end();
    let mut timestamp = None;
    let mut fields = Map::new();
    let mut level = head.level;
    let mut malformed = head.shape == Shape::Malformed;
    let plain = without_colour(first);
    let text = plain.as_deref().unwrap_or(first);
    let mut message = match head.shape {
        Shape::Json => match json::parse(first) {
            Some(parsed) => {
                timestamp = parsed.timestamp;
                fields = parsed.fields;
                parsed.message.unwrap_or_default()
            }
            None => {
                (malformed, level) = (true, None);
                lossy(first)
            }
        },
        Shape::Logfmt => match logfmt::pairs(text) {
            Some(pairs) => {
                let (time, message, rest) = logfmt::map(pairs);
                (timestamp, fields) = (time, rest);
                message.unwrap_or_default()
            }
            None => lossy(text),
        },
        Shape::Text => match plain::head(text) {
            Some(found) => {
                timestamp = found.timestamp;
                lossy(text.get(found.message..).unwrap_or_default())
            }
            None => lossy(text),
        },
        Shape::Loose | Shape::Malformed => lossy(text),
    };
    for line in lines {
        let plain = without_colour(line);
        let line = plain.as_deref().unwrap_or(line).trim_ascii_end();
        if !line.is_empty() && message.len() < MOST {
            message.push('\n');
            message.push_str(&lossy(line));
        }
    }
    shorten(&mut message, MOST);
    bound(&mut fields);
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
    Read { entry, malformed, timestamp }
}

/// As text, without what a terminal would obey.
fn lossy(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|character| *character == '\t' || !character.is_control()).collect()
}

/// Cuts `text` to `most` bytes, and says how many are missing.
fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        let mut end = most;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let missing = text.len() - end;
        text.truncate(end);
        text.push_str(&format!(" [... {missing} bytes left out]"));
    }
}

/// Makes `fields` fit: long texts are cut first, then members are left out.
fn bound(fields: &mut Map<String, Value>) {
    let size = |fields: &Map<String, Value>| Value::Object(fields.clone()).to_string().len();
    if size(fields) <= MOST {
        return;
    }
    fields.values_mut().for_each(cut);
    let mut left_out = 0;
    let mut kept = Map::new();
    let mut bytes = 0;
    for (key, value) in std::mem::take(fields) {
        bytes += key.len() + value.to_string().len() + 4;
        if bytes <= MOST && key.len() <= MOST_TEXT {
            kept.insert(key, value);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        kept.insert("...".to_owned(), format!("{left_out} fields left out").into());
    }
    *fields = kept;
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) => shorten(text, MOST_TEXT),
        Value::Array(values) => values.iter_mut().for_each(cut),
        Value::Object(members) => members.values_mut().for_each(cut),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::{Classifier, Kind};
    use super::*;
    use proptest::prelude::*;

    fn entry(text: &str) -> LogEntry {
        match Classifier::default().kind(text.lines().next().unwrap_or_default().as_bytes()) {
            Kind::Head(head) => read(text.as_bytes(), head).entry,
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
        assert!(size < 2 * MOST + 512, "{size}");
        assert!(entry.message.ends_with("bytes left out]"));
        assert!(entry.fields["big"].as_str().unwrap().ends_with("bytes left out]"));
        assert!(entry.fields["..."].as_str().unwrap().ends_with("fields left out"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if let Kind::Head(head) = Classifier::default().kind(first) {
                read(&bytes, head);
            }
        }
    }
}
