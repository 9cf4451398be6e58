//! The id of a request.

use super::json::Json;
use std::borrow::Cow;
use std::fmt;

/// The id of a request: the text of a whole number, or a string. `1`, `1.0` and `"1"` are three ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// A whole number as it is written, of whatever length.
    Number(String),
    /// A string.
    Text(String),
}

impl Id {
    /// Returns the id that `json` is: a whole number, or a string of at most 1,024 bytes. `None` for any other value.
    pub fn from_json(json: &Json<'_>) -> Option<Self> {
        // An id is kept until its answer, so a long one would cost memory for as long.
        const MAX_ID_BYTES: usize = 1024;
        match json {
            // Programs disagree whether `1.0` and `1e0` are the id `1`.
            Json::Number(text) if !text.contains(['.', 'e', 'E']) => Some(Self::Number(text.to_string())),
            Json::String(text) if text.len() <= MAX_ID_BYTES => Some(Self::Text(text.to_string())),
            _ => None,
        }
    }

    /// Converts the id to a JSON value.
    pub fn to_json(&self) -> Json<'static> {
        match self {
            Self::Number(text) => Json::Number(Cow::Owned(text.clone())),
            Self::Text(text) => Json::String(Cow::Owned(text.clone())),
        }
    }

    /// Returns the id as a `u64`, as a program that gives out numbers reads its own ids. `None` for any other id.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            // JSON allows neither `007` nor `+7`, so that each number has one spelling here.
            Self::Number(text) => text.parse().ok(),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}
