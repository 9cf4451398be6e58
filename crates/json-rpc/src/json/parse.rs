//! The strict parser.

use super::value::{Json, JsonObject};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// The deepest nesting that is taken, in levels; `serde_json` has the same limit.
pub const MAX_DEPTH: usize = 128;

/// The largest number of values that one message may hold. Parsed, a value of two bytes takes about thirty times its
/// size. A message that is long for a good reason has long strings, not many values.
pub const MAX_VALUES: usize = 500_000;

/// The problem of a name that an object has twice.
pub const DUPLICATE_NAME: &str = "a name that the object has already";

/// The error for a text that is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The problem, in words.
    pub problem: &'static str,
    /// The offset in bytes at which it was found.
    pub offset: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.offset)
    }
}

impl std::error::Error for ParseError {}

impl<'a> Json<'a> {
    /// Parses a text that holds one value and nothing else.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or parsers disagree about it: see the module.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Self::parse_within(bytes, MAX_VALUES).map(|(value, _)| value)
    }

    /// Parses a text as [`parse`](Self::parse) does, of at most `max_values` values. Returns also how many it has.
    ///
    /// # Errors
    ///
    /// The text is not JSON, parsers disagree about it, or it has more values.
    pub fn parse_within(bytes: &'a [u8], max_values: usize) -> Result<(Self, usize), ParseError> {
        // Checked once for the whole text, so that every slice below may be taken as text without another check.
        let text = std::str::from_utf8(bytes)
            .map_err(|error| ParseError { problem: "not UTF-8", offset: error.valid_up_to() })?;
        let mut parser = JsonParser { text, offset: 0, values: 0, max_values };
        parser.skip_whitespace();
        let value = parser.value(0)?;
        parser.skip_whitespace();
        if parser.offset < text.len() {
            return Err(parser.error("more than one value"));
        }
        Ok((value, parser.values))
    }
}

/// A recursive-descent parser; `values` counts towards `max_values`.
struct JsonParser<'a> {
    text: &'a str,
    offset: usize,
    values: usize,
    max_values: usize,
}

impl<'a> JsonParser<'a> {
    fn error(&self, problem: &'static str) -> ParseError {
        ParseError { problem, offset: self.offset }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, ParseError> {
        // The parser calls itself, so this bounds its stack too.
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deep"));
        }
        self.values += 1;
        if self.values > self.max_values {
            return Err(self.error("too many values"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Json::Bool(true)),
            Some(b'f') => self.literal("false", Json::Bool(false)),
            Some(b'n') => self.literal("null", Json::Null),
            Some(_) => Err(self.error("no JSON value")),
            None => Err(self.error("the text ends early")),
        }
    }

    fn literal(&mut self, literal: &str, value: Json<'a>) -> Result<Json<'a>, ParseError> {
        if !self.text[self.offset..].starts_with(literal) {
            return Err(self.error("no JSON value"));
        }
        // What may follow is left to the caller, which refuses the rest of `truex`.
        self.offset += literal.len();
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, ParseError> {
        self.offset += 1;
        let mut items = Vec::new();
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.offset += 1;
            return Ok(Json::Array(items));
        }
        loop {
            self.skip_whitespace();
            items.push(self.value(depth + 1)?);
            if self.is_last(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, ParseError> {
        /// Up to this many members comparing each name with each is quicker than hashing.
        const MAX_COMPARED: usize = 16;
        self.offset += 1;
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        let mut names: HashSet<Cow<'a, str>> = HashSet::new();
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.offset += 1;
            return Ok(Json::Object(JsonObject(members)));
        }
        loop {
            self.skip_whitespace();
            if self.peek() != Some(b'"') {
                return Err(self.error("no name of a member"));
            }
            let start = self.offset;
            let name = self.string()?;
            let is_duplicate = if members.len() < MAX_COMPARED {
                members.iter().any(|(known, _)| *known == name)
            } else {
                if names.is_empty() {
                    names.extend(members.iter().map(|(known, _)| known.clone()));
                }
                !names.insert(name.clone())
            };
            if is_duplicate {
                return Err(ParseError { problem: DUPLICATE_NAME, offset: start });
            }
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.error("no colon"));
            }
            self.offset += 1;
            self.skip_whitespace();
            let value = self.value(depth + 1)?;
            members.push((name, value));
            if self.is_last(b'}')? {
                return Ok(Json::Object(JsonObject(members)));
            }
        }
    }

    /// Consumes a comma or `end`, and returns true for `end`.
    // A value must follow a comma, so that `[1,]` is refused by the caller.
    fn is_last(&mut self, end: u8) -> Result<bool, ParseError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b',') => {
                self.offset += 1;
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.offset += 1;
                Ok(true)
            }
            _ => Err(self.error("neither a comma nor the end")),
        }
    }

    fn number(&mut self) -> Result<Json<'a>, ParseError> {
        /// Longer than any number that means something, and short enough to be converted in little time.
        const MAX_NUMBER_BYTES: usize = 1024;
        let start = self.offset;
        if self.peek() == Some(b'-') {
            self.offset += 1;
        }
        match self.peek() {
            Some(b'0') => self.offset += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.error("no number")),
        }
        if self.peek() == Some(b'.') {
            self.offset += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.offset += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            self.digits()?;
        }
        if self.offset - start > MAX_NUMBER_BYTES {
            return Err(self.error("a number that is too long"));
        }
        Ok(Json::Number(Cow::Borrowed(&self.text[start..self.offset])))
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let start = self.offset;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
        if self.offset == start { Err(self.error("no digit")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, ParseError> {
        self.offset += 1;
        let start = self.offset;
        // The usual string has no escape, and is borrowed.
        self.skip_unescaped();
        if self.peek() == Some(b'"') {
            let text = &self.text[start..self.offset];
            self.offset += 1;
            return Ok(Cow::Borrowed(text));
        }
        let mut text = self.text[start..self.offset].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("the text ends early")),
            }
            let start = self.offset;
            self.skip_unescaped();
            text.push_str(&self.text[start..self.offset]);
        }
    }

    /// Advances to the next quote, escape or control character.
    fn skip_unescaped(&mut self) {
        // By bytes: every byte of a longer UTF-8 character is above 0x7f, so none is taken for a quote or a
        // backslash.
        let rest = &self.text.as_bytes()[self.offset..];
        self.offset +=
            rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(rest.len());
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        self.offset += 1;
        let byte = self.peek();
        self.offset += 1;
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => {
                self.offset -= 1;
                return Err(self.error("no escape"));
            }
        })
    }

    /// Reads the hexadecimal digits of a `\u` escape, and those of the second one of a surrogate pair.
    fn unicode(&mut self) -> Result<char, ParseError> {
        let half = |this: &Self| this.error("half a surrogate pair");
        let first = self.hex_escape()?;
        if let Some(char) = char::from_u32(first) {
            return Ok(char);
        }
        // Only the first half of a pair is left here, or the second half without the first.
        if first >= 0xdc00 || !self.text[self.offset..].starts_with("\\u") {
            return Err(half(self));
        }
        self.offset += 2;
        let second = self.hex_escape()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(half(self));
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(|| half(self))
    }

    fn hex_escape(&mut self) -> Result<u32, ParseError> {
        let mut code = 0;
        // Digit by digit, since `u32::from_str_radix` would also take `+041`.
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.error("no hexadecimal digit"))?;
            self.offset += 1;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::write_string;
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn written(json: &Json<'_>) -> String {
        let mut out = Vec::new();
        json.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_parsers_disagree_on_is_error() {
        for (text, problem) in [
            (&br#"{"a":1,"a":2}"#[..], "a name that the object has already"),
            (br#"{"name":1,"n\u0061me":2}"#, "a name that the object has already"),
            (br#"[{"x":{"b":[{"a":1,"a":1}]}}]"#, "a name that the object has already"),
            (b"\xef\xbb\xbf{}", "no JSON value"),
            (b"\"\xff\"", "not UTF-8"),
            (b"\"\xc0\x80\"", "not UTF-8"),
            (br#""\ud83d""#, "half a surrogate pair"),
            (br#""\udc00\ud800""#, "half a surrogate pair"),
            (br#""\ud800\u0041""#, "half a surrogate pair"),
            (b"\"a\nb\"", "a control character in a string"),
            (b"NaN", "no JSON value"),
            (b"Infinity", "no JSON value"),
            (b"-", "no number"),
            (b"01", "more than one value"),
            (b"1.", "no digit"),
            (b"+1", "no JSON value"),
            (b".5", "no JSON value"),
            (b"0x10", "more than one value"),
            (b"[1,]", "no JSON value"),
            (b"{\"a\":1,}", "no name of a member"),
            (b"{'a':1}", "no name of a member"),
            (b"{a:1}", "no name of a member"),
            (b"// no\n1", "no JSON value"),
            (b"{} {}", "more than one value"),
            (b"{}\0", "more than one value"),
            (b"\x0c{}", "no JSON value"),
            (b"\"\\x41\"", "no escape"),
            (b"", "the text ends early"),
        ] {
            let error = Json::parse(text).expect_err(&String::from_utf8_lossy(text));
            assert_eq!(error.problem, problem, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(Json::parse(&nested(MAX_DEPTH + 1)).is_ok());
        assert_eq!(Json::parse(&nested(MAX_DEPTH + 2)).unwrap_err().problem, "nested too deep");
        assert_eq!(Json::parse(&vec![b'['; 10_000_000]).unwrap_err().problem, "nested too deep");
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(Json::parse(many.as_bytes()).unwrap_err().problem, "too many values");
    }

    #[test]
    fn numbers_survive_and_are_judged_only_where_they_are_the_same() {
        for text in ["18446744073709551616", "1e999", "-0", "1.10", "0.1000000000000000055511151231257827"] {
            assert_eq!(written(&Json::parse(text.as_bytes()).unwrap()), text);
        }
        for (text, same) in [
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("-9223372036854775808", true),
            ("-9223372036854775809", false),
            ("1e999", false),
            ("1.5", true),
            ("-0", true),
        ] {
            assert_eq!(Json::parse(text.as_bytes()).unwrap().to_value().is_some(), same, "{text}");
        }
    }

    #[test]
    fn a_name_that_differs_in_case_alone_is_found() {
        let object = |text: &'static str| match Json::parse(text.as_bytes()).unwrap() {
            Json::Object(object) => object,
            other => panic!("{other}"),
        };
        for variant in ["Name", "NAME", "n\u{212a}ame", "argument\u{17f}"] {
            let text = format!("{{\"name\":1,\"{variant}\":2}}");
            let json = Json::parse(text.as_bytes()).unwrap();
            let found = json.as_object().unwrap().case_variant_of(&["name", "nkame", "arguments"]);
            assert!(found.is_some(), "{variant}");
        }
        assert_eq!(object(r#"{"name":1,"names":2,"_name":3}"#).case_variant_of(&["name"]), None);
    }

    #[test]
    fn a_large_object_finds_a_name_that_comes_twice() {
        let members: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":{n}")).collect();
        assert!(Json::parse(format!("{{{}}}", members.join(",")).as_bytes()).is_ok());
        for twice in [0, 15, 16, 17, 998] {
            let text = format!("{{{},\"k{twice}\":0}}", members.join(","));
            assert_eq!(
                Json::parse(text.as_bytes()).unwrap_err().problem,
                "a name that the object has already"
            );
        }
    }

    fn any_json() -> impl Strategy<Value = Json<'static>> {
        let number = prop_oneof![
            any::<i64>().prop_map(|n| n.to_string()),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| format!("{f:e}")),
            "[1-9][0-9]{0,40}",
        ];
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            number.prop_map(|text| Json::Number(Cow::Owned(text))),
            any::<String>().prop_map(|text| Json::String(Cow::Owned(text))),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Json::Array),
                prop::collection::btree_map(any::<String>(), inner, 0..8).prop_map(|map| {
                    Json::Object(JsonObject(map.into_iter().map(|(k, v)| (Cow::Owned(k), v)).collect()))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again_as_it_was(json in any_json()) {
            let text = written(&json);
            prop_assert_eq!(Json::parse(text.as_bytes()).unwrap(), json);
        }

        #[test]
        fn no_bytes_make_it_panic_and_what_it_takes_serde_takes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(json) = Json::parse(&bytes)
                && let Some(value) = json.to_value()
            {
                prop_assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
            }
        }

        #[test]
        fn on_nearly_json_it_is_stricter_than_serde_and_reads_the_same(
            text in r#"[\[\]{}:,"\\ue0-9a-f.+\- tru]{0,24}"#,
        ) {
            if let Ok(json) = Json::parse(text.as_bytes())
                && let Some(value) = json.to_value()
            {
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            }
        }

        #[test]
        fn a_name_that_comes_twice_is_error_at_any_depth(json in any_json(), depth in 0usize..20, name in any::<String>()) {
            let mut key = Vec::new();
            write_string(&name, &mut key);
            let key = String::from_utf8(key).unwrap();
            // Every character escaped: the same name, spelt another way.
            let spelt: String = name.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let object = format!("{{{key}:{0},\"{spelt}\":{0}}}", written(&json));
            let text = format!("{}{object}{}", "[".repeat(depth), "]".repeat(depth));
            prop_assert_eq!(Json::parse(text.as_bytes()).unwrap_err().problem, "a name that the object has already");
        }
    }
}
