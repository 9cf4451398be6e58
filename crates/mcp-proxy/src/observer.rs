//! The calls of a session, for an audit.

use json_rpc::json::{Json, JsonObject};
use role_policy::Caller;
use std::io;
use std::time::Duration;

/// One `tools/call`, without the values of its arguments.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedCall<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The name that was asked for. If the server has no such tool, it may be any text.
    pub tool: &'a str,
    /// The decision about the call.
    pub decision: ProxyDecision,
    /// The rule that decided, or the obstacle, such as `limits`.
    pub rule: &'a str,
    /// Names and sizes of the arguments: `path:12c edits:2[] dry_run:bool`. A name that the tool's schema does
    /// not have is `(unknown)`, for it could hold anything.
    pub arguments: &'a str,
    /// The size of the arguments as JSON, in bytes.
    pub bytes_in: usize,
}

/// The decision about a call, made before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyDecision {
    /// The policy allows it.
    Allowed,
    /// The policy hides the tool from the caller.
    Hidden,
    /// The server has no such tool.
    Unknown,
    /// The policy refuses these arguments, or a limit refuses the call at this moment.
    Refused,
    /// The message is not a call that could be judged.
    Invalid,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedCallOutcome {
    /// The server has answered with a result.
    Ok,
    /// The server has answered with an error, or not at all; it may have run.
    Failed,
    /// It was not sent.
    NotRun,
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEnd {
    /// The outcome.
    pub outcome: ObservedCallOutcome,
    /// The time since it was judged; zero if it was not sent.
    pub duration: Duration,
    /// The size of the server's answer, in bytes.
    pub bytes_out: usize,
}

/// A receiver of every call of a session. The receiver is called while the lock of the session is held, and must not
/// block.
pub trait ProxyObserver: Send + Sync {
    /// An allowed call is about to be sent.
    ///
    /// # Errors
    /// The call cannot be recorded, and so is not sent.
    fn starts(&self, call: &ObservedCall<'_>) -> io::Result<()>;

    /// A call has ended, or was not sent.
    fn ended(&self, call: &ObservedCall<'_>, end: &CallEnd);
}

impl CallEnd {
    pub(super) const NOT_RUN: Self =
        Self { outcome: ObservedCallOutcome::NotRun, duration: Duration::ZERO, bytes_out: 0 };

    pub(super) fn after(duration: Duration, outcome: ObservedCallOutcome, bytes_out: usize) -> Self {
        Self { outcome, duration, bytes_out }
    }
}

impl<'a> ObservedCall<'a> {
    pub(super) fn new(
        caller: &'a Caller,
        tool: &'a str,
        decision: ProxyDecision,
        rule: &'a str,
        arguments: &'a ObservedArguments,
    ) -> Self {
        Self { caller, tool, decision, rule, arguments: &arguments.text, bytes_in: arguments.bytes }
    }
}

/// The names and sizes of a call's arguments.
#[derive(Debug, Default)]
pub(super) struct ObservedArguments {
    text: String,
    /// The size of the arguments as JSON.
    bytes: usize,
}

/// Summarizes the arguments of a tool with this definition. A name that its schema does not have is left out, for it
/// could be a secret.
pub(super) fn argument_summary(
    arguments: Option<&JsonObject<'_>>,
    definition: Option<&JsonObject<'_>>,
) -> ObservedArguments {
    /// The length after which a summary is cut, so that one call stays one readable line of an audit.
    const MAX_CHARS: usize = 400;
    let Some(arguments) = arguments else { return ObservedArguments::default() };
    let properties = definition
        .and_then(|definition| definition.get("inputSchema")?.as_object()?.get("properties")?.as_object());
    let mut summary = String::new();
    for (name, value) in arguments.members() {
        if summary.len() > MAX_CHARS {
            summary.push_str(" …");
            break;
        }
        if !summary.is_empty() {
            summary.push(' ');
        }
        let is_known = properties.is_some_and(|properties| properties.get(name).is_some());
        summary.push_str(if is_known { name } else { "(unknown)" });
        summary.push(':');
        match value {
            Json::Null => summary.push_str("null"),
            Json::Bool(_) => summary.push_str("bool"),
            Json::Number(_) => summary.push_str("number"),
            Json::String(text) => summary.push_str(&format!("{}c", text.chars().count())),
            Json::Array(elements) => summary.push_str(&format!("{}[]", elements.len())),
            Json::Object(members) => summary.push_str(&format!("{}{{}}", members.names().count())),
        }
    }
    ObservedArguments { text: summary, bytes: json_bytes(arguments) }
}

/// Returns the size of an object as JSON, in bytes.
pub(super) fn json_bytes(object: &JsonObject<'_>) -> usize {
    let mut written = Vec::new();
    object.write(&mut written);
    written.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_by_name_and_size_and_never_by_value() {
        let parse = |text: &str| Json::parse(text.as_bytes()).unwrap().into_owned();
        let arguments =
            parse(r#"{"path":"süß","edits":[1,2],"env":{"A":"b"},"hunter2":true,"n":7,"x":null}"#);
        let definition =
            parse(r#"{"inputSchema":{"properties":{"path":{},"edits":{},"env":{},"n":{},"x":{}}}}"#);
        let summary = argument_summary(arguments.as_object(), definition.as_object());
        assert_eq!(summary.text, "path:3c edits:2[] env:1{} (unknown):bool n:number x:null");
    }
}
