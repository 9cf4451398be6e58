//! The form that the definitions of the git tools have in common.

use crate::ci::Commands;
use crate::git::Git;
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::ci::command_scope;
use crate::mcp::tool::Tool;
use crate::mcp::tool_error::ToolError;
use role_policy::Effect;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

/// The effects of a tool that reads: any file of the repository may be shown.
pub(super) const READS_REPOSITORY: &[Effect] = &[Effect::Reads("repository_path")];
/// The effects of a tool that changes the repository or its files.
pub(super) const WRITES_REPOSITORY: &[Effect] = &[Effect::Writes("repository_path")];

/// Defines a tool that calls one function of the area, with the reach of its caller.
pub(super) fn tool<I, F, R>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    commands: &Commands,
    run: F,
) -> Tool
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Git, I, CancellationToken) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
{
    let commands = commands.clone();
    Tool::new(name, title, description, move |input: I, context: CallContext| {
        let git = command_scope(&commands, &context).map(|scope| Git::new(commands.narrowed(&scope)));
        async move { run(git?, input, context.cancel).await }
    })
    .runs_programs()
}
