//! What became of each call, for whoever keeps a record.

use super::json::{Json, Object};
use crate::Caller;
use std::io;
use std::time::Duration;

/// One `tools/call`, as far as it may be told: never a value of its arguments.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// The tool, as it was asked for. One that the server does not have may be any text.
    pub tool: &'a str,
    /// What was decided: `allowed`; `hidden`, by policy; `unknown`, not of the server; `refused`, with these
    /// arguments or at this moment; `invalid`, no call that could be judged.
    pub decision: &'static str,
    /// The rule that decided, or what stood in the way.
    pub rule: &'a str,
    /// Names and sizes of the arguments: `path:12c edits:2[] dry_run:bool`. A name that the tool's schema does
    /// not have is `(unknown)`, for it could hold anything.
    pub arguments: &'a str,
    /// Bytes of the arguments as JSON.
    pub bytes_in: usize,
}

/// How a call came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
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
pub struct Ended {
    /// How it came out.
    pub outcome: Outcome,
    /// Since it was judged; zero where it was not sent.
    pub duration: Duration,
    /// Bytes of the server's answer.
    pub bytes_out: usize,
}

/// Hears of every call. It is told while the session stands still, and so must not wait.
pub trait Observer: Send + Sync {
    /// An allowed call is about to be sent.
    ///
    /// # Errors
    /// The call may not run unrecorded, and cannot be recorded: it is not sent.
    fn starts(&self, call: &Observed<'_>) -> io::Result<()>;

    /// A call has ended, or was not sent.
    fn ended(&self, call: &Observed<'_>, end: &Ended);
}

impl Ended {
    pub(super) const NOT_RUN: Self =
        Self { outcome: Outcome::NotRun, duration: Duration::ZERO, bytes_out: 0 };

    pub(super) fn after(duration: Duration, outcome: Outcome, bytes_out: usize) -> Self {
        Self { outcome, duration, bytes_out }
    }
}

impl<'a> Observed<'a> {
    pub(super) fn new(
        caller: &'a Caller,
        tool: &'a str,
        (decision, rule): (&'static str, &'a str),
        (arguments, bytes_in): (&'a str, usize),
    ) -> Self {
        Self { caller, tool, decision, rule, arguments, bytes_in }
    }
}

/// The names and sizes of arguments of a tool with this definition, and their bytes.
pub(super) fn shape(arguments: Option<&Object<'_>>, definition: Option<&Object<'_>>) -> (String, usize) {
    /// Enough for any tool.
    const LONGEST: usize = 400;
    let Some(arguments) = arguments else { return (String::new(), 0) };
    let properties = definition
        .and_then(|definition| definition.get("inputSchema")?.as_object()?.get("properties")?.as_object());
    let mut shape = String::new();
    for (name, value) in arguments.members() {
        if shape.len() > LONGEST {
            shape.push_str(" …");
            break;
        }
        if !shape.is_empty() {
            shape.push(' ');
        }
        let is_known = properties.is_some_and(|properties| properties.get(name).is_some());
        shape.push_str(if is_known { name } else { "(unknown)" });
        shape.push(':');
        match value {
            Json::Null => shape.push_str("null"),
            Json::Bool(_) => shape.push_str("bool"),
            Json::Number(_) => shape.push_str("number"),
            Json::String(text) => shape.push_str(&format!("{}c", text.chars().count())),
            Json::Array(elements) => shape.push_str(&format!("{}[]", elements.len())),
            Json::Object(members) => shape.push_str(&format!("{}{{}}", members.names().count())),
        }
    }
    (shape, bytes(arguments))
}

/// Bytes of an object as JSON.
pub(super) fn bytes(object: &Object<'_>) -> usize {
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
        let (shape, _) = shape(arguments.as_object(), definition.as_object());
        assert_eq!(shape, "path:3c edits:2[] env:1{} (unknown):bool n:number x:null");
    }
}
