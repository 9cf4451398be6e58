//! JSON as it was written: parsed strictly, and written again without a change of meaning.
//!
//! Two parsers that read one text differently are a way around a check: what is judged is then not what
//! runs. So everything that parsers are known to disagree on is refused here (RFC 8259 §4 and §8 name most
//! of it): a name that an object has twice, at any depth and also where escapes hide it; half a surrogate
//! pair; a byte order mark; what is not UTF-8. Numbers keep their text, because no two parsers agree on
//! where one stops being exact.

mod parse;

pub use parse::{MAX_DEPTH, MAX_VALUES};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt;

/// One JSON value, borrowing from the text it was read from where it can.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(Cow<'a, str>),
    /// A string, without its escapes.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Self>),
    /// An object, in its order; no name is in it twice.
    Object(Object<'a>),
}

/// The members of an object, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

/// Why a text is not taken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub problem: &'static str,
    /// The byte at which it was found.
    pub at: usize,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

impl std::error::Error for Refused {}

impl<'a> Json<'a> {
    /// Reads one value and nothing beside it.
    ///
    /// # Errors
    ///
    /// For what is no JSON, and for what parsers disagree on: see the module.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refused> {
        parse::parse(bytes)
    }

    /// A string.
    pub fn string(text: impl Into<Cow<'a, str>>) -> Self {
        Self::String(text.into())
    }

    /// The members, of an object.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The text, of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Json<'static> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(value),
            Self::Number(text) => Json::Number(Cow::Owned(text.into_owned())),
            Self::String(text) => Json::String(Cow::Owned(text.into_owned())),
            Self::Array(items) => Json::Array(items.into_iter().map(Self::into_owned).collect()),
            Self::Object(object) => Json::Object(object.into_owned()),
        }
    }

    /// The same as `serde_json` has it, for a policy to judge. `None` where that would be another number: an
    /// integer past 64 bits, or one past any float.
    pub fn to_value(&self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(text) => Value::Number(exact(text)?),
            Self::String(text) => Value::String(text.to_string()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect::<Option<_>>()?),
            Self::Object(object) => Value::Object(object.to_map()?),
        })
    }

    /// Writes it, compact.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Number(text) => out.extend_from_slice(text.as_bytes()),
            Self::String(text) => write_string(text, out),
            Self::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(object) => object.write(out),
        }
    }
}

impl From<&Value> for Json<'static> {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(Cow::Owned(number.to_string())),
            Value::String(text) => Self::String(Cow::Owned(text.clone())),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(map) => Self::Object(Object(
                map.iter().map(|(name, value)| (Cow::Owned(name.clone()), Self::from(value))).collect(),
            )),
        }
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        f.write_str(&String::from_utf8_lossy(&bytes))
    }
}

impl<'a> Object<'a> {
    /// The member of this name, exactly.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json<'a>> {
        self.0.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Takes the member of this name out, and keeps the order of the others.
    pub fn remove(&mut self, name: &str) -> Option<Json<'a>> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Sets the member of this name, in its place or at the end.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: Json<'a>) {
        let name = name.into();
        match self.get_mut(&name) {
            Some(place) => *place = value,
            None => self.0.push((name, value)),
        }
    }

    /// Keeps the members that `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// The names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// The members, in their order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// The members in the order of their names, each passed through `change`.
    #[must_use]
    pub fn sorted(mut self, change: impl Fn(Json<'a>) -> Json<'a>) -> Self {
        self.0.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self(self.0.into_iter().map(|(name, value)| (name, change(value))).collect())
    }

    /// A name that is one of `known` but for the case of its letters, as Go's `encoding/json` compares them:
    /// a server written so would read it as the known one.
    pub fn twin<'k>(&self, known: &[&'k str]) -> Option<&'k str> {
        self.names().find_map(|name| {
            if known.contains(&name) {
                return None;
            }
            let folded = folded(name);
            known.iter().copied().find(|known| known.to_ascii_lowercase() == folded)
        })
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Object<'static> {
        Object(
            self.0
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned()))
                .collect(),
        )
    }

    /// The same as `serde_json` has it; `None` as in [`Json::to_value`].
    pub fn to_map(&self) -> Option<Map<String, Value>> {
        self.0.iter().map(|(name, value)| Some((name.to_string(), value.to_value()?))).collect()
    }

    /// Writes it, compact.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_string(name, out);
            out.push(b':');
            value.write(out);
        }
        out.push(b'}');
    }
}

impl<'a> FromIterator<(&'static str, Json<'a>)> for Object<'a> {
    fn from_iter<I: IntoIterator<Item = (&'static str, Json<'a>)>>(members: I) -> Self {
        let mut object = Self::default();
        for (name, value) in members {
            object.set(name, value);
        }
        object
    }
}

/// In lower case as far as it can become ASCII. Unicode's simple folding, which Go uses, also takes the long
/// s (U+017F) for an s and the Kelvin sign (U+212A) for a k.
fn folded(name: &str) -> String {
    name.chars()
        .map(|char| match char {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}

/// The number that `text` is, if `serde_json` has it. Digits past a float's precision are rounded, as every
/// reader of JSON rounds them; what would become another whole number or infinite is refused.
fn exact(text: &str) -> Option<Number> {
    let whole = !text.contains(['.', 'e', 'E']);
    let number: Number = serde_json::from_str(text).ok()?;
    // `-0` is a float for `serde_json`, and whole for no reader a different number.
    (!whole || number.is_i64() || number.is_u64() || text == "-0").then_some(number)
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(json: &Json<'_>) -> String {
        let mut out = Vec::new();
        json.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_parsers_disagree_on_is_refused() {
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
            let refused = Json::parse(text).expect_err(&String::from_utf8_lossy(text));
            assert_eq!(refused.problem, problem, "{}", String::from_utf8_lossy(text));
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
        for twin in ["Name", "NAME", "n\u{212a}ame", "argument\u{17f}"] {
            let text = format!("{{\"name\":1,\"{twin}\":2}}");
            let json = Json::parse(text.as_bytes()).unwrap();
            let found = json.as_object().unwrap().twin(&["name", "nkame", "arguments"]);
            assert!(found.is_some(), "{twin}");
        }
        assert_eq!(object(r#"{"name":1,"names":2,"_name":3}"#).twin(&["name"]), None);
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
                    Json::Object(Object(map.into_iter().map(|(k, v)| (Cow::Owned(k), v)).collect()))
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
        fn a_name_that_comes_twice_is_refused_at_any_depth(json in any_json(), depth in 0usize..20, name in any::<String>()) {
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
