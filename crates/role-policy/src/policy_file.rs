//! The format of a policy file: from text to a [`PolicyDraft`], with the place of everything.

use crate::limits::RoleLimits;
use crate::otherwise::Otherwise;
use crate::path_rule::PathRule;
use crate::problem::{PolicyProblem, Severity};
use crate::rule::{ArgumentRule, ArgumentTest, CommandRule, ToolSelector};
use crate::system_calls::SystemCallGroup;
use egress_proxy::{AllowedHosts, CredentialRule, NetworkAccess};
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

mod credentials;

/// The largest weight that the kernel takes.
const MAX_CPU_WEIGHT: u64 = 10_000;

/// A policy file, as it stands.
#[derive(Debug, Default)]
pub(crate) struct PolicyDraft {
    pub(crate) external_tools: Vec<LocatedText>,
    pub(crate) missing_role: Option<LocatedText>,
    pub(crate) derived: Vec<(LocatedText, LocatedText)>,
    pub(crate) dispatch: Vec<DraftDispatch>,
    pub(crate) roles: Vec<DraftRole>,
}

/// A text, and its line.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocatedText {
    pub(crate) text: String,
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct DraftDispatch {
    pub(crate) tool: LocatedText,
    pub(crate) name: String,
    pub(crate) arguments: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct DraftRole {
    pub(crate) name: LocatedText,
    pub(crate) description: String,
    pub(crate) extends: Vec<LocatedText>,
    pub(crate) allow: Vec<(LocatedText, ToolSelector)>,
    pub(crate) deny: Vec<(LocatedText, ToolSelector)>,
    pub(crate) ask: Vec<(LocatedText, ToolSelector)>,
    pub(crate) may_use: Vec<LocatedText>,
    pub(crate) documents: Vec<String>,
    pub(crate) roots: Option<Vec<String>>,
    /// The network that programs may reach, and its line.
    pub(crate) network: Option<(usize, NetworkAccess)>,
    /// Credentials that the proxy puts into requests of programs, with their lines. A role has those of the roles that it
    /// extends too.
    pub(crate) credentials: Vec<(usize, CredentialRule)>,
    /// Groups of system calls that programs may make. A role has those of the roles that it extends too.
    pub(crate) system_calls: Vec<SystemCallGroup>,
    pub(crate) limits: RoleLimits,
    pub(crate) rules: Vec<DraftRule>,
    pub(crate) examples: Vec<PolicyExample>,
}

#[derive(Debug, Default)]
pub(crate) struct DraftRule {
    pub(crate) id: String,
    pub(crate) line: usize,
    pub(crate) tools: Vec<(LocatedText, ToolSelector)>,
    pub(crate) paths: Option<PathRule>,
    pub(crate) commands: Option<CommandRule>,
    pub(crate) sql_read_only: bool,
    pub(crate) network: Option<NetworkAccess>,
    pub(crate) arguments: Vec<ArgumentRule>,
    pub(crate) only: bool,
    pub(crate) additional_arguments: bool,
    pub(crate) reason: Option<String>,
    pub(crate) otherwise: Otherwise,
    pub(crate) examples: Vec<PolicyExample>,
}

/// A call, with the decision that the policy must make about it.
#[derive(Debug)]
pub(crate) struct PolicyExample {
    pub(crate) line: usize,
    pub(crate) expected: ExpectedDecision,
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Map<String, Value>,
}

/// The forms of `network`.
const NETWORK_FORMS: &str =
    "\"none\", \"allow\" or { hosts = [\"git.example.com\", \"*.packages.example:443\"] }";

/// The decision that an example expects. It is displayed as the participle of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedDecision {
    Allow,
    Ask,
    Deny,
}

impl std::fmt::Display for ExpectedDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Allow => "allowed",
            Self::Ask => "asked about",
            Self::Deny => "denied",
        })
    }
}

/// The most roles in a file. More are a mistake.
const MAX_ROLES: usize = 256;

/// The most bytes of a tool's name. A longer one is a mistake.
const MAX_NAME: usize = 128;

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
            severity: Severity::Error,
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

    fn role(&mut self, name: LocatedText, table: &DeTable<'_>) -> DraftRole {
        const KEYS: [&str; 16] = [
            "description",
            "extends",
            "allow",
            "deny",
            "ask",
            "may_use",
            "documents",
            "roots",
            "network",
            "credentials",
            "system_calls",
            "limits",
            "require",
            "must_allow",
            "must_ask",
            "must_deny",
        ];
        let mut role = DraftRole { name, ..DraftRole::default() };
        for (key, line, value) in self.members(table, &KEYS) {
            match key {
                "description" => role.description = self.text(value, key).unwrap_or_default().text,
                "extends" => role.extends = self.texts(value, key),
                "allow" => role.allow = self.selectors(value, key),
                "deny" => role.deny = self.selectors(value, key),
                "ask" => role.ask = self.selectors(value, key),
                "may_use" => role.may_use = self.texts(value, key),
                "documents" => role.documents = self.strings(value, key),
                "roots" => role.roots = Some(self.folders(value, key)),
                "network" => role.network = self.network(value).map(|network| (line, network)),
                "credentials" => role.credentials = self.credentials(value),
                "system_calls" => role.system_calls = self.system_calls(value),
                "limits" => role.limits = self.limits(value),
                "require" => {
                    for (line, rule) in self.tables(value, key) {
                        let rule = self.rule(line, rule);
                        // Refusals, the audit and explanations name a rule by its id.
                        let same = role.rules.iter().find(|other| !rule.id.is_empty() && other.id == rule.id);
                        if let Some(line_of_other) = same.map(|other| other.line) {
                            self.error(
                                line,
                                format!(
                                    "the role has a rule `{}` already, in line {line_of_other}; give each rule an `id` of its own",
                                    rule.id
                                ),
                            );
                        }
                        role.rules.push(rule);
                    }
                }
                _ => self.examples(value, key, &mut role.examples),
            }
        }
        role
    }

    fn system_calls(&mut self, value: TomlField<'_, '_>) -> Vec<SystemCallGroup> {
        let mut groups = Vec::new();
        for text in self.texts(value, "system_calls") {
            match SystemCallGroup::from_name(&text.text) {
                Some(group) => groups.push(group),
                None => {
                    let allowed = SystemCallGroup::ALL.map(|group| format!("`{group}`")).join(", ");
                    let message = format!("`system_calls` has `{}`; it may have {allowed}", text.text);
                    self.error(text.line, message);
                }
            }
        }
        groups
    }

    fn limits(&mut self, value: TomlField<'_, '_>) -> RoleLimits {
        const KEYS: [&str; 7] = [
            "calls_per_minute",
            "concurrent_calls",
            "max_argument_bytes",
            "max_seconds",
            "max_memory_mib",
            "max_processes",
            "cpu_weight",
        ];
        let mut limits = RoleLimits::default();
        let DeValue::Table(table) = value.get_ref() else {
            self.expected(value, "limits", "a table");
            return limits;
        };
        for (key, line, value) in self.members(table, &KEYS) {
            let number = self.number(value, key);
            if number == Some(0) {
                self.error(
                    line,
                    format!("`{key}` is 0, with which no call ever runs; to hide tools use `deny`"),
                );
            }
            if key == "cpu_weight" && number.is_some_and(|weight| weight > MAX_CPU_WEIGHT) {
                self.error(
                    line,
                    format!("`cpu_weight` is above {MAX_CPU_WEIGHT}; it may be 1 to {MAX_CPU_WEIGHT}"),
                );
            }
            match key {
                "calls_per_minute" => limits.calls_per_minute = number,
                "concurrent_calls" => limits.concurrent_calls = number,
                "max_argument_bytes" => limits.max_argument_bytes = number,
                "max_seconds" => limits.max_seconds = number,
                "max_memory_mib" => limits.max_memory_mib = number,
                "max_processes" => limits.max_processes = number,
                _ => limits.cpu_weight = number,
            }
        }
        limits
    }

    fn rule(&mut self, line: usize, table: &DeTable<'_>) -> DraftRule {
        const KEYS: [&str; 17] = [
            "id",
            "tools",
            "read_within",
            "write_within",
            "not_within",
            "commands",
            "environment",
            "sql",
            "network",
            "arguments",
            "only",
            "additional_arguments",
            "reason",
            "otherwise",
            "must_allow",
            "must_ask",
            "must_deny",
        ];
        let mut rule = DraftRule { line, ..DraftRule::default() };
        let (mut environment, mut has_condition) = (None, false);
        for (key, key_line, value) in self.members(table, &KEYS) {
            // Those with `environment` and `additional_arguments` are none: they only widen `commands` and `arguments`.
            has_condition |= !matches!(
                key,
                "id" | "tools"
                    | "reason"
                    | "otherwise"
                    | "must_allow"
                    | "must_ask"
                    | "must_deny"
                    | "environment"
                    | "additional_arguments"
            );
            match key {
                "id" => rule.id = self.text(value, key).unwrap_or_default().text,
                "tools" => rule.tools = self.selectors(value, key),
                "read_within" => {
                    rule.paths.get_or_insert_default().read_within = Some(self.folders(value, key));
                }
                "write_within" => {
                    rule.paths.get_or_insert_default().write_within = Some(self.folders(value, key));
                }
                "not_within" => rule.paths.get_or_insert_default().not_within = self.folders(value, key),
                "commands" => {
                    rule.commands =
                        Some(CommandRule { allowed: self.commands(value), ..CommandRule::default() });
                }
                "environment" => environment = Some((key_line, self.strings(value, key))),
                "sql" => match value.get_ref().as_str() {
                    Some("read") => rule.sql_read_only = true,
                    _ => self.expected(value, key, "\"read\""),
                },
                "network" => rule.network = self.network(value),
                "arguments" => rule.arguments = self.arguments(value),
                "only" => match value.get_ref().as_bool() {
                    Some(only) => rule.only = only,
                    None => self.expected(value, key, "true or false"),
                },
                "additional_arguments" => match value.get_ref().as_bool() {
                    Some(additional) => rule.additional_arguments = additional,
                    None => self.expected(value, key, "true or false"),
                },
                "reason" => rule.reason = self.text(value, key).map(|reason| reason.text),
                "otherwise" => match value.get_ref().as_str() {
                    Some("ask") => rule.otherwise = Otherwise::Ask,
                    Some("deny") => rule.otherwise = Otherwise::Deny,
                    _ => self.expected(value, key, "\"ask\" or \"deny\""),
                },
                _ => self.examples(value, key, &mut rule.examples),
            }
        }
        match (environment, &mut rule.commands) {
            (Some((_, names)), Some(commands)) => commands.environment = names,
            (Some((line, _)), None) => {
                self.error(line, "`environment` belongs to `commands`, which is missing".to_owned());
            }
            (None, _) => {}
        }
        if rule.additional_arguments && rule.only {
            let problem = "`additional_arguments` takes what `only` refuses; leave one of them out";
            self.error(line, problem.to_owned());
        }
        if rule.id.is_empty() {
            self.error(line, "a rule needs an `id`, by which refusals and the audit name it".to_owned());
        }
        if rule.tools.is_empty() {
            self.error(line, format!("the rule `{}` needs `tools`, those it speaks of", rule.id));
        }
        if !has_condition {
            self.error(
                line,
                format!(
                    "the rule `{}` requires nothing; it may have `read_within`, `write_within`, `not_within`, \
                     `commands`, `sql`, `network`, `arguments` or `only`",
                    rule.id
                ),
            );
        }
        rule
    }

    /// Reads `"none"`, `"allow"` or `{ hosts = […] }`.
    fn network(&mut self, value: TomlField<'_, '_>) -> Option<NetworkAccess> {
        let table = match value.get_ref() {
            DeValue::String(text) if text == "none" => return Some(NetworkAccess::None),
            DeValue::String(text) if text == "allow" => return Some(NetworkAccess::Allow),
            DeValue::Table(table) => table,
            DeValue::String(text) => {
                let line = self.line_of(value);
                self.error(line, format!("`network` is \"{text}\"; expected {NETWORK_FORMS}"));
                return None;
            }
            _ => {
                self.expected(value, "network", NETWORK_FORMS);
                return None;
            }
        };
        let mut hosts = None;
        for (key, _, value) in self.members(table, &["hosts"]) {
            let entries = self.texts(value, key);
            for entry in &entries {
                if let Err(error) = AllowedHosts::parse([&entry.text]) {
                    self.error(entry.line, error.to_string());
                }
            }
            hosts = AllowedHosts::parse(entries.iter().map(|entry| &entry.text)).ok();
        }
        if hosts.is_none() && table.is_empty() {
            let line = self.line_of(value);
            self.error(line, format!("`network` names no hosts; expected {NETWORK_FORMS}"));
        }
        hosts.map(NetworkAccess::Hosts)
    }

    fn arguments(&mut self, value: TomlField<'_, '_>) -> Vec<ArgumentRule> {
        const KEYS: [&str; 10] = [
            "one_of",
            "equals",
            "matches",
            "max_length",
            "min",
            "max",
            "absent",
            "optional",
            "within",
            "not_within",
        ];
        let DeValue::Table(table) = value.get_ref() else {
            self.expected(value, "arguments", "a table of arguments");
            return Vec::new();
        };
        let mut members: Vec<_> = table.iter().collect();
        members.sort_by_key(|(name, _)| name.span().start);
        let mut arguments = Vec::new();
        for (name, tests) in members {
            let mut rule =
                ArgumentRule { location: name.get_ref().to_string(), optional: false, tests: Vec::new() };
            let DeValue::Table(tests) = tests.get_ref() else {
                self.expected(tests, &rule.location, "a table such as { one_of = [\"create\"] }");
                continue;
            };
            let mut path = None;
            for (key, line, value) in self.members(tests, &KEYS) {
                match key {
                    "one_of" => match value.get_ref() {
                        DeValue::Array(values) => {
                            let values = values.iter().filter_map(|value| self.json(value)).collect();
                            rule.tests.push(ArgumentTest::OneOf(values));
                        }
                        _ => self.expected(value, key, "a list of values"),
                    },
                    "equals" => {
                        rule.tests.extend(self.json(value).map(|value| ArgumentTest::OneOf(vec![value])));
                    }
                    "matches" => {
                        rule.tests.extend(self.text(value, key).map(|glob| ArgumentTest::Glob(glob.text)));
                    }
                    "max_length" => rule.tests.extend(self.number(value, key).map(ArgumentTest::MaxLength)),
                    "min" => rule.tests.extend(self.float(value, key).map(ArgumentTest::Min)),
                    "max" => rule.tests.extend(self.float(value, key).map(ArgumentTest::Max)),
                    "absent" | "optional" => match value.get_ref().as_bool() {
                        Some(true) if key == "absent" => rule.tests.push(ArgumentTest::Absent),
                        Some(optional) if key == "optional" => rule.optional = optional,
                        Some(_) => self.error(line, "`absent` can only be true".to_owned()),
                        None => self.expected(value, key, "true or false"),
                    },
                    "within" => {
                        let within = self.folders(value, key);
                        let path: &mut PathRule = path.get_or_insert_default();
                        // An argument's path is judged for both accesses (`ArgumentTest::Path`).
                        path.read_within = Some(within.clone());
                        path.write_within = Some(within);
                    }
                    _ => path.get_or_insert_default().not_within = self.folders(value, key),
                }
            }
            rule.tests.extend(path.map(ArgumentTest::Path));
            arguments.push(rule);
        }
        arguments
    }

    fn commands(&mut self, value: TomlField<'_, '_>) -> Vec<Vec<String>> {
        let DeValue::Array(commands) = value.get_ref() else {
            self.expected(value, "commands", "a list of commands, each a text or a list of words");
            return Vec::new();
        };
        let mut allowed = Vec::new();
        for command in commands.iter() {
            let words: Option<Vec<String>> = match command.get_ref() {
                // A text is split at blanks alone. A quote would become part of a word, which nobody means who
                // writes one.
                DeValue::String(line) if line.contains(['"', '\'', '\\']) => {
                    let line = self.line_of(command);
                    self.error(
                        line,
                        "a command with quotes or backslashes must be a list of words".to_owned(),
                    );
                    continue;
                }
                DeValue::String(line) => Some(line.split_whitespace().map(str::to_owned).collect()),
                DeValue::Array(words) => {
                    words.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect()
                }
                _ => None,
            };
            match words {
                Some(words) if words.first().is_some_and(|program| !program.is_empty()) => {
                    allowed.push(words);
                }
                _ => self.expected(
                    command,
                    "commands",
                    "a program and its first arguments, a text or a list of words",
                ),
            }
        }
        allowed
    }

    fn examples(&mut self, value: TomlField<'_, '_>, key: &str, examples: &mut Vec<PolicyExample>) {
        for (line, table) in self.tables(value, key) {
            let expected = match key {
                "must_allow" => ExpectedDecision::Allow,
                "must_ask" => ExpectedDecision::Ask,
                _ => ExpectedDecision::Deny,
            };
            let mut example = PolicyExample { line, expected, tool: None, arguments: Map::new() };
            for (key, _, value) in self.members(table, &["tool", "arguments"]) {
                match (key, value.get_ref()) {
                    ("tool", _) => example.tool = self.text(value, key).map(|tool| tool.text),
                    (_, DeValue::Table(_)) => {
                        if let Some(Value::Object(arguments)) = self.json(value) {
                            example.arguments = arguments;
                        }
                    }
                    _ => self.expected(value, key, "a table of arguments"),
                }
            }
            examples.push(example);
        }
    }

    /// Returns the members of a table in the order of the file. An unknown key is reported and left out.
    // It is an error and not ignored: a misspelt `deny` would leave everything open.
    fn members<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        known: &[&'static str],
    ) -> Vec<(&'static str, usize, TomlField<'t, 'i>)> {
        let mut members: Vec<_> = table.iter().collect();
        // `DeTable` need not keep the order of the file, in which rules are asked and problems are listed.
        members.sort_by_key(|(name, _)| name.span().start);
        let mut found = Vec::with_capacity(members.len());
        for (name, value) in members {
            let line = self.line(name.span().start);
            match known.iter().find(|key| **key == name.get_ref().as_ref()) {
                Some(key) => found.push((*key, line, value)),
                None => {
                    let hint = match did_you_mean::nearest(name.get_ref(), known.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the keys here are {}", known.join(", ")),
                    };
                    self.error(line, format!("unknown key `{}`; {hint}", name.get_ref()));
                }
            }
        }
        found
    }

    fn text(&mut self, value: TomlField<'_, '_>, key: &str) -> Option<LocatedText> {
        let line = self.line_of(value);
        match value.get_ref() {
            DeValue::String(text) => Some(LocatedText { text: text.to_string(), line }),
            _ => {
                self.expected(value, key, "a text");
                None
            }
        }
    }

    /// Reads a list of texts, or one text alone.
    fn texts(&mut self, value: TomlField<'_, '_>, key: &str) -> Vec<LocatedText> {
        match value.get_ref() {
            DeValue::Array(values) => values.iter().filter_map(|value| self.text(value, key)).collect(),
            DeValue::String(_) => self.text(value, key).into_iter().collect(),
            _ => {
                self.expected(value, key, "a list of texts");
                Vec::new()
            }
        }
    }

    fn strings(&mut self, value: TomlField<'_, '_>, key: &str) -> Vec<String> {
        self.texts(value, key).into_iter().map(|text| text.text).collect()
    }

    fn selectors(&mut self, value: TomlField<'_, '_>, key: &str) -> Vec<(LocatedText, ToolSelector)> {
        let mut selectors = Vec::new();
        for text in self.texts(value, key) {
            if text.text.len() > MAX_NAME {
                self.error(text.line, format!("a name in `{key}` is longer than {MAX_NAME} bytes"));
                continue;
            }
            match ToolSelector::parse(&text.text) {
                Ok(selector) => selectors.push((text, selector)),
                Err(wrong) => self.error(text.line, format!("`{}` in `{key}`: {wrong}", text.text)),
            }
        }
        selectors
    }

    /// Reads folders into the form in which resolved paths are compared with them.
    fn folders(&mut self, value: TomlField<'_, '_>, key: &str) -> Vec<String> {
        let mut folders = Vec::new();
        for LocatedText { text, line } in self.texts(value, key) {
            let (root, path) = match text.split_once(':') {
                Some((root, path)) => (Some(root), path),
                None => (None, text.as_str()),
            };
            let path = path.strip_suffix('/').unwrap_or(path).replace("/./", "/");
            let path = path.strip_prefix("./").unwrap_or(&path);
            let path = if path.is_empty() { "." } else { path };
            // Folders are compared literally. Who writes `src/*` expects a pattern, and would get a rule that
            // matches nothing.
            if path.starts_with('/')
                || path.contains(['*', '\\', '\0'])
                || path.split('/').any(|part| matches!(part, "" | ".."))
            {
                self.error(
                    line,
                    format!(
                        "`{text}` in `{key}` is no folder or file beneath a root: expected a path such as `src`, `.` for \
                         all of the first root, or `name:path` in another, without `..` and `*`"
                    ),
                );
                continue;
            }
            folders.push(match root {
                Some(root) => format!("{root}:{path}"),
                None => path.to_owned(),
            });
        }
        folders
    }

    fn tables<'t, 'i>(
        &mut self,
        value: &'t Spanned<DeValue<'i>>,
        key: &str,
    ) -> Vec<(usize, &'t DeTable<'i>)> {
        let DeValue::Array(entries) = value.get_ref() else {
            self.expected(value, key, "a list of tables");
            return Vec::new();
        };
        let mut tables = Vec::new();
        for entry in entries.iter() {
            match entry.get_ref() {
                DeValue::Table(table) => tables.push((self.line_of(entry), table)),
                _ => self.expected(entry, key, "a table"),
            }
        }
        tables
    }

    fn number(&mut self, value: TomlField<'_, '_>, key: &str) -> Option<u64> {
        let number = value.get_ref().as_integer();
        // TOML allows `1_000`, and `from_str_radix` does not.
        let number = number
            .and_then(|number| u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok());
        if number.is_none() {
            self.expected(value, key, "a whole number, 0 or more");
        }
        number
    }

    fn float(&mut self, value: TomlField<'_, '_>, key: &str) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        // A comparison with NaN is never true, which would be a limit that nobody meant.
        let number = number.filter(|number: &f64| number.is_finite());
        if number.is_none() {
            self.expected(value, key, "a number");
        }
        number
    }

    /// Converts a TOML value to the JSON that a call would have.
    fn json(&mut self, value: TomlField<'_, '_>) -> Option<Value> {
        let converted = match value.get_ref() {
            DeValue::String(text) => Some(Value::String(text.to_string())),
            DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
            DeValue::Integer(number) => {
                i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok().map(Value::from)
            }
            DeValue::Float(number) => {
                number.as_str().replace('_', "").parse().ok().and_then(Number::from_f64).map(Value::Number)
            }
            DeValue::Array(values) => {
                values.iter().map(|value| self.json(value)).collect::<Option<_>>().map(Value::Array)
            }
            DeValue::Table(table) => table
                .iter()
                .map(|(name, value)| Some((name.get_ref().to_string(), self.json(value)?)))
                .collect::<Option<_>>()
                .map(Value::Object),
            DeValue::Datetime(_) => None,
        };
        if converted.is_none() {
            let line = self.line_of(value);
            self.error(line, "this value has no counterpart in JSON".to_owned());
        }
        converted
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
