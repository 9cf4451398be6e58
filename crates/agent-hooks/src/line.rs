//! Judges a line of a shell: each program, each file that it redirects, each folder that it goes to.

use crate::judge::{Denial, HookDecision, Judgement, allowed, joined};
use crate::shell::{ShellError, ShellLine, ShellProgram};
use role_policy::{Access, ToolFacts};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Programs that are agents, and the packages that they come in.
const AGENTS: [&str; 17] = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "cursor-agent",
    "copilot",
    "aider",
    "goose",
    "amp",
    "qwen",
    "crush",
    "droid",
    "auggie",
    "claude-code",
    "gemini-cli",
    "opencode-ai",
    "kiro-cli",
];

/// The most folders that a line may begin its relative paths in.
const MAX_FOLDERS: usize = 16;

/// A part of a line that changes what clients load by themselves. It is allowed only where a person is asked about the line.
pub(crate) struct PersonalOpening {
    denial: Denial,
    /// The words for the person.
    question: String,
    paths: Vec<PathBuf>,
}

impl PersonalOpening {
    /// Describes a part that names `word`, and the protected `paths` that it reaches.
    pub(crate) fn new(denial: Denial, word: &str, paths: Vec<PathBuf>) -> Self {
        let question =
            format!("`{word}` is protected, because clients load it by themselves when they start");
        Self { denial, question, paths }
    }
}

impl Judgement<'_> {
    /// Judges a line that runs in `folder`, or the reason why it could not be read. `native` is the client's tool.
    pub(crate) fn line(
        &self,
        read: Result<ShellLine, ShellError>,
        folder: &Path,
        native: &str,
    ) -> Result<HookDecision, Denial> {
        let facts = self.facts("run_command")?;
        let denied = |rule: &str, reason: String| Denial {
            tool: "run_command".to_owned(),
            rule: rule.to_owned(),
            reason,
        };
        if self.is_unrestricted {
            let mut decision = allowed("run_command", "the role may do everything");
            decision.runs_programs = read.is_ok_and(|line| !line.programs.is_empty());
            return Ok(decision);
        }
        if !self.policy.sees(self.caller, &facts) {
            // The refusal of a tool that this role does not have, in the words for it.
            self.authorize(&facts, Map::new(), folder, native)?;
        }
        let line = read.map_err(|error| {
            denied("a line that cannot be judged", format!("the line cannot be judged: {error}"))
        })?;
        if line.evaluates_variables {
            return Err(denied(
                "a line that cannot be judged",
                "the line has bash evaluate a text that may hold commands (arithmetic with a variable that the line sets to more \
                 than a number, an index that is none, `${x@P}`, `${!x}`, `declare -n`, an unquoted word of `test`, or a variable such \
                 as `PS4`); quote the words, compute with numbers alone, or in a program"
                    .to_owned(),
            ));
        }
        // Variables are judged with the programs that get them. These change how the shell itself reads the line.
        if line.programs.is_empty() && !line.variables.is_empty() {
            let names = line.variables.join("`, `");
            let reason =
                format!("the line sets `{names}` and starts no program, so nothing judges what that does");
            return Err(denied("a line that cannot be judged", reason));
        }
        let folders = self.folders(&line, folder, &denied)?;
        let asked_before = self.asks.borrow().len();
        let mut openings = Vec::new();
        let judged = self.parts(&facts, &line, folders.as_deref(), folder, native, &denied, &mut openings);
        let is_asked = self.asks.borrow().len() > asked_before;
        let rule = match judged {
            Ok(rule) if is_asked => {
                for opening in openings {
                    self.asks.borrow_mut().push((opening.denial.rule, opening.question));
                    self.opened.borrow_mut().extend(opening.paths);
                }
                rule
            }
            // Nobody is asked about this line, so what a person could open stays closed.
            judged => match openings.into_iter().next() {
                Some(opening) => return Err(opening.denial),
                None => judged?,
            },
        };
        let mut decision = allowed("run_command", rule);
        // Beneath `exec` whatever was found: a program that this reading has missed is confined there.
        decision.runs_programs = true;
        Ok(decision)
    }

    /// Judges the redirections and the programs of a line. Returns the rule of the last program. `openings` receives what only
    /// a person may allow.
    #[allow(clippy::too_many_arguments, reason = "the parts of one line, judged in one place")]
    fn parts(
        &self,
        facts: &ToolFacts<'_>,
        line: &ShellLine,
        folders: Option<&[PathBuf]>,
        folder: &Path,
        native: &str,
        denied: &dyn Fn(&str, String) -> Denial,
        openings: &mut Vec<PersonalOpening>,
    ) -> Result<String, Denial> {
        self.files(line, folders, folder, native, openings)?;
        let mut rule = "no program".to_owned();
        for program in &line.programs {
            openings.extend(self.check_protected_words(program, line, folders, denied)?);
            self.check_other_agents(program, folder, native, denied)?;
            rule = self.program(facts, program, line, folder, native)?;
        }
        Ok(rule)
    }

    /// Returns the folders in which relative paths of the line may begin, or `None` if they cannot be known.
    fn folders(
        &self,
        line: &ShellLine,
        folder: &Path,
        denied: &dyn Fn(&str, String) -> Denial,
    ) -> Result<Option<Vec<PathBuf>>, Denial> {
        let mut folders = vec![folder.to_owned()];
        for target in &line.folders {
            for start in folders.clone() {
                let next = joined(&start, Some(target));
                if !folders.contains(&next) {
                    folders.push(next);
                }
            }
            if folders.len() > MAX_FOLDERS {
                return Ok(None);
            }
        }
        for folder in &folders {
            self.check_path(folder, Access::Read).map_err(|reason| {
                denied("the roots", format!("the folder `{}`: {reason}", folder.display()))
            })?;
        }
        Ok((!line.folder_varies).then_some(folders))
    }

    /// Judges the redirections: `>` is a write, `<` is a read.
    fn files(
        &self,
        line: &ShellLine,
        folders: Option<&[PathBuf]>,
        folder: &Path,
        native: &str,
        openings: &mut Vec<PersonalOpening>,
    ) -> Result<(), Denial> {
        for file in &line.files {
            let tool = if file.access == Access::Write { "write_file" } else { "read_file" };
            let denied = |reason: String| Denial {
                tool: tool.to_owned(),
                rule: "the roots".to_owned(),
                reason: format!("`{}`: {reason}", file.path),
            };
            let is_absolute = Path::new(&file.path).is_absolute();
            let starts = match folders {
                Some(folders) => folders,
                None if is_absolute => &[],
                None => {
                    return Err(denied(
                        "the folder of this path is known only when the line runs; write the path in full"
                            .to_owned(),
                    ));
                }
            };
            let starts: Vec<&Path> =
                if is_absolute { vec![folder] } else { starts.iter().map(PathBuf::as_path).collect() };
            for start in starts {
                let path = joined(start, Some(&file.path));
                let facts = self.facts(tool)?;
                let mut arguments = Map::from_iter([("path".to_owned(), json!(path.to_string_lossy()))]);
                if file.access == Access::Write {
                    arguments.insert("content".to_owned(), json!(""));
                }
                self.authorize(&facts, arguments, folder, native)?;
                if let Err(reason) = self.check_path(&path, file.access) {
                    let denial = denied(reason);
                    if !self.may_be_asked_about(&path, file.access) {
                        return Err(denial);
                    }
                    openings.push(PersonalOpening::new(denial, &file.path, vec![path]));
                }
            }
        }
        Ok(())
    }

    fn program(
        &self,
        facts: &ToolFacts<'_>,
        program: &ShellProgram,
        line: &ShellLine,
        folder: &Path,
        native: &str,
    ) -> Result<String, Denial> {
        let words: Vec<&str> = program.words.iter().map(|word| word.text.as_str()).collect();
        let mut arguments = Map::from_iter([("command".to_owned(), json!(words))]);
        if !line.variables.is_empty() {
            let variables: Map<String, Value> =
                line.variables.iter().map(|name| (name.clone(), json!(""))).collect();
            arguments.insert("env".to_owned(), Value::Object(variables));
        }
        self.authorize(facts, arguments, folder, native).map_err(|mut denial| {
            denial.reason = format!("`{}`: {}", words.first().copied().unwrap_or_default(), denial.reason);
            denial
        })
    }

    /// Judges a program that is another agent, or a copy of this one.
    fn check_other_agents(
        &self,
        program: &ShellProgram,
        folder: &Path,
        native: &str,
        denied: &dyn Fn(&str, String) -> Denial,
    ) -> Result<(), Denial> {
        let candidates = if program.starts_others { program.words.len() } else { 1 };
        for word in program.words.iter().take(candidates) {
            // The whole of a word that another shell would split.
            for part in word.text.split_whitespace() {
                let name = base_name(
                    part.split_once('@').filter(|(name, _)| !name.is_empty()).map_or(part, |(name, _)| name),
                );
                if AGENTS.contains(&name) {
                    self.authorize_agent(name, folder, &format!("{native}: {name}"))?;
                }
                if self.own_programs.iter().any(|own| own == name) {
                    let harmless = program.words.get(1..).unwrap_or_default();
                    if harmless
                        .iter()
                        .all(|word| matches!(word.value(), Some("--version" | "--help" | "-h" | "-V")))
                        && !harmless.is_empty()
                    {
                        continue;
                    }
                    let reason = format!(
                        "`{name}` started from here would be another caller, with a role of its own; use the tools of the CoreTools \
                         server that this client is connected to"
                    );
                    return Err(denied("own programs", reason));
                }
            }
        }
        Ok(())
    }
}

/// Returns the name of a program or a package without the folders before it.
pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
