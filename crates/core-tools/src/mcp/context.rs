//! The context tool.

use super::answer::Answer;
use super::call_context::CallContext;
use super::role_context;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::toolset::Toolset;
use crate::context::{self, CompileContext, CompiledContext, WorkspaceCompiler};
use context_compiler::{ContextRequestField, ManifestSectionEntry};
use role_policy::Effect;
use serde_json::{Value, json};

impl From<context::Error> for ToolError {
    fn from(error: context::Error) -> Self {
        use context_compiler::Error::InvalidRequest;
        let context::Error::Compile(InvalidRequest { field, reason }) = &error else {
            return Self::from_error(&error);
        };
        // The tool has other names for these fields.
        match field {
            ContextRequestField::Plan => Self::new(format!("`plan_path` {reason}")),
            ContextRequestField::BudgetTokens => Self::new(format!("`budget_tokens` {reason}")),
            _ => Self::from_error(&error),
        }
    }
}

/// Returns the toolset `context` over the primary root of the workspace of `compiler`.
pub fn toolset(compiler: &WorkspaceCompiler) -> Toolset {
    Toolset::new("context", [compile_context(compiler)])
        .prompts([role_context::prompt()])
        .resources(role_context::resources())
}

// The policy does not judge `plan_path` as a path argument: one that is left out would be judged as the root. Every file is
// judged where it is opened.
fn compile_context(compiler: &WorkspaceCompiler) -> Tool {
    let compiler = compiler.clone();
    Tool::new(
        "compile_context",
        "Compile the context",
        "Compiles what one needs to know before working on a task: the project's plans and conventions, the uncommitted \
         changes, and the code that the task is about, as one document in a token budget. Use it at the beginning of work, \
         or to hand work to another agent; to look at single files read them instead. Returns a stable part, a part that \
         changes with the work tree, and a last line of JSON with the tokens used.",
        move |input: CompileContext, context: CallContext| {
            let compiler = compiler.clone();
            async move {
                let limited = match context.scope.reaches_all_paths() {
                    true => None,
                    false => Some(context.within(compiler.workspace())?),
                };
                let request = input.to_request(compiler.select_role(context.caller.roles()));
                let compiled =
                    compiler.compile(request, input.since.as_deref(), limited, &context.cancel).await?;
                Ok(answer(compiled, input.manifest))
            }
        },
    )
    .runs_programs()
    .effects(&[Effect::Role("role")])
}

/// Returns the answer: each segment as a block of its own, so that a client can cache the first, and then facts about them
/// as JSON, with the manifest of the sections if the caller asked for it. There is no structured content, because a client that shows structured content does not show the blocks.
fn answer(compiled: CompiledContext, with_manifest: bool) -> Answer {
    let CompiledContext { prefix, tail, manifest, .. } = compiled;
    let mut facts = json!({
        "prefix_hash": manifest.prefix_hash,
        "cache_hit": manifest.cache_hit,
        "tokens": manifest.tokens,
        "budget": manifest.budget,
        "counter": manifest.counter,
        "trimmed": manifest.sections.iter().filter(|section| section.truncated).count(),
    });
    if let Some(facts) = facts.as_object_mut() {
        if !manifest.diagnostics.is_empty() {
            facts.insert("notes".to_owned(), json!(manifest.diagnostics));
        }
        if let Some(unused) = &manifest.unused {
            facts.insert("unused".to_owned(), json!(unused));
        }
        if with_manifest {
            let section = |section: &ManifestSectionEntry| {
                json!({
                    "path": section.path,
                    "half": section.segment,
                    "detail": section.level,
                    "tokens": section.tokens,
                    "sha256": section.sha256,
                    "why": section.why,
                })
            };
            let sections: Vec<Value> = manifest.sections.iter().map(section).collect();
            facts.insert("sections".to_owned(), sections.into());
            facts.insert("left_out".to_owned(), json!(manifest.left_out));
        }
    }
    let first = match manifest.cache_hit {
        true => format!("[prefix unchanged: {}]", manifest.prefix_hash),
        false => prefix,
    };
    Answer::text(first).then(tail).then(facts.to_string())
}
