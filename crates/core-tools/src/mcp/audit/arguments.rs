//! The summary of a call's arguments: names and sizes, and what the level of the audit adds.

use super::detail::ArgumentDetail;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::sync::OnceLock;

/// The arguments of a call, as far as they are recorded.
#[derive(Debug)]
pub(crate) struct ArgumentSummary {
    /// Names and sizes: `path:12c edits:2[] dry_run:bool`. Empty where nobody records calls.
    pub(crate) text: String,
    /// About as many bytes as their JSON has.
    pub(crate) bytes: usize,
    /// The targets of the call, once its arguments are in their canonical form.
    pub(crate) detail: OnceLock<ArgumentDetail>,
}

/// Beyond this many bytes the names of further arguments are left out.
const MAX_TEXT_BYTES: usize = 400;

impl ArgumentSummary {
    /// Summarises `arguments`. Only names that `is_parameter` knows are written out: others could hold anything.
    pub(crate) fn new(arguments: &Map<String, Value>, is_parameter: impl Fn(&str) -> bool) -> Self {
        Self {
            text: names_and_sizes(arguments, is_parameter),
            bytes: object_bytes(arguments),
            detail: OnceLock::new(),
        }
    }

    /// The size alone, which limits need where nobody records calls.
    pub(crate) fn size_only(arguments: &Map<String, Value>) -> Self {
        Self { text: String::new(), bytes: object_bytes(arguments), detail: OnceLock::new() }
    }
}

/// Returns the summary of arguments for a [`CallRecord`](super::CallRecord) of a call that no host runs: the names that
/// `is_parameter` knows, sizes instead of values, and about how many bytes they have.
pub fn summarize_arguments(
    arguments: &Map<String, Value>,
    is_parameter: impl Fn(&str) -> bool,
) -> (String, usize) {
    let summary = ArgumentSummary::new(arguments, is_parameter);
    (summary.text, summary.bytes)
}

fn names_and_sizes(arguments: &Map<String, Value>, is_parameter: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for (name, value) in arguments {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(if is_parameter(name) { name } else { "(unknown)" });
        text.push(':');
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Null => text.write_str("null"),
            Value::Bool(_) => text.write_str("bool"),
            Value::Number(_) => text.write_str("number"),
            Value::String(value) => write!(text, "{}c", value.chars().count()),
            Value::Array(elements) => write!(text, "{}[]", elements.len()),
            Value::Object(members) => write!(text, "{}{{}}", members.len()),
        };
        if text.len() > MAX_TEXT_BYTES {
            text.push_str(" …");
            break;
        }
    }
    text
}

/// Returns about how many bytes of JSON `value` has, without writing it.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        // What holds nothing has its brackets and its comma, or any number of them would have no size.
        Value::Array(elements) => 2 + elements.iter().map(|element| value_bytes(element) + 1).sum::<usize>(),
        Value::Object(members) => object_bytes(members),
    }
}

fn object_bytes(members: &Map<String, Value>) -> usize {
    2 + members.iter().map(|(name, value)| name.len() + value_bytes(value) + 4).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_told_by_name_and_size_and_never_by_value() {
        let arguments =
            json!({"path": "süß", "edits": [1, 2], "env": {"A": "b"}, "hunter2": true, "n": 7, "x": null});
        let Value::Object(arguments) = arguments else { unreachable!() };
        let summary = ArgumentSummary::new(&arguments, |name| name != "hunter2");
        assert_eq!(summary.text, "path:3c edits:2[] env:1{} (unknown):bool n:number x:null");
    }
}
