//! The keys of a rule in a policy file: conditions on arguments, commands and hosts, and its examples.

use super::draft::{DraftRule, ExpectedDecision, PolicyExample};
use super::{DraftReader, TomlField};
use crate::otherwise::Otherwise;
use crate::path_rule::PathRule;
use crate::rule::{ArgumentRule, ArgumentTest, CommandRule};
use egress_proxy::{AllowedHosts, NetworkAccess};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// The forms of `network`.
const NETWORK_FORMS: &str =
    "\"none\", \"allow\" or { hosts = [\"git.example.com\", \"*.packages.example:443\"] }";

impl DraftReader<'_> {
    pub(super) fn rule(&mut self, line: usize, table: &DeTable<'_>) -> DraftRule {
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
    pub(super) fn network(&mut self, value: TomlField<'_, '_>) -> Option<NetworkAccess> {
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

    pub(super) fn arguments(&mut self, value: TomlField<'_, '_>) -> Vec<ArgumentRule> {
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

    pub(super) fn commands(&mut self, value: TomlField<'_, '_>) -> Vec<Vec<String>> {
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

    pub(super) fn examples(
        &mut self,
        value: TomlField<'_, '_>,
        key: &str,
        examples: &mut Vec<PolicyExample>,
    ) {
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
}
