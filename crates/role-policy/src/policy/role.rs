//! One role: its entries, and its verdict on each tool.

use crate::decision::Refusal;
use crate::limits::RoleLimits;
use crate::quoted::quoted;
use crate::rule::{Rule, ToolSelector};
use crate::scope::CallScope;
use crate::system_calls::SystemCallGroup;
use crate::tool::{Effect, OwnedToolFacts, ToolFacts};
use egress_proxy::CredentialRule;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// One role, with all that it extends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) allow: Vec<ToolEntry>,
    pub(crate) deny: Vec<ToolEntry>,
    pub(crate) ask: Vec<ToolEntry>,
    pub(crate) rules: Vec<Arc<Rule>>,
    pub(crate) may_use: Vec<String>,
    pub(crate) documents: Vec<String>,
    pub(crate) system_calls: Vec<SystemCallGroup>,
    pub(crate) credentials: Vec<Arc<CredentialRule>>,
    pub(crate) limits: RoleLimits,
    /// The tools that were known at load.
    pub(crate) known: Arc<[OwnedToolFacts]>,
    /// The verdicts on them.
    pub(crate) table: OnceLock<HashMap<String, KnownToolVerdict>>,
    /// The reason for hiding a tool that nothing allows.
    pub(crate) unlisted: Option<Arc<str>>,
}

/// One entry of `allow`, `deny` or `ask`.
#[derive(Clone, Debug)]
pub(crate) struct ToolEntry {
    pub(crate) selector: ToolSelector,
    /// ``dev: allow `git_*` (roles.toml:12)``
    pub(crate) label: Arc<str>,
    pub(crate) line: usize,
}

/// A tool that was known at load, as it was then.
#[derive(Clone, Debug)]
pub(crate) struct KnownToolVerdict {
    toolset: String,
    annotations: SelectorAnnotations,
    pub(super) verdict: ToolVerdict,
}

/// The annotations of a tool that selectors choose by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SelectorAnnotations {
    read_only: bool,
    destructive: bool,
    open_world: bool,
}

impl SelectorAnnotations {
    fn of(tool: &ToolFacts<'_>) -> Self {
        let ToolFacts { read_only, destructive, open_world, .. } = *tool;
        Self { read_only, destructive, open_world }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum ToolVerdict {
    Hidden(Arc<str>),
    Visible {
        label: Arc<str>,
        /// The entry that asks a person about every call.
        ask: Option<Arc<str>>,
        rules: Vec<Arc<Rule>>,
        scope: CallScope,
    },
}

impl Role {
    /// Returns the verdicts on the known tools. They are reached once the first is asked for, as most servers have callers
    /// of one role or two.
    pub(super) fn table(&self) -> &HashMap<String, KnownToolVerdict> {
        self.table.get_or_init(|| {
            let entries = self.known.iter().map(|known| {
                let tool = known.facts();
                let entry = KnownToolVerdict {
                    toolset: tool.toolset.to_owned(),
                    annotations: SelectorAnnotations::of(&tool),
                    verdict: self.judge(&tool),
                };
                (tool.name.to_owned(), entry)
            });
            entries.collect()
        })
    }

    /// Returns its verdict on a tool. For a tool that was known at load, and has the same facts, it is looked up.
    pub(crate) fn verdict(&self, tool: &ToolFacts<'_>) -> Cow<'_, ToolVerdict> {
        // The facts come from the caller, so a known name is not enough: with another toolset or annotation other
        // entries match. No selector looks at effects, so these are not compared.
        match self.table().get(tool.name) {
            Some(entry)
                if entry.annotations == SelectorAnnotations::of(tool) && entry.toolset == tool.toolset =>
            {
                Cow::Borrowed(&entry.verdict)
            }
            _ => Cow::Owned(self.judge(tool)),
        }
    }

    /// Judges a tool: deny beats ask, ask beats allow, and what nothing matches is denied.
    fn judge(&self, tool: &ToolFacts<'_>) -> ToolVerdict {
        let find = |list: &[ToolEntry]| {
            list.iter().find(|entry| entry.selector.matches(tool)).map(|entry| Arc::clone(&entry.label))
        };
        if let Some(denied) = find(&self.deny) {
            return ToolVerdict::Hidden(denied);
        }
        let ask = find(&self.ask);
        let Some(label) = find(&self.allow).or_else(|| ask.clone()) else {
            return ToolVerdict::Hidden(match &self.unlisted {
                Some(label) => Arc::clone(label),
                None => "nothing allows it".into(),
            });
        };
        let rules: Vec<Arc<Rule>> =
            self.rules.iter().filter(|rule| rule.concerns(tool)).map(Arc::clone).collect();
        let mut scope = CallScope::default();
        rules.iter().for_each(|rule| rule.extend(&mut scope));
        ToolVerdict::Visible { label, ask, rules, scope }
    }

    pub(super) fn may_use(&self, other: &str) -> bool {
        other == self.name || self.may_use.iter().any(|allowed| allowed == other || allowed == "*")
    }

    /// Checks that a role which the arguments ask for is one that this role may use.
    pub(super) fn check_role_arguments(
        &self,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        for effect in tool.effects {
            let Effect::Role(name) = effect else { continue };
            let reason = match arguments.get(*name) {
                None | Some(Value::Null) => continue,
                Some(Value::String(asked)) if self.may_use(asked) => continue,
                Some(Value::String(_)) => {
                    let mut allowed = vec![self.name.clone()];
                    allowed.extend(self.may_use.iter().cloned());
                    format!("`{name}`: the role {} may use {}", self.name, quoted(&allowed))
                }
                Some(_) => format!("`{name}` is no role's name"),
            };
            let rule = format!("{}: may_use", self.name).into();
            return Err(Refusal::Arguments { rule, reason });
        }
        Ok(())
    }
}
