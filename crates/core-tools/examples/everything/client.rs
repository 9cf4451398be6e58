//! Tools that ask the client: its user, its model, or for its roots.
#![allow(
    deprecated,
    reason = "SEP-2577 takes sampling and roots out of the protocol one day, and today's clients have them"
)]

use crate::NoInput;
use core_tools::mcp::{Answer, CallContext, ClientCapability, Tool, ToolError};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, Role,
    SamplingMessage, SamplingMessageContentBlock,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns a form with a message and the schema of its fields.
pub(crate) fn form(message: &str, schema: Value) -> Result<ElicitRequestParams, ToolError> {
    let schema = serde_json::from_value(schema).map_err(|error| ToolError::from_error(&error))?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: schema,
    })
}

/// Asks for one text, and returns the answer.
pub(crate) async fn ask_text(
    context: &CallContext,
    key: &str,
    message: &str,
    field: &str,
) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]});
    let result = elicit(context, key, message, schema).await?;
    let text = result.content.as_ref().and_then(|content| content.get(field)).and_then(Value::as_str);
    Ok(text.unwrap_or_default().to_owned())
}

pub(crate) async fn elicit(
    context: &CallContext,
    key: &str,
    message: &str,
    schema: Value,
) -> Result<ElicitResult, ToolError> {
    let asked = context.client.elicit(key, form(message, schema)?).await;
    asked.map_err(|error| ToolError::from_error(&error))
}

async fn sample(
    context: &CallContext,
    key: &str,
    prompt: &str,
    max_tokens: u32,
) -> Result<String, ToolError> {
    let message = SamplingMessage::new(Role::User, SamplingMessageContentBlock::text(prompt));
    let params = CreateMessageRequestParams::new(vec![message], max_tokens);
    let asked = context.client.sample(key, params).await;
    Ok(text_of(&asked.map_err(|error| ToolError::from_error(&error))?))
}

fn text_of(result: &CreateMessageResult) -> String {
    let blocks = result.message.content.iter();
    let texts = blocks.filter_map(SamplingMessageContentBlock::as_text).map(|text| text.text.as_str());
    texts.collect()
}

async fn roots(context: &CallContext, key: &str) -> Result<String, ToolError> {
    let listed = context.client.roots(key).await.map_err(|error| ToolError::from_error(&error))?;
    Ok(listed.roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(", "))
}

/// Writes the answer of a user as a text.
fn described(result: &ElicitResult) -> String {
    let action = serde_json::to_value(&result.action).unwrap_or_default();
    let content = serde_json::to_value(&result.content).unwrap_or_default();
    format!("action={}, content={content}", action.as_str().unwrap_or_default())
}

fn confirmation() -> Value {
    json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sampling {
    /// The prompt for the model.
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Elicitation {
    /// The message for the user.
    message: String,
}

pub(crate) fn tools() -> Vec<Tool> {
    let mut tools = single();
    tools.extend(forms());
    tools.extend(rounds());
    tools
}

/// Tools that ask one thing.
fn single() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_sampling",
            "Model",
            "Asks the model of the client.",
            |input: Sampling, context| async move {
                let answer = sample(&context, "sampling", &input.prompt, 100).await?;
                Ok(Answer::text(format!("LLM response: {answer}")))
            },
        ),
        Tool::new("test_elicitation", "User", "Asks the user.", |input: Elicitation, context| async move {
            let schema = json!({
                "type": "object",
                "properties": {
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                },
                "required": ["username", "email"],
            });
            let result = elicit(&context, "elicitation", &input.message, schema).await?;
            Ok(Answer::text(format!("User response: {}", described(&result))))
        }),
        Tool::new(
            "test_streaming_elicitation",
            "User, once",
            "Asks the user for a name.",
            |_: NoInput, context| async move {
                let name = ask_text(&context, "name", "What is your name?", "name").await?;
                Ok(Answer::text(format!("Hello, {name}!")))
            },
        ),
        Tool::new(
            "test_missing_capability",
            "Needs a model",
            "Needs a client with a model.",
            |_: NoInput, _| async { Ok(Answer::text("the client has a model")) },
        )
        .requires_client(&[ClientCapability::Sampling]),
        Tool::new(
            "test_input_required_result_elicitation",
            "Name",
            "Asks the user for a name.",
            |_: NoInput, context| async move {
                let name = ask_text(&context, "user_name", "What is your name?", "name").await?;
                Ok(Answer::text(format!("Hello, {name}!")))
            },
        ),
        Tool::new(
            "test_input_required_result_sampling",
            "Capital",
            "Asks the model of the client for a capital.",
            |_: NoInput, context| async move {
                let question = "What is the capital of France?";
                Ok(Answer::text(sample(&context, "capital_question", question, 100).await?))
            },
        ),
        Tool::new(
            "test_input_required_result_list_roots",
            "Roots",
            "Asks the client for its roots.",
            |_: NoInput, context| async move {
                Ok(Answer::text(format!("roots: {}", roots(&context, "client_roots").await?)))
            },
        ),
    ]
}

/// Tools with forms of every kind of field.
fn forms() -> Vec<Tool> {
    let all_defaults = || {
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Name", "default": "John Doe"},
                "age": {"type": "integer", "description": "Age", "default": 30},
                "score": {"type": "number", "description": "Score", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "description": "Verified", "default": true},
            },
            "required": [],
        })
    };
    let titled = |value: &str, title: &str| json!({"const": value, "title": title});
    let all_enums = move || {
        let values = ["option1", "option2", "option3"];
        let choices = json!([
            titled("value1", "First Option"),
            titled("value2", "Second Option"),
            titled("value3", "Third Option"),
        ]);
        json!({
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": values},
                "titledSingle": {"type": "string", "oneOf": choices},
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": values}},
                "titledMulti": {"type": "array", "items": {"anyOf": choices}},
            },
            "required": [],
        })
    };
    let completed =
        |result: &ElicitResult| Answer::text(format!("Elicitation completed: {}", described(result)));
    vec![
        Tool::new(
            "test_elicitation_sep1034_defaults",
            "Defaults",
            "Asks the user by a form with defaults.",
            move |_: NoInput, context| async move {
                let result = elicit(&context, "defaults", "Please check the values", all_defaults()).await?;
                Ok(completed(&result))
            },
        ),
        Tool::new(
            "test_elicitation_sep1330_enums",
            "Choices",
            "Asks the user by a form with every kind of choice.",
            move |_: NoInput, context| async move {
                let result = elicit(&context, "enums", "Please choose", all_enums()).await?;
                Ok(completed(&result))
            },
        ),
    ]
}

/// Tools that ask several things, at once or one after the other.
fn rounds() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_input_required_result_request_state",
            "Confirmation",
            "Asks the user for a confirmation.",
            |_: NoInput, context| async move {
                let result = elicit(&context, "confirm", "Please confirm", confirmation()).await?;
                Ok(Answer::text(format!("state-ok: {}", described(&result))))
            },
        ),
        Tool::new(
            "test_input_required_result_tampered_state",
            "Protected confirmation",
            "Asks the user for a confirmation that is not taken from a changed state.",
            |_: NoInput, context| async move {
                let result = elicit(&context, "confirm", "Please confirm", confirmation()).await?;
                Ok(Answer::text(described(&result)))
            },
        ),
        Tool::new(
            "test_input_required_result_multiple_inputs",
            "Three at once",
            "Asks the user, the model and for the roots at once.",
            |_: NoInput, context| async move {
                let (name, greeting, roots) = tokio::join!(
                    ask_text(&context, "user_name", "What is your name?", "name"),
                    sample(&context, "greeting", "Generate a greeting", 50),
                    roots(&context, "client_roots"),
                );
                Ok(Answer::text(format!("{} {} ({})", greeting?, name?, roots?)))
            },
        ),
        Tool::new(
            "test_input_required_result_multi_round",
            "Two rounds",
            "Asks the user twice.",
            |_: NoInput, context| async move {
                let name = ask_text(&context, "step1", "Step 1: What is your name?", "name").await?;
                let color =
                    ask_text(&context, "step2", "Step 2: What is your favorite color?", "color").await?;
                Ok(Answer::text(format!("{name} likes {color}")))
            },
        ),
        Tool::new(
            "test_input_required_result_capabilities",
            "What the client has",
            "Asks only what the client can be asked.",
            |_: NoInput, context| async move {
                let mut answers = Vec::new();
                if context.client.supports(ClientCapability::Elicitation) {
                    answers.push(ask_text(&context, "name", "What is your name?", "name").await?);
                }
                if context.client.supports(ClientCapability::Sampling) {
                    answers.push(sample(&context, "greeting", "Generate a greeting", 50).await?);
                }
                Ok(Answer::text(answers.join(", ")))
            },
        ),
    ]
}
