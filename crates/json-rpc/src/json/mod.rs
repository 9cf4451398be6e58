//! JSON as it was written: parsed strictly, and written again without a change of meaning.
//!
//! Two parsers that read one text differently are a way around a check: what is judged is then not what
//! runs. So everything that parsers are known to disagree on is refused here (RFC 8259 §4 and §8 name most
//! of it): a name that an object has twice, at any depth and also where escapes hide it; half a surrogate
//! pair; a byte order mark; text that is not UTF-8. Numbers keep their text, because no two parsers agree on
//! the size at which a number stops being exact.

mod fold;
mod parse;
mod value;

pub use fold::{folded_name, loosely_folded_name};
pub use parse::{DUPLICATE_NAME, MAX_DEPTH, MAX_VALUES, ParseError};
pub use value::{Json, JsonObject};
