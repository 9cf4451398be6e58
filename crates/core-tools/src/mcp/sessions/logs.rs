//! The tool that reads the log of the supervisor or of a session.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::supervisor::{decode, sessions_of_caller};
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::tool::Tool;
use crate::mcp::tool_error::ToolError;
use crate::sessions::{
    SessionLogLevel, SessionLogLines, SessionLogRequest, SessionService, SupervisorRequest,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::{Duration, Instant};

/// Lines of a log.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadSessionLogs {
    /// The most lines to return, the newest. 20 by default.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "twenty")]
    lines: usize,
    /// The earliest time: how long ago (`90s`, `10m`, `2h`, `1d`), or a time in UTC.
    since: Option<String>,
    /// The lowest level of the supervisor's own lines. A session's output has no levels.
    level: Option<SessionLogLevel>,
    /// The id of the session whose output is read. By default the supervisor's own log is.
    session: Option<String>,
    /// True waits for lines that are written from now on, for about ten seconds. False by default.
    #[serde(default)]
    follow: bool,
    /// The cursor of an earlier answer, to go on from there.
    cursor: Option<u64>,
}

fn twenty() -> usize {
    20
}

// Answers with text: lines as a structured object would be sent twice to a client that shows both.
pub(super) fn logs(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "logs",
        "Session logs",
        "Reads the last lines that an agent's session printed, or those of the supervisor that started it. Use it to see \
         what an agent does or why it stopped; it does not read the application's logs. Returns the number of lines, a \
         cursor to go on from, and the lines with their times.",
        move |input: ReadSessionLogs, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            async move {
                let mut request = SessionLogRequest::new(input.lines);
                request.since = input.since;
                request.level = input.level;
                request.session = input.session;
                request.cursor = input.cursor;
                let page: SessionLogLines = match input.follow {
                    false => decode(sessions.ask(SupervisorRequest::Logs(request)).await?)?,
                    true => follow(&sessions, request, &context).await?,
                };
                let header =
                    format!("{} of {} lines; cursor {}", page.lines.len(), page.total_available, page.cursor);
                Ok(Answer::text(std::iter::once(header).chain(page.lines).collect::<Vec<_>>().join("\n")))
            }
        },
    );
    tool.unmetered()
}

/// The longest time for which a call follows a log whose lines are sent as progress.
const WITH_PROGRESS: Duration = Duration::from_secs(60);
/// The longest time if they are not sent: the caller sees nothing until the call ends.
const WITHOUT_PROGRESS: Duration = Duration::from_secs(10);
/// The longest that one question to the supervisor waits, so that its connection is free from time to time.
const WAIT_AT_A_TIME: Duration = Duration::from_secs(2);

/// Waits for new lines. If the client asked for progress, each is sent as it comes, until there are as many as were asked
/// for or the time is over; else the call ends with the first.
async fn follow(
    sessions: &SessionService,
    mut request: SessionLogRequest,
    context: &CallContext,
) -> Result<SessionLogLines, ToolError> {
    let sends_progress = context.progress.is_requested();
    let deadline = Instant::now() + if sends_progress { WITH_PROGRESS } else { WITHOUT_PROGRESS };
    let max_lines = request.lines;
    if request.cursor.is_none() {
        let now: SessionLogLines = decode(sessions.ask(SupervisorRequest::Logs(request.clone())).await?)?;
        // Without a cursor, lines that were written before the call would count as new.
        request.cursor = Some(now.cursor);
    }
    let mut all = SessionLogLines::default();
    all.cursor = request.cursor.unwrap_or_default();
    loop {
        let wait = deadline.saturating_duration_since(Instant::now()).min(WAIT_AT_A_TIME);
        request.wait_ms = u64::try_from(wait.as_millis()).unwrap_or_default();
        request.lines = max_lines - all.lines.len();
        let page: SessionLogLines = tokio::select! {
            page = sessions.ask(SupervisorRequest::Logs(request.clone())) => decode(page?)?,
            // The lines that were received up to the cancellation are still an answer.
            () = context.cancel.cancelled() => return Ok(all),
        };
        page.lines.iter().for_each(|line| context.progress.append_line(line));
        request.cursor = Some(page.cursor);
        all.cursor = page.cursor;
        all.total_available += page.lines.len() as u64;
        let has_new_lines = !page.lines.is_empty();
        all.lines.extend(page.lines);
        if all.lines.len() >= max_lines || Instant::now() >= deadline || (has_new_lines && !sends_progress) {
            return Ok(all);
        }
    }
}
