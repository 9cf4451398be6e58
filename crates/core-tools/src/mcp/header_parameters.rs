//! Parameters of tools that are HTTP headers as well (`x-mcp-header`), so that what stands between client and server can
//! route by them: the header and the argument must be equal.
//!
//! rmcp would compare them before it is known who calls, so that a refusal would say which tools exist. They are compared
//! here, once the caller sees the tool.

use super::schema::JsonSchemaObject;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value};

/// The key of a property that names its header.
const ANNOTATION: &str = "x-mcp-header";

/// Compares the headers of a request with its arguments.
///
/// # Errors
/// The first header that is missing, broken, or unequal to its argument.
pub(super) fn check_headers(
    schema: &JsonSchemaObject,
    arguments: &Map<String, Value>,
    headers: &HeaderMap,
) -> Result<(), String> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
    for (name, property) in properties {
        let Some(suffix) = property.get(ANNOTATION).and_then(Value::as_str) else { continue };
        let header = format!("Mcp-Param-{suffix}");
        // Blanks around a field value are not a part of it (RFC 9110, section 5.5).
        let given = headers.get(&header).map(|value| value.to_str().map(str::trim));
        // A header cannot carry null, so that null counts as an argument that was left out.
        let argument = arguments.get(name).filter(|value| !value.is_null()).map(text_of);
        match (given, argument) {
            (None, None) => {}
            (None, Some(_)) => {
                return Err(format!("the header {header} is missing: `{name}` is in the body"));
            }
            (Some(_), None) => return Err(format!("the header {header} is there, and `{name}` is not")),
            (Some(given), Some(argument)) => {
                let decoded = given.ok().and_then(decoded);
                if decoded.as_deref() != Some(&argument) {
                    return Err(format!("the header {header} is not equal to `{name}` in the body"));
                }
            }
        }
    }
    Ok(())
}

/// Returns an argument as a header has it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the value of a header: `=?base64?…?=` has it in base64, and anything else is the value itself.
fn decoded(value: &str) -> Option<String> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(value.to_owned());
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(arguments: &Value, header: Option<&str>) -> bool {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "other": {"type": "string"},
        }});
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert("mcp-param-region", header.parse().unwrap());
        }
        check_headers(schema.as_object().unwrap(), arguments.as_object().unwrap(), &headers).is_ok()
    }

    #[test]
    fn a_header_must_be_there_and_equal_its_argument() {
        for (arguments, header, is_right) in [
            (json!({"region": "Hello"}), Some("Hello"), true),
            (json!({"region": "Hello"}), Some("  Hello "), true),
            (json!({"region": "Hello"}), Some("=?base64?SGVsbG8=?="), true),
            (json!({"region": "Hello"}), Some("=?base64?SGVsbG8?="), false),
            (json!({"region": "Hello"}), Some("=?base64?SGVs!!!bG8=?="), false),
            (json!({"region": "SGVsbG8="}), Some("SGVsbG8="), true),
            (json!({"region": "=?base64?SGVsbG8="}), Some("=?base64?SGVsbG8="), true),
            (json!({"region": "Hello"}), Some("hello"), false),
            (json!({"region": "Hello"}), None, false),
            (json!({"other": "Hello"}), None, true),
            (json!({"region": null}), None, true),
            (json!({}), Some("Hello"), false),
            (json!({"region": 5}), Some("5"), true),
        ] {
            assert_eq!(check(&arguments, header), is_right, "{arguments} {header:?}");
        }
    }
}
