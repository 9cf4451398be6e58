//! Parses the W3C extended log format, whose `#Fields` line names the columns of the lines after it: IIS, `CloudFront`,
//! Exchange and other servers write any columns in any order.

use super::level::EntryLevel;
use super::log_time::{LogTime, WrittenTime};
use serde_json::{Map, Value};

/// The position of a column; [`ABSENT`] where there is none.
type ColumnIndex = u8;
const ABSENT: ColumnIndex = u8::MAX;

/// The positions of the columns that tell the time and the level, as a `#Fields` line names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct W3cLayout {
    count: u8,
    date: ColumnIndex,
    time: ColumnIndex,
    method: ColumnIndex,
    path: ColumnIndex,
    status: ColumnIndex,
}

/// A line, as the layout reads it.
#[derive(Debug)]
pub(super) struct W3cRow {
    pub(super) level: Option<EntryLevel>,
    pub(super) stamp: Option<WrittenTime>,
    /// Every column but the date and the time.
    pub(super) message: Vec<u8>,
    pub(super) fields: Map<String, Value>,
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty())
}

impl W3cLayout {
    /// The beginning of the line that names the columns.
    pub(super) const DIRECTIVE: &[u8] = b"#Fields:";

    /// Finds the first line that names columns at the beginning of a file, among its other directives.
    pub(super) fn find(beginning: &[u8]) -> Option<Self> {
        let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
        let mut lines = beginning.split(|byte| *byte == b'\n').take_while(|line| line.first() == Some(&b'#'));
        lines.find(|line| line.starts_with(Self::DIRECTIVE)).and_then(Self::parse)
    }

    /// Parses a line that names columns. `None` for one that names neither a time nor a status.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let names: Vec<&[u8]> = words(line.strip_prefix(Self::DIRECTIVE)?).collect();
        let count = u8::try_from(names.len()).ok().filter(|count| *count < ABSENT)?;
        let index = |name: &[u8]| {
            let at = names.iter().position(|own| own.eq_ignore_ascii_case(name));
            at.and_then(|at| u8::try_from(at).ok()).unwrap_or(ABSENT)
        };
        let layout = Self {
            count,
            date: index(b"date"),
            time: index(b"time"),
            method: index(b"cs-method"),
            path: index(b"cs-uri-stem"),
            status: index(b"sc-status"),
        };
        (layout.time != ABSENT || layout.status != ABSENT).then_some(layout)
    }

    /// Returns whether `line` tells of the file: `#Date: 2026-11-20 10:00:00`.
    pub(super) fn is_directive(self, line: &[u8]) -> bool {
        line.first() == Some(&b'#')
            && memchr::memchr(b':', line.get(..line.len().min(40)).unwrap_or_default()).is_some()
    }

    /// Reads `line`, if it has as many columns as the layout, and a number as its status.
    pub(super) fn row(self, line: &[u8]) -> Option<W3cRow> {
        let values: Vec<&[u8]> = words(line).collect();
        if values.len() != usize::from(self.count) {
            return None;
        }
        let value =
            |index: ColumnIndex| values.get(usize::from(index)).copied().filter(|value| *value != b"-");
        let text = |index| value(index).and_then(|value| std::str::from_utf8(value).ok());
        let status = match values.get(usize::from(self.status)).copied() {
            // Nothing was answered: the connection was reset, or there was no request.
            Some(b"-" | b"000") => None,
            Some(value) => Some(std::str::from_utf8(value).ok()?.parse::<u16>().ok()?),
            None => None,
        };
        let level = status.and_then(EntryLevel::from_status);
        let stamp = match (text(self.date), text(self.time)) {
            // The format has times in UTC.
            (Some(date), Some(time)) => LogTime::parse(&format!("{date}T{time}Z")).map(WrittenTime::Full),
            (None, Some(_)) => Some(WrittenTime::Unplaced),
            _ => None,
        };
        let is_time = |index: usize| index == usize::from(self.date) || index == usize::from(self.time);
        let rest: Vec<&[u8]> = values
            .iter()
            .enumerate()
            .filter(|(index, _)| !is_time(*index))
            .map(|(_, value)| *value)
            .collect();
        let mut fields = Map::new();
        for (name, index) in [("method", self.method), ("path", self.path)] {
            if let Some(text) = text(index) {
                fields.insert(name.to_owned(), text.into());
            }
        }
        if let Some(status) = status {
            fields.insert("status".to_owned(), status.into());
        }
        Some(W3cRow { level, stamp, message: rest.join(&b' '), fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_found_by_their_names() {
        let layout = W3cLayout::find(
            b"#Version: 1.0\r\n#Fields: sc-status time-taken cs-uri-stem date time c-ip\r\n500 3 /a x",
        )
        .unwrap();
        let row = layout.row(b"503 12 /orders 2026-11-20 10:00:01 192.0.2.4\r").unwrap();
        assert_eq!(row.level, Some(EntryLevel::Error));
        assert_eq!(row.message, b"503 12 /orders 192.0.2.4");
        assert_eq!(row.fields["path"], "/orders");
        assert_eq!(row.stamp, Some(WrittenTime::Full(LogTime::parse("2026-11-20T10:00:01Z").unwrap())));
        for line in ["503 12 /orders 2026-11-20 10:00:01", "x 12 /orders 2026-11-20 10:00:01 192.0.2.4"] {
            assert!(layout.row(line.as_bytes()).is_none(), "{line}");
        }
        assert_eq!(W3cLayout::parse(b"#Fields: a b"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(names in "[a-z() -]{0,40}", line: Vec<u8>) {
            if let Some(layout) = W3cLayout::parse(format!("#Fields: time {names}").as_bytes()) {
                layout.row(&line);
            }
            W3cLayout::find(&line);
        }
    }
}
