//! One line to one message, or to the error that answers it.

use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use serde::Deserialize;
use serde_json::Value;

/// What a line turned out to be.
#[derive(Debug)]
pub(super) enum Decoded {
    /// A message for the server.
    Message(Box<ClientJsonRpcMessage>),
    /// Several in one array.
    Batch(Vec<Value>),
    /// Nothing that is answered: a blank line, or a notification or response that does not fit any known
    /// shape. JSON-RPC 2.0 §4.1 and §5 forbid to answer those.
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
    match serde_json::from_slice(line) {
        Ok(message) => Decoded::Message(Box::new(message)),
        Err(_) => match std::str::from_utf8(line) {
            Ok(text) => explain(text),
            Err(error) => parse_error(format!("not UTF-8 at byte {}", error.valid_up_to())),
        },
    }
}

/// Decodes one member of a batch.
pub(super) fn decode_value(value: &Value) -> Decoded {
    match ClientJsonRpcMessage::deserialize(value) {
        Ok(message) => Decoded::Message(Box::new(message)),
        Err(_) => explain_value(value),
    }
}

fn explain(text: &str) -> Decoded {
    match serde_json::from_str(text) {
        Ok(Value::Array(messages)) => Decoded::Batch(messages),
        Ok(value) => explain_value(&value),
        Err(error) => parse_error(format!("not JSON: {error}")),
    }
}

fn parse_error(message: String) -> Decoded {
    Decoded::Refused(None, ErrorData::new(ErrorCode::PARSE_ERROR, message, None))
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
        (Some(Value::String(method)), Some(_)) => {
            invalid(id, &format!("the parameters of `{method}` do not fit"))
        }
        (Some(_), _) => invalid(id, "`method` must be a string"),
        (None, _) => invalid(id, "`method` is missing"),
    }
}

fn invalid(id: Option<RequestId>, message: &str) -> Decoded {
    Decoded::Refused(id, ErrorData::invalid_request(format!("invalid request: {message}"), None))
}

/// The id of a request, where it is one that may be used.
pub(super) fn request_id(value: &Value) -> Option<RequestId> {
    RequestId::deserialize(value).ok()
}
