//! Questions to a policy about roles and tools, without a call.

use super::role::ToolVerdict;
use super::{Policy, ToolAccess};
use crate::caller::Caller;
use crate::effect_resolver::EffectResolver;
use crate::limits::RoleLimits;
use crate::rule::Rule;
use crate::scope::CallScope;
use crate::system_calls::SystemCallGroup;
use crate::tool::ToolFacts;
use egress_proxy::CredentialRule;
use std::sync::Arc;

impl Policy {
    /// Returns the exclusions (`not_within`) of `caller` that do not hold, each with its rule: a link, because what it
    /// leads to has another path, or a root that does not exist. A server checks this before it uses the policy.
    pub fn unresolved_exclusions(&self, caller: &Caller, effects: &dyn EffectResolver) -> Vec<String> {
        let excluded = self.excluded(caller);
        let mut unresolved: Vec<String> = excluded
            .filter_map(|(rule, place)| match effects.resolve_path(place) {
                Ok(resolved) if resolved == place => None,
                Ok(resolved) => Some(format!(
                    "{}: `{place}` is `{resolved}`; name what a link leads to, and roots by their names",
                    rule.label
                )),
                Err(error) => Some(format!("{}: `{place}`: {error}", rule.label)),
            })
            .collect();
        unresolved.dedup();
        unresolved
    }

    /// Returns true if anything beneath the roots is excluded for `caller` (`not_within`).
    pub fn excludes_paths(&self, caller: &Caller) -> bool {
        self.excluded(caller).next().is_some()
            || self.narrowing.as_ref().is_some_and(|narrowing| narrowing.excludes_paths(caller))
    }

    fn excluded<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = (&'a Rule, &'a str)> {
        let rules = caller.roles().flat_map(|role| &self.role(role).rules);
        rules.flat_map(|rule| rule.excluded().map(move |place| (&**rule, place)))
    }

    /// Returns the names of the tools that were known at load, external ones last.
    pub fn known_tools(&self) -> impl Iterator<Item = &str> {
        self.compiled.known.iter().map(|tool| tool.name.as_str())
    }

    /// Returns the roles that the file declares, in its order.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.compiled.order.iter().map(String::as_str)
    }

    /// Returns true if the file declares this role. An undeclared role has the rights of the minimal role.
    pub fn declares(&self, role: &str) -> bool {
        self.compiled.roles.contains_key(role)
    }

    /// Returns the description of a role.
    pub fn description(&self, role: &str) -> &str {
        &self.role(role).description
    }

    /// Returns the role of a local caller that no source names: `missing_role` of the file, else the minimal role.
    pub fn missing_role(&self) -> &str {
        &self.compiled.missing
    }

    /// Returns the name of the role for anything unknown: `minimal`.
    pub fn minimal_role(&self) -> &str {
        &self.compiled.minimal.name
    }

    /// Returns the limits of the calls of `caller`: of several roles the lowest.
    pub fn limits(&self, caller: &Caller) -> RoleLimits {
        let limits = caller
            .roles()
            .fold(RoleLimits::default(), |limits, role| limits.narrowed_by(self.role(role).limits));
        match &self.narrowing {
            None => limits,
            Some(narrowing) => limits.narrowed_by(narrowing.limits(caller)),
        }
    }

    /// Returns the paths and databases that calls of `tool` may reach, whatever their arguments. `None` if a role of the
    /// caller does not see the tool.
    pub fn scope(&self, caller: &Caller, tool: &ToolFacts<'_>) -> Option<CallScope> {
        let mut all = CallScope::default();
        for name in caller.roles() {
            match &*self.role(name).verdict(tool) {
                ToolVerdict::Visible { scope, .. } => all.narrow(scope),
                ToolVerdict::Hidden(_) => return None,
            }
        }
        if let Some(narrowing) = &self.narrowing {
            all.narrow(&narrowing.scope(caller, tool)?);
        }
        Some(all)
    }

    /// Returns the groups of system calls that the programs of `caller` may make: the groups that every role of the
    /// caller has.
    pub fn system_calls(&self, caller: &Caller) -> Vec<SystemCallGroup> {
        let has = |group: &SystemCallGroup| {
            caller.roles().all(|role| self.role(role).system_calls.contains(group))
                && caller.roles().next().is_some()
        };
        let groups = SystemCallGroup::ALL.into_iter().filter(has);
        match &self.narrowing {
            None => groups.collect(),
            Some(narrowing) => {
                let narrower = narrowing.system_calls(caller);
                groups.filter(|group| narrower.contains(group)).collect()
            }
        }
    }

    /// Returns the credentials that the programs of `caller` may use: the credentials that every role of the caller
    /// has.
    pub fn credentials(&self, caller: &Caller) -> Vec<Arc<CredentialRule>> {
        let mut roles = caller.roles();
        let Some(first) = roles.next() else { return Vec::new() };
        let mut credentials = self.role(first).credentials.clone();
        for role in roles {
            credentials.retain(|rule| self.role(role).credentials.contains(rule));
        }
        if let Some(narrowing) = &self.narrowing {
            let narrower = narrowing.credentials(caller);
            credentials.retain(|rule| narrower.contains(rule));
        }
        credentials
    }

    /// Returns the credentials of all roles, each once.
    pub fn all_credentials(&self) -> Vec<Arc<CredentialRule>> {
        let mut all: Vec<Arc<CredentialRule>> = Vec::new();
        let roles = self.compiled.order.iter().filter_map(|name| self.compiled.roles.get(name));
        for rule in roles.flat_map(|role| &role.credentials) {
            if !all.contains(rule) {
                all.push(Arc::clone(rule));
            }
        }
        all
    }

    /// Returns the context documents of a role, as the file names them. The documents of the roles that it extends come
    /// first.
    pub fn documents(&self, role: &str) -> &[String] {
        &self.role(role).documents
    }

    /// Returns true if a caller in `role` may act as `other`, or start an agent as it: `role` itself, and the roles
    /// that `may_use` names.
    pub fn may_use(&self, role: &str, other: &str) -> bool {
        self.role(role).may_use(other)
            && self.narrowing.as_ref().is_none_or(|narrowing| narrowing.may_use(role, other))
    }

    /// Returns the declared roles that `caller` may act as: those that each role of the caller may use.
    pub fn roles_for<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = &'a str> {
        self.roles().filter(|role| caller.roles().all(|own| self.may_use(own, role)))
    }

    /// Returns the requirements of `role` on the arguments of a tool, each as a text that is equal for equal
    /// requirements. Empty if there is none, or if the tool is hidden.
    pub fn requirements(&self, role: &str, tool: &ToolFacts<'_>) -> Vec<String> {
        let mut requirements: Vec<String> = match &*self.role(role).verdict(tool) {
            ToolVerdict::Hidden(_) => return Vec::new(),
            ToolVerdict::Visible { ask, rules, .. } => {
                let asks = ask.iter().map(|_| "ask".to_owned());
                asks.chain(rules.iter().map(|rule| rule.content())).collect()
            }
        };
        if let Some(narrowing) = &self.narrowing {
            requirements.extend(narrowing.requirements(role, tool));
        }
        requirements
    }

    /// Returns the rights of `role` to call a tool, as far as the tool alone decides them.
    pub fn access(&self, role: &str, tool: &ToolFacts<'_>) -> ToolAccess {
        let own = match &*self.role(role).verdict(tool) {
            ToolVerdict::Hidden(_) => ToolAccess::Hidden,
            ToolVerdict::Visible { ask: Some(_), .. } => ToolAccess::Ask,
            ToolVerdict::Visible { rules, .. } if !rules.is_empty() => ToolAccess::Conditional,
            ToolVerdict::Visible { .. } => ToolAccess::Allowed,
        };
        match (own, self.narrowing.as_ref().map(|narrowing| narrowing.access(role, tool))) {
            (own, None) => own,
            (ToolAccess::Hidden, _) | (_, Some(ToolAccess::Hidden)) => ToolAccess::Hidden,
            (ToolAccess::Ask, _) | (_, Some(ToolAccess::Ask)) => ToolAccess::Ask,
            (ToolAccess::Conditional, _) | (_, Some(ToolAccess::Conditional)) => ToolAccess::Conditional,
            (ToolAccess::Allowed, Some(ToolAccess::Allowed)) => ToolAccess::Allowed,
        }
    }

    /// Returns the known tools that `role` may call, in the order they were given at load.
    pub fn allowed_tools(&self, role: &str) -> Vec<&str> {
        self.known(role, true)
    }

    /// Returns the known tools that are hidden from `role`, in the order they were given at load.
    pub fn excluded_tools(&self, role: &str) -> Vec<&str> {
        self.known(role, false)
    }

    fn known(&self, role: &str, visible: bool) -> Vec<&str> {
        let table = self.role(role).table();
        let narrower = self.narrowing.as_ref().map(|narrowing| narrowing.allowed_tools(role));
        let fits = |name: &&str| {
            table.get(*name).is_some_and(|entry| {
                let is_visible = matches!(entry.verdict, ToolVerdict::Visible { .. })
                    && narrower.as_ref().is_none_or(|allowed| allowed.contains(name));
                is_visible == visible
            })
        };
        self.known_tools().filter(fits).collect()
    }

    /// Returns the role that a command starts an agent in, by the table `derived` of the file: for `next-build 12` and
    /// `/next-build`, the role of `next-*`. Returns `None` if no entry matches. For a command that cannot be read, and
    /// therefore could be any command, returns the minimal role.
    pub fn role_of_command(&self, command: &str) -> Option<&str> {
        let name = command.split(' ').next().unwrap_or(command);
        let name = name.strip_prefix('/').unwrap_or(name);
        let readable = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(readable) {
            return Some(self.minimal_role());
        }
        let mut entries = self.compiled.derived.iter();
        entries.find(|entry| crate::rule::glob_matches(&entry.glob, name)).map(|entry| entry.role.as_str())
    }
}
