//! A JSON value as it was written, and its text again.

use super::fold::folded_name;
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
    Object(JsonObject<'a>),
}

/// The members of an object, in the order they were written.
// A list and not a map: the order survives, and a search of the few members of a message needs no hashing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonObject<'a>(pub(super) Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> Json<'a> {
    /// Creates a string value.
    pub fn string(text: impl Into<Cow<'a, str>>) -> Self {
        Self::String(text.into())
    }

    /// Returns the object, or `None` for any other value.
    pub fn as_object(&self) -> Option<&JsonObject<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the text of a string, or `None` for any other value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Copies what is borrowed, so that the value outlives the text it was read from.
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

    /// Converts to a `serde_json` value, for a policy to judge. Returns `None` if a number would change: an integer
    /// past 64 bits, or a number past any float.
    pub fn to_value(&self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(text) => Value::Number(exact_number(text)?),
            Self::String(text) => Value::String(text.to_string()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect::<Option<_>>()?),
            Self::Object(object) => Value::Object(object.to_map()?),
        })
    }

    /// Appends the compact JSON text to `out`.
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
            // As `serde_json` prints it, which it reads back as the same number.
            Value::Number(number) => Self::Number(Cow::Owned(number.to_string())),
            Value::String(text) => Self::String(Cow::Owned(text.clone())),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(map) => Self::Object(JsonObject(
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

impl<'a> JsonObject<'a> {
    /// Returns the member of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the member of exactly this name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json<'a>> {
        self.0.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Removes and returns the member of this name; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<Json<'a>> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Sets the member of this name: where it stands already, or else at the end.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: Json<'a>) {
        let name = name.into();
        match self.get_mut(&name) {
            Some(current) => *current = value,
            None => self.0.push((name, value)),
        }
    }

    /// Removes every member for whose name `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// Returns the names of the members, in the order they were written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// Returns the members, in the order they were written.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// Sorts the members by name and passes each value through `change`.
    #[must_use]
    pub fn sorted(mut self, change: impl Fn(Json<'a>) -> Json<'a>) -> Self {
        self.0.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self(self.0.into_iter().map(|(name, value)| (name, change(value))).collect())
    }

    /// Returns the first of `known` that a member's name equals except for the case of its letters.
    ///
    /// Go's `encoding/json` compares names without case. A server that uses `encoding/json` would read a member of
    /// another case as the known member, and thereby run something else than the policy judged.
    pub fn case_variant_of<'k>(&self, known: &[&'k str]) -> Option<&'k str> {
        self.names().find_map(|name| {
            if known.contains(&name) {
                return None;
            }
            let folded = folded_name(name);
            known.iter().copied().find(|known| folded_name(known) == folded)
        })
    }

    /// Copies what is borrowed, so that the value outlives the text it was read from.
    pub fn into_owned(self) -> JsonObject<'static> {
        JsonObject(
            self.0
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned()))
                .collect(),
        )
    }

    /// Converts to a `serde_json` map. Returns `None` where [`Json::to_value`] does.
    pub fn to_map(&self) -> Option<Map<String, Value>> {
        self.0.iter().map(|(name, value)| Some((name.to_string(), value.to_value()?))).collect()
    }

    /// Appends the compact JSON text to `out`.
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

impl<'a> FromIterator<(&'static str, Json<'a>)> for JsonObject<'a> {
    fn from_iter<I: IntoIterator<Item = (&'static str, Json<'a>)>>(members: I) -> Self {
        let mut object = Self::default();
        for (name, value) in members {
            object.set(name, value);
        }
        object
    }
}

/// Returns the number that `text` is, if `serde_json` can hold it. Digits past a float's precision are rounded, as
/// every reader of JSON rounds them; what would become another whole number or infinite is refused.
fn exact_number(text: &str) -> Option<Number> {
    let is_whole = !text.contains(['.', 'e', 'E']);
    let number: Number = serde_json::from_str(text).ok()?;
    // `-0` is a float for `serde_json`, and whole for no reader a different number.
    (!is_whole || number.is_i64() || number.is_u64() || text == "-0").then_some(number)
}

/// Appends `text` as a JSON string. Only what RFC 8259 §7 requires is escaped, so that text in any script stays
/// readable.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    // Runs that need no escape are copied at once: nearly every string is one such run.
    let mut plain_start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[plain_start..at]);
        plain_start = at + 1;
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
    out.extend_from_slice(&bytes[plain_start..]);
    out.push(b'"');
}
