//! Parses lines that are JSON objects: pino, bunyan, winston, zap, logrus, slog, tracing-subscriber, structlog,
//! loguru, Serilog (CLEF), Python's JSON formatters, ECS, GELF, OpenTelemetry, journald, Monolog, log4j2, .NET,
//! `MongoDB`, Google Cloud, `HashiCorp`.

use super::exact_numbers::exact_numbers;
use super::level::{EntryLevel, LevelScale};
use super::log_time::LogTime;
use serde_json::{Map, Value};

/// The result of scanning a line for its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelScan {
    /// The level, and the number of bytes at the beginning of the line that determine it.
    Found(EntryLevel, usize),
    /// The line has no level.
    Absent,
    /// Only parsing the whole line can tell.
    Undecided,
}

/// Returns the scale of the numbers under `key`, if `key` is one that holds a level.
fn scale(key: &[u8]) -> Option<LevelScale> {
    Some(match key {
        b"level" | b"lvl" | b"@l" | b"severity" | b"levelname" | b"log_level" | b"loglevel"
        | b"log.level" | b"severity_text" | b"severityText" | b"L" | b"LogLevel" | b"Level"
        | b"level_name" | b"@level" | b"logLevel" | b"error_severity" => LevelScale::Pino,
        b"levelno" => LevelScale::Python,
        b"PRIORITY" => LevelScale::Syslog,
        b"severity_number" | b"severityNumber" => LevelScale::OpenTelemetry,
        _ => return None,
    })
}

/// Finds the level of a line, in the first member that holds one, without parsing the rest. The rest of the line may
/// be invalid JSON.
pub(super) fn scan_level(line: &[u8]) -> LevelScan {
    let mut at = 1;
    let mut compact_event = false;
    let mut mongo = false;
    loop {
        at = skip_white(line, at);
        match line.get(at) {
            Some(b'"') => {}
            Some(b',') => {
                at += 1;
                continue;
            }
            // CLEF leaves the level out where it is Information.
            Some(b'}') if compact_event => return LevelScan::Found(EntryLevel::Info, line.len()),
            Some(b'}') => return LevelScan::Absent,
            _ => return LevelScan::Undecided,
        }
        let Some((key, after)) = plain_string(line, at) else { return LevelScan::Undecided };
        at = skip_white(line, after);
        if line.get(at) != Some(&b':') {
            return LevelScan::Undecided;
        }
        at = skip_white(line, at + 1);
        let Some(end) = skip_value(line, at) else { return LevelScan::Undecided };
        let value = line.get(at..end).unwrap_or_default();
        if let Some(scale) = scale(key) {
            match raw_level(value, scale) {
                // The byte after the value counts, as without it the number could have more digits.
                Ok(Some(level)) => return LevelScan::Found(level, end + 1),
                Ok(None) => {}
                Err(EscapedText) => return LevelScan::Undecided,
            }
        }
        // loguru, ECS and winston's Logstash nest the level in an object.
        if matches!(key, b"record" | b"log" | b"@fields") && value.first() == Some(&b'{') {
            return LevelScan::Undecided;
        }
        compact_event |= matches!(key, b"@t" | b"@mt");
        mongo |= key == b"t" && value.starts_with(b"{\"$date\"");
        if mongo && key == b"s" {
            return match mongo_level(value.get(1..value.len() - 1).unwrap_or_default()) {
                Some(level) => LevelScan::Found(level, end + 1),
                None => LevelScan::Undecided,
            };
        }
        at = end;
    }
}

/// Returns the level of the status in a line of an access log, which has no level: nginx and Traefik write such lines.
pub(super) fn request_level(line: &[u8]) -> Option<EntryLevel> {
    const STATUS: [&[u8]; 3] = [b"\"status\":", b"\"status_code\":", b"\"DownstreamStatus\":"];
    const REQUEST: [&[u8]; 7] = [
        b"\"request\":",
        b"\"method\":",
        b"\"request_method\":",
        b"\"request_uri\":",
        b"\"uri\":",
        b"\"path\":",
        b"\"RequestMethod\":",
    ];
    let after = STATUS
        .iter()
        .find_map(|key| memchr::memmem::find(line, key).and_then(|at| line.get(at + key.len()..)))?;
    let after = after.trim_ascii_start();
    let after = after.strip_prefix(b"\"").unwrap_or(after);
    let number = after.get(..3).filter(|_| !after.get(3).is_some_and(u8::is_ascii_digit))?;
    let status = std::str::from_utf8(number).ok()?.parse().ok()?;
    let is_request = REQUEST.iter().any(|key| memchr::memmem::find(line, key).is_some());
    EntryLevel::from_status(status).filter(|_| is_request)
}

/// Returns the level that `MongoDB` writes as one letter, and for debugging with a digit: `D1`.
fn mongo_level(letter: &[u8]) -> Option<EntryLevel> {
    EntryLevel::from_name(letter.get(..1)?).filter(|_| letter.len() <= 2)
}

/// The error for a text with escapes, which only a parser can compare.
struct EscapedText;

fn raw_level(value: &[u8], scale: LevelScale) -> Result<Option<EntryLevel>, EscapedText> {
    match value {
        [b'"', text @ .., b'"'] if text.contains(&b'\\') => Err(EscapedText),
        [b'"', text @ .., b'"'] => Ok(named_or_numbered(text, scale)),
        _ => Ok(std::str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse().ok())
            .and_then(|number| EntryLevel::from_number(number, scale))),
    }
}

fn named_or_numbered(text: &[u8], scale: LevelScale) -> Option<EntryLevel> {
    // journald writes its numbers as strings.
    let number = || std::str::from_utf8(text).ok()?.parse().ok();
    EntryLevel::from_name(text).or_else(|| EntryLevel::from_number(number()?, scale))
}

fn skip_white(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Returns the string that begins at `at` and the offset after it, if it has no escapes.
fn plain_string(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let text = line.get(at + 1..)?;
    let end = text.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    (text.get(end) == Some(&b'"')).then_some((text.get(..end)?, at + end + 2))
}

/// Returns the offset after the value that begins at `at`.
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

/// The parts of a JSON line that have a meaning in every format, and its other fields.
#[derive(Debug)]
pub(super) struct ParsedJsonLine {
    pub(super) level: Option<EntryLevel>,
    pub(super) timestamp: Option<LogTime>,
    pub(super) message: Option<String>,
    pub(super) fields: Map<String, Value>,
}

/// Parses a whole line. `None` where it is no JSON object.
pub(super) fn parse(line: &[u8]) -> Option<ParsedJsonLine> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(&exact_numbers(line)) else { return None };
    let scanned_level = match scan_level(line) {
        LevelScan::Found(level, _) => Some(level),
        LevelScan::Absent => None,
        LevelScan::Undecided => level(&fields),
    };
    if fields.contains_key("__REALTIME_TIMESTAMP") {
        convert_byte_arrays(&mut fields);
    }
    Some(finish(fields, scanned_level))
}

/// Takes the parts that have a meaning out of the members of an object.
fn finish(mut fields: Map<String, Value>, level: Option<EntryLevel>) -> ParsedJsonLine {
    if let Some(date) = fields.get("t").and_then(|time| time.get("$date"))
        && date.is_string()
        && level.is_some()
    {
        fields.shift_remove("s");
    }
    let timestamp = take_timestamp(&mut fields);
    let message = take_message(&mut fields);
    if level.is_some() {
        take_level(&mut fields);
    }
    ParsedJsonLine { level, timestamp, message, fields }
}

fn value_level(value: &Value, scale: LevelScale) -> Option<EntryLevel> {
    match value {
        Value::String(text) => named_or_numbered(text.as_bytes(), scale),
        Value::Number(number) => EntryLevel::from_number(number.as_i64()?, scale),
        _ => None,
    }
}

/// Returns the level of a parsed line: the one that [`scan_level`] finds where it decides.
fn level(fields: &Map<String, Value>) -> Option<EntryLevel> {
    let mut mongo = false;
    let found = fields.iter().find_map(|(key, value)| match (key.as_str(), value) {
        ("t", Value::Object(time)) if time.keys().next().is_some_and(|key| key == "$date") => {
            mongo = true;
            None
        }
        ("record", Value::Object(record)) => {
            let level = record.get("level")?;
            value_level(level.get("name").unwrap_or(level), LevelScale::Pino)
        }
        ("log" | "@fields", Value::Object(log)) => value_level(log.get("level")?, LevelScale::Pino),
        ("s", Value::String(letter)) if mongo => mongo_level(letter.as_bytes()),
        (key, value) => value_level(value, scale(key.as_bytes())?),
    });
    let compact_event = || fields.contains_key("@t") || fields.contains_key("@mt");
    found.or_else(|| compact_event().then_some(EntryLevel::Info))
}

/// Removes the member that holds the level, as the entry has a field for it. A number between two levels stays.
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

/// The keys that hold the time, in the order of preference.
const TIME_KEYS: [&str; 20] = [
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
    "instant",
    "timeMillis",
    "Timestamp",
    "Time",
    "__time",
    "received_at",
    "ts_ms",
];

fn take_timestamp(fields: &mut Map<String, Value>) -> Option<LogTime> {
    for key in TIME_KEYS {
        let Some(value) = fields.get(key) else { continue };
        let moment = match value {
            Value::String(text) => LogTime::parse(text),
            Value::Number(number) => match number.as_i64() {
                Some(number) => LogTime::from_number(number.into()),
                None => number.as_f64().and_then(LogTime::from_float),
            },
            Value::Object(parts) => nested_time(parts),
            _ => None,
        };
        if moment.is_some() {
            fields.shift_remove(key);
            return moment;
        }
    }
    // loguru's `record.time` has the time as text and as a number, of which the number is exact.
    let time = fields.get("record")?.get("time")?;
    LogTime::from_float(time.get("timestamp")?.as_f64()?)
}

/// Returns the time that an object holds: log4j2's `instant`, Google Cloud's seconds and nanoseconds, `MongoDB`'s
/// `$date`, and what PHP makes of a `DateTime`.
fn nested_time(parts: &Map<String, Value>) -> Option<LogTime> {
    let number = |key: &str| parts.get(key)?.as_i64();
    for (seconds, nanos) in [("epochSecond", "nanoOfSecond"), ("seconds", "nanos")] {
        if let Some(seconds) = number(seconds).filter(|seconds| *seconds > 0) {
            let nanos = number(nanos).unwrap_or_default();
            return LogTime::from_number(i128::from(seconds) * 1_000_000_000 + i128::from(nanos));
        }
    }
    let text = parts.get("$date").or_else(|| parts.get("date"))?;
    LogTime::parse(text.as_str()?)
}

/// The keys that hold the message, in the order of preference.
const MESSAGE_KEYS: [&str; 14] = [
    "msg",
    "message",
    "@m",
    "@mt",
    "event",
    "M",
    "MESSAGE",
    "textPayload",
    "body",
    "short_message",
    "Message",
    "@message",
    "RenderedMessage",
    // Of an access log, which has no other text.
    "request",
];

fn take_message(fields: &mut Map<String, Value>) -> Option<String> {
    for key in MESSAGE_KEYS {
        if let Some(Value::String(_)) = fields.get(key) {
            // The values for a Serilog template are in the other members.
            return match fields.shift_remove(key) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            };
        }
    }
    // tracing-subscriber nests the message and its fields in `fields`.
    if let Some(Value::Object(nested)) = fields.get_mut("fields")
        && let Some(Value::String(text)) = nested.shift_remove("message")
    {
        if let Some(Value::Object(nested)) = fields.shift_remove("fields") {
            for (key, value) in nested {
                fields.entry(key).or_insert(value);
            }
        }
        return Some(text);
    }
    if let Some(bytes) = fields.get("MESSAGE").and_then(byte_array) {
        fields.shift_remove("MESSAGE");
        return Some(bytes);
    }
    if let Some(Value::Object(payload)) = fields.get_mut("jsonPayload")
        && let Some(Value::String(text)) = payload.shift_remove("message")
    {
        return Some(text);
    }
    take_loguru(fields).or_else(|| {
        let text = fields.get("body")?.get("stringValue")?;
        text.as_str().map(str::to_owned)
    })
}

/// Returns the text that journald writes as an array of bytes, because it has line feeds or is no UTF-8.
fn byte_array(value: &Value) -> Option<String> {
    let bytes = value.as_array()?.iter().map(|byte| u8::try_from(byte.as_u64()?).ok());
    let bytes = bytes.collect::<Option<Vec<u8>>>()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces the byte arrays among the fields of a journald entry by their text.
fn convert_byte_arrays(fields: &mut Map<String, Value>) {
    for (key, value) in fields.iter_mut() {
        let named =
            key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        if let Some(text) = byte_array(value).filter(|_| named) {
            *value = text.into();
        }
    }
}

/// Parses the members of an object whose end was cut off. The last member may be a text that breaks off.
pub(super) fn parse_prefix(line: &[u8]) -> ParsedJsonLine {
    let mut fields = Map::new();
    let mut at = skip_white(line, 1);
    while line.get(at) == Some(&b'"') {
        let Some((key, after)) = plain_string(line, at) else { break };
        let colon = skip_white(line, after);
        if line.get(colon) != Some(&b':') {
            break;
        }
        let start = skip_white(line, colon + 1);
        let key = String::from_utf8_lossy(key).into_owned();
        let Some(end) = skip_value(line, start) else {
            if line.get(start) == Some(&b'"') {
                fields.insert(key, unescape_prefix(line.get(start + 1..).unwrap_or_default()).into());
            }
            break;
        };
        if let Ok(value) = serde_json::from_slice(&exact_numbers(line.get(start..end).unwrap_or_default())) {
            fields.insert(key, value);
        }
        at = skip_white(line, end);
        if line.get(at) == Some(&b',') {
            at = skip_white(line, at + 1);
        }
    }
    let level = level(&fields);
    finish(fields, level)
}

/// Returns the text of a string that breaks off, without a last escape that is not whole.
fn unescape_prefix(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    // An escape has at most twelve bytes: two units of UTF-16.
    for left_out in 0..=12.min(text.len()) {
        let end = text.len() - left_out;
        if let Some(text) = text.get(..end)
            && let Ok(text) = serde_json::from_str::<String>(&format!("\"{text}\""))
        {
            return text;
        }
    }
    text.into_owned()
}

/// Returns the offset of a JSON object that ends a line of text, as shippers and zap's console write it.
pub(super) fn embedded(line: &[u8]) -> Option<usize> {
    let end = line.trim_ascii_end();
    if end.last() != Some(&b'}') {
        return None;
    }
    memchr::memmem::find(end.get(..end.len().min(256))?, b"{\"").filter(|at| *at > 0)
}

/// Takes the message of loguru, which nests everything in `record` and repeats it, with the stack trace, in `text`.
fn take_loguru(fields: &mut Map<String, Value>) -> Option<String> {
    let Some(Value::Object(record)) = fields.get_mut("record") else { return None };
    let Some(Value::String(message)) = record.shift_remove("message") else { return None };
    for redundant in ["time", "level", "elapsed"] {
        record.shift_remove(redundant);
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
            (r#"{"level":50,"msg":"x"}"#, EntryLevel::Error),
            (r#"{"time":"2026-11-20T10:00:00Z","level":"WARN","msg":"x"}"#, EntryLevel::Warn),
            (r#"{"event": "a \"level\": 60", "level": "info"}"#, EntryLevel::Info),
            (r#"{"err":{"level":"fatal","a":["}"]},"severity":"ERROR"}"#, EntryLevel::Error),
            (r#"{"level":null,"levelno":40}"#, EntryLevel::Error),
            (r#"{"level":30}"#, EntryLevel::Info),
        ] {
            assert!(
                matches!(scan_level(line.as_bytes()), LevelScan::Found(found, _) if found == level),
                "{line}"
            );
        }
        assert_eq!(scan_level(br#"{"a":1,"b":"level"}"#), LevelScan::Absent);
        for (line, level) in [
            (r#"{"status":502,"request":"GET / HTTP/1.1"}"#, Some(EntryLevel::Error)),
            (r#"{"method":"GET","status": "404"}"#, Some(EntryLevel::Warn)),
            (r#"{"status":500}"#, None),
            (r#"{"status":5000,"method":"GET"}"#, None),
            (r#"{"status":"paid","method":"card"}"#, None),
        ] {
            assert_eq!(request_level(line.as_bytes()), level, "{line}");
        }
        assert_eq!(scan_level(br#"{"\u006cevel":50}"#), LevelScan::Undecided);
        assert_eq!(
            scan_level(br#"{"@t":"2026-11-20T10:00:00Z","@mt":"x"}"#),
            LevelScan::Found(EntryLevel::Info, 39)
        );
    }

    #[test]
    fn the_first_of_several_levels_counts() {
        let parsed = parse(br#"{"level":30,"level":60,"severity":"ERROR"}"#).unwrap();
        assert_eq!(parsed.level, Some(EntryLevel::Info));
    }

    #[test]
    fn an_object_that_is_cut_off_has_the_members_before_the_cut() {
        let line = br#"{"level":50,"time":1795168800000,"a":{"b":[1]},"msg":"so \"long\" \ud83d"#;
        let parsed = parse_prefix(line);
        assert_eq!(
            (parsed.level, parsed.message.as_deref()),
            (Some(EntryLevel::Error), Some("so \"long\" "))
        );
        assert_eq!(parsed.timestamp.unwrap().to_string(), "2026-11-20T10:00:00.000Z");
        assert_eq!(parse_prefix(br#"{"level":50,"n":12"#).level, Some(EntryLevel::Error));
    }

    #[test]
    fn an_escaped_level_is_read() {
        assert_eq!(parse(br#"{"\u006cevel":"\u0065rror"}"#).unwrap().level, Some(EntryLevel::Error));
    }

    fn key() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "level", "lvl", "severity", "msg", "log", "record", "@t", "a", "PRIORITY", "\\", "s", "t",
            "$date",
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
            match scan_level(&line) {
                LevelScan::Found(found, _) => prop_assert_eq!(Some(found), level(&object)),
                LevelScan::Absent => prop_assert_eq!(None, level(&object)),
                LevelScan::Undecided => {}
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[{}\\[\\]\",:\\\\a0 levl]{0,60}") {
            for line in [[b"{", &*bytes].concat(), [b"{\"", text.as_bytes()].concat()] {
                let _ = scan_level(&line);
                let _ = parse(&line);
                let _ = parse_prefix(&line);
                let _ = embedded(&line);
            }
        }
    }
}
