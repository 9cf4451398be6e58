//! The opening of a channel: the first message, by which the server in front tells the server there what it may do, and
//! its answer.

use crate::error::Error;
use json_rpc::error_code::INVALID_REQUEST;
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, Message, MessageKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The method of the first message.
pub const OPEN_METHOD: &str = "coretools/open";

/// The longest first message that is read, in bytes.
pub const MAX_OPENING_BYTES: usize = 4 << 20;

/// The settings that a server there gets with the first message. It has no others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenRequest {
    /// The version of the server in front. The server there must have the same.
    pub version: String,
    /// The folders that tools may use. Empty: the folder that the server there starts in.
    pub roots: Vec<String>,
    /// The roles of the caller, all of which must allow a call.
    pub roles: Vec<String>,
    /// The text of the policy. None: the roles that the program brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The keys of the configuration that hold there, as TOML.
    pub configuration: String,
    /// The id of the first background command there; 0 and 1 are the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_command_id: u32,
    /// The session that the server there keeps for a while without a channel. None: it ends with its channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<OpenSession>,
}

/// A session there, which may outlive its channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenSession {
    /// Its name: 32 hexadecimal digits that nobody can guess.
    pub id: String,
    /// The time without a channel after which it ends, in seconds.
    pub grace_s: u64,
    /// True for a channel to a session that is there. False for the first one.
    pub resumes: bool,
}

impl OpenSession {
    /// Returns true if the id is one that a server in front makes: it becomes the name of a file.
    pub fn is_valid(&self) -> bool {
        self.id.len() == 32 && self.id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The answer to the first message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenAnswer {
    /// The version of the server there.
    pub version: String,
    /// Its operating system, such as `linux`.
    pub system: String,
    /// Its architecture, such as `x86_64`.
    pub architecture: String,
    /// The folders that its tools may use.
    #[serde(default)]
    pub roots: Vec<String>,
    /// Programs that tools need and that are not there, such as `git`.
    #[serde(default)]
    pub missing: Vec<String>,
    /// The confinement of programs there, in words.
    #[serde(default)]
    pub confinement: String,
}

/// A first message that was read.
#[derive(Debug)]
pub struct Opening {
    id: Id,
    /// The settings in it.
    pub request: OpenRequest,
}

/// The reason why a line is no first message.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct InvalidOpening {
    id: Option<Id>,
    problem: String,
}

impl OpenRequest {
    /// Creates the request for a server of this version, with its keys of the configuration as TOML.
    pub fn new(version: impl Into<String>, configuration: impl Into<String>) -> Self {
        Self { version: version.into(), configuration: configuration.into(), ..Self::default() }
    }

    /// Writes the first message, with a line end.
    pub(crate) fn to_line(&self, id: &Id) -> Result<Vec<u8>, Error> {
        Ok(Message::request(id, OPEN_METHOD, object(&serde_json::to_value(self)?)).to_line())
    }
}

impl OpenAnswer {
    /// Creates the answer of a server of this version, on the system that it was built for.
    pub fn new(version: impl Into<String>) -> Self {
        let (system, architecture) = (std::env::consts::OS.to_owned(), std::env::consts::ARCH.to_owned());
        Self { version: version.into(), system, architecture, ..Self::default() }
    }
}

impl Opening {
    /// Reads the first message of a channel, for a server of `version`.
    ///
    /// # Errors
    /// It is another message, has a member that this version does not know, or comes from another version.
    pub fn read(line: &[u8], version: &str) -> Result<Self, InvalidOpening> {
        let invalid = |id: Option<Id>, problem: String| InvalidOpening { id, problem };
        let message = Message::parse(line.trim_ascii_end())
            .map_err(|error| invalid(error.id.clone(), error.problem))?;
        let MessageKind::Request { id, method } = &message.kind else {
            return Err(invalid(None, "the first message is no request".to_owned()));
        };
        let id = id.clone();
        if method != OPEN_METHOD {
            let problem = format!(
                "the first message must be `{OPEN_METHOD}`: this is the far end of a remote, which no client starts"
            );
            return Err(invalid(Some(id), problem));
        }
        let params = message.params().and_then(JsonObject::to_map).unwrap_or_default();
        // Before the other members, which another version may have otherwise.
        let there = params.get("version").and_then(Value::as_str).unwrap_or("unknown");
        if there != version {
            // The refusal is read before either side trusts the other, so that it repeats only a short text.
            let there: String = there.chars().take(MAX_VERSION_CHARS).collect();
            return Err(invalid(
                Some(id),
                format!("{VERSION_MARK}{version}; the server in front is {there}"),
            ));
        }
        match serde_json::from_value(Value::Object(params)) {
            Ok(request) => Ok(Self { id, request }),
            Err(error) => Err(invalid(Some(id), error.to_string())),
        }
    }

    /// Writes the answer, with a line end.
    ///
    /// # Errors
    /// It cannot be written, which does not occur.
    pub fn answer(&self, answer: &OpenAnswer) -> Result<Vec<u8>, Error> {
        Ok(Message::result(&self.id, object(&serde_json::to_value(answer)?)).to_line())
    }

    /// Writes the refusal, with a line end.
    pub fn refusal(&self, problem: &str) -> Vec<u8> {
        Message::error(Some(&self.id), INVALID_REQUEST, problem).to_line()
    }
}

impl InvalidOpening {
    /// Writes the refusal, with a line end.
    pub fn refusal(&self) -> Vec<u8> {
        Message::error(self.id.as_ref(), INVALID_REQUEST, &self.problem).to_line()
    }
}

/// The most characters of a version of the other end that a message repeats.
const MAX_VERSION_CHARS: usize = 80;

/// The line by which a server in front ends a session. A channel that ends without it was lost.
pub const CLOSE_LINE: &[u8] = br#"{"jsonrpc":"2.0","method":"coretools/close"}"#;

/// The refusal of a channel to a session that is not there.
pub const NO_SESSION: &str = "there is no such session";

/// The beginning of the refusal of another version, before the version of the server there.
const VERSION_MARK: &str = "this is version ";

/// Reads the answer to the first message of the id `id`. Returns `None` for a line that is not that answer.
pub(crate) fn read_answer(line: &[u8], id: &Id, version: &str) -> Option<Result<OpenAnswer, Error>> {
    let message = Message::parse(line.trim_ascii_end()).ok()?;
    let MessageKind::Response { id: answered, succeeded } = &message.kind else { return None };
    if answered != id {
        return None;
    }
    if !succeeded {
        let problem = message
            .error_parts()
            .map(|(_, message)| message)
            .unwrap_or_default()
            .chars()
            .take(500)
            .collect::<String>();
        let there = problem.strip_prefix(VERSION_MARK).and_then(|rest| rest.split(';').next());
        return Some(Err(match there {
            Some(there) => Error::Version { there: there.to_owned(), here: version.to_owned() },
            None if problem == NO_SESSION => Error::NoSession,
            None => Error::Refused(problem),
        }));
    }
    let result = message.result_object().and_then(JsonObject::to_map).unwrap_or_default();
    Some(match serde_json::from_value::<OpenAnswer>(Value::Object(result)) {
        // The server there has compared the version too, but it is not believed.
        Ok(answer) if answer.version == version => Ok(answer),
        Ok(answer) => {
            let there = answer.version.chars().take(MAX_VERSION_CHARS).collect();
            Err(Error::Version { there, here: version.to_owned() })
        }
        Err(error) => Err(Error::Refused(format!("its answer cannot be read: {error}"))),
    })
}

fn object(value: &Value) -> JsonObject<'static> {
    match Json::from(value) {
        Json::Object(object) => object,
        _ => JsonObject::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> Id {
        Id::Text("open-1".to_owned())
    }

    fn request() -> OpenRequest {
        let mut request = OpenRequest::new("1", "toolsets = \"standard\"");
        (request.roots, request.roles) = (vec!["/src".to_owned()], vec!["worker".to_owned()]);
        request
    }

    #[test]
    fn what_is_sent_is_what_is_read_and_the_answer_comes_back() {
        let opening = Opening::read(&request().to_line(&id()).unwrap(), "1").unwrap();
        assert_eq!(opening.request, request());
        let answer = OpenAnswer::new("1");
        let line = opening.answer(&answer).unwrap();
        assert_eq!(read_answer(&line, &id(), "1").unwrap().unwrap(), answer);
        assert!(read_answer(&line, &Id::Text("open-2".to_owned()), "1").is_none());
        let refused = read_answer(&opening.refusal("no root /src"), &id(), "1").unwrap().unwrap_err();
        assert!(matches!(refused, Error::Refused(problem) if problem == "no root /src"));
    }

    #[test]
    fn another_version_is_refused_at_both_ends_by_its_name() {
        let refused = Opening::read(&request().to_line(&id()).unwrap(), "2").unwrap_err();
        let error = read_answer(&refused.refusal(), &id(), "1").unwrap().unwrap_err();
        assert!(matches!(error, Error::Version { there, here } if there == "2" && here == "1"));
        let opening = Opening::read(&request().to_line(&id()).unwrap(), "1").unwrap();
        let line = opening.answer(&OpenAnswer::new("2")).unwrap();
        assert!(matches!(read_answer(&line, &id(), "1"), Some(Err(Error::Version { .. }))));
    }

    #[test]
    fn what_is_no_first_message_is_refused() {
        let with = |members: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"coretools/open","params":{{{members}}}}}"#)
        };
        let complete = r#""version":"1","roots":[],"roles":[],"configuration":"""#;
        assert!(Opening::read(with(complete).as_bytes(), "1").is_ok());
        for line in [
            "welcome to host".to_owned(),
            String::new(),
            r#"{"jsonrpc":"2.0","method":"coretools/open"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_owned(),
            with(""),
            with(r#""version":"1""#),
            with(&format!(r#"{complete},"token":"x""#)),
            with(r#""version":"1","roots":"/","roles":[],"configuration":"""#),
        ] {
            let error = Opening::read(line.as_bytes(), "1").expect_err(&line);
            assert!(error.refusal().ends_with(b"\n") && !error.to_string().is_empty(), "{line}");
        }
    }

    #[test]
    fn no_line_is_taken_for_the_answer_that_is_none() {
        for line in [
            "Last login: today",
            "",
            "{}",
            r#"{"jsonrpc":"2.0","id":"open-2","result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"x"}"#,
        ] {
            assert!(read_answer(line.as_bytes(), &id(), "1").is_none(), "{line}");
        }
        let empty = br#"{"jsonrpc":"2.0","id":"open-1","result":{}}"#;
        assert!(matches!(read_answer(empty, &id(), "1"), Some(Err(Error::Refused(_)))));
    }
}
