//! One JSON-RPC message, read strictly and written again.

use super::error_code::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};
pub use super::id::Id;
use super::json::{Json, JsonObject, MAX_VALUES};
use super::message_outline::MessageOutline;
use std::borrow::Cow;
use std::fmt;

/// The largest message, in bytes, 16 MiB: as much as rmcp's servers take.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// The members of a message that mean something. One of these in another case is refused.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members of `params`, of any method, on which a decision or a translation depends.
const PARAMETERS: [&str; 9] =
    ["name", "arguments", "_meta", "cursor", "uri", "requestId", "notifications", "requestState", "level"];

/// The members of a result on which a decision or a translation depends.
const RESULTS: [&str; 7] =
    ["tools", "nextCursor", "capabilities", "instructions", "protocolVersion", "_meta", "cacheScope"];

/// The members of `_meta` on which a translation depends.
const META: [&str; 3] =
    ["progressToken", "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/subscriptionId"];

/// The kind of a message, with its id and method.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageKind {
    /// A request, whose sender waits for an answer.
    Request {
        /// The id that the answer must have.
        id: Id,
        /// The method to call.
        method: String,
    },
    /// A notification, which is not answered.
    Notification {
        /// The method, such as `notifications/progress`.
        method: String,
    },
    /// The answer to a request.
    Response {
        /// The id of the request.
        id: Id,
        /// True if it holds a result, false if it holds an error.
        succeeded: bool,
    },
}

/// A message: its kind, and all its members, including those that this crate does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// The kind of the message.
    pub kind: MessageKind,
    members: JsonObject<'a>,
}

/// The error for a line that is not a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InvalidMessage {
    /// The id under which the sender waits, if it could be found.
    pub id: Option<Id>,
    /// The JSON-RPC error code: -32700 if the line is not JSON, -32602 if the parameters are not an object, else
    /// -32600.
    pub code: i32,
    /// The problem, in words.
    pub problem: String,
    /// True if the sender waits for an answer.
    pub is_answered: bool,
}

impl<'a> Message<'a> {
    /// Parses one line, given without its end.
    ///
    /// # Errors
    ///
    /// The line is not exactly one request, notification or response of JSON-RPC 2.0, in JSON that all parsers read
    /// alike.
    pub fn parse(line: &'a [u8]) -> Result<Self, InvalidMessage> {
        Self::parse_within(line, MAX_VALUES).map(|(message, _)| message)
    }

    /// Parses one line as [`parse`](Self::parse) does, of at most `max_values` values, for senders whose messages could
    /// take the time of others. Returns also the number of values.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), or the message has more values.
    pub fn parse_within(line: &'a [u8], max_values: usize) -> Result<(Self, usize), InvalidMessage> {
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(InvalidMessage::unreadable(
                line,
                INVALID_REQUEST,
                format!("more than {MAX_MESSAGE_BYTES} bytes"),
            ));
        }
        let (json, values) = Json::parse_within(line, max_values)
            .map_err(|error| InvalidMessage::unreadable(line, PARSE_ERROR, error.to_string()))?;
        let members = match json {
            Json::Object(members) => members,
            // MCP has had no batches since its version 2025-06-18.
            Json::Array(_) => return Err(InvalidMessage::new(None, "batches are not taken")),
            _ => return Err(InvalidMessage::new(None, "a message is a JSON object")),
        };
        let kind = kind(&members)?;
        check_case_variants(&members, &kind)?;
        Ok((Self { kind, members }, values))
    }

    /// Creates a request.
    pub fn request(id: &Id, method: &'static str, params: JsonObject<'a>) -> Self {
        let kind = MessageKind::Request { id: id.clone(), method: method.to_owned() };
        Self::from_members(
            kind,
            [("method", Json::string(method)), ("params", Json::Object(params))],
            Some(id),
        )
    }

    /// Creates a notification.
    pub fn notification(method: &'static str, params: JsonObject<'a>) -> Self {
        let kind = MessageKind::Notification { method: method.to_owned() };
        Self::from_members(kind, [("method", Json::string(method)), ("params", Json::Object(params))], None)
    }

    /// Creates the response that carries `result`.
    pub fn result(id: &Id, result: JsonObject<'a>) -> Self {
        let kind = MessageKind::Response { id: id.clone(), succeeded: true };
        Self::from_members(kind, [("result", Json::Object(result))], Some(id))
    }

    /// Creates an error response; without an id, its id is `null`.
    pub fn error(id: Option<&Id>, code: i32, message: &str) -> Self {
        let kind = MessageKind::Response {
            // `kind` needs an id, and this one is never written: the line below replaces it with null.
            id: id.cloned().unwrap_or_else(|| Id::Text(String::new())),
            succeeded: false,
        };
        let error = [
            ("code", Json::Number(Cow::Owned(code.to_string()))),
            ("message", Json::String(Cow::Owned(message.to_owned()))),
        ];
        let error = Json::Object(error.into_iter().collect());
        let mut message = Self::from_members(kind, [("error", error)], id);
        if id.is_none() {
            // JSON-RPC 2.0 §5: null where the id could not be found.
            message.members.set("id", Json::Null);
        }
        message
    }

    fn from_members<const N: usize>(
        kind: MessageKind,
        members: [(&'static str, Json<'a>); N],
        id: Option<&Id>,
    ) -> Self {
        let head = [("jsonrpc", Json::string("2.0"))];
        let id = id.map(|id| ("id", id.to_json()));
        Self { kind, members: head.into_iter().chain(id).chain(members).collect() }
    }

    /// Returns the parameters, if there are any.
    pub fn params(&self) -> Option<&JsonObject<'a>> {
        self.members.get("params")?.as_object()
    }

    /// Returns the parameters to be changed; adds an empty object if there are none.
    pub fn params_mut(&mut self) -> &mut JsonObject<'a> {
        self.object_mut("params")
    }

    /// Returns the result, if there is one.
    pub fn result_object(&self) -> Option<&JsonObject<'a>> {
        self.members.get("result")?.as_object()
    }

    /// Returns the result to be changed; adds an empty object if there is none.
    pub fn result_mut(&mut self) -> &mut JsonObject<'a> {
        self.object_mut("result")
    }

    /// Returns the result to be changed, or `None` if there is none.
    pub fn result_mut_if_any(&mut self) -> Option<&mut JsonObject<'a>> {
        match self.members.get_mut("result") {
            Some(Json::Object(object)) => Some(object),
            _ => None,
        }
    }

    fn object_mut(&mut self, name: &'static str) -> &mut JsonObject<'a> {
        if self.members.get(name).and_then(Json::as_object).is_none() {
            self.members.set(name, Json::Object(JsonObject::default()));
        }
        match self.members.get_mut(name) {
            Some(Json::Object(object)) => object,
            _ => unreachable!("it was set the line before"),
        }
    }

    /// Returns the code and the message of an error response, or `None` for any other message.
    pub fn error_parts(&self) -> Option<(&str, &str)> {
        let error = self.members.get("error")?.as_object()?;
        match (error.get("code")?, error.get("message")?) {
            (Json::Number(code), Json::String(message)) => Some((code, message)),
            _ => None,
        }
    }

    /// Returns `_meta` of the parameters, if there is one.
    pub fn meta(&self) -> Option<&JsonObject<'a>> {
        self.params()?.get("_meta")?.as_object()
    }

    /// Returns true if the message is of protocol version 2026-07-28 or later, which each request states.
    pub fn is_modern(&self) -> bool {
        let version = self.meta().and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
        // Versions are dates, which compare as text.
        version.and_then(Json::as_str).is_some_and(|version| version >= "2026-07-28")
    }

    /// Replaces the id of a request or response. A notification has none.
    pub fn set_id(&mut self, new: &Id) {
        if let MessageKind::Request { id, .. } | MessageKind::Response { id, .. } = &mut self.kind {
            // In both places: `kind` is what this program reads, and the members are what it writes.
            id.clone_from(new);
            self.members.set("id", new.to_json());
        }
    }

    /// Copies what is borrowed, so that the message outlives the line it was read from.
    pub fn into_owned(self) -> Message<'static> {
        Message { kind: self.kind, members: self.members.into_owned() }
    }

    /// Writes the message anew, as one line with its end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        self.members.write(&mut line);
        line.push(b'\n');
        line
    }
}

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for InvalidMessage {}

impl InvalidMessage {
    /// The error for a line of more than [`MAX_MESSAGE_BYTES`], of which only the outline was read.
    pub fn too_large(outline: MessageOutline) -> Self {
        Self {
            is_answered: outline.is_answered(),
            id: outline.id,
            code: INVALID_REQUEST,
            problem: format!("a message of more than {MAX_MESSAGE_BYTES} bytes"),
        }
    }

    fn new(id: Option<Id>, problem: impl Into<String>) -> Self {
        Self { id, code: INVALID_REQUEST, problem: problem.into(), is_answered: true }
    }

    fn unreadable(line: &[u8], code: i32, problem: String) -> Self {
        let outline = super::message_outline::outline(line);
        Self { is_answered: outline.is_answered(), id: outline.id, code, problem }
    }
}

fn kind(members: &JsonObject<'_>) -> Result<MessageKind, InvalidMessage> {
    let id = members.get("id").and_then(Id::from_json);
    let invalid = |problem: String| Err(InvalidMessage::new(id.clone(), problem));
    // Before everything else: with `ID` beside `id` even the id of the answer would be in doubt.
    if let Some(variant) = members.case_variant_of(&ENVELOPE) {
        return invalid(format!("a member is called like `{variant}` in other letters"));
    }
    if members.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return invalid("`jsonrpc` must be \"2.0\"".to_owned());
    }
    let has = |name: &str| members.get(name).is_some();
    match (members.get("method"), &id) {
        (Some(_), _) if has("result") || has("error") => invalid("both a request and a response".to_owned()),
        (Some(Json::String(method)), id) => {
            if !matches!(members.get("params"), None | Some(Json::Object(_))) {
                let problem = "`params` must be an object".to_owned();
                return Err(InvalidMessage {
                    code: INVALID_PARAMS,
                    ..InvalidMessage::new(id.clone(), problem)
                });
            }
            let method = method.to_string();
            match id {
                Some(id) => Ok(MessageKind::Request { id: id.clone(), method }),
                // A notification has no `id` at all. One that is null or a fraction is a mistake, which is answered.
                None if has("id") => invalid("`id` must be a string or a whole number".to_owned()),
                None => Ok(MessageKind::Notification { method }),
            }
        }
        (Some(_), _) => invalid("`method` must be a string".to_owned()),
        (None, id) => {
            let problem = match (members.get("result"), members.get("error")) {
                (Some(_), Some(_)) => "both a result and an error",
                (None, None) => "neither a method nor a result nor an error",
                (Some(Json::Object(_)), None) => match id {
                    Some(id) => return Ok(MessageKind::Response { id: id.clone(), succeeded: true }),
                    None => "a response without the id of a request",
                },
                (Some(_), None) => "`result` must be an object",
                (None, Some(error)) => match (id, is_error(error)) {
                    (Some(id), true) => {
                        return Ok(MessageKind::Response { id: id.clone(), succeeded: false });
                    }
                    (_, false) => "`error` must have a whole `code` and a `message`",
                    (None, true) => "an error without the id of a request",
                },
            };
            // JSON-RPC 2.0 §5: a response is not answered.
            let is_answered = !has("result") && !has("error");
            Err(InvalidMessage { is_answered, ..InvalidMessage::new(id.clone(), problem) })
        }
    }
}

fn is_error(error: &Json<'_>) -> bool {
    let Some(error) = error.as_object() else { return false };
    let whole = matches!(error.get("code"), Some(Json::Number(code)) if code.parse::<i64>().is_ok());
    whole && error.get("message").and_then(Json::as_str).is_some()
}

/// Refuses names that another parser could take for the ones that are judged here.
fn check_case_variants(members: &JsonObject<'_>, kind: &MessageKind) -> Result<(), InvalidMessage> {
    let object = |name| members.get(name).and_then(Json::as_object);
    let (part, known, id) = match kind {
        MessageKind::Request { id, .. } => (object("params"), &PARAMETERS[..], Some(id)),
        MessageKind::Notification { .. } => (object("params"), &PARAMETERS[..], None),
        MessageKind::Response { id, .. } => (object("result"), &RESULTS[..], Some(id)),
    };
    let Some(part) = part else { return Ok(()) };
    let meta = part.get("_meta").and_then(Json::as_object).and_then(|meta| meta.case_variant_of(&META));
    match part.case_variant_of(known).or(meta) {
        None => Ok(()),
        Some(variant) => Err(InvalidMessage {
            is_answered: matches!(kind, MessageKind::Request { .. }),
            ..InvalidMessage::new(
                id.cloned(),
                format!("a member is called like `{variant}` in other letters"),
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(line: &str) -> InvalidMessage {
        Message::parse(line.as_bytes()).expect_err(line)
    }

    #[test]
    fn each_kind_is_told_from_its_members_alone() {
        for (line, kind) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
                MessageKind::Request { id: Id::Number("1".into()), method: "a".into() },
            ),
            (
                r#"{"method":"a","id":"x","params":{},"jsonrpc":"2.0"}"#,
                MessageKind::Request { id: Id::Text("x".into()), method: "a".into() },
            ),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, MessageKind::Notification { method: "a".into() }),
            (
                r#"{"jsonrpc":"2.0","id":99999999999999999999999,"result":{}}"#,
                MessageKind::Response { id: Id::Number("99999999999999999999999".into()), succeeded: true },
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}"#,
                MessageKind::Response { id: Id::Number("1".into()), succeeded: false },
            ),
        ] {
            assert_eq!(Message::parse(line.as_bytes()).expect(line).kind, kind, "{line}");
        }
    }

    #[test]
    fn what_is_not_exactly_one_message_is_refused() {
        for line in [
            r"[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#,
            "1",
            r#"{"id":1,"method":"a"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","paramſ":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"ProgressToken":1}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"Tools":[]}}"#,
        ] {
            problem(line);
        }
    }

    #[test]
    fn the_sender_of_an_unreadable_request_is_answered_and_nobody_else() {
        let refused = problem(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":1,"x":2}}"#);
        assert_eq!(
            (refused.id, refused.code, refused.is_answered),
            (Some(Id::Number("7".into())), -32700, true)
        );
        let refused = problem(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"a"}"#);
        assert_eq!((refused.id, refused.is_answered), (None, true));
        assert!(!problem(r#"{"jsonrpc":"2.0","id":7,"result":{"x":1,"x":2}}"#).is_answered);
        assert!(!problem(r#"{"jsonrpc":"2.0","method":"a","params":{"x":1,"x":2}}"#).is_answered);
        assert!(!problem(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#).is_answered);
    }

    #[test]
    fn what_nobody_here_knows_survives() {
        let line = r#"{"jsonrpc":"2.0","future":[1e999],"id":"a\"b","method":"x","params":{"new":{"k":18446744073709551616}}}"#;
        let mut message = Message::parse(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(message.to_line()).unwrap(), format!("{line}\n"));
        message.set_id(&Id::Number("5".into()));
        let line = line.replace(r#""a\"b""#, "5");
        assert_eq!(String::from_utf8(message.to_line()).unwrap(), format!("{line}\n"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again_as_it_was(
            id in prop_oneof![any::<i64>().prop_map(|n| Id::Number(n.to_string())), "\\PC{0,20}".prop_map(Id::Text)],
            text in any::<String>(),
        ) {
            let params = || JsonObject::from_iter([("text", Json::String(Cow::Owned(text.clone())))]);
            for message in [
                Message::request(&id, "some/method", params()),
                Message::notification("some/method", params()),
                Message::result(&id, params()),
                Message::error(Some(&id), -32603, &text),
            ] {
                let line = message.to_line();
                prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
                prop_assert_eq!(Message::parse(line.trim_ascii_end()).unwrap(), message);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Message::parse(&bytes);
        }

        #[test]
        fn nearly_a_message_makes_nothing_panic(
            line in r#"\{("jsonrpc":"2.0",)?("id":(1|"a"|null|1.5),)?("(method|Method|result|error)":("a"|\{\}|\{"code":1,"message":""\}),?){0,3}("params":(\{\}|\[\]))?\}"#,
        ) {
            if let Ok(message) = Message::parse(line.as_bytes()) {
                let written = message.to_line();
                prop_assert_eq!(Message::parse(written.trim_ascii_end()).unwrap(), message);
            }
        }
    }
}
