//! The tools that look into the running application.

use super::answer::Answer;
use super::answer_media::AnswerMedia;
use super::call_context::CallContext;
use super::task_use::TASK_AFTER;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::toolset::Toolset;
use crate::db::{self, Databases, DbBridge};
use crate::inspect::{self, InspectState, Inspector};
use crate::logs::{self, GetLogs, LogEntry, Logs};
use crate::trace::{CaptureTrace, Profiler};
use crate::workspace::Workspace;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use role_policy::Effect;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

impl From<logs::Error> for ToolError {
    fn from(error: logs::Error) -> Self {
        Self::from_error(&error)
    }
}

impl From<inspect::Error> for ToolError {
    fn from(error: inspect::Error) -> Self {
        Self::from_error(&error)
    }
}

/// The toolset `introspection`, over the roots of `workspace`.
pub fn toolset(
    workspace: &Arc<Workspace>,
    logs: Logs,
    databases: Databases,
    inspector: Inspector,
    traces: Profiler,
) -> Toolset {
    let tools = vec![
        inspect_state(workspace, inspector),
        db_bridge(workspace, databases),
        capture_trace(workspace, traces),
        get_logs(workspace, logs),
    ];
    Toolset::new("introspection", tools)
}

// Answers with text, as `get_logs`.
//
// A target may be a file, a process or a URL, so it is not judged as a path: every file is judged where it is opened,
// every process by the folder it runs in.
fn inspect_state(workspace: &Arc<Workspace>, inspector: Inspector) -> Tool {
    let workspace = Arc::clone(workspace);
    Tool::new(
        "inspect_state",
        "Read live state",
        "Reads variables of the running application from outside, without stopping it or running its code. Use it \
         to see the value that a process has now, where a log or the source does not show it. Works with Node.js, \
         Deno, Python, the JVM, Go's expvar and JSON state files. Returns the value as JSON, at most 5,000 values \
         and 40 KB; if the path leads nowhere, how far it led and which names are there.",
        move |request: InspectState, context: CallContext| {
            let inspector = context
                .within(&workspace)
                .map(|workspace| inspector.within(workspace).unrestricted(context.unrestricted));
            async move {
                let answered = inspector?.inspect(&request, &context.cancel).await?;
                let text = serde_json::to_string(&answered).map_err(|error| ToolError::from_error(&error))?;
                Ok(Answer::text(text).failed_if(answered.is_failed()))
            }
        },
    )
    .runs_programs()
    .checks_unrestricted()
}

/// The part of an answer that is in the listed schema.
#[derive(Serialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct DbBridgeAnswer {
    /// The rows of a query or of a plan, each an object with a member for each column.
    #[schemars(with = "Vec<()>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<()>,
}

// Which database is read is not judged as a path, as it may be a name: a file is judged where it is opened.
fn db_bridge(workspace: &Arc<Workspace>, databases: Databases) -> Tool {
    let workspace = Arc::clone(workspace);
    let tool = Tool::new(
        "db_bridge",
        "Query the database",
        "Queries, describes and changes the application's own SQL database: SQLite, PostgreSQL or MySQL. Use one query that \
         joins, groups and sorts instead of several, and `schema` first if the tables are unknown. Returns rows with their \
         columns, at most `limit` and about 40 KB. Only `seed` inserts, changes or deletes anything, in one transaction.",
        move |mut request: DbBridge, context: CallContext| {
            let databases = context.within(&workspace).map(|workspace| databases.within(workspace));
            async move {
                let max_ms = u64::try_from(context.max_timeout.as_millis()).unwrap_or(u64::MAX);
                request.timeout_ms = request.timeout_ms.map(|requested| requested.min(max_ms));
                match databases?.run(&request, &context.cancel).await {
                    Ok(answered) => Answer::structured(&answered),
                    Err(db::Error::Cancelled) => Err(ToolError::new("cancelled")),
                    Err(error) => {
                        let error = ToolError::from_error(&error).to_string();
                        Ok(Answer::structured(&json!({"error": error}))?.failed_if(true))
                    }
                }
            }
        },
    );
    tool.destroys().own_deadline().answers::<DbBridgeAnswer>().effects(&[Effect::Sql("action")])
}

// Answers with text: a page of entries as a structured object would be sent twice to a client that shows both.
//
// `source` may be a name, and left out it is what the settings say, so it is not judged as a path: every file is
// judged where it is opened.
fn get_logs(workspace: &Arc<Workspace>, logs: Logs) -> Tool {
    let workspace = Arc::clone(workspace);
    Tool::new(
        "get_logs",
        "Read logs",
        "Reads the application's log files: parsed entries with time, level, message and fields, the newest that \
         match, oldest first. Use it instead of searching the files: it knows JSON, logfmt, the formats of web \
         servers and loggers, and entries of several lines. An answer has at most about 36 KB, and says what was \
         left out and the cursor that continues.",
        move |query: GetLogs, context: CallContext| {
            let logs = context.within(&workspace).map(|workspace| logs.within(workspace));
            async move {
                let logs = logs?;
                let page = if query.follow {
                    let progress = context.progress.clone();
                    let mut send = |entry: &LogEntry| progress.append_line(&entry.to_text());
                    let on_entry: Option<&mut (dyn FnMut(&LogEntry) + Send)> =
                        if progress.is_requested() { Some(&mut send) } else { None };
                    logs.follow(&query, &context.cancel, on_entry).await?
                } else {
                    context.blocking(move |cancel| Ok(logs.read(&query, cancel)?)).await?
                };
                Ok(Answer::text(page.to_text()))
            }
        },
    )
}

// It runs profilers, so it is for callers that may run programs. It changes nothing that is there, and adds a file.
// Answers with text, as `get_logs`.
fn capture_trace(workspace: &Arc<Workspace>, traces: Profiler) -> Tool {
    let workspace = Arc::clone(workspace);
    let tool = Tool::new(
        "capture_trace",
        "Profile",
        "Profiles the running application without restarting it: which functions take its time, what takes its memory, or \
         which requests it makes. Use it to find what is slow while it is slow. Works with Node.js, Deno, Python, Go, the \
         JVM and native programs. Returns the functions with file, line and share, and the path of the whole profile.",
        move |request: CaptureTrace, context: CallContext| {
            let traces = context
                .within(&workspace)
                .map(|workspace| traces.within(workspace).unrestricted(context.unrestricted));
            async move {
                match traces?.capture(&request, &context.cancel).await {
                    Ok(captured) => {
                        let image = captured.image.map(|png| AnswerMedia::Image {
                            data: STANDARD.encode(png),
                            mime_type: "image/png".to_owned(),
                        });
                        Ok(json_text(&captured.profile)?.with_media(image))
                    }
                    Err(error) => Ok(json_text(&error.to_report())?.failed_if(true)),
                }
            }
        },
    );
    tool.adds().own_deadline().long_running(TASK_AFTER).runs_programs().checks_unrestricted()
}

fn json_text<T: Serialize>(value: &T) -> Result<Answer, ToolError> {
    Ok(Answer::text(serde_json::to_string(value).map_err(|error| ToolError::from_error(&error))?))
}
