//! Prompts: texts that a person picks in a client, which puts them into the conversation.

use super::answer::Answer;
use super::availability::Availability;
use super::call_context::CallContext;
use super::completion::{Completer, Completions};
use super::prompt_message::PromptMessage;
use super::tool::Tool;
use super::tool_error::ToolError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A prompt: its entry in a client's list, and the function that writes its messages.
///
/// A policy judges it as a tool that only reads, with the name `mcp/prompts/NAME` and the toolset that it is in. Its
/// messages are masked, bounded and recorded as the answer of a tool is.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    /// The prompt as a host runs it.
    pub(super) tool: Tool,
    pub(super) completions: Completions,
}

impl Prompt {
    /// A prompt whose arguments are the fields of `I`: each a text, with its doc comment as the description. A field
    /// that is an `Option` may be left out.
    pub fn new<I, F, R>(name: &'static str, title: &'static str, description: &'static str, write: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(I, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<PromptMessage>, ToolError>> + Send + 'static,
    {
        let write = Arc::new(write);
        let tool = Tool::new(
            super::interned_name::interned(format!("mcp/prompts/{name}")),
            title,
            description,
            move |input: I, context: CallContext| {
                let messages = write(input, context);
                async move { Ok(Answer::messages(messages.await?)) }
            },
        );
        Self { name, title, description, tool, completions: Completions::default() }
    }

    /// Suggests values for an argument by `completer`.
    #[must_use]
    pub fn completes(mut self, argument: &'static str, completer: Completer) -> Self {
        self.completions.add(argument, completer);
        self
    }

    /// Lets the function call these tools in the name of its caller, by [`CallContext::call_tool`]. The prompt is offered only
    /// to callers who see all of them, and each call is judged, limited and recorded on its own.
    #[must_use]
    pub fn uses_tools(mut self, tools: &'static [&'static str]) -> Self {
        self.tool = self.tool.uses_tools(tools);
        self.completions.use_tools(tools);
        self
    }

    /// Offers the prompt only while `availability` is on. Clients are told of each change.
    #[must_use]
    pub fn available_while(mut self, availability: &Availability) -> Self {
        self.tool = self.tool.available_while(availability);
        self
    }

    /// Returns the entry of a list.
    pub(super) fn listed(&self) -> rmcp::model::Prompt {
        let arguments = arguments_of(self.tool.input());
        rmcp::model::Prompt::new(self.name, Some(self.description), arguments).with_title(self.title)
    }
}

/// Returns the arguments that a schema describes, the required ones first.
fn arguments_of(schema: &Map<String, Value>) -> Option<Vec<rmcp::model::PromptArgument>> {
    let properties = schema.get("properties").and_then(Value::as_object)?;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut arguments: Vec<rmcp::model::PromptArgument> = properties
        .iter()
        .map(|(name, property)| {
            let argument =
                rmcp::model::PromptArgument::new(name).with_required(required.contains(&name.as_str()));
            match property.get("description").and_then(Value::as_str) {
                Some(description) => argument.with_description(description),
                None => argument,
            }
        })
        .collect();
    arguments.sort_by_key(|argument| argument.required != Some(true));
    (!arguments.is_empty()).then_some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its schema is asked for")]
    struct Arguments {
        /// The part to look at.
        focus: Option<String>,
        /// The file to review.
        path: String,
    }

    #[test]
    fn the_arguments_are_the_fields_of_the_input_and_the_required_ones_come_first() {
        let prompt = Prompt::new("review", "Review", "Reviews.", |_: Arguments, _| async { Ok(Vec::new()) });
        let listed = serde_json::to_value(prompt.listed()).unwrap();
        assert_eq!(
            listed["arguments"],
            serde_json::json!([
                {"name": "path", "description": "The file to review.", "required": true},
                {"name": "focus", "description": "The part to look at.", "required": false},
            ])
        );
        assert_eq!(prompt.tool.name(), "mcp/prompts/review");
    }
}
