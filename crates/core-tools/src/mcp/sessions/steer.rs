//! The tools that look at sessions and steer them.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::resources::tell_of_changes;
use super::supervisor::{AnyObject, decode, sessions_of_caller};
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::tool::Tool;
use crate::sessions::{
    SessionEnded, SessionInfo, SessionList, SessionMessageDelivery, SessionService, SupervisorPauseChange,
    SupervisorRequest, SupervisorStatus,
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
    /// The id of the session.
    session_id: String,
    /// The message, as a user would type it.
    text: String,
}

/// Which sessions.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListSessions {
    /// True lists sessions that are over too. False by default.
    #[serde(default)]
    all: bool,
}

/// A session to end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndSession {
    /// The id of the session.
    session_id: String,
    /// The seconds that its processes have to end before they are killed. 5 by default.
    #[schemars(range(min = 0, max = 60))]
    grace: Option<u64>,
}

pub(super) fn status(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "status",
        "Session status",
        "Reports the supervisor of agents and its sessions: which run, why others stopped, and what happens next and when. \
         Use it before you start or steer agents; it says nothing about the repository. Returns one object, without the \
         output of the agents.",
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
    pause_or_resume(
        sessions,
        (
            "pause",
            "Pause the supervisor",
            "Keeps the supervisor from resuming and restarting agents until it is resumed. Use it before you change what the \
             agents work with. Agents that run go on; the answer says if anything changed.",
        ),
        || SupervisorRequest::Pause {},
    )
}

pub(super) fn resume(sessions: &SessionService) -> Tool {
    pause_or_resume(
        sessions,
        (
            "resume",
            "Resume the supervisor",
            "Lets the supervisor resume and restart agents again after a pause. Use it when what you changed is ready. The \
             answer says if anything changed.",
        ),
        || SupervisorRequest::Resume {},
    )
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
        async move { Answer::structured(&decode::<SupervisorPauseChange>(sessions.ask(request()).await?)?) }
    });
    tool.adds().idempotent().answers::<AnyObject>()
}

pub(super) fn send_message(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "send_message",
        "Message a session",
        "Sends a message to an agent's session, as its user would type it. An agent that runs reads it from its input; one \
         that has stopped is started again with it. Returns how it was delivered and to which process, and does not wait \
         for the agent's reply.",
        move |input: SendMessage, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            async move {
                let request = SupervisorRequest::Send { session_id: input.session_id, text: input.text };
                let sent: SessionMessageDelivery = decode(sessions.ask(request).await?)?;
                Answer::lines(&sent)
            }
        },
    );
    tool.adds().open_world()
}

pub(super) fn list_sessions(sessions: &SessionService) -> Tool {
    let (sessions, observed) = (sessions.clone(), sessions.clone());
    Tool::new(
        "list_sessions",
        "List sessions",
        "Lists the sessions of agents, one line of JSON each, with id, state, role, process and log. Use it to find the id of \
         a session that you did not start. By default those that are over are left out.",
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
    .sends_notices(move |notices| tell_of_changes(&observed, notices))
}

pub(super) fn end_session(sessions: &SessionService) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "end_session",
        "End a session",
        "Ends an agent's session with every process that belongs to it. Use it when the work is done or has gone wrong; what \
         the agent changed stays. Returns the state, and fails if a process could not be ended.",
        move |input: EndSession, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            async move {
                let grace_ms = input.grace.unwrap_or(5) * 1000;
                let request = SupervisorRequest::End { session_id: input.session_id, grace_ms };
                let ended: SessionEnded = decode(sessions.ask(request).await?)?;
                let has_survivors = !ended.left.is_empty();
                // A process that survived still uses files and ports, so the caller must notice.
                Ok(Answer::lines(&ended)?.failed_if(has_survivors))
            }
        },
    );
    tool.destroys().idempotent()
}
