//! The strict parser.

use super::{Json, Object, Refused};
use std::borrow::Cow;
use std::collections::HashSet;

/// The deepest nesting that is taken; `serde_json` has the same.
pub const MAX_DEPTH: usize = 128;

/// The most values that one message may hold. Parsed, a value of two bytes takes about thirty times its size;
/// what is long for a good reason is long strings.
pub const MAX_VALUES: usize = 500_000;

/// Reads one value and nothing beside it.
pub(super) fn parse(bytes: &[u8]) -> Result<Json<'_>, Refused> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Refused { problem: "not UTF-8", at: error.valid_up_to() })?;
    let mut parser = Parser { text, at: 0, values: 0 };
    parser.blanks();
    let value = parser.value(0)?;
    parser.blanks();
    if parser.at < text.len() { Err(parser.refuse("more than one value")) } else { Ok(value) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Parser<'a> {
    fn refuse(&self, problem: &'static str) -> Refused {
        Refused { problem, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, Refused> {
        if depth > MAX_DEPTH {
            return Err(self.refuse("nested too deep"));
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.refuse("too many values"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) => Err(self.refuse("no JSON value")),
            None => Err(self.refuse("the text ends early")),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, Refused> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.refuse("no JSON value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, Refused> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            self.blanks();
            items.push(self.value(depth + 1)?);
            if self.ends(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, Refused> {
        /// Up to here comparing each with each is the quicker way.
        const FEW: usize = 16;
        self.at += 1;
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        let mut names: HashSet<Cow<'a, str>> = HashSet::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(Object(members)));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.refuse("no name of a member"));
            }
            let start = self.at;
            let name = self.string()?;
            let twice = if members.len() < FEW {
                members.iter().any(|(known, _)| *known == name)
            } else {
                if names.is_empty() {
                    names.extend(members.iter().map(|(known, _)| known.clone()));
                }
                !names.insert(name.clone())
            };
            if twice {
                return Err(Refused { problem: "a name that the object has already", at: start });
            }
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.refuse("no colon"));
            }
            self.at += 1;
            self.blanks();
            let value = self.value(depth + 1)?;
            members.push((name, value));
            if self.ends(b'}')? {
                return Ok(Json::Object(Object(members)));
            }
        }
    }

    /// Takes a comma, or the end.
    fn ends(&mut self, end: u8) -> Result<bool, Refused> {
        self.blanks();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(self.refuse("neither a comma nor the end")),
        }
    }

    fn number(&mut self) -> Result<Json<'a>, Refused> {
        /// Longer than any number that means something, and short enough for those who convert it.
        const LONGEST: usize = 1024;
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.refuse("no number")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.at - start > LONGEST {
            return Err(self.refuse("a number that is too long"));
        }
        Ok(Json::Number(Cow::Borrowed(&self.text[start..self.at])))
    }

    fn digits(&mut self) -> Result<(), Refused> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.refuse("no digit")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Refused> {
        self.at += 1;
        let start = self.at;
        self.plain();
        if self.peek() == Some(b'"') {
            let text = &self.text[start..self.at];
            self.at += 1;
            return Ok(Cow::Borrowed(text));
        }
        let mut text = self.text[start..self.at].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.refuse("a control character in a string")),
                None => return Err(self.refuse("the text ends early")),
            }
            let start = self.at;
            self.plain();
            text.push_str(&self.text[start..self.at]);
        }
    }

    /// Up to a quote, an escape or a control character.
    fn plain(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at +=
            rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(rest.len());
    }

    fn escape(&mut self) -> Result<char, Refused> {
        self.at += 1;
        let byte = self.peek();
        self.at += 1;
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
                self.at -= 1;
                return Err(self.refuse("no escape"));
            }
        })
    }

    fn unicode(&mut self) -> Result<char, Refused> {
        let half = |this: &Self| this.refuse("half a surrogate pair");
        let first = self.hex()?;
        if let Some(char) = char::from_u32(first) {
            return Ok(char);
        }
        if first >= 0xdc00 || !self.text[self.at..].starts_with("\\u") {
            return Err(half(self));
        }
        self.at += 2;
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(half(self));
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(|| half(self))
    }

    fn hex(&mut self) -> Result<u32, Refused> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.refuse("no hexadecimal digit"))?;
            self.at += 1;
        }
        Ok(code)
    }
}
