//! The tools that look at sessions and steer them.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::supervisor::{AnyObject, decode, sessions_of_caller};
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::tool::Tool;
use crate::sessions::{
    MessageDelivery, PauseChange, SessionEnded, SessionInfo, SessionList, SessionService, SupervisorRequest,
    SupervisorStatus,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The empty input of `status`, `pause` and `resume`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoParameters {}

/// A message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendMessage {
    /// Session
    session_id: String,
    /// Message
    text: String,
}

/// Which sessions.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListSessions {
    /// Also those that are over
    #[serde(default)]
    all: bool,
}

/// A session to end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndSession {
    /// Session
    session_id: String,
    /// Seconds before the kill; 5
    #[schemars(range(min = 0, max = 60))]
    grace: Option<u64>,
}

pub(super) fn status(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "status",
        "Session status",
        "Supervisor, sessions, why they stopped, what is next.",
        move |_: NoParameters, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            async move {
                Answer::structured(&decode::<SupervisorStatus>(
                    sessions.ask(SupervisorRequest::Status {}).await?,
                )?)
            }
        },
    );
    tool.answers::<AnyObject>()
}

pub(super) fn pause(sessions: &SessionService) -> Tool {
    pause_or_resume(sessions, ("pause", "Pause", "Resumes and restarts nothing by itself."), || {
        SupervisorRequest::Pause {}
    })
}

pub(super) fn resume(sessions: &SessionService) -> Tool {
    pause_or_resume(sessions, ("resume", "Resume", "Ends pause."), || SupervisorRequest::Resume {})
}

/// A tool that pauses or resumes the supervisor.
fn pause_or_resume(
    sessions: &SessionService,
    (name, title, description): (&'static str, &'static str, &'static str),
    request: fn() -> SupervisorRequest,
) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(name, title, description, move |_: NoParameters, context: CallContext| {
        let sessions = sessions_of_caller(&sessions, &context);
        async move { Answer::structured(&decode::<PauseChange>(sessions.ask(request()).await?)?) }
    });
    tool.adds().idempotent().answers::<AnyObject>()
}

pub(super) fn send_message(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "send_message",
        "Message a session",
        "By its input, or by resuming it.",
        move |input: SendMessage, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            async move {
                let request = SupervisorRequest::Send { session_id: input.session_id, text: input.text };
                let sent: MessageDelivery = decode(sessions.ask(request).await?)?;
                Answer::lines(&sent)
            }
        },
    );
    tool.adds().open_world()
}

pub(super) fn list_sessions(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    Tool::new(
        "list_sessions",
        "List sessions",
        "Sessions with state, role, process.",
        move |input: ListSessions, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            async move {
                let list: SessionList =
                    decode(sessions.ask(SupervisorRequest::List { all: input.all }).await?)?;
                let line = |session: &SessionInfo| serde_json::to_string(session).unwrap_or_default();
                let count = list.sessions.len();
                let lines =
                    std::iter::once(format!("{count} sessions")).chain(list.sessions.iter().map(line));
                Ok(Answer::text(lines.collect::<Vec<_>>().join("\n")))
            }
        },
    )
}

pub(super) fn end_session(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "end_session",
        "End a session",
        "Ends it with every process of it.",
        move |input: EndSession, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            async move {
                let grace_ms = input.grace.unwrap_or(5) * 1000;
                let request = SupervisorRequest::End { session_id: input.session_id, grace_ms };
                let ended: SessionEnded = decode(sessions.ask(request).await?)?;
                let has_survivors = !ended.left.is_empty();
                Ok(Answer::lines(&ended)?.failed_if(has_survivors))
            }
        },
    );
    tool.destroys().idempotent()
}
