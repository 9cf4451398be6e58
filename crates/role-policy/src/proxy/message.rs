//! One JSON-RPC message, read strictly and written again.

use super::json::{Json, Object};
use std::borrow::Cow;
use std::fmt;

/// The most bytes that one message may have, 16 MiB: as much as rmcp's servers take.
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

/// The id of a request: the text of a whole number, or a string. `1`, `1.0` and `"1"` are three ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// A whole number as it is written, of whatever length.
    Number(String),
    /// A string.
    Text(String),
}

/// What kind of message it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// It is to be answered.
    Request {
        /// Under this id.
        id: Id,
        /// What is asked.
        method: String,
    },
    /// It is not answered.
    Notification {
        /// What is told.
        method: String,
    },
    /// The answer to a request.
    Response {
        /// The request's id.
        id: Id,
        /// It has a result and no error.
        succeeded: bool,
    },
}

/// A message: what kind it is, and all its members, also those nobody here knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// What kind it is.
    pub kind: Kind,
    members: Object<'a>,
}

/// Why a line is no message.
#[derive(Clone, Debug, PartialEq)]
pub struct Invalid {
    /// The id under which its sender waits, where that could be found.
    pub id: Option<Id>,
    /// -32700 for what is no JSON, -32602 for parameters that are no object, else -32600.
    pub code: i32,
    /// What is wrong.
    pub problem: String,
    /// Its sender waits for an answer.
    pub is_answered: bool,
}

impl Id {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        const LONGEST: usize = 1024;
        match json {
            Json::Number(text) if !text.contains(['.', 'e', 'E']) => Some(Self::Number(text.to_string())),
            Json::String(text) if text.len() <= LONGEST => Some(Self::Text(text.to_string())),
            _ => None,
        }
    }

    /// As a value.
    pub fn to_json(&self) -> Json<'static> {
        match self {
            Self::Number(text) => Json::Number(Cow::Owned(text.clone())),
            Self::Text(text) => Json::String(Cow::Owned(text.clone())),
        }
    }

    /// The id that a value is, if it is one.
    pub fn of(json: &Json<'_>) -> Option<Self> {
        Self::from_json(json)
    }

    /// One that we have given out.
    pub fn number(&self) -> Option<u64> {
        match self {
            // Only as we write it: `007` is no number, and `+7` neither.
            Self::Number(text) => text.parse().ok(),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

impl<'a> Message<'a> {
    /// Reads one line, without its end.
    ///
    /// # Errors
    ///
    /// For everything that is not exactly one request, notification or response of JSON-RPC 2.0, in JSON that
    /// all parsers read alike.
    pub fn parse(line: &'a [u8]) -> Result<Self, Invalid> {
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(Invalid::unread(line, -32600, format!("more than {MAX_MESSAGE_BYTES} bytes")));
        }
        let json = Json::parse(line).map_err(|refused| Invalid::unread(line, -32700, refused.to_string()))?;
        let members = match json {
            Json::Object(members) => members,
            Json::Array(_) => return Err(Invalid::new(None, "batches are not taken")),
            _ => return Err(Invalid::new(None, "a message is a JSON object")),
        };
        let kind = kind(&members)?;
        check_twins(&members, &kind)?;
        Ok(Self { kind, members })
    }

    /// A request of our own.
    pub fn request(id: &Id, method: &'static str, params: Object<'a>) -> Self {
        let kind = Kind::Request { id: id.clone(), method: method.to_owned() };
        Self::of(kind, [("method", Json::string(method)), ("params", Json::Object(params))], Some(id))
    }

    /// A notification of our own.
    pub fn notification(method: &'static str, params: Object<'a>) -> Self {
        let kind = Kind::Notification { method: method.to_owned() };
        Self::of(kind, [("method", Json::string(method)), ("params", Json::Object(params))], None)
    }

    /// An answer of our own.
    pub fn result(id: &Id, result: Object<'a>) -> Self {
        let kind = Kind::Response { id: id.clone(), succeeded: true };
        Self::of(kind, [("result", Json::Object(result))], Some(id))
    }

    /// A refusal of our own.
    pub fn error(id: Option<&Id>, code: i32, message: &str) -> Self {
        let kind =
            Kind::Response { id: id.cloned().unwrap_or_else(|| Id::Text(String::new())), succeeded: false };
        let error = [
            ("code", Json::Number(Cow::Owned(code.to_string()))),
            ("message", Json::String(Cow::Owned(message.to_owned()))),
        ];
        let error = Json::Object(error.into_iter().collect());
        let mut message = Self::of(kind, [("error", error)], id);
        if id.is_none() {
            // JSON-RPC 2.0 §5: null where the id could not be found.
            message.members.set("id", Json::Null);
        }
        message
    }

    fn of<const N: usize>(kind: Kind, members: [(&'static str, Json<'a>); N], id: Option<&Id>) -> Self {
        let head = [("jsonrpc", Json::string("2.0"))];
        let id = id.map(|id| ("id", id.to_json()));
        Self { kind, members: head.into_iter().chain(id).chain(members).collect() }
    }

    /// The parameters, if it has any.
    pub fn params(&self) -> Option<&Object<'a>> {
        self.members.get("params")?.as_object()
    }

    /// The parameters, to be changed; put there where there are none.
    pub fn params_mut(&mut self) -> &mut Object<'a> {
        self.object_mut("params")
    }

    /// The result, if it has one.
    pub fn result_object(&self) -> Option<&Object<'a>> {
        self.members.get("result")?.as_object()
    }

    /// The result, to be changed.
    pub fn result_mut(&mut self) -> &mut Object<'a> {
        self.object_mut("result")
    }

    /// The result, to be changed, if it has one.
    pub fn result_mut_if_any(&mut self) -> Option<&mut Object<'a>> {
        match self.members.get_mut("result") {
            Some(Json::Object(object)) => Some(object),
            _ => None,
        }
    }

    fn object_mut(&mut self, name: &'static str) -> &mut Object<'a> {
        if self.members.get(name).and_then(Json::as_object).is_none() {
            self.members.set(name, Json::Object(Object::default()));
        }
        match self.members.get_mut(name) {
            Some(Json::Object(object)) => object,
            _ => unreachable!("it was set the line before"),
        }
    }

    /// The error's code and message, if it has one.
    pub fn error_parts(&self) -> Option<(&str, &str)> {
        let error = self.members.get("error")?.as_object()?;
        match (error.get("code")?, error.get("message")?) {
            (Json::Number(code), Json::String(message)) => Some((code, message)),
            _ => None,
        }
    }

    /// `_meta` of the parameters.
    pub fn meta(&self) -> Option<&Object<'a>> {
        self.params()?.get("_meta")?.as_object()
    }

    /// It is of the protocol 2026-07-28 or a later one, which says so in each request.
    pub fn is_modern(&self) -> bool {
        let version = self.meta().and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
        version.and_then(Json::as_str).is_some_and(|version| version >= "2026-07-28")
    }

    /// Puts it under another id.
    pub fn set_id(&mut self, new: &Id) {
        if let Kind::Request { id, .. } | Kind::Response { id, .. } = &mut self.kind {
            id.clone_from(new);
            self.members.set("id", new.to_json());
        }
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Message<'static> {
        Message { kind: self.kind, members: self.members.into_owned() }
    }

    /// Our own writing of it: one line with its end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        self.members.write(&mut line);
        line.push(b'\n');
        line
    }
}

impl Invalid {
    fn new(id: Option<Id>, problem: impl Into<String>) -> Self {
        Self { id, code: -32600, problem: problem.into(), is_answered: true }
    }

    fn unread(line: &[u8], code: i32, problem: String) -> Self {
        let outline = super::outline::outline(line);
        Self { is_answered: outline.is_answered(), id: outline.id, code, problem }
    }
}

fn kind(members: &Object<'_>) -> Result<Kind, Invalid> {
    let id = members.get("id").and_then(Id::from_json);
    let invalid = |problem: String| Err(Invalid::new(id.clone(), problem));
    if let Some(twin) = members.twin(&ENVELOPE) {
        return invalid(format!("a member is called like `{twin}` in other letters"));
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
                return Err(Invalid { code: -32602, ..Invalid::new(id.clone(), problem) });
            }
            let method = method.to_string();
            match id {
                Some(id) => Ok(Kind::Request { id: id.clone(), method }),
                None if has("id") => invalid("`id` must be a string or a whole number".to_owned()),
                None => Ok(Kind::Notification { method }),
            }
        }
        (Some(_), _) => invalid("`method` must be a string".to_owned()),
        (None, id) => {
            let problem = match (members.get("result"), members.get("error")) {
                (Some(_), Some(_)) => "both a result and an error",
                (None, None) => "neither a method nor a result nor an error",
                (Some(Json::Object(_)), None) => match id {
                    Some(id) => return Ok(Kind::Response { id: id.clone(), succeeded: true }),
                    None => "a response without the id of a request",
                },
                (Some(_), None) => "`result` must be an object",
                (None, Some(error)) => match (id, is_error(error)) {
                    (Some(id), true) => return Ok(Kind::Response { id: id.clone(), succeeded: false }),
                    (_, false) => "`error` must have a whole `code` and a `message`",
                    (None, true) => "an error without the id of a request",
                },
            };
            // JSON-RPC 2.0 §5: a response is not answered.
            let is_answered = !has("result") && !has("error");
            Err(Invalid { is_answered, ..Invalid::new(id.clone(), problem) })
        }
    }
}

fn is_error(error: &Json<'_>) -> bool {
    let Some(error) = error.as_object() else { return false };
    let whole = matches!(error.get("code"), Some(Json::Number(code)) if code.parse::<i64>().is_ok());
    whole && error.get("message").and_then(Json::as_str).is_some()
}

/// Refuses names that another reader could take for the ones that are judged here.
fn check_twins(members: &Object<'_>, kind: &Kind) -> Result<(), Invalid> {
    let object = |name| members.get(name).and_then(Json::as_object);
    let (part, known, id) = match kind {
        Kind::Request { id, .. } => (object("params"), &PARAMETERS[..], Some(id)),
        Kind::Notification { .. } => (object("params"), &PARAMETERS[..], None),
        Kind::Response { id, .. } => (object("result"), &RESULTS[..], Some(id)),
    };
    let Some(part) = part else { return Ok(()) };
    let meta = part.get("_meta").and_then(Json::as_object).and_then(|meta| meta.twin(&META));
    match part.twin(known).or(meta) {
        None => Ok(()),
        Some(twin) => Err(Invalid {
            is_answered: matches!(kind, Kind::Request { .. }),
            ..Invalid::new(id.cloned(), format!("a member is called like `{twin}` in other letters"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(line: &str) -> Invalid {
        Message::parse(line.as_bytes()).expect_err(line)
    }

    #[test]
    fn each_kind_is_told_from_its_members_alone() {
        for (line, kind) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
                Kind::Request { id: Id::Number("1".into()), method: "a".into() },
            ),
            (
                r#"{"method":"a","id":"x","params":{},"jsonrpc":"2.0"}"#,
                Kind::Request { id: Id::Text("x".into()), method: "a".into() },
            ),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, Kind::Notification { method: "a".into() }),
            (
                r#"{"jsonrpc":"2.0","id":99999999999999999999999,"result":{}}"#,
                Kind::Response { id: Id::Number("99999999999999999999999".into()), succeeded: true },
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}"#,
                Kind::Response { id: Id::Number("1".into()), succeeded: false },
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
            let params = || Object::from_iter([("text", Json::String(Cow::Owned(text.clone())))]);
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
