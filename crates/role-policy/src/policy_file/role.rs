//! The keys of a role in a policy file.

use super::draft::{DraftRole, LocatedText};
use super::{DraftReader, TomlField};
use crate::limits::RoleLimits;
use crate::system_calls::SystemCallGroup;
use toml::de::{DeTable, DeValue};

/// The largest weight that the kernel takes.
const MAX_CPU_WEIGHT: u64 = 10_000;

impl DraftReader<'_> {
    pub(super) fn role(&mut self, name: LocatedText, table: &DeTable<'_>) -> DraftRole {
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

    pub(super) fn system_calls(&mut self, value: TomlField<'_, '_>) -> Vec<SystemCallGroup> {
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

    pub(super) fn limits(&mut self, value: TomlField<'_, '_>) -> RoleLimits {
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
}
