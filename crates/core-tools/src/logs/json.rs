//! Lines that are JSON objects: pino, bunyan, winston, zap, logrus, slog, tracing-subscriber, structlog,
//! loguru, Serilog (CLEF), Python's JSON formatters, ECS, GELF, OpenTelemetry, journald.

use super::level::{Level, Scale};
use super::moment::Moment;
use serde_json::{Map, Value};

/// What a look at a line says of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glance {
    /// The level, and how many bytes of the line say so.
    Level(Level, usize),
    /// There is none.
    Nothing,
    /// Only reading the whole line can tell.
    Unsure,
}

/// The scale of the numbers under `key`, if `key` is one that holds a level.
fn scale(key: &[u8]) -> Option<Scale> {
    Some(match key {
        b"level" | b"lvl" | b"@l" | b"severity" | b"levelname" | b"log_level" | b"loglevel"
        | b"log.level" | b"severity_text" | b"severityText" | b"L" => Scale::Tens,
        b"levelno" => Scale::Python,
        b"PRIORITY" => Scale::Syslog,
        b"severity_number" | b"severityNumber" => Scale::Telemetry,
        _ => return None,
    })
}

/// Finds the level of a line without reading all of it: the first of its members that holds one. The line may
/// turn out to be no JSON further on.
pub(super) fn glance(line: &[u8]) -> Glance {
    let mut at = 1;
    let mut compact_event = false;
    loop {
        at = skip_white(line, at);
        match line.get(at) {
            Some(b'"') => {}
            Some(b',') => {
                at += 1;
                continue;
            }
            // CLEF leaves the level out where it is Information.
            Some(b'}') if compact_event => return Glance::Level(Level::Info, line.len()),
            Some(b'}') => return Glance::Nothing,
            _ => return Glance::Unsure,
        }
        let Some((key, after)) = plain_string(line, at) else { return Glance::Unsure };
        at = skip_white(line, after);
        if line.get(at) != Some(&b':') {
            return Glance::Unsure;
        }
        at = skip_white(line, at + 1);
        let Some(end) = skip_value(line, at) else { return Glance::Unsure };
        let value = line.get(at..end).unwrap_or_default();
        if let Some(scale) = scale(key) {
            match raw_level(value, scale) {
                // With the byte after it, without which a number could go on.
                Ok(Some(level)) => return Glance::Level(level, end + 1),
                Ok(None) => {}
                Err(Escaped) => return Glance::Unsure,
            }
        }
        // Levels that lie a level deeper: loguru's and ECS's.
        if matches!(key, b"record" | b"log") && value.first() == Some(&b'{') {
            return Glance::Unsure;
        }
        compact_event |= matches!(key, b"@t" | b"@mt");
        at = end;
    }
}

struct Escaped;

fn raw_level(value: &[u8], scale: Scale) -> Result<Option<Level>, Escaped> {
    match value {
        [b'"', text @ .., b'"'] if text.contains(&b'\\') => Err(Escaped),
        [b'"', text @ .., b'"'] => Ok(named_or_numbered(text, scale)),
        _ => Ok(std::str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse().ok())
            .and_then(|number| Level::from_number(number, scale))),
    }
}

fn named_or_numbered(text: &[u8], scale: Scale) -> Option<Level> {
    // journald writes its numbers as strings.
    let number = || std::str::from_utf8(text).ok()?.parse().ok();
    Level::from_name(text).or_else(|| Level::from_number(number()?, scale))
}

fn skip_white(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// The string that begins at `at`, and where it ends, if nothing in it is escaped.
fn plain_string(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let text = line.get(at + 1..)?;
    let end = text.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    (text.get(end) == Some(&b'"')).then_some((text.get(..end)?, at + end + 2))
}

/// Where the value that begins at `at` ends.
fn skip_value(line: &[u8], at: usize) -> Option<usize> {
    match line.get(at)? {
        b'"' => skip_string(line, at),
        b'{' | b'[' => {
            let (mut depth, mut at) = (0_usize, at);
            loop {
                match line.get(at)? {
                    b'"' => {
                        at = skip_string(line, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
        }
        _ => {
            let length =
                line.get(at..)?.iter().position(|byte| matches!(byte, b',' | b'}' | b' ' | b'\t'))?;
            (length > 0).then_some(at + length)
        }
    }
}

fn skip_string(line: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', line.get(at..)?)?;
        match line.get(found) {
            Some(b'"') => return Some(found + 1),
            _ => at = found + 2,
        }
    }
}

/// What a line holds, mapped.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) level: Option<Level>,
    pub(super) timestamp: Option<Moment>,
    pub(super) message: Option<String>,
    pub(super) fields: Map<String, Value>,
}

/// Reads a whole line. None where it is no JSON object.
pub(super) fn parse(line: &[u8]) -> Option<Parsed> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else { return None };
    let glanced = match glance(line) {
        Glance::Level(level, _) => Some(level),
        Glance::Nothing => None,
        Glance::Unsure => level(&fields),
    };
    let timestamp = take_timestamp(&mut fields);
    let message = take_message(&mut fields);
    if glanced.is_some() {
        take_level(&mut fields);
    }
    Some(Parsed { level: glanced, timestamp, message, fields })
}

fn value_level(value: &Value, scale: Scale) -> Option<Level> {
    match value {
        Value::String(text) => named_or_numbered(text.as_bytes(), scale),
        Value::Number(number) => Level::from_number(number.as_i64()?, scale),
        _ => None,
    }
}

/// The level, from a line that has been read. The same as [`glance`] finds where it is sure.
fn level(fields: &Map<String, Value>) -> Option<Level> {
    let found = fields.iter().find_map(|(key, value)| match (key.as_str(), value) {
        ("record", Value::Object(record)) => {
            let level = record.get("level")?;
            value_level(level.get("name").unwrap_or(level), Scale::Tens)
        }
        ("log", Value::Object(log)) => value_level(log.get("level")?, Scale::Tens),
        (key, value) => value_level(value, scale(key.as_bytes())?),
    });
    let compact_event = || fields.contains_key("@t") || fields.contains_key("@mt");
    found.or_else(|| compact_event().then_some(Level::Info))
}

/// Takes out the member that says the level, which the entry says itself. A number that does not stand for
/// one of the six stays.
fn take_level(fields: &mut Map<String, Value>) {
    let key = fields.iter().find_map(|(key, value)| {
        value_level(value, scale(key.as_bytes())?)?;
        let exact = value.as_i64().is_none_or(|number| number % 10 == 0 || number < 10);
        exact.then(|| key.clone())
    });
    if let Some(key) = key {
        fields.shift_remove(&key);
    }
}

const TIMES: [&str; 13] = [
    "time",
    "timestamp",
    "ts",
    "@timestamp",
    "@t",
    "T",
    "asctime",
    "datetime",
    "date",
    "t",
    "timeUnixNano",
    "__REALTIME_TIMESTAMP",
    "eventTime",
];

fn take_timestamp(fields: &mut Map<String, Value>) -> Option<Moment> {
    for key in TIMES {
        let Some(value) = fields.get(key) else { continue };
        let moment = match value {
            Value::String(text) => Moment::parse(text),
            Value::Number(number) => match number.as_i64() {
                Some(number) => Moment::from_number(number.into()),
                None => number.as_f64().and_then(Moment::from_float),
            },
            _ => None,
        };
        if moment.is_some() {
            fields.shift_remove(key);
            return moment;
        }
    }
    let time = fields.get("record")?.get("time")?;
    Moment::from_float(time.get("timestamp")?.as_f64()?)
}

const MESSAGES: [&str; 10] =
    ["msg", "message", "@m", "@mt", "event", "M", "MESSAGE", "textPayload", "body", "short_message"];

fn take_message(fields: &mut Map<String, Value>) -> Option<String> {
    for key in MESSAGES {
        if let Some(Value::String(_)) = fields.get(key) {
            // What a Serilog template stands for is in the other members.
            return match fields.shift_remove(key) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            };
        }
    }
    // tracing-subscriber puts all that was said in `fields`.
    if let Some(Value::Object(said)) = fields.get_mut("fields")
        && let Some(Value::String(text)) = said.shift_remove("message")
    {
        if let Some(Value::Object(said)) = fields.shift_remove("fields") {
            for (key, value) in said {
                fields.entry(key).or_insert(value);
            }
        }
        return Some(text);
    }
    take_loguru(fields).or_else(|| {
        let text = fields.get("body")?.get("stringValue")?;
        text.as_str().map(str::to_owned)
    })
}

/// loguru says everything in `record`, and again in `text`, where alone the stack trace is.
fn take_loguru(fields: &mut Map<String, Value>) -> Option<String> {
    let Some(Value::Object(record)) = fields.get_mut("record") else { return None };
    let Some(Value::String(message)) = record.shift_remove("message") else { return None };
    for said in ["time", "level", "elapsed"] {
        record.shift_remove(said);
    }
    if let Some(Value::Object(record)) = fields.shift_remove("record") {
        for (key, value) in record {
            fields.entry(key).or_insert(value);
        }
    }
    if fields.get("text").and_then(Value::as_str).is_some_and(|text| !text.trim_end().contains('\n')) {
        fields.shift_remove("text");
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_glance_finds_the_level_wherever_it_stands() {
        for (line, level) in [
            (r#"{"level":50,"msg":"x"}"#, Level::Error),
            (r#"{"time":"2026-11-20T10:00:00Z","level":"WARN","msg":"x"}"#, Level::Warn),
            (r#"{"event": "a \"level\": 60", "level": "info"}"#, Level::Info),
            (r#"{"err":{"level":"fatal","a":["}"]},"severity":"ERROR"}"#, Level::Error),
            (r#"{"level":null,"levelno":40}"#, Level::Error),
            (r#"{"level":30}"#, Level::Info),
        ] {
            assert!(matches!(glance(line.as_bytes()), Glance::Level(found, _) if found == level), "{line}");
        }
        assert_eq!(glance(br#"{"a":1,"b":"level"}"#), Glance::Nothing);
        assert_eq!(glance(br#"{"\u006cevel":50}"#), Glance::Unsure);
        assert_eq!(glance(br#"{"@t":"2026-11-20T10:00:00Z","@mt":"x"}"#), Glance::Level(Level::Info, 39));
    }

    #[test]
    fn the_first_of_several_levels_counts() {
        let parsed = parse(br#"{"level":30,"level":60,"severity":"ERROR"}"#).unwrap();
        assert_eq!(parsed.level, Some(Level::Info));
    }

    #[test]
    fn an_escaped_level_is_read() {
        assert_eq!(parse(br#"{"\u006cevel":"\u0065rror"}"#).unwrap().level, Some(Level::Error));
    }

    fn key() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "level", "lvl", "severity", "msg", "log", "record", "@t", "a", "PRIORITY", "\\",
        ])
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            prop::sample::select(vec!["info", "ERROR", "warn+1", "3", "\"", "\\u", "{", "é"])
                .prop_map(Value::from),
            (-2_i64..70).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec((key(), inner), 0..3).prop_map(|members| members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Value>()),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_glance_that_is_sure_says_what_reading_says(members in prop::collection::vec((key(), value()), 0..6)) {
            let object: Map<String, Value> = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            let line = serde_json::to_vec(&object).unwrap();
            match glance(&line) {
                Glance::Level(found, _) => prop_assert_eq!(Some(found), level(&object)),
                Glance::Nothing => prop_assert_eq!(None, level(&object)),
                Glance::Unsure => {}
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[{}\\[\\]\",:\\\\a0 levl]{0,60}") {
            for line in [[b"{", &*bytes].concat(), [b"{\"", text.as_bytes()].concat()] {
                let _ = glance(&line);
                let _ = parse(&line);
            }
        }
    }
}
