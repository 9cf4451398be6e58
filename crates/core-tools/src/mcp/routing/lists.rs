//! The lists of what runs, with that on other machines, and the ids of sessions there.

use super::places::{RoutedTool, machine_of_id};
use super::routes::CallRoutes;
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::forwarding::ForwardedCall;
use crate::mcp::tool_error::ToolError;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use std::time::Duration;

/// The tool that lists background commands.
const LIST_COMMANDS: &str = "list_commands";
/// The time that a machine has for its list.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The tool that lists sessions.
const LIST_SESSIONS: &str = "list_sessions";
/// The tools that start sessions, and those whose answers repeat the id of one.
const ANSWERS_SESSION_ID: [&str; 4] = ["new_session", "run_agent_command", "send_message", "end_session"];
/// The member that is the id of a session.
const SESSION_ID: &str = "session_id";

impl RoutedTool {
    /// Returns true if the tool lists what runs, on all machines.
    pub(super) fn lists_all_machines(&self) -> bool {
        [LIST_COMMANDS, LIST_SESSIONS].contains(&self.name)
    }

    /// Writes the name of a machine before the ids of sessions in an answer from there, so that an id alone says where its
    /// session runs.
    pub(super) fn with_machine(&self, machine: &str, answer: Answer) -> Answer {
        if answer.is_failed() {
            return answer;
        }
        match self.name {
            LIST_SESSIONS => answer.with_text(|text| {
                let mut lines = text.lines();
                let count = lines.next().unwrap_or_default().to_owned();
                std::iter::once(count)
                    .chain(lines.map(|line| session_line(machine, line)))
                    .collect::<Vec<_>>()
                    .join("\n")
            }),
            name if ANSWERS_SESSION_ID.contains(&name) => answer
                .with_text(|text| lines_with_id(machine, text))
                .with_object(|object| add_machine(machine, object)),
            _ => answer,
        }
    }

    /// Adds a list from another machine, the one of this index, to the list of this one. A command whose id is none of that
    /// machine is left out: the server there is not believed.
    fn add(&self, list: Answer, machine: usize, other: &Answer) -> Answer {
        match self.name {
            LIST_COMMANDS => list.with_object(|object| {
                let more =
                    other.as_structured().and_then(|other| other.get("commands")).and_then(Value::as_array);
                let is_there = |command: &&Value| {
                    let id = command.get("id").and_then(Value::as_u64);
                    id.is_some_and(|id| machine_of_id(id) == Some(machine))
                };
                if let Some(Value::Array(commands)) = object.get_mut("commands") {
                    commands.extend(more.into_iter().flatten().filter(is_there).cloned());
                }
            }),
            _ => list.with_text(|text| {
                let other = other.to_text();
                let lines: Vec<&str> = text.lines().skip(1).chain(other.lines().skip(1)).collect();
                std::iter::once(format!("{} sessions", lines.len()))
                    .chain(lines.iter().map(|line| (*line).to_owned()))
                    .collect::<Vec<_>>()
                    .join("\n")
            }),
        }
    }
}

/// Adds the lists of the machines that the caller uses to `here`, the list of this one. All machines are asked at once. A
/// machine that gives none in time is named in the answer.
pub(super) async fn list_all(
    routes: CallRoutes,
    tool: RoutedTool,
    here: Result<Answer, ToolError>,
    (arguments, context): (Map<String, Value>, CallContext),
) -> Result<Answer, ToolError> {
    let mut list = here?;
    let asked = (routes.in_use)(&context).into_iter().map(|machine| {
        let call = ForwardedCall { tool: tool.name, arguments: arguments.clone(), context: context.clone() };
        let answered = tokio::time::timeout(LIST_TIMEOUT, (routes.route)(machine, call));
        async move { (machine, answered.await) }
    });
    for (machine, answered) in join_all(asked).await {
        let name = routes.name(machine);
        let Ok(answered) = answered else {
            let seconds = LIST_TIMEOUT.as_secs();
            list = list.then(format!("\n[what runs on `{name}` is missing: no answer in {seconds} s]"));
            continue;
        };
        let failed = match answered {
            Ok(other) if !other.is_failed() => {
                list = tool.add(list, machine, &tool.with_machine(name, other));
                continue;
            }
            Ok(failed) => failed.to_text(),
            Err(error) => error.message().to_owned(),
        };
        list = list.then(format!("\n[what runs on `{name}` is missing: {failed}]"));
    }
    Ok(list)
}

/// Writes the machine before the id in the object of a session.
fn add_machine(machine: &str, object: &mut Value) {
    if let Some(Value::String(id)) = object.get_mut(SESSION_ID) {
        *id = format!("{machine}:{id}");
    }
}

/// Returns a line of the list with the machine before the id. A line that is no object stays as it is.
fn session_line(machine: &str, line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(mut session) => {
            add_machine(machine, &mut session);
            session.to_string()
        }
        Err(_) => line.to_owned(),
    }
}

/// Returns the lines of an answer, in which one says the id of the session.
fn lines_with_id(machine: &str, text: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some((SESSION_ID, id)) => format!("{SESSION_ID}: {machine}:{id}"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::remote_effects::RemoteEffects;
    use process_runner::CancellationToken;
    use role_policy::Caller;

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_does_not_answer_holds_up_no_list_of_another() {
        let machines = ["hangs", "hangs-too", "box"].map(|name| (name.to_owned(), RemoteEffects::default()));
        let route = |machine, _: ForwardedCall| async move {
            if machine < 2 {
                std::future::pending::<()>().await;
            }
            Ok(Answer::text("1 sessions\n{\"session_id\":\"there\"}"))
        };
        let routes = CallRoutes::new(machines, route, |_| vec![0, 1, 2]);
        let tool = RoutedTool { name: LIST_SESSIONS, toolset: "sessions", effects: &[] };
        let context = CallContext::new(Caller::new("ada"), CancellationToken::new());
        let here = Ok(Answer::text("1 sessions\n{\"session_id\":\"here\"}"));
        let start = tokio::time::Instant::now();
        let list = list_all(routes, tool, here, (Map::new(), context)).await.unwrap().to_text();
        assert_eq!(start.elapsed().as_secs(), LIST_TIMEOUT.as_secs());
        for part in ["2 sessions", "here", "box:there", "`hangs` is missing", "`hangs-too` is missing"] {
            assert!(list.contains(part), "{part}: {list}");
        }
    }
}
