//! One line to one message, or to the error that answers it.

use super::MAX_LINE_BYTES;
use super::outline::{Outline, Scanner};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use serde::Deserialize;
use serde_json::Value;

/// The most JSON values that one message may hold. Decoded, a value of two bytes takes a hundred times its
/// size; what is long for a good reason is long strings.
const MAX_VALUES: usize = 250_000;

/// What a line turned out to be.
#[derive(Debug)]
pub(super) enum Decoded {
    /// A message for the server.
    Message(Box<ClientJsonRpcMessage>),
    /// Several in one array.
    Batch(Vec<Value>),
    /// Nothing that is answered: a blank line, or a notification or response that cannot be read or does not
    /// fit any known shape. JSON-RPC 2.0 §4.1 and §5 forbid to answer those.
    Nothing,
    /// Something that is answered with an error.
    Refused(Option<RequestId>, ErrorData),
}

/// Decodes one line.
pub(super) fn decode(line: &[u8]) -> Decoded {
    // RFC 8259 §8.1 lets a parser ignore a byte order mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Decoded::Nothing;
    }
    // A value takes two bytes or more: most lines are too short to hold too many.
    if line.len() > 2 * MAX_VALUES {
        let outline = outline(line);
        if outline.values > MAX_VALUES {
            let message = format!(
                "invalid request: about {} JSON values in one message; at most {MAX_VALUES} are taken",
                outline.values
            );
            return unread(outline, ErrorData::invalid_request(message, None));
        }
    }
    match serde_json::from_slice(line) {
        Ok(message) => Decoded::Message(Box::new(message)),
        Err(_) => explain(line),
    }
}

/// Answers a line of `bytes` that was too long to keep.
pub(super) fn too_long(bytes: u64, outline: Outline) -> Decoded {
    let message = format!("invalid request: a message of {bytes} bytes; at most {MAX_LINE_BYTES} are taken");
    unread(outline, ErrorData::invalid_request(message, None))
}

/// Decodes one member of a batch.
pub(super) fn decode_value(value: &Value) -> Decoded {
    match ClientJsonRpcMessage::deserialize(value) {
        Ok(message) => Decoded::Message(Box::new(message)),
        Err(_) => explain_value(value),
    }
}

fn outline(line: &[u8]) -> Outline {
    let mut scanner = Scanner::default();
    scanner.push(line);
    scanner.finish()
}

/// Says why `line` is no message. What is almost JSON (half a surrogate pair, which `JSON.stringify` writes;
/// a byte that is not UTF-8; a number past any float; nesting past serde's limit) is not mended: a path or
/// a text with a character replaced is not what its sender meant.
fn explain(line: &[u8]) -> Decoded {
    let cause = match std::str::from_utf8(line) {
        Ok(text) => match serde_json::from_str(text) {
            Ok(Value::Array(messages)) => return Decoded::Batch(messages),
            Ok(value) => return explain_value(&value),
            Err(error) => format!("not JSON: {error}"),
        },
        Err(error) => format!("not UTF-8 at byte {}", error.valid_up_to()),
    };
    unread(outline(line), ErrorData::new(ErrorCode::PARSE_ERROR, cause, None))
}

/// Answers a message of which only the outline is known.
fn unread(outline: Outline, error: ErrorData) -> Decoded {
    if outline.is_answered() {
        Decoded::Refused(outline.id, error)
    } else {
        tracing::warn!(error = %error.message, "ignored a notification or a response");
        Decoded::Nothing
    }
}

fn explain_value(value: &Value) -> Decoded {
    let Some(object) = value.as_object() else {
        return invalid(None, "a message is a JSON object");
    };
    let id = object.get("id").and_then(request_id);
    match (object.get("method"), &id) {
        (Some(Value::String(_)), None) if !object.contains_key("id") => Decoded::Nothing,
        (None, _) if object.contains_key("result") || object.contains_key("error") => Decoded::Nothing,
        _ if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") => {
            invalid(id, "`jsonrpc` must be \"2.0\"")
        }
        (Some(Value::String(_)), None) => invalid(None, "`id` must be a string or a whole number"),
        // What is left is `params`: a list, which JSON-RPC 2.0 §4.2 has and MCP has not, or no structure.
        (Some(Value::String(method)), Some(_)) => Decoded::Refused(
            id,
            ErrorData::invalid_params(
                format!("invalid params: the parameters of `{method}` must be an object that fits it"),
                None,
            ),
        ),
        (Some(_), _) => invalid(id, "`method` must be a string"),
        (None, _) => invalid(id, "`method` is missing"),
    }
}

fn invalid(id: Option<RequestId>, message: &str) -> Decoded {
    Decoded::Refused(id, ErrorData::invalid_request(format!("invalid request: {message}"), None))
}

/// The id of a request, where it is one that may be used.
fn request_id(value: &Value) -> Option<RequestId> {
    RequestId::deserialize(value).ok()
}
