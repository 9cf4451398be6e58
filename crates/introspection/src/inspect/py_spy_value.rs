//! Parses the text in which py-spy shows the value of a Python variable: `{"a": [1, 2, ...], 5: None}`.
//!
//! py-spy shows numbers, texts, lists, tuples and dictionaries by their contents, and everything else by its type and
//! address: `<Shop at 0x7f53e40a7050>`. It does not escape quotes inside of texts, so the end of a text is a quote before
//! a separator.

use super::json::own_mark;
use serde_json::{Map, Number, Value};

/// The depth to which lists and dictionaries are opened.
const MAX_DEPTH: u32 = 32;

/// Parses `text`. A text that is not of this form is returned as it is.
pub(super) fn parse(text: &str) -> Value {
    let mut parser = PySpyValueParser { rest: text.trim() };
    match parser.python_value(MAX_DEPTH) {
        Some(value) if parser.rest.is_empty() => value,
        _ => text.into(),
    }
}

struct PySpyValueParser<'a> {
    rest: &'a str,
}

impl PySpyValueParser<'_> {
    fn python_value(&mut self, depth: u32) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match self.rest.chars().next()? {
            '"' => self.quoted().map(Value::from),
            '[' => self.list("]", depth),
            '(' => self.list(")", depth),
            '{' => self.dictionary(depth),
            _ => self.word(),
        }
    }

    /// Consumes `prefix`, and the blanks after it.
    fn skip(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn quoted(&mut self) -> Option<String> {
        let text = self.rest.strip_prefix('"')?;
        let is_end = |(at, _): &(usize, &str)| {
            text.get(at + 1..)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ':', ']', ')', '}']))
        };
        let (end, _) = text.match_indices('"').find(is_end)?;
        self.rest = text.get(end + 1..)?.trim_start();
        // A name of the program is no mark.
        Some(text.get(..end)?.replace('\0', "\u{fffd}"))
    }

    /// Consumes the separator of two elements, or the end of the list. Returns true at the end, and `None` for anything else.
    fn ends(&mut self, end: &str) -> Option<bool> {
        if self.skip(end) {
            return Some(true);
        }
        self.skip(",").then_some(false)
    }

    fn list(&mut self, end: &str, depth: u32) -> Option<Value> {
        self.rest = self.rest.get(1..)?.trim_start();
        let mut elements = Vec::new();
        if self.skip(end) {
            return Some(elements.into());
        }
        loop {
            // py-spy shows the first elements of a long list.
            if self.skip("...") {
                elements.push(own_mark("more", "py-spy shows no more elements"));
            } else {
                elements.push(self.python_value(depth)?);
            }
            if self.ends(end)? {
                return Some(elements.into());
            }
        }
    }

    fn dictionary(&mut self, depth: u32) -> Option<Value> {
        self.rest = self.rest.get(1..)?.trim_start();
        let mut members = Map::new();
        if self.skip("}") {
            return Some(members.into());
        }
        loop {
            // py-spy shows the first members of a long dictionary.
            if self.skip("...") {
                if let Value::Object(mark) = own_mark("more", "py-spy shows no more members") {
                    members.extend(mark);
                }
            } else {
                let key = match self.python_value(depth)? {
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                if !self.skip(":") {
                    return None;
                }
                members.insert(key, self.python_value(depth)?);
            }
            if self.ends("}")? {
                return Some(members.into());
            }
        }
    }

    /// Parses a number, a constant, or the type of an object.
    fn word(&mut self) -> Option<Value> {
        let end = match self.rest.starts_with('<') {
            true => self.rest.find('>')? + 1,
            false => self.rest.find([',', ':', ']', ')', '}']).unwrap_or(self.rest.len()),
        };
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        let number = || word.parse::<i64>().ok().map(Number::from);
        let decimal = || word.parse::<f64>().ok().and_then(Number::from_f64);
        Some(match word {
            "" => return None,
            "None" => Value::Null,
            "+bigint" | "-bigint" => {
                own_mark("unread", "a whole number of more than 64 bits, which py-spy does not show")
            }
            "True" => true.into(),
            "False" => false.into(),
            word => number().or_else(decimal).map_or_else(|| word.into(), Value::Number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn texts_of_py_spy_become_values() {
        for (text, value) in [
            ("3", json!(3)),
            ("-2.5", json!(-2.5)),
            ("True", json!(true)),
            ("None", json!(null)),
            ("()", json!([])),
            ("{}", json!({})),
            (
                "[+bigint]",
                json!([{"\0$unread": "a whole number of more than 64 bits, which py-spy does not show"}]),
            ),
            ("<Shop at 0x7f53e40a7050>", json!("<Shop at 0x7f53e40a7050>")),
            ("\"ünï, 😀\"", json!("ünï, 😀")),
            ("[0, 1, ...]", json!([0, 1, {"\0$more": "py-spy shows no more elements"}])),
            ("[\"...\", \"\0$more\"]", json!(["...", "\u{fffd}$more"])),
            (
                r#"{"a": [1, {"x": (2, "y")}], "password": "swordfish", 5: None}"#,
                json!({"a": [1, {"x": [2, "y"]}], "password": "swordfish", "5": null}),
            ),
            (r#"{"0": 0, ...}"#, json!({"0": 0, "\0$more": "py-spy shows no more members"})),
            // Its quotes are not escaped.
            (r#"("a"b", 1)"#, json!(["a\"b", 1])),
            ("[1, 2", json!("[1, 2")),
            ("{1}", json!("{1}")),
            ("one two", json!("one two")),
        ] {
            assert_eq!(parse(text), value, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[\\[\\](){}<>\":,. a0é-]{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn no_depth_is_an_overflow(depth in 0..5000_usize) {
            let _ = parse(&"[".repeat(depth));
            let _ = parse(&"{1:".repeat(depth));
        }
    }
}
