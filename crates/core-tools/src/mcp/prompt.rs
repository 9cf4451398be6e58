//! Prompts: texts that a person picks in a client, which puts them into the conversation.

use super::answer::Answer;
use super::availability::Availability;
use super::call_context::CallContext;
use super::completion::Completer;
use super::offer_parts::OfferParts;
use super::prompt_message::PromptMessage;
use super::tool::Tool;
use super::tool_error::ToolError;
use role_policy::{Caller, Effect, Policy};
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
    pub(super) parts: OfferParts,
    /// True if it is offered once for each role that its caller may use.
    is_per_role: bool,
}

/// The argument that has the role of a prompt that is offered for each role.
pub(super) const ROLE_ARGUMENT: &str = "role";

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
        Self { parts: OfferParts::new(name, title, description, tool), is_per_role: false }
    }

    /// Offers the prompt once for each role that its caller may use, as `NAME_ROLE`, such as `work_as_dev`. The function
    /// gets the role as the argument `role`, which clients do not see. A policy judges the role as it judges the role in an
    /// argument of a tool.
    #[must_use]
    pub fn for_each_role(mut self) -> Self {
        self.parts = self.parts.effects(&[Effect::Role(ROLE_ARGUMENT)]);
        self.is_per_role = true;
        self
    }

    /// Suggests values for an argument by `completer`.
    #[must_use]
    pub fn completes(mut self, argument: &'static str, completer: Completer) -> Self {
        self.parts = self.parts.completes(argument, completer);
        self
    }

    /// Lets the function call these tools in the name of its caller, by [`CallContext::call_tool`]. The prompt is offered only
    /// to callers who see all of them, and each call is judged, limited and recorded on its own.
    #[must_use]
    pub fn uses_tools(mut self, tools: &'static [&'static str]) -> Self {
        self.parts = self.parts.uses_tools(tools);
        self
    }

    /// Offers the prompt only to callers who see all of these tools, for a prompt that speaks of tools and calls none.
    #[must_use]
    pub fn offered_with(mut self, tools: &'static [&'static str]) -> Self {
        self.parts = self.parts.offered_with(tools);
        self
    }

    /// Offers the prompt only while `availability` is on. Clients are told of each change.
    #[must_use]
    pub fn available_while(mut self, availability: &Availability) -> Self {
        self.parts = self.parts.available_while(availability);
        self
    }

    /// Returns the entries of a list for `caller`: one, or one for each role.
    pub(super) fn listed(&self, policy: &Policy, caller: &Caller) -> Vec<rmcp::model::Prompt> {
        let OfferParts { name, title, description, tool, .. } = &self.parts;
        let mut arguments = arguments_of(tool.input());
        if !self.is_per_role {
            return vec![rmcp::model::Prompt::new(*name, Some(*description), arguments).with_title(*title)];
        }
        arguments
            .iter_mut()
            .for_each(|arguments| arguments.retain(|argument| argument.name != ROLE_ARGUMENT));
        let entry = |role: &str| {
            let description = format!("{description} {}", policy.description(role));
            let name = self.name_for_role(role);
            rmcp::model::Prompt::new(name, Some(description.trim_end()), arguments.clone())
                .with_title(format!("{title} {role}"))
        };
        policy.roles_for(caller).map(entry).collect()
    }

    /// Returns the arguments that a name stands for, if this prompt is offered to `caller` by that name.
    pub(super) fn named_arguments(
        &self,
        policy: &Policy,
        caller: &Caller,
        name: &str,
    ) -> Option<Map<String, Value>> {
        if !self.is_per_role {
            return (self.parts.name == name).then(Map::new);
        }
        let role = policy.roles_for(caller).find(|role| self.name_for_role(role) == name)?;
        Some(Map::from_iter([(ROLE_ARGUMENT.to_owned(), role.into())]))
    }

    fn name_for_role(&self, role: &str) -> String {
        format!("{}_{role}", self.parts.name)
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
        let (policy, caller) = (Policy::allow_all(), Caller::new("orchestrator"));
        let listed = serde_json::to_value(prompt.listed(&policy, &caller)).unwrap();
        assert_eq!(
            listed[0]["arguments"],
            serde_json::json!([
                {"name": "path", "description": "The file to review.", "required": true},
                {"name": "focus", "description": "The part to look at.", "required": false},
            ])
        );
        assert_eq!(prompt.parts.tool.name(), "mcp/prompts/review");
    }

    #[test]
    fn a_prompt_for_each_role_is_offered_for_those_that_the_caller_may_use() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "only its schema is asked for")]
        struct Work {
            role: String,
            task: Option<String>,
        }
        let roles = "version = 1\n[roles.lead]\nallow = [\"*\"]\nmay_use = [\"dev\"]\n\
                     [roles.dev]\nallow = [\"*\"]\ndescription = \"Writes code.\"\n";
        let policy = Policy::load(roles, "roles.toml", &[]).unwrap().policy;
        let prompt = Prompt::new("work_as", "Work as", "Begins work.", |_: Work, _| async { Ok(Vec::new()) });
        let prompt = prompt.for_each_role();
        let names = |role: &str| {
            let listed = prompt.listed(&policy, &Caller::new(role));
            listed.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(names("lead"), ["work_as_lead", "work_as_dev"]);
        assert_eq!(names("dev"), ["work_as_dev"]);
        let entry = serde_json::to_value(&prompt.listed(&policy, &Caller::new("dev"))[0]).unwrap();
        assert_eq!(entry["title"], "Work as dev");
        assert_eq!(entry["description"], "Begins work. Writes code.");
        assert_eq!(entry["arguments"], serde_json::json!([{"name": "task", "required": false}]));
        let arguments = |role: &str, name: &str| prompt.named_arguments(&policy, &Caller::new(role), name);
        assert_eq!(arguments("lead", "work_as_dev").unwrap()["role"], "dev");
        assert_eq!(arguments("dev", "work_as_lead"), None);
        assert_eq!(arguments("dev", "work_as"), None);
    }
}
