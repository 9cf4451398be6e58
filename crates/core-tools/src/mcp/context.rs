//! The context tool.

use super::answer::{Answer, ToolError};
use super::host::Context;
use super::tool::{Tool, Toolset};
use crate::context::{self, CompileContext, Compiled, Documents};
use role_policy::Effect;
use serde_json::json;

impl From<context::Error> for ToolError {
    fn from(error: context::Error) -> Self {
        use context_compiler::Error::Argument;
        // As the tool calls it.
        let name = match &error {
            context::Error::Compile(Argument { name: "plan", .. }) => "plan_path",
            context::Error::Compile(Argument { name: "budget", .. }) => "budget_tokens",
            _ => return Self::from_error(&error),
        };
        let context::Error::Compile(Argument { reason, .. }) = error else { return Self::from_error(&error) };
        Self::new(format!("`{name}` {reason}"))
    }
}

/// The toolset `context`, over the primary root of `documents`.
pub fn toolset(documents: &Documents) -> Toolset {
    Toolset { name: "context", tools: vec![compile_context(documents)] }
}

// `plan_path` left out is no path, where a path that is left out would be judged as the root; and every file is judged
// where it is opened.
fn compile_context(documents: &Documents) -> Tool {
    let documents = documents.clone();
    Tool::new(
        "compile_context",
        "Context",
        "Plans, rules, changes and code for a role, in a token budget.",
        move |input: CompileContext, context: Context| {
            let documents = documents.clone();
            async move {
                let limited = match context.scope.reaches_all_paths() {
                    true => None,
                    false => Some(context.within(documents.workspace())?),
                };
                let request = input.to_request(documents.role_of(context.caller.roles()));
                Ok(answer(
                    documents.compile(request, input.since.as_deref(), limited, &context.cancel).await?,
                ))
            }
        },
    )
    .runs_programs()
    .effects(&[Effect::Role("role")])
}

/// The halves of the document, each a block of its own so that a client can cache the first, and then what there is
/// to know about them: a client that shows structured content shows nothing else, so there is none.
fn answer(compiled: Compiled) -> Answer {
    let Compiled { prefix, tail, manifest } = compiled;
    let mut facts = json!({
        "prefix_hash": manifest.prefix_hash,
        "cache_hit": manifest.cache_hit,
        "tokens": manifest.tokens,
        "budget": manifest.budget,
        "counter": manifest.counter,
        "trimmed": manifest.sections.iter().filter(|section| section.truncated).count(),
    });
    if let (false, Some(facts)) = (manifest.diagnostics.is_empty(), facts.as_object_mut()) {
        facts.insert("notes".to_owned(), json!(manifest.diagnostics));
    }
    let first = match manifest.cache_hit {
        true => format!("[prefix unchanged: {}]", manifest.prefix_hash),
        false => prefix,
    };
    Answer::text(first).then(tail).then(facts.to_string())
}
