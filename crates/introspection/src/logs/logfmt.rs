//! Parses lines of `key=value` pairs: logrus, slog's text, Go kit, Heroku.

use super::level::{EntryLevel, LevelScale};
use super::log_time::LogTime;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Parses the pairs of `line`. `None` where the line is not logfmt: its first word must be a pair, and it must have a
/// level, or both a time and a message.
pub(super) fn pairs(line: &[u8]) -> Option<Vec<(&str, Cow<'_, str>)>> {
    // Most lines of text are not logfmt, and the first word shows that without parsing the line.
    let first = line.iter().position(|byte| !is_key(*byte))?;
    if first == 0 || line.get(first) != Some(&b'=') {
        return None;
    }
    let mut rest = std::str::from_utf8(line).ok()?.trim_end();
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let length = rest.bytes().take_while(|byte| is_key(*byte)).count();
        let (key, after) = rest.split_at_checked(length)?;
        if key.is_empty() {
            return None;
        }
        rest = after;
        let mut value = Cow::Borrowed("");
        if let Some(after) = rest.strip_prefix('=') {
            (value, rest) = match after.strip_prefix('"') {
                Some(quoted) => unquote(quoted)?,
                None => {
                    let (word, rest) = after.split_once(' ').unwrap_or((after, ""));
                    (Cow::Borrowed(word), rest)
                }
            };
        } else if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        pairs.push((key, value));
        rest = rest.trim_start();
    }
    let has = |keys: &[&str]| pairs.iter().any(|(key, _)| keys.contains(key));
    // Text such as `retry=3 left` also begins with a pair: demand the keys that a logger always writes.
    (has(LEVEL_KEYS) || has(TIME_KEYS) && has(MESSAGE_KEYS)).then_some(pairs)
}

/// The keys that hold the level, the time and the message.
const LEVEL_KEYS: &[&str] = &["level", "lvl", "severity", "loglevel"];
const TIME_KEYS: &[&str] = &["time", "ts", "timestamp", "t", "date", "at"];
const MESSAGE_KEYS: &[&str] = &["msg", "message", "event"];

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@' | b'/')
}

/// Parses a value after its opening quote. Returns it and the text after the closing one.
fn unquote(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let value = if value.len() == at { Cow::Borrowed(text.get(..at)?) } else { value.into() };
                return Some((value, text.get(at + 1..)?));
            }
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

/// Returns the level that the pairs state.
pub(super) fn level(pairs: &[(&str, Cow<'_, str>)]) -> Option<EntryLevel> {
    pairs.iter().filter(|(key, _)| LEVEL_KEYS.contains(key)).find_map(|(_, value)| {
        let number = || value.parse().ok();
        EntryLevel::from_name(value.as_bytes())
            .or_else(|| EntryLevel::from_number(number()?, LevelScale::Pino))
    })
}

/// Splits the pairs into time, message and other fields.
pub(super) fn map(pairs: Vec<(&str, Cow<'_, str>)>) -> (Option<LogTime>, Option<String>, Map<String, Value>) {
    let levelled = level(&pairs).is_some();
    let (mut time, mut message, mut fields) = (None, None, Map::new());
    for (key, value) in pairs {
        if time.is_none() && TIME_KEYS.contains(&key) {
            time = LogTime::parse(&value);
            if time.is_some() {
                continue;
            }
        }
        if message.is_none() && MESSAGE_KEYS.contains(&key) {
            message = Some(value.into_owned());
        } else if !(levelled && LEVEL_KEYS.contains(&key)) {
            fields.insert(key.to_owned(), value.into_owned().into());
        }
    }
    (time, message, fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_are_read_with_their_quotes() {
        let line = br#"time="2026-11-20T10:00:00Z" level=error msg="it \"broke\"\nbadly" code=7 flag"#;
        let pairs = pairs(line).unwrap();
        assert_eq!(level(&pairs), Some(EntryLevel::Error));
        let (time, message, fields) = map(pairs);
        assert_eq!(time.unwrap().to_string(), "2026-11-20T10:00:00.000Z");
        assert_eq!(message.as_deref(), Some("it \"broke\"\nbadly"));
        assert_eq!(Value::Object(fields).to_string(), r#"{"code":"7","flag":""}"#);
    }

    #[test]
    fn text_that_mentions_a_pair_is_no_logfmt() {
        for line in ["a=1", "listening on port=3000", "x = 1 level=info", "level=\"open", "=x level=info", ""]
        {
            assert!(pairs(line.as_bytes()).is_none(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[a =\"\\\\level]{0,40}") {
            for line in [&*bytes, text.as_bytes()] {
                if let Some(pairs) = pairs(line) {
                    map(pairs);
                }
            }
        }
    }
}
