//! Parses the export format of journald: a field a line, and a blank line between entries.
//!
//! A value with a line feed is binary: the name on a line of its own, its length as 64 bits, and the bytes.

use super::level::{EntryLevel, LevelScale};
use super::log_time::LogTime;
use serde_json::{Map, Value};

/// Returns whether `line` begins an entry.
pub(super) fn is_head(line: &[u8]) -> bool {
    line.starts_with(b"__CURSOR=")
}

/// Returns whether `line`, which begins no entry, is part of one: a field, or the length of a binary value.
pub(super) fn is_part(line: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] =
        [b"SYSLOG_", b"PRIORITY", b"MESSAGE", b"CODE_", b"INVOCATION_ID", b"JOB_", b"UNIT", b"TID"];
    let known = line.first() == Some(&b'_') || NAMES.iter().any(|name| line.starts_with(name));
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let length = if known { line.iter().take_while(|byte| is_name(byte)).count() } else { 0 };
    length > 1 && matches!(line.get(length), None | Some(b'=')) || line.get(2..8) == Some(&[0; 6])
}

/// An entry of the export format.
#[derive(Debug, Default)]
pub(super) struct JournaldEntry {
    pub(super) level: Option<EntryLevel>,
    pub(super) time: Option<LogTime>,
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
}

/// Parses the lines of one entry.
pub(super) fn parse(mut bytes: &[u8]) -> JournaldEntry {
    let mut export = JournaldEntry::default();
    while !bytes.is_empty() {
        let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        let (line, rest) = bytes.split_at(end);
        bytes = rest.get(1..).unwrap_or_default();
        match memchr::memchr(b'=', line) {
            Some(equals) => {
                let (name, value) = line.split_at(equals);
                export.insert(name, value.get(1..).unwrap_or_default());
            }
            None if line.is_empty() => {}
            None => {
                // The export format writes the length of a binary value as 64 bits in little-endian order.
                let Some((length, rest)) = bytes.split_first_chunk::<8>() else { break };
                let length =
                    // A cut or damaged export may claim more bytes than there are.
                    usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX).min(rest.len());
                export.insert(line, rest.get(..length).unwrap_or_default());
                bytes = rest.get(length..).unwrap_or_default();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
    }
    export
}

impl JournaldEntry {
    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let text = String::from_utf8_lossy(value).into_owned();
        match name {
            b"MESSAGE" => self.message = text,
            b"PRIORITY" => {
                self.level =
                    text.parse().ok().and_then(|number| EntryLevel::from_number(number, LevelScale::Syslog));
            }
            b"__REALTIME_TIMESTAMP" => self.time = LogTime::parse(&text),
            // These are for journald alone.
            b"__CURSOR" | b"__MONOTONIC_TIMESTAMP" | b"__SEQNUM" | b"__SEQNUM_ID" => {}
            _ => {
                self.fields.insert(String::from_utf8_lossy(name).into_owned(), text.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn binary_values_are_read_by_their_length() {
        let text = b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795168800000000\nPRIORITY=3\nMESSAGE\n\x0b\0\0\0\0\0\0\0two\nlines=1\n_PID=7\n\n";
        let export = parse(text);
        assert_eq!((export.level, export.message.as_str()), (Some(EntryLevel::Error), "two\nlines=1"));
        assert_eq!(export.time.unwrap().to_string(), "2026-11-20T10:00:00.000Z");
        assert_eq!(Value::Object(export.fields).to_string(), r#"{"_PID":"7"}"#);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[A-Z_=\\n\\x00]{0,60}") {
            for bytes in [&*bytes, text.as_bytes()] {
                parse(bytes);
                is_part(bytes);
            }
        }
    }
}
