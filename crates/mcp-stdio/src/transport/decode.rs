//! Decodes one line into one message, or into the error that answers it.

use json_rpc::json::{DUPLICATE_NAME, Json};
use json_rpc::message::Id;
use json_rpc::message_outline::{MessageOutline, outline};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use serde::Deserialize;
use serde_json::Value;

/// The longest line that is accepted, in bytes. The same as most MCP servers accept over HTTP.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

/// The most JSON values that one message may hold. Decoded, a value of two bytes takes a hundred times its
/// size; what is long for a good reason is long strings.
const MAX_VALUES: usize = 250_000;

/// The content of a line.
#[derive(Debug)]
pub(super) enum DecodedLine {
    /// A message for the server.
    Message(Box<ClientJsonRpcMessage>),
    /// Several in one array.
    Batch(Vec<Value>),
    /// Something that is not answered: a blank line, or a notification or response that cannot be read or does not
    /// fit any known shape. JSON-RPC 2.0 §4.1 and §5 forbid to answer those.
    Ignored,
    /// Something that is answered with an error.
    Rejected(Option<RequestId>, ErrorData),
}

/// Decodes one line.
pub(super) fn decode(line: &[u8]) -> DecodedLine {
    // RFC 8259 §8.1 lets a parser ignore a byte order mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return DecodedLine::Ignored;
    }
    // A value takes two bytes or more: most lines are too short to hold too many.
    if line.len() > 2 * MAX_VALUES {
        let outline = outline(line);
        if outline.max_values > MAX_VALUES {
            let message = format!(
                "invalid request: about {} JSON values in one message; at most {MAX_VALUES} are taken",
                outline.max_values
            );
            return reject(outline, ErrorData::invalid_request(message, None));
        }
    }
    // Most lines are messages, so only one that is none is parsed a second time.
    match serde_json::from_slice(line) {
        Ok(message) => match duplicate_name(line) {
            Some(refused) => refused,
            None => DecodedLine::Message(Box::new(message)),
        },
        Err(_) => explain(line),
    }
}

/// Refuses a line in which an object has a name twice. Of two such members, parsers take the first or the last, so that an
/// audit or a proxy could read another call than the one that runs.
fn duplicate_name(line: &[u8]) -> Option<DecodedLine> {
    let problem = Json::parse(line).err().filter(|error| error.problem == DUPLICATE_NAME)?;
    let message = format!("invalid request: {problem}");
    Some(reject(outline(line), ErrorData::invalid_request(message, None)))
}

/// Decodes a line of `bytes` that was too long to keep.
pub(super) fn too_long(bytes: u64, outline: MessageOutline) -> DecodedLine {
    let message = format!("invalid request: a message of {bytes} bytes; at most {MAX_LINE_BYTES} are taken");
    reject(outline, ErrorData::invalid_request(message, None))
}

/// Decodes one member of a batch.
pub(super) fn decode_value(value: &Value) -> DecodedLine {
    match ClientJsonRpcMessage::deserialize(value) {
        Ok(message) => DecodedLine::Message(Box::new(message)),
        Err(_) => explain_value(value),
    }
}

/// Finds out why `line` is no message. What is almost JSON (half a surrogate pair, which `JSON.stringify` writes;
/// a byte that is not UTF-8; a number past any float; nesting past serde's limit) is not repaired: a path or
/// a text with a character replaced is not what its sender meant.
fn explain(line: &[u8]) -> DecodedLine {
    let cause = match std::str::from_utf8(line) {
        Ok(text) => match serde_json::from_str(text) {
            Ok(Value::Array(messages)) => {
                return duplicate_name(line).unwrap_or(DecodedLine::Batch(messages));
            }
            Ok(value) => return explain_value(&value),
            Err(error) => format!("not JSON: {error}"),
        },
        Err(error) => format!("not UTF-8 at byte {}", error.valid_up_to()),
    };
    reject(outline(line), ErrorData::new(ErrorCode::PARSE_ERROR, cause, None))
}

/// Answers a message of which only the outline is known, if its sender may wait for an answer.
fn reject(outline: MessageOutline, error: ErrorData) -> DecodedLine {
    if outline.is_answered() {
        DecodedLine::Rejected(outline.id.and_then(|id| rmcp_id(&id)), error)
    } else {
        tracing::warn!(error = %error.message, "ignored a notification or a response");
        DecodedLine::Ignored
    }
}

/// Converts an id to that of rmcp, which takes whole numbers of up to 64 bits only.
fn rmcp_id(id: &Id) -> Option<RequestId> {
    match id {
        Id::Number(text) => text.parse().ok().map(RequestId::Number),
        Id::Text(text) => Some(RequestId::String(text.as_str().into())),
    }
}

/// Finds out why `value` is no message.
fn explain_value(value: &Value) -> DecodedLine {
    let Some(object) = value.as_object() else {
        return invalid(None, "a message is a JSON object");
    };
    let id = object.get("id").and_then(request_id);
    match (object.get("method"), &id) {
        // A notification: its sender waits for nothing.
        (Some(Value::String(_)), None) if !object.contains_key("id") => DecodedLine::Ignored,
        // A response: its sender waits for nothing.
        (None, _) if object.contains_key("result") || object.contains_key("error") => DecodedLine::Ignored,
        _ if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") => {
            invalid(id, "`jsonrpc` must be \"2.0\"")
        }
        (Some(Value::String(_)), None) => invalid(None, "`id` must be a string or a whole number"),
        // What is left is `params`: a list, which JSON-RPC 2.0 §4.2 has and MCP has not, or no structure.
        (Some(Value::String(method)), Some(_)) => DecodedLine::Rejected(
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

fn invalid(id: Option<RequestId>, message: &str) -> DecodedLine {
    DecodedLine::Rejected(id, ErrorData::invalid_request(format!("invalid request: {message}"), None))
}

/// Returns the id of a request, if it is one that may be used.
fn request_id(value: &Value) -> Option<RequestId> {
    RequestId::deserialize(value).ok()
}
