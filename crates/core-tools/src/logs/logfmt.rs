//! Lines of `key=value` pairs: logrus, slog's text, Go kit, Heroku.

use super::level::{Level, Scale};
use super::moment::Moment;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The pairs of `line`, or none if it is not made of them: the first word is one, and a level or both time and
/// message are there.
pub(super) fn pairs(line: &[u8]) -> Option<Vec<(&str, Cow<'_, str>)>> {
    // Most lines of text are not, and one word tells.
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
    (has(LEVELS) || has(TIMES) && has(MESSAGES)).then_some(pairs)
}

const LEVELS: &[&str] = &["level", "lvl", "severity", "loglevel"];
const TIMES: &[&str] = &["time", "ts", "timestamp", "t", "date", "at"];
const MESSAGES: &[&str] = &["msg", "message", "event"];

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@' | b'/')
}

/// A value after its opening quote, and what follows the closing one.
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

pub(super) fn level(pairs: &[(&str, Cow<'_, str>)]) -> Option<Level> {
    pairs.iter().filter(|(key, _)| LEVELS.contains(key)).find_map(|(_, value)| {
        let number = || value.parse().ok();
        Level::from_name(value.as_bytes()).or_else(|| Level::from_number(number()?, Scale::Tens))
    })
}

/// Time, message and the other pairs.
pub(super) fn map(pairs: Vec<(&str, Cow<'_, str>)>) -> (Option<Moment>, Option<String>, Map<String, Value>) {
    let levelled = level(&pairs).is_some();
    let (mut time, mut message, mut fields) = (None, None, Map::new());
    for (key, value) in pairs {
        if time.is_none() && TIMES.contains(&key) {
            time = Moment::parse(&value);
            if time.is_some() {
                continue;
            }
        }
        if message.is_none() && MESSAGES.contains(&key) {
            message = Some(value.into_owned());
        } else if !(levelled && LEVELS.contains(&key)) {
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
        assert_eq!(level(&pairs), Some(Level::Error));
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
