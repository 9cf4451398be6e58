//! The servers that are measured, and the tool of each that does a job: `peers.toml`.

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a `peers.toml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It is not there, or cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// It is no TOML, or has a key that means nothing here; the message shows the line.
    #[error("{} does not fit:\n{source}", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
    /// A server that cannot be meant.
    #[error("{}: server `{server}`: {problem}", .path.display())]
    Server {
        /// The file.
        path: PathBuf,
        /// Its name there.
        server: String,
        /// The problem.
        problem: ServerProblem,
    },
}

/// The problem with one server of a `peers.toml`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerProblem {
    /// An earlier server has the same name.
    #[error("there are two of that name")]
    Twice,
    /// Nothing says how the server is reached.
    #[error("it has neither a command nor a url")]
    Unreachable,
    /// The client of the benchmarks has no TLS.
    #[error("its url does not begin with http://, which is what the client speaks")]
    NotHttp,
    /// A text has a placeholder that is not filled there.
    #[error("{{{placeholder}}} is no placeholder here; there are {known}")]
    Placeholder {
        /// The placeholder, without braces.
        placeholder: String,
        /// Those that are filled there, with braces.
        known: String,
    },
    /// A pattern of a poll is no regular expression.
    #[error(transparent)]
    Pattern(#[from] regex::Error),
    /// The call of one job has a problem.
    #[error("what does {job:?}: {problem}")]
    Job {
        /// The job.
        job: PeerJob,
        /// The problem with its call.
        problem: Box<ServerProblem>,
    },
}

/// A piece of work that scenarios ask for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PeerJob {
    /// The text of `{file}`.
    Read,
    /// The names of all that is in `{folder}`.
    List,
    /// Where files named `{name}` are beneath `{tree}`.
    Find,
    /// The lines with `{text}` in files beneath `{tree}`.
    Search,
    /// Lists the changes in `{repository}`.
    Git,
    /// A command, as `{command}` for a shell or as the list `{argv}`, that ends by itself.
    Command,
    /// The same, ended after `{timeout_ms}` or `{timeout_s}`. Left out, `command` is asked.
    LimitedCommand,
    /// A document of the project at `{project}`.
    Context,
    /// The tests of the project at `{project}`.
    Tests,
}

impl PeerJob {
    /// Returns the placeholders that its arguments may have.
    fn placeholders(self) -> &'static [&'static str] {
        match self {
            Self::Read => &["file"],
            Self::List => &["folder"],
            Self::Find => &["tree", "name"],
            Self::Search => &["tree", "text"],
            Self::Git => &["repository"],
            Self::Command => &["command", "argv"],
            Self::LimitedCommand => &["command", "argv", "timeout_ms", "timeout_s"],
            Self::Context | Self::Tests => &["project"],
        }
    }
}

/// The placeholders that commands, URLs and the files of a server's home may have.
const OF_SERVERS: &[&str] = &["dir", "home", "port", "installed", "mcp-stdio", "mcp-http"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeersFile {
    server: Vec<PeerServer>,
}

/// A server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerServer {
    /// The name that tables show.
    pub(crate) name: String,
    /// The measured version. Ours say theirs themselves.
    #[serde(default)]
    pub(crate) version: String,
    /// Where it is had.
    pub(crate) install: Option<InstallSource>,
    /// The program and its arguments. A server with a `url` and no command runs already.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// Where it listens; without one it speaks on its standard streams.
    pub(crate) url: Option<String>,
    /// A command that prints the bearer token for its URL.
    #[serde(default)]
    pub(crate) token_command: Vec<String>,
    /// Further variables of its environment, which has `PATH`, `HOME`, `TMPDIR` and `LANG`.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Files to put into its home before it starts, by their paths there.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// A note that a reader of its figures must know.
    #[serde(default)]
    pub(crate) note: String,
    /// The jobs that it can do, each with the call that does it.
    #[serde(default, rename = "do")]
    pub(crate) jobs: BTreeMap<PeerJob, ToolCall>,
}

/// Where a server is had, with the name and version it has there.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum InstallSource {
    /// `NAME@VERSION`.
    Npm(String),
    /// `NAME==VERSION`.
    Pip(String),
    /// `NAME@VERSION`.
    Cargo(String),
}

/// A call of a tool, with placeholders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: serde_json::Map<String, Value>,
    /// Where the answer is only the beginning.
    pub(crate) poll: Option<PollCall>,
}

/// How the rest of an answer is had: the same call again and again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PollCall {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: serde_json::Map<String, Value>,
    /// The regular expression whose first group, in the first answer, is `{taken}`.
    pub(crate) take: String,
    /// The text that the last answer holds.
    pub(crate) until: String,
}

/// Values for placeholders. A string that is nothing but one becomes the value, whatever kind that has.
pub(crate) type Placeholders = BTreeMap<&'static str, Value>;

/// Reads a `peers.toml`.
pub(crate) fn load(path: &Path) -> Result<Vec<PeerServer>, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<Vec<PeerServer>, Error> {
    let file: PeersFile = toml::from_str(text)
        .map_err(|source| Error::Parse { path: path.to_owned(), source: Box::new(source) })?;
    for (place, peer) in file.server.iter().enumerate() {
        let twice = file.server[..place].iter().any(|other| other.name == peer.name);
        let checked = if twice { Err(ServerProblem::Twice) } else { check(peer) };
        checked.map_err(|problem| Error::Server {
            path: path.to_owned(),
            server: peer.name.clone(),
            problem,
        })?;
    }
    Ok(file.server)
}

fn check(peer: &PeerServer) -> Result<(), ServerProblem> {
    if peer.command.is_empty() && peer.url.is_none() {
        return Err(ServerProblem::Unreachable);
    }
    if peer.url.as_ref().is_some_and(|url| !url.starts_with("http://")) {
        return Err(ServerProblem::NotHttp);
    }
    let words = peer.command.iter().chain(&peer.url).chain(&peer.token_command);
    for word in words.chain(peer.env.values()).chain(peer.files.values()) {
        check_placeholders(word, OF_SERVERS)?;
    }
    for (job, call) in &peer.jobs {
        let within = |problem| ServerProblem::Job { job: *job, problem: Box::new(problem) };
        let mut allowed = job.placeholders().to_vec();
        strings(&Value::Object(call.arguments.clone()), &mut |text| check_placeholders(text, &allowed))
            .map_err(within)?;
        if let Some(poll) = &call.poll {
            allowed.push("taken");
            strings(&Value::Object(poll.arguments.clone()), &mut |text| check_placeholders(text, &allowed))
                .map_err(within)?;
            for pattern in [&poll.take, &poll.until] {
                Regex::new(pattern).map_err(|error| within(error.into()))?;
            }
        }
    }
    Ok(())
}

fn strings(
    value: &Value,
    look: &mut impl FnMut(&str) -> Result<(), ServerProblem>,
) -> Result<(), ServerProblem> {
    match value {
        Value::String(text) => look(text),
        Value::Array(values) => values.iter().try_for_each(|value| strings(value, look)),
        Value::Object(values) => values.values().try_for_each(|value| strings(value, look)),
        _ => Ok(()),
    }
}

/// The placeholders in a text: `{word}`. Other braces, as of JSON and of globs, are none.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (word, _) = rest.split_once('}')?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte == b'-';
        (!word.is_empty() && word.bytes().all(plain)).then_some(word)
    })
}

fn check_placeholders(text: &str, allowed: &[&str]) -> Result<(), ServerProblem> {
    match placeholders(text).find(|word| !allowed.contains(word)) {
        Some(word) => {
            let known: Vec<String> = allowed.iter().map(|word| format!("{{{word}}}")).collect();
            Err(ServerProblem::Placeholder { placeholder: word.to_owned(), known: known.join(", ") })
        }
        None => Ok(()),
    }
}

/// A text with its placeholders replaced.
pub(crate) fn fill_text(text: &str, values: &Placeholders) -> String {
    let mut filled = text.to_owned();
    for word in placeholders(text) {
        if let Some(value) = values.get(word) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            filled = filled.replace(&format!("{{{word}}}"), &value);
        }
    }
    filled
}

/// Arguments with their placeholders replaced.
pub(crate) fn fill(arguments: &serde_json::Map<String, Value>, values: &Placeholders) -> Value {
    fn one(value: &Value, values: &Placeholders) -> Value {
        match value {
            Value::String(text) => {
                let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                match whole.and_then(|word| values.get(word)) {
                    Some(value) => value.clone(),
                    None => Value::String(fill_text(text, values)),
                }
            }
            Value::Array(list) => list.iter().map(|value| one(value, values)).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), one(value, values))).collect(),
            other => other.clone(),
        }
    }
    arguments
        .iter()
        .map(|(key, value)| (key.clone(), one(value, values)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(text: &str) -> String {
        parse(text, Path::new("peers.toml")).expect_err("it does not fit").to_string()
    }

    #[test]
    fn the_servers_that_come_with_it_are_understood() {
        let peers = load(&crate::home().join("peers.toml")).unwrap();
        let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        assert_eq!(names[..2], ["mcp-stdio", "mcp-http"]);
        for peer in &peers[2..] {
            assert!(peer.install.is_some() && !peer.version.is_empty(), "{}", peer.name);
        }
    }

    #[test]
    fn a_misspelt_key_is_shown_with_its_line() {
        insta::assert_snapshot!(said("[[server]]\nname = \"a\"\ncomand = [\"a\"]\n"), @r#"
        peers.toml does not fit:
        TOML parse error at line 3, column 1
          |
        3 | comand = ["a"]
          | ^^^^^^
        unknown field `comand`, expected one of `name`, `version`, `install`, `command`, `url`, `token_command`, `env`, `files`, `note`, `do`
        "#);
    }

    #[test]
    fn a_job_that_no_scenario_asks_for_is_refused_with_those_there_are() {
        let said = said("[[server]]\nname = \"a\"\ncommand = [\"a\"]\ndo.reed = {tool = \"read\"}\n");
        assert!(said.contains("unknown variant `reed`") && said.contains("`limited_command`"), "{said}");
    }

    #[test]
    fn a_placeholder_that_means_nothing_there_is_named_with_those_that_do() {
        let text = "[[server]]\nname = \"a\"\ncommand = [\"a\", \"{dir}\"]\n\
                    do.read = {tool = \"read\", arguments = {paths = [\"{fil}\"]}}\n";
        assert_eq!(
            said(text),
            "peers.toml: server `a`: what does Read: {fil} is no placeholder here; there are {file}"
        );
        assert!(said("[[server]]\nname = \"a\"\ncommand = [\"{root}\"]").contains("{dir}, {home}, {port}"));
    }

    #[test]
    fn a_server_that_cannot_be_reached_is_refused() {
        assert!(said("[[server]]\nname = \"a\"\n").contains("neither a command nor a url"));
        assert!(said("[[server]]\nname = \"a\"\nurl = \"https://b/mcp\"\n").contains("http://"));
        let twice = "[[server]]\nname = \"a\"\ncommand = [\"a\"]\n".repeat(2);
        assert!(said(&twice).contains("two of that name"));
    }

    #[test]
    fn a_placeholder_alone_becomes_its_value_and_within_a_text_its_words() {
        let values = Placeholders::from([
            ("argv", json!(["echo", "hello"])),
            ("timeout_s", json!(2)),
            ("file", json!("/a/b")),
        ]);
        let arguments = json!({"command": "{argv}", "limits": [{"s": "{timeout_s}", "text": "{timeout_s} s"}],
            "path": "{file}.txt", "glob": "*.{rs,toml}", "keep": 1});
        assert_eq!(
            fill(arguments.as_object().unwrap(), &values),
            json!({"command": ["echo", "hello"], "limits": [{"s": 2, "text": "2 s"}],
                "path": "/a/b.txt", "glob": "*.{rs,toml}", "keep": 1})
        );
    }
}
