//! Suggestions of values for the arguments of prompts and the variables of resource templates.

use super::answer::Answer;
use super::call_context::CallContext;
use super::interned_name::interned;
use super::tool::Tool;
use super::tool_error::ToolError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The most values of one answer, as the protocol says.
pub(super) const MAX_VALUES: usize = 100;

type Suggest = dyn Fn(CompletionRequest, CallContext) -> BoxFuture<'static, Result<Vec<String>, ToolError>>
    + Send
    + Sync;

/// A request for suggestions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The text that the person has typed so far.
    pub value: String,
    /// The other arguments that are filled in already.
    pub arguments: BTreeMap<String, String>,
}

/// Suggests values for one argument. Cheap to clone.
#[derive(Clone)]
pub struct Completer(Arc<Suggest>);

impl Completer {
    /// Suggests by `suggest`, which runs as a call of the prompt or resource: at its limits, and masked. A client gets
    /// the first hundred values.
    pub fn new<F, R>(suggest: F) -> Self
    where
        F: Fn(CompletionRequest, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<String>, ToolError>> + Send + 'static,
    {
        Self(Arc::new(move |request, context| suggest(request, context).boxed()))
    }

    /// Suggests those of `values` that begin with what was typed.
    pub fn of_values<V: Into<String>>(values: impl IntoIterator<Item = V>) -> Self {
        let values: Arc<[String]> = values.into_iter().map(Into::into).collect();
        Self::new(move |request, _| {
            let matching = values.iter().filter(|value| value.starts_with(&request.value));
            std::future::ready(Ok(matching.cloned().collect()))
        })
    }

    pub(super) fn suggest(
        &self,
        request: CompletionRequest,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Vec<String>, ToolError>> {
        (self.0)(request, context)
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completer")
    }
}

/// The completers of a prompt or a resource template, by argument.
#[derive(Clone, Debug, Default)]
pub(super) struct Completions {
    completers: Vec<(&'static str, Completer)>,
    /// The tools that completers may call.
    used_tools: &'static [&'static str],
}

impl Completions {
    pub(super) fn add(&mut self, argument: &'static str, completer: Completer) {
        self.completers.push((argument, completer));
    }

    /// Lets the completers call these tools in the name of their caller.
    pub(super) fn use_tools(&mut self, tools: &'static [&'static str]) {
        self.used_tools = tools;
    }

    /// Returns the suggestions as a host runs them: a tool that only reads, with the name `mcp/completions/NAME`. None if
    /// there are no completers.
    pub(super) fn tool(&self, name: &str) -> Option<Tool> {
        if self.completers.is_empty() {
            return None;
        }
        let completers = self.clone();
        let tool = Tool::new(
            interned(format!("mcp/completions/{name}")),
            "Complete",
            "Suggests values for an argument.",
            move |input: CompletionInput, context: CallContext| {
                let completer = completers.get(&input.argument).cloned();
                async move {
                    let request = CompletionRequest { value: input.value, arguments: input.arguments };
                    let values = match completer {
                        Some(completer) => completer.suggest(request, context).await?,
                        None => Vec::new(),
                    };
                    // One more than are sent says that there are more.
                    let values: Vec<String> = values.into_iter().take(MAX_VALUES + 1).collect();
                    Answer::structured(&json!({ "values": values }))
                }
            },
        );
        Some(match self.used_tools {
            [] => tool,
            tools => tool.uses_tools(tools),
        })
    }

    fn get(&self, argument: &str) -> Option<&Completer> {
        self.completers.iter().find(|(name, _)| *name == argument).map(|(_, completer)| completer)
    }
}

/// The input of the suggestions for one argument.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompletionInput {
    /// The argument.
    argument: String,
    /// The text that was typed so far.
    value: String,
    /// The other arguments.
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}
