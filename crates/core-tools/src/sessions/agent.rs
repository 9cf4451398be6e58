//! What is known of agents: how each is started and resumed, and what it prints when it stops.

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use std::sync::Arc;

/// What is known without a configuration.
const BUILTIN: &str = include_str!("agents.toml");

/// What is known of all agents: data, from a file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Agents(Arc<Known>);

#[derive(Debug)]
struct Known {
    agents: Vec<Agent>,
    patterns: Vec<Pattern>,
    retries: Vec<Retry>,
}

/// How an agent is started and resumed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name, by which patterns refer to it.
    pub name: String,
    /// The programs that are this agent.
    pub programs: Vec<String>,
    /// What follows the command when it is started with a prompt.
    #[serde(default = "prompt_alone")]
    pub start: Vec<String>,
    /// What follows it when the same session goes on.
    #[serde(default)]
    pub resume: Vec<String>,
    /// The same where the agent's own name for the session is not known.
    #[serde(default)]
    pub resume_last: Vec<String>,
    /// Finds that name, `id`, in what it prints.
    #[serde(default)]
    id: Option<String>,
    /// It is given a terminal. False by default.
    #[serde(default)]
    pub pty: bool,
    /// What it is told when it goes on.
    #[serde(default = "go_on")]
    pub resume_prompt: String,
    #[serde(skip)]
    id_regex: Option<Regex>,
}

fn prompt_alone() -> Vec<String> {
    vec!["{prompt}".to_owned()]
}

fn go_on() -> String {
    "Continue where you left off.".to_owned()
}

/// What a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Means {
    RateLimit,
    ContextExhausted,
    Completed,
    UserExit,
}

#[derive(Debug)]
pub(super) struct Pattern {
    agent: String,
    pub(super) means: Means,
    pub(super) regex: Regex,
}

#[derive(Debug)]
pub(super) struct Retry {
    pub(super) source: super::classify::RetrySource,
    pub(super) regex: Regex,
    pub(super) milliseconds: bool,
}

/// Why what is known of agents cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsError {
    /// It is not TOML of this form.
    #[error("{place}: {message}")]
    Syntax {
        /// Which file.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// An expression cannot be compiled.
    #[error("{place}: `{regex}`: {message}")]
    Regex {
        /// Which file.
        place: String,
        /// The expression.
        regex: String,
        /// What is wrong.
        message: String,
    },
    /// An expression does not match an example of its own, or has none.
    #[error("{place}: `{regex}` {problem}")]
    Example {
        /// Which file.
        place: String,
        /// The expression.
        regex: String,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    #[serde(default)]
    agent: Vec<Agent>,
    #[serde(default)]
    pattern: Vec<PatternForm>,
    #[serde(default)]
    retry: Vec<RetryForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternForm {
    agent: String,
    means: Means,
    regex: String,
    examples: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryForm {
    source: super::classify::RetrySource,
    regex: String,
    unit: Unit,
    examples: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum Unit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
}

impl Agents {
    /// What is known of claude, codex and opencode, and of agents in general.
    ///
    /// # Errors
    /// None: the file is tested.
    pub fn builtin() -> Result<Self, AgentsError> {
        Self::with(None)
    }

    /// The same, with the entries of a file before them: its name and its text. An entry of the file for an agent
    /// of the same name replaces the built-in one; patterns add to those there are.
    ///
    /// # Errors
    /// The file is not of this form, or an expression in it does not match its examples.
    pub fn with(file: Option<(&str, &str)>) -> Result<Self, AgentsError> {
        let mut known = Known { agents: Vec::new(), patterns: Vec::new(), retries: Vec::new() };
        for (place, text) in file.into_iter().chain([("built-in", BUILTIN)]) {
            known.read(place, text)?;
        }
        Ok(Self(Arc::new(known)))
    }

    /// The agent that a program is, by the name of its file.
    pub fn of_program(&self, program: &str) -> Option<&Agent> {
        let name = program.rsplit('/').next().unwrap_or(program);
        self.0.agents.iter().find(|agent| agent.programs.iter().any(|known| known == name))
    }

    /// The agent of this name.
    pub fn named(&self, name: &str) -> Option<&Agent> {
        self.0.agents.iter().find(|agent| agent.name == name)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.agents.iter().map(|agent| agent.name.as_str())
    }

    /// The patterns for an agent, its own first.
    pub(super) fn patterns(&self, agent: Option<&str>) -> impl Iterator<Item = &Pattern> {
        let own = self.0.patterns.iter().filter(move |pattern| Some(pattern.agent.as_str()) == agent);
        own.chain(self.0.patterns.iter().filter(|pattern| pattern.agent == "*"))
    }

    pub(super) fn retries(&self) -> &[Retry] {
        &self.0.retries
    }
}

impl Known {
    fn read(&mut self, place: &str, text: &str) -> Result<(), AgentsError> {
        let file: FileForm = toml::from_str(text).map_err(|error| AgentsError::Syntax {
            place: place.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        for mut agent in file.agent {
            agent.id_regex = agent.id.as_deref().map(|regex| compile(place, regex)).transpose()?;
            if !self.agents.iter().any(|known| known.name == agent.name) {
                self.agents.push(agent);
            }
        }
        for form in file.pattern {
            let regex = compile(place, &form.regex)?;
            examples(place, &form.regex, &regex, &form.examples)?;
            if !form.regex.starts_with('^') {
                return Err(AgentsError::Example {
                    place: place.to_owned(),
                    regex: form.regex,
                    problem: "does not begin with `^`: it would match in the middle of the agent's own work"
                        .to_owned(),
                });
            }
            self.patterns.push(Pattern { agent: form.agent, means: form.means, regex });
        }
        for form in file.retry {
            let regex = compile(place, &form.regex)?;
            examples(place, &form.regex, &regex, &form.examples)?;
            let milliseconds = form.unit == Unit::Milliseconds;
            self.retries.push(Retry { source: form.source, regex, milliseconds });
        }
        Ok(())
    }
}

fn compile(place: &str, regex: &str) -> Result<Regex, AgentsError> {
    // ASCII, so that it is the same with and without the tables of Unicode.
    let built = RegexBuilder::new(regex).case_insensitive(true).unicode(false).size_limit(1 << 20).build();
    built.map_err(|error| AgentsError::Regex {
        place: place.to_owned(),
        regex: regex.to_owned(),
        message: error.to_string(),
    })
}

fn examples(place: &str, text: &str, regex: &Regex, examples: &[String]) -> Result<(), AgentsError> {
    let wrong = |problem| AgentsError::Example { place: place.to_owned(), regex: text.to_owned(), problem };
    if examples.is_empty() {
        return Err(wrong("has no example".to_owned()));
    }
    match examples.iter().find(|example| !regex.is_match(super::classify::own_words(example).as_bytes())) {
        None => Ok(()),
        Some(example) => Err(wrong(format!("does not match its example {example:?}"))),
    }
}

impl Agent {
    /// What the agent calls its session, if `line` says it.
    pub fn session_in(&self, line: &str) -> Option<String> {
        let line = super::classify::own_words(line);
        let found = self.id_regex.as_ref()?.captures(line.as_bytes())?.name("id")?.as_bytes();
        String::from_utf8(found.to_vec()).ok()
    }
}

/// What fills the places in the arguments of an [`Agent`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Filling<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The session's id.
    pub session: &'a str,
    /// What the agent calls it.
    pub agent_session: &'a str,
}

impl Filling<'_> {
    /// `arguments`, filled.
    pub fn fill(&self, arguments: &[String]) -> Vec<String> {
        let fill = |argument: &String| match argument.as_str() {
            "{prompt}" => self.prompt.to_owned(),
            _ => argument.replace("{agent_session}", self.agent_session).replace("{session}", self.session),
        };
        arguments.iter().map(fill).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_there_is_matches_what_the_agents_print() {
        let agents = Agents::builtin().unwrap();
        assert_eq!(agents.names().collect::<Vec<_>>(), ["claude", "codex", "opencode"]);
        assert_eq!(agents.of_program("/usr/local/bin/codex").unwrap().name, "codex");
        assert!(agents.of_program("claude-wrapper").is_none(), "no substring is an agent");
    }

    #[test]
    fn an_agent_says_what_it_calls_its_session() {
        let agents = Agents::builtin().unwrap();
        let said = |agent: &str, line: &str| agents.named(agent).unwrap().session_in(line);
        let id = "019c2470-729c-7dc1-b60a-365dad515395";
        assert_eq!(said("codex", &format!("session id: {id}")).as_deref(), Some(id));
        let event = r#"{"type":"step_start","timestamp":1,"sessionID":"ses_4aBc","part":{}}"#;
        assert_eq!(said("opencode", event).as_deref(), Some("ses_4aBc"));
        assert_eq!(said("codex", "the session id: 7 is wrong"), None);
        assert_eq!(said("claude", &format!("session id: {id}")), None);
    }

    #[test]
    fn a_prompt_is_one_argument_whatever_is_in_it() {
        let filling = Filling { prompt: "a {session} \"b\"; $(c)", session: "S", agent_session: "" };
        let arguments = ["-p", "{prompt}", "--id={session}"].map(str::to_owned);
        assert_eq!(filling.fill(&arguments), ["-p", "a {session} \"b\"; $(c)", "--id=S"]);
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
        let agents = Agents::with(Some(("mine.toml", mine))).unwrap();
        assert_eq!(agents.of_program("my-agent").unwrap().start, ["{prompt}"]);
        assert!(agents.named("claude").is_some());
        for (change, says) in [
            (("Slow down", "Hurry up"), "does not match its example"),
            (("^slow", "slow"), "does not begin with `^`"),
            (("[\"Slow down\"]", "[]"), "has no example"),
            (("means", "moans"), "moans"),
            (("down$", "down("), "unclosed group"),
        ] {
            let text = mine.replace(change.0, change.1);
            let error = Agents::with(Some(("mine.toml", &text))).unwrap_err().to_string();
            assert!(error.contains(says) && error.starts_with("mine.toml"), "{error}");
        }
    }
}
