//! The tools that look into the running application.

use super::answer::{Answer, ToolError};
use super::host::Context;
use super::tool::{Tool, Toolset};
use crate::logs::{self, GetLogs, LogEntry, Logs};
use crate::workspace::Workspace;
use std::sync::Arc;

impl From<logs::Error> for ToolError {
    fn from(error: logs::Error) -> Self {
        Self::from_error(&error)
    }
}

/// The toolset `introspection`, for what lies beneath the roots of `workspace`.
pub fn toolset(workspace: &Arc<Workspace>, logs: Logs) -> Toolset {
    Toolset { name: "introspection", tools: vec![get_logs(workspace, logs)] }
}

/// Answers with text: a page of entries as a structured object would be sent twice to who shows both.
// `source` may be a name, and left out it is what the settings say, so it is not judged as a path: every file is
// judged where it is opened.
fn get_logs(workspace: &Arc<Workspace>, logs: Logs) -> Tool {
    let workspace = Arc::clone(workspace);
    Tool::new(
        "get_logs",
        "Logs",
        "App log entries; also contains, until, exact.",
        move |query: GetLogs, context: Context| {
            let logs = context.within(&workspace).map(|workspace| logs.within(workspace));
            async move {
                let logs = logs?;
                let page = if query.follow {
                    let progress = context.progress.clone();
                    let mut each = |entry: &LogEntry| progress.add(&entry.to_text());
                    let heard: Option<&mut (dyn FnMut(&LogEntry) + Send)> =
                        if progress.is_heard() { Some(&mut each) } else { None };
                    logs.follow(&query, &context.cancel, heard).await?
                } else {
                    context.blocking(move |cancel| Ok(logs.read(&query, cancel)?)).await?
                };
                Ok(Answer::text(page.to_text()))
            }
        },
    )
}
