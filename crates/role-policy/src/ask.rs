//! Rules that ask a person instead of refusing a call.

use crate::access::Access;
use crate::approval::with_program;
use crate::argument_names;
use crate::effect_resolver::{EffectResolver, PatchedPath};
use crate::path_rule::PathRule;
use crate::rule::{ArgumentRule, Rule, element_path, in_shell};
use crate::tool::{Effect, ToolFacts};
use crate::violation::{PathViolation, RuleViolation};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A rule with `otherwise = "ask"` that does not hold for a call.
#[derive(Debug)]
pub(crate) struct UnmetRule {
    /// Every condition that does not hold, in words for the person.
    pub(crate) condition: String,
    /// The rule, as it holds for this one call once a person has approved it.
    pub(crate) approved: Rule,
}

/// A path that a call reaches through an argument.
struct ReachedPath {
    argument: &'static str,
    resolved: String,
    accesses: &'static [Access],
    /// True if its own name changes, with all that lies beneath it.
    own_name: bool,
}

impl Rule {
    /// Finds every condition that does not hold, of a rule that does not hold.
    ///
    /// # Errors
    /// A condition cannot be judged, so that nobody may be asked to approve it.
    pub(crate) fn unmet(
        &self,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<UnmetRule, RuleViolation> {
        let mut approved = self.clone();
        let mut violations: Vec<String> = Vec::new();
        let mut broken = |result: Result<(), RuleViolation>| match result {
            Ok(()) => Ok(false),
            Err(violation) if violation.may_be_approved() => {
                violations.push(violation.to_string());
                Ok(true)
            }
            Err(violation) => Err(violation),
        };
        if let Some(paths) = &self.paths {
            // What a tool of another server reaches is not declared, so there is no path to approve.
            let only_paths = Self { paths: Some(Arc::clone(paths)), ..self.without_conditions() };
            if tool.is_external() {
                only_paths.conditions(tool, arguments, effects)?;
            }
            let mut widened = PathRule::clone(paths);
            for reached in reached_paths(tool, arguments, effects, paths)? {
                for violation in widened.approve(&reached) {
                    broken(Err(RuleViolation::path(reached.argument)(violation)))?;
                }
            }
            approved.paths = Some(Arc::new(widened));
        }
        if self.commands.is_some() {
            let only_commands = Self { commands: self.commands.clone(), ..self.without_conditions() };
            match only_commands.conditions(tool, arguments, effects) {
                // The program is part of what the person approves. A word that comes to mean another program is then
                // asked about again.
                Err(violation @ RuleViolation::Program { .. }) => {
                    let program = self.program(tool, arguments, effects)?;
                    let message = with_program(&violation.to_string(), &program);
                    broken(Err(RuleViolation::Approvable { message }))?;
                }
                result => {
                    broken(result)?;
                }
            }
        }
        if self.sql_read_only {
            let only_sql = Self { sql_read_only: true, ..self.without_conditions() };
            approved.sql_read_only = !broken(only_sql.conditions(tool, arguments, effects))?;
        }
        for argument in &self.arguments {
            if tool.is_external() {
                argument_names::check_variants(&argument.location, arguments)?;
            }
            broken(argument.check(arguments, effects))?;
        }
        if self.only {
            for name in arguments.keys() {
                let known = self.arguments.iter().map(ArgumentRule::top_level_name);
                if !known.into_iter().any(|known| known == *name) {
                    broken(Err(RuleViolation::UnknownArgument { argument: name.clone() }))?;
                }
            }
        }
        let mut condition = violations.join("; ");
        if let Some(reason) = &self.reason {
            condition = format!("{condition}. {reason}");
        }
        Ok(UnmetRule { condition, approved })
    }

    fn without_conditions(&self) -> Self {
        Self {
            paths: None,
            commands: None,
            sql_read_only: false,
            arguments: Vec::new(),
            only: false,
            reason: None,
            ..self.clone()
        }
    }

    /// Returns the program that the command of a call starts.
    fn program(
        &self,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<String, RuleViolation> {
        let command = tool.effects.iter().find_map(|effect| match effect {
            Effect::Runs { command, .. } => Some(*command),
            _ => None,
        });
        let (Some(command), Some(rule)) = (command, &self.commands) else {
            return Err(RuleViolation::UndeclaredCommand { tool: tool.name.to_owned() });
        };
        let words = rule.words(command, in_shell(tool, arguments), arguments, effects)?;
        let Some(program) = words.first() else {
            return Err(RuleViolation::EmptyCommand { argument: command.to_owned() });
        };
        effects.resolve_program(program).map_err(RuleViolation::unresolved(command))
    }
}

impl PathRule {
    /// Widens the rule by one path, as far as needed, and returns everything about it that was not allowed before.
    fn approve(&mut self, reached: &ReachedPath) -> Vec<PathViolation> {
        let mut violations = Vec::new();
        // Each round takes away the violation that it found, so it ends. The bound is for the case that it does not.
        for _ in 0..=2 * (self.not_within.len() + 2) {
            let holds = if reached.own_name { self.check_holds(&reached.resolved) } else { Ok(()) };
            let found = holds.and_then(|()| {
                reached.accesses.iter().try_for_each(|access| self.check(*access, &reached.resolved))
            });
            let Err(violation) = found else { break };
            match &violation {
                PathViolation::Excluded { .. } => self.exceptions.push(reached.resolved.clone()),
                PathViolation::HoldsExcluded { excluded, .. } => {
                    self.not_within.retain(|folder| folder != excluded);
                }
                PathViolation::NoFile { access } | PathViolation::Elsewhere { access, .. } => {
                    self.grant(*access, &reached.resolved);
                }
            }
            violations.push(violation);
        }
        violations
    }
}

/// Returns every path that the call reaches, if `rule` limits the access to it.
fn reached_paths(
    tool: &ToolFacts<'_>,
    arguments: &Map<String, Value>,
    effects: &dyn EffectResolver,
    rule: &PathRule,
) -> Result<Vec<ReachedPath>, RuleViolation> {
    const READ: &[Access] = &[Access::Read];
    const WRITE: &[Access] = &[Access::Write];
    const BOTH: &[Access] = &[Access::Read, Access::Write];
    let mut reached = Vec::new();
    let mut add = |argument: &'static str, path: &str, accesses: &'static [Access], own_name: bool| {
        if !accesses.iter().any(|access| rule.limits(*access)) {
            return Ok(());
        }
        let resolved = if own_name { effects.resolve_name(path) } else { effects.resolve_path(path) };
        // The cause would tell what lies out of reach.
        let resolved = resolved.map_err(|_| RuleViolation::Unreachable { argument: argument.to_owned() })?;
        reached.push(ReachedPath { argument, resolved, accesses, own_name });
        Ok::<(), RuleViolation>(())
    };
    for effect in tool.effects {
        match effect {
            Effect::Reads(name) | Effect::Writes(name) => {
                let accesses = if matches!(effect, Effect::Reads(_)) { READ } else { WRITE };
                match arguments.get(*name) {
                    None | Some(Value::Null) => add(name, ".", accesses, false)?,
                    Some(Value::String(path)) => add(name, path, accesses, false)?,
                    Some(Value::Array(paths)) => {
                        for element in paths {
                            let path = element_path(element)
                                .ok_or_else(|| RuleViolation::NotPaths { argument: (*name).to_owned() })?;
                            add(name, path, accesses, false)?;
                        }
                    }
                    Some(_) => return Err(RuleViolation::NotAPath { argument: (*name).to_owned() }),
                }
            }
            Effect::Replaces(name) | Effect::Moves(name) => {
                let accesses = if matches!(effect, Effect::Replaces(_)) { WRITE } else { BOTH };
                let Some(Value::String(path)) = arguments.get(*name) else {
                    return Err(RuleViolation::NotAPath { argument: (*name).to_owned() });
                };
                add(name, path, accesses, true)?;
            }
            Effect::Patches { patch: name, .. } => {
                let Some(Value::String(patch)) = arguments.get(*name) else {
                    return Err(RuleViolation::NotAPath { argument: (*name).to_owned() });
                };
                for patched in effects.patched_paths(patch).map_err(RuleViolation::unresolved(name))? {
                    match &patched {
                        PatchedPath::Edited(path) => add(name, path, BOTH, false)?,
                        PatchedPath::Created(path) => add(name, path, WRITE, false)?,
                        PatchedPath::Removed(path) => add(name, path, WRITE, true)?,
                        PatchedPath::Moved(path) => add(name, path, BOTH, true)?,
                    }
                }
            }
            Effect::Runs { .. } | Effect::Shell(_) | Effect::Sql(_) | Effect::Role(_) => {}
        }
    }
    Ok(reached)
}
