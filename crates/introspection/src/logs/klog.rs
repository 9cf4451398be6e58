//! Parses loggers that begin a line with one letter for the level: glog and klog, Ruby's Logger, Android's logcat.

use super::head::{FormatFamily, TextHead};
use super::level::EntryLevel;
use super::log_time::{LogTime, WrittenTime, clock, yearless_prefix};

fn level(letter: u8) -> Option<EntryLevel> {
    Some(match letter {
        b'V' => EntryLevel::Trace,
        b'D' => EntryLevel::Debug,
        b'I' => EntryLevel::Info,
        b'W' => EntryLevel::Warn,
        b'E' => EntryLevel::Error,
        b'F' => EntryLevel::Fatal,
        // Ruby's `unknown` is logged always.
        b'A' => EntryLevel::Info,
        _ => return None,
    })
}

/// Parses the head of a line.
pub(super) fn head(line: &[u8]) -> Option<TextHead> {
    match line {
        [b'A'..=b'W', b',', b' ', b'[', ..] => ruby(line),
        [b'I' | b'W' | b'E' | b'F', b'0'..=b'9', ..] => glog(line),
        [b'0' | b'1', b'0'..=b'9', b'-', ..] => logcat(line),
        [b'A'..=b'W', b' ', b'0'..=b'9', ..] => lettered(line),
        _ => None,
    }
}

/// Parses `E1120 10:00:00.000000 123 file.go:1] message`.
fn glog(line: &[u8]) -> Option<TextHead> {
    let number = |range| -> Option<i64> {
        let digits: &[u8] = line.get(range)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    };
    let (month, day) = (number(1..3)?, number(3..5)?);
    let spaced = line.get(5) == Some(&b' ');
    let (seconds, nanos, used) = clock(line.get(6..)?).filter(|_| spaced)?;
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    let stamp = valid.then_some(WrittenTime::Yearless { month, day, clock: (seconds, nanos) });
    let pad = line.get(6 + used..)?.iter().take_while(|byte| **byte == b' ').count();
    Some(TextHead {
        stamp,
        level: level(*line.first()?),
        message: 6 + used + pad,
        family: FormatFamily::Plain,
    })
}

/// Parses `E 2026-11-20 10:00:00,123 message`, as a pattern of Python's logging writes it (`%(levelname).1s`).
fn lettered(line: &[u8]) -> Option<TextHead> {
    let level = match *line.first()? {
        b'C' => Some(EntryLevel::Fatal),
        // A level of the application's own.
        letter => level(letter),
    };
    let (moment, used) = LogTime::parse_prefix(line.get(2..)?)?;
    let message = 2 + used + usize::from(line.get(2 + used) == Some(&b' '));
    let stamp = Some(WrittenTime::Full(moment));
    Some(TextHead { stamp, level, message, family: FormatFamily::Plain })
}

/// Parses what follows the time in a line of etcd before its version 3.5: `E | etcdserver: message`.
pub(super) fn capnslog(rest: &[u8]) -> Option<TextHead> {
    let level = match *rest.first()? {
        b'C' => EntryLevel::Fatal,
        b'N' => EntryLevel::Info,
        b'T' => EntryLevel::Trace,
        letter => level(letter)?,
    };
    (rest.get(1..4) == Some(b" | ")).then(|| TextHead::untimed(Some(level), 4))
}

/// Parses `E, [2026-11-20T10:00:00.123456 #7] ERROR -- : message`.
fn ruby(line: &[u8]) -> Option<TextHead> {
    let (moment, used) = LogTime::parse_prefix(line.get(4..)?)?;
    let window = line.get(..line.len().min(200))?;
    let close = memchr::memchr(b']', window.get(4 + used..)?)? + 4 + used;
    let marker = memchr::memmem::find(window.get(close..)?, b" -- ")? + close + 4;
    // The program's name, which is mostly empty, ends with a colon.
    let colon = memchr::memchr(b':', window.get(marker..)?)? + marker + 1;
    let message = colon + usize::from(line.get(colon) == Some(&b' '));
    let stamp = Some(WrittenTime::Full(moment));
    Some(TextHead { stamp, level: level(*line.first()?), message, family: FormatFamily::Plain })
}

/// Parses `11-20 10:00:00.123  1234  5678 E Tag: message`.
fn logcat(line: &[u8]) -> Option<TextHead> {
    let (stamp, used) = yearless_prefix(line)?;
    let rest = line.get(used..line.len().min(used + 60))?;
    let mut words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is_number = |word: &&[u8]| word.iter().all(u8::is_ascii_digit);
    let (_, _) = (words.next().filter(is_number)?, words.next().filter(is_number)?);
    let letter = words.next().filter(|word| word.len() == 1)?;
    let level = level(*letter.first()?)?;
    let at = used + memchr::memmem::find(rest, &[b' ', *letter.first()?, b' '])? + 3;
    Some(TextHead { stamp: Some(stamp), level: Some(level), message: at, family: FormatFamily::Plain })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_letter_is_the_level() {
        for (line, expected, message) in [
            ("E1120 10:00:00.000000   12 main.go:1] boom", EntryLevel::Error, "12 main.go:1] boom"),
            ("W, [2026-11-20T10:00:00.123456 #7]  WARN -- : low", EntryLevel::Warn, "low"),
            ("F, [2026-11-20T10:00:00.123456 #7] FATAL -- rails: gone", EntryLevel::Fatal, "gone"),
            ("11-20 10:00:00.123  1234  5678 E Tag: boom", EntryLevel::Error, "Tag: boom"),
            ("C 2026-11-20 10:00:00,123 gone", EntryLevel::Fatal, "gone"),
        ] {
            let head = head(line.as_bytes()).unwrap();
            assert_eq!((head.level, &line[head.message..]), (Some(expected), message), "{line}");
        }
        for line in ["E1120", "I am", "I 2 am", "E, [", "11-20 x", "Error: x"] {
            assert!(head(line.as_bytes()).is_none(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[ 0-9:.A-Z\\[\\]#-]{0,60}") {
            for start in [&b""[..], b"E1120 10:00:00", b"E, [2026-11-20T10:00:00", b"11-20 10:00:00.1 "] {
                for line in [[start, &bytes].concat(), [start, text.as_bytes()].concat()] {
                    if let Some(head) = head(&line) {
                        prop_assert!(head.message <= line.len());
                    }
                }
            }
        }
    }
}
