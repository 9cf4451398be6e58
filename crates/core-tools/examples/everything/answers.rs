//! Tools with every kind of answer: texts, pictures, sounds, resources, errors, progress and log messages.

use crate::NoInput;
use core_tools::mcp::{Answer, AnswerMedia, CallContext, LogLevel, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A picture of one red point.
pub(crate) const RED_POINT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A sound without a sample.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const PAUSE: Duration = Duration::from_millis(50);

/// A picture of one red point.
pub(crate) fn red_point() -> AnswerMedia {
    AnswerMedia::Image { data: RED_POINT.to_owned(), mime_type: "image/png".to_owned() }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Route {
    /// The region that answers. Clients send it as the header Mcp-Param-Region as well.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

pub(crate) fn tools() -> Vec<Tool> {
    let mut tools = content();
    tools.extend(reports());
    tools
}

fn content() -> Vec<Tool> {
    let text = "This is a simple text response for testing.";
    vec![
        Tool::new("test_simple_text", "Text", "Answers with a text.", move |_: NoInput, _| async move {
            Ok(Answer::text(text))
        }),
        Tool::new("test_image_content", "Picture", "Answers with a picture.", |_: NoInput, _| async {
            Ok(Answer::default().with_media(Some(red_point())))
        }),
        Tool::new("test_audio_content", "Sound", "Answers with a sound.", |_: NoInput, _| async {
            let sound = AnswerMedia::Audio { data: SILENCE.to_owned(), mime_type: "audio/wav".to_owned() };
            Ok(Answer::default().with_media(Some(sound)))
        }),
        Tool::new("test_embedded_resource", "Resource", "Answers with a resource.", |_: NoInput, _| async {
            Ok(Answer::default().with_media(Some(AnswerMedia::Resource {
                uri: "test://embedded-resource".to_owned(),
                mime_type: "text/plain".to_owned(),
                text: "This is an embedded resource content.".to_owned(),
            })))
        }),
        Tool::new(
            "test_multiple_content_types",
            "Several kinds",
            "Answers with a text, a picture and a resource.",
            |_: NoInput, _| async {
                Ok(Answer::media(red_point(), "Multiple content types test:").with_media(Some(
                    AnswerMedia::Resource {
                        uri: "test://mixed-content-resource".to_owned(),
                        mime_type: "application/json".to_owned(),
                        text: json!({"test": "data", "value": 123}).to_string(),
                    },
                )))
            },
        ),
        Tool::new("test_error_handling", "Error", "Fails.", |_: NoInput, _| async {
            Err(ToolError::new("This tool intentionally returns an error for testing"))
        }),
        Tool::new(
            "test_header_parameter",
            "Header",
            "Takes a parameter that is a header as well.",
            |input: Route, _| async move { Ok(Answer::text(format!("region: {}", input.region))) },
        ),
        Tool::with_schema(
            "json_schema_2020_12_tool",
            "Schema",
            "Tool with JSON Schema 2020-12 features",
            contact_schema(),
            |input: Map<String, Value>, _| async move { Ok(Answer::text(Value::Object(input).to_string())) },
        ),
    ]
}

/// A schema with the parts of JSON Schema that Rust types do not have.
fn contact_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn reports() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_tool_with_progress",
            "Progress",
            "Reports its progress in three steps.",
            |_: NoInput, context: CallContext| async move {
                for done in [0.0, 50.0, 100.0] {
                    context.progress.step(done, Some(100.0), None);
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(Answer::text("done, with progress"))
            },
        ),
        Tool::new(
            "test_tool_with_logging",
            "Log",
            "Sends three log messages.",
            |_: NoInput, context: CallContext| async move {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    context.log.log(LogLevel::Info, message);
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(Answer::text("done, with log messages"))
            },
        ),
        Tool::new(
            "test_logging_tool",
            "One message",
            "Sends one log message, to a client that wants it.",
            |_: NoInput, context: CallContext| async move {
                context.log.log(LogLevel::Info, json!({"event": "called"}));
                Ok(Answer::text("logged"))
            },
        ),
        Tool::new(
            "test_reconnection",
            "Slow answer",
            "Answers after a moment, for a client that connects again meanwhile.",
            |_: NoInput, _| async {
                tokio::time::sleep(PAUSE * 2).await;
                Ok(Answer::text("Reconnection test completed"))
            },
        ),
    ]
}
