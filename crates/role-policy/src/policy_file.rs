//! The format of a policy file: from text to a [`PolicyDraft`], with the place of everything.

mod credentials;
mod draft;
mod role;
mod rule;
mod typed_values;

pub(crate) use draft::{
    DraftDispatch, DraftRole, DraftRule, ExpectedDecision, LocatedText, PolicyDraft, PolicyExample,
};

use crate::problem::{PolicyProblem, ProblemSeverity};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The most roles in a file. More are a mistake.
const MAX_ROLES: usize = 256;

/// The most bytes of a file. A larger one is a mistake.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// Reads `text`. Everything that is wrong is added to `problems`; what could be read is in the draft.
pub(crate) fn read(text: &str, file: &str, problems: &mut Vec<PolicyProblem>) -> PolicyDraft {
    let mut reader =
        DraftReader { file, newlines: text.match_indices('\n').map(|(at, _)| at).collect(), problems };
    let mut draft = PolicyDraft::default();
    if text.len() > MAX_BYTES {
        reader.error(1, format!("the file has {} bytes; at most {MAX_BYTES} are read", text.len()));
        return draft;
    }
    match DeTable::parse(text) {
        Ok(table) => reader.file(table.get_ref(), &mut draft),
        Err(error) => {
            let line = reader.line(error.span().unwrap_or_default().start);
            reader.error(line, error.message().replace('\n', ", "));
        }
    }
    draft
}

struct DraftReader<'a> {
    file: &'a str,
    // The parser reports offsets. A binary search in this list finds the line of one.
    newlines: Vec<usize>,
    problems: &'a mut Vec<PolicyProblem>,
}

type TomlField<'a, 'i> = &'a Spanned<DeValue<'i>>;

impl DraftReader<'_> {
    fn line(&self, offset: usize) -> usize {
        self.newlines.partition_point(|newline| *newline < offset) + 1
    }

    fn line_of(&self, value: TomlField<'_, '_>) -> usize {
        self.line(value.span().start)
    }

    fn error(&mut self, line: usize, message: String) {
        self.problems.push(PolicyProblem {
            severity: ProblemSeverity::Error,
            file: self.file.to_owned(),
            line,
            message,
        });
    }

    fn expected(&mut self, value: TomlField<'_, '_>, key: &str, expected: &str) {
        let (line, found) = (self.line_of(value), value.get_ref().type_str());
        self.error(line, format!("`{key}` is of type {found}; expected {expected}"));
    }

    fn file(&mut self, table: &DeTable<'_>, draft: &mut PolicyDraft) {
        const KEYS: [&str; 6] = ["version", "external_tools", "missing_role", "derived", "dispatch", "roles"];
        let mut version = false;
        for (key, line, value) in self.members(table, &KEYS) {
            match key {
                "version" => {
                    version = true;
                    if self.number(value, key) != Some(1) {
                        self.error(line, "`version` must be 1, the only one there is".to_owned());
                    }
                }
                "external_tools" => draft.external_tools = self.texts(value, key),
                "missing_role" => draft.missing_role = self.text(value, key),
                "derived" => {
                    for entry in self.tables(value, key) {
                        let (mut command, mut role) = (None, None);
                        for (key, _, value) in self.members(entry.1, &["command", "role"]) {
                            let place = if key == "command" { &mut command } else { &mut role };
                            *place = self.text(value, key);
                        }
                        match (command, role) {
                            (Some(command), Some(role)) => draft.derived.push((command, role)),
                            _ => self.error(
                                entry.0,
                                "an entry of `derived` needs `command` and `role`".to_owned(),
                            ),
                        }
                    }
                }
                "dispatch" => {
                    for (line, entry) in self.tables(value, key) {
                        let (mut tool, mut name, mut arguments) = (None, None, None);
                        for (key, _, value) in self.members(entry, &["tool", "name", "arguments"]) {
                            let place = match key {
                                "tool" => &mut tool,
                                "name" => &mut name,
                                _ => &mut arguments,
                            };
                            *place = self.text(value, key);
                        }
                        for pointer in [&name, &arguments].into_iter().flatten() {
                            if !pointer.text.starts_with('/') {
                                self.error(
                                    pointer.line,
                                    format!("`{}` is no JSON Pointer, which begins with `/`", pointer.text),
                                );
                            }
                        }
                        match (tool, name) {
                            (Some(tool), Some(name)) => draft.dispatch.push(DraftDispatch {
                                tool,
                                name: name.text,
                                arguments: arguments.map(|arguments| arguments.text),
                            }),
                            _ => {
                                self.error(line, "an entry of `dispatch` needs `tool` and `name`".to_owned());
                            }
                        }
                    }
                }
                _ => match value.get_ref() {
                    DeValue::Table(roles) => {
                        let mut members: Vec<_> = roles.iter().collect();
                        members.sort_by_key(|(name, _)| name.span().start);
                        for (name, role) in members {
                            let line = self.line(name.span().start);
                            let name = LocatedText { text: name.get_ref().to_string(), line };
                            if let Some(wrong) = wrong_role_name(&name.text) {
                                self.error(line, format!("`{}` is no name for a role: {wrong}", name.text));
                            }
                            match role.get_ref() {
                                DeValue::Table(role) => draft.roles.push(self.role(name, role)),
                                _ => self.expected(role, &name.text, "a table `[roles.NAME]`"),
                            }
                        }
                    }
                    _ => self.expected(value, key, "tables `[roles.NAME]`"),
                },
            }
        }
        if draft.roles.len() > MAX_ROLES {
            self.error(
                1,
                format!("the file declares {} roles; at most {MAX_ROLES} are taken", draft.roles.len()),
            );
            // So that nothing is compiled from it: some checks compare every role with every other.
            draft.roles.clear();
        }
        if !version {
            self.error(1, "`version = 1` is missing".to_owned());
        }
    }
}

/// Returns what makes a text unfit as the name of a role, which is written into markers, tokens and file names.
pub(crate) fn wrong_role_name(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > 32 {
        return Some("it must have 1 to 32 characters");
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some("it must begin with a small letter");
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    (!name.chars().all(fits)).then_some("only small letters, digits, `_` and `-` may be in it")
}
