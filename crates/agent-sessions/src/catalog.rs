//! The agents that are known: how each is started and resumed, and what it prints when it stops.

use crate::decoration::strip_decoration;
use crate::diagnosis::AgentRetrySource;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use std::sync::Arc;

/// The built-in catalog.
const BUILTIN: &str = include_str!("agents.toml");
/// The memory that one compiled expression may take, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A catalog of agents, read from TOML. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AgentCatalog(Arc<AgentCatalogEntries>);

#[derive(Debug, Default)]
struct AgentCatalogEntries {
    agents: Vec<AgentDefinition>,
    patterns: Vec<AgentLinePattern>,
    retry_patterns: Vec<AgentRetryPattern>,
}

/// The definition of an agent: how it is started and resumed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentDefinition {
    /// The name by which patterns and sessions refer to it.
    pub(crate) name: String,
    /// The file names of its programs.
    pub(crate) programs: Vec<String>,
    /// The arguments that follow the command when the agent is started with a prompt.
    #[serde(default = "prompt_argument")]
    pub(crate) start: Vec<String>,
    /// The arguments that follow the command when a session is resumed. Empty: the agent cannot be resumed.
    #[serde(default)]
    pub(crate) resume: Vec<String>,
    /// The arguments for a resume where the agent's own id of the session is not known.
    #[serde(default)]
    pub(crate) resume_last: Vec<String>,
    /// The expression that finds the agent's own id of the session in its output, as the group `id`.
    #[serde(default)]
    id: Option<String>,
    /// Tells that the agent needs a terminal. False by default.
    #[serde(default)]
    pub(crate) pty: bool,
    /// The exit codes with which the agent says that it needs a login or a set-up.
    #[serde(default)]
    pub(crate) attention_exit_codes: Vec<u32>,
    /// The prompt with which a session is resumed.
    #[serde(default = "default_resume_prompt")]
    pub(crate) resume_prompt: String,
    #[serde(skip)]
    id_regex: Option<Regex>,
}

fn prompt_argument() -> Vec<String> {
    vec!["{prompt}".to_owned()]
}

fn default_resume_prompt() -> String {
    "Continue where you left off.".to_owned()
}

/// The meaning of a line that an agent prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentLineMeaning {
    RateLimit,
    ContextExhausted,
    NeedsAttention,
    Completed,
    UserExit,
}

/// An expression that gives a line its meaning.
#[derive(Debug)]
pub(crate) struct AgentLinePattern {
    /// The agent that prints such lines; `*` for any.
    agent: String,
    pub(crate) meaning: AgentLineMeaning,
    pub(crate) regex: Regex,
}

/// An expression that finds the time to wait.
#[derive(Debug)]
pub(crate) struct AgentRetryPattern {
    pub(crate) source: AgentRetrySource,
    pub(crate) regex: Regex,
    /// The number is in milliseconds instead of seconds.
    pub(crate) in_milliseconds: bool,
}

/// The reason why a catalog of agents cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentCatalogError {
    /// The file is not TOML of the expected form.
    #[error("{file}: {message}")]
    Syntax {
        /// The name of the file.
        file: String,
        /// The problem, with its line.
        message: String,
    },
    /// A regular expression cannot be compiled.
    #[error("{file}: `{regex}`: {message}")]
    Regex {
        /// The name of the file.
        file: String,
        /// The regular expression.
        regex: String,
        /// The problem.
        message: String,
    },
    /// A regular expression breaks a rule for patterns, such as to match its own examples.
    #[error("{file}: `{regex}` {problem}")]
    Pattern {
        /// The name of the file.
        file: String,
        /// The regular expression.
        regex: String,
        /// The rule that it breaks.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentCatalogFile {
    #[serde(default)]
    agent: Vec<AgentDefinition>,
    #[serde(default)]
    pattern: Vec<AgentPatternEntry>,
    #[serde(default)]
    retry: Vec<AgentRetryEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentPatternEntry {
    agent: String,
    means: AgentLineMeaning,
    regex: String,
    examples: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentRetryEntry {
    source: AgentRetrySource,
    regex: String,
    unit: RetryTimeUnit,
    examples: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum RetryTimeUnit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
}

impl AgentCatalog {
    /// Returns the built-in catalog: Claude Code, Codex, Gemini CLI and opencode, and patterns that fit any agent.
    ///
    /// # Errors
    /// None in practice: a test reads the built-in file.
    pub fn builtin() -> Result<Self, AgentCatalogError> {
        Self::read_files(&[("built-in", BUILTIN)])
    }

    /// Returns the built-in catalog with the entries of a file before its own. `file` is the file's name for error
    /// messages, `text` its content.
    ///
    /// An agent in the file replaces the built-in agent of the same name; patterns are added to the built-in ones.
    ///
    /// # Errors
    /// The file does not have the expected form, or a pattern does not match its own examples.
    pub fn with_file(file: &str, text: &str) -> Result<Self, AgentCatalogError> {
        Self::read_files(&[(file, text), ("built-in", BUILTIN)])
    }

    /// Reads files of which the earlier ones take precedence.
    fn read_files(files: &[(&str, &str)]) -> Result<Self, AgentCatalogError> {
        let mut entries = AgentCatalogEntries::default();
        for (file, text) in files {
            entries.read(file, text)?;
        }
        Ok(Self(Arc::new(entries)))
    }

    /// Finds the agent to which a program belongs, by the name of the program's file.
    pub(crate) fn by_program(&self, program: &str) -> Option<&AgentDefinition> {
        // By the file's name alone: the same agent is installed in many folders.
        let name = program.rsplit('/').next().unwrap_or(program);
        self.0.agents.iter().find(|agent| agent.programs.iter().any(|known| known == name))
    }

    /// Finds the agent of this name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&AgentDefinition> {
        self.0.agents.iter().find(|agent| agent.name == name)
    }

    /// Returns the names of all agents.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.agents.iter().map(|agent| agent.name.as_str())
    }

    /// Returns the patterns for an agent, its own before the general ones.
    pub(crate) fn patterns(&self, agent: Option<&str>) -> impl Iterator<Item = &AgentLinePattern> {
        let agent_patterns =
            self.0.patterns.iter().filter(move |pattern| Some(pattern.agent.as_str()) == agent);
        agent_patterns.chain(self.0.patterns.iter().filter(|pattern| pattern.agent == "*"))
    }

    /// Returns the patterns for the time to wait, the most reliable first.
    pub(crate) fn retry_patterns(&self) -> &[AgentRetryPattern] {
        &self.0.retry_patterns
    }
}

impl AgentCatalogEntries {
    fn read(&mut self, file: &str, text: &str) -> Result<(), AgentCatalogError> {
        let content: AgentCatalogFile = toml::from_str(text).map_err(|error| AgentCatalogError::Syntax {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        for mut agent in content.agent {
            agent.id_regex = agent.id.as_deref().map(|regex| compile(file, regex)).transpose()?;
            // The first definition of a name stands, and the user's file is read before the built-in one.
            if !self.agents.iter().any(|known| known.name == agent.name) {
                self.agents.push(agent);
            }
        }
        for entry in content.pattern {
            let regex = compile(file, &entry.regex)?;
            check_examples(file, &entry.regex, &regex, &entry.examples)?;
            if !entry.regex.starts_with('^') {
                return Err(AgentCatalogError::Pattern {
                    file: file.to_owned(),
                    regex: entry.regex,
                    problem: "does not begin with `^`: it would match in the middle of the agent's own work"
                        .to_owned(),
                });
            }
            self.patterns.push(AgentLinePattern { agent: entry.agent, meaning: entry.means, regex });
        }
        for entry in content.retry {
            let regex = compile(file, &entry.regex)?;
            check_examples(file, &entry.regex, &regex, &entry.examples)?;
            let in_milliseconds = entry.unit == RetryTimeUnit::Milliseconds;
            self.retry_patterns.push(AgentRetryPattern { source: entry.source, regex, in_milliseconds });
        }
        Ok(())
    }
}

fn compile(file: &str, regex: &str) -> Result<Regex, AgentCatalogError> {
    // ASCII only: whether regex is built with Unicode tables depends on the other crates of a program, and a pattern
    // must mean the same in all of them.
    let built =
        RegexBuilder::new(regex).case_insensitive(true).unicode(false).size_limit(MAX_REGEX_BYTES).build();
    built.map_err(|error| AgentCatalogError::Regex {
        file: file.to_owned(),
        regex: regex.to_owned(),
        message: error.to_string(),
    })
}

fn check_examples(
    file: &str,
    text: &str,
    regex: &Regex,
    examples: &[String],
) -> Result<(), AgentCatalogError> {
    let problem =
        |problem| AgentCatalogError::Pattern { file: file.to_owned(), regex: text.to_owned(), problem };
    if examples.is_empty() {
        return Err(problem("has no example".to_owned()));
    }
    // Each pattern proves itself: one that never matches would go unnoticed until a session needs it.
    match examples.iter().find(|example| !regex.is_match(strip_decoration(example).as_bytes())) {
        None => Ok(()),
        Some(example) => Err(problem(format!("does not match its example {example:?}"))),
    }
}

impl AgentDefinition {
    /// Returns true if the agent takes the session's id for its conversation, so that a conversation of this id may exist
    /// once the agent has been started.
    pub(crate) fn takes_session_id(&self) -> bool {
        let names_it = |arguments: &[String]| arguments.iter().any(|argument| argument.contains("{session}"));
        names_it(&self.start) && names_it(&self.resume)
    }

    /// Returns the agent's own id of its session if `line` names it.
    pub(crate) fn session_id_in(&self, line: &str) -> Option<String> {
        let text = strip_decoration(line);
        let id = self.id_regex.as_ref()?.captures(text.as_bytes())?.name("id")?.as_bytes();
        String::from_utf8(id.to_vec()).ok()
    }
}

/// The values of the placeholders in the arguments of an [`AgentDefinition`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AgentArgumentPlaceholders<'a> {
    /// The value of `{prompt}`.
    pub(crate) prompt: &'a str,
    /// The value of `{session}`.
    pub(crate) session: &'a str,
    /// The value of `{agent_session}`: the agent's own id of the session.
    pub(crate) agent_session: &'a str,
}

impl AgentArgumentPlaceholders<'_> {
    /// Returns `arguments` with the placeholders replaced.
    pub(crate) fn expand(&self, arguments: &[String]) -> Vec<String> {
        let expand = |argument: &String| match argument.as_str() {
            // An argument of its own only, so that a prompt with `{session}` in it stays as it is.
            "{prompt}" => self.prompt.to_owned(),
            _ => argument.replace("{agent_session}", self.agent_session).replace("{session}", self.session),
        };
        arguments.iter().map(expand).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_there_is_matches_what_the_agents_print() {
        let catalog = AgentCatalog::builtin().unwrap();
        assert_eq!(catalog.names().collect::<Vec<_>>(), ["claude", "codex", "opencode", "gemini"]);
        assert_eq!(catalog.by_program("/usr/local/bin/codex").unwrap().name, "codex");
        assert!(catalog.by_program("claude-wrapper").is_none(), "no substring is an agent");
    }

    #[test]
    fn an_agent_says_what_it_calls_its_session() {
        let catalog = AgentCatalog::builtin().unwrap();
        let session_id = |agent: &str, line: &str| catalog.by_name(agent).unwrap().session_id_in(line);
        let id = "019c2470-729c-7dc1-b60a-365dad515395";
        assert_eq!(session_id("codex", &format!("session id: {id}")).as_deref(), Some(id));
        let event = r#"{"type":"step_start","timestamp":1,"sessionID":"ses_4aBc","part":{}}"#;
        assert_eq!(session_id("opencode", event).as_deref(), Some("ses_4aBc"));
        assert_eq!(session_id("codex", "the session id: 7 is wrong"), None);
        assert_eq!(session_id("claude", &format!("session id: {id}")), None);
    }

    #[test]
    fn a_prompt_is_one_argument_whatever_is_in_it() {
        let placeholders =
            AgentArgumentPlaceholders { prompt: "a {session} \"b\"; $(c)", session: "S", agent_session: "" };
        let arguments = ["-p", "{prompt}", "--id={session}"].map(str::to_owned);
        assert_eq!(placeholders.expand(&arguments), ["-p", "a {session} \"b\"; $(c)", "--id=S"]);
    }

    #[test]
    fn a_file_adds_agents_and_patterns_and_is_held_to_its_examples() {
        let mine = r#"
            [[agent]]
            name = "mine"
            programs = ["my-agent"]
            [[pattern]]
            agent = "mine"
            means = "rate_limit"
            regex = '^slow down$'
            examples = ["Slow down"]
        "#;
        let catalog = AgentCatalog::with_file("mine.toml", mine).unwrap();
        assert_eq!(catalog.by_program("my-agent").unwrap().start, ["{prompt}"]);
        assert!(catalog.by_name("claude").is_some());
        for (change, says) in [
            (("Slow down", "Hurry up"), "does not match its example"),
            (("^slow", "slow"), "does not begin with `^`"),
            (("[\"Slow down\"]", "[]"), "has no example"),
            (("means", "moans"), "moans"),
            (("down$", "down("), "unclosed group"),
        ] {
            let text = mine.replace(change.0, change.1);
            let error = AgentCatalog::with_file("mine.toml", &text).unwrap_err().to_string();
            assert!(error.contains(says) && error.starts_with("mine.toml"), "{error}");
        }
    }
}
