//! The compiled policy: one table for what is listed and for what may be called.

use crate::caller::Caller;
use crate::decision::{Authorized, Decision, Refusal, Scope};
use crate::effects::Effects;
use crate::rule::{Rule, Selector, quoted};
use crate::tool::{Call, Effect, ToolFacts};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// What each role may see and call. Immutable, and cheap to clone: to change it, load another.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) compiled: Arc<Compiled>,
}

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) roles: HashMap<String, Role>,
    /// The role names, in the order of the file.
    pub(crate) order: Vec<String>,
    /// Where there is no such role.
    pub(crate) minimal: Role,
    pub(crate) missing: String,
    pub(crate) derived: Vec<Derived>,
    pub(crate) dispatch: Vec<Dispatch>,
    /// Every tool known when it was loaded, in the order given.
    pub(crate) known: Vec<String>,
}

/// One role, with all that it extends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) allow: Vec<Listed>,
    pub(crate) deny: Vec<Listed>,
    pub(crate) rules: Vec<Arc<Rule>>,
    pub(crate) may_use: Vec<String>,
    pub(crate) documents: Vec<String>,
    pub(crate) limits: RoleLimits,
    pub(crate) table: HashMap<String, Entry>,
    /// What is said of a tool that nothing allows.
    pub(crate) unlisted: Option<Arc<str>>,
}

/// One entry of `allow` or `deny`.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) selector: Selector,
    /// ``dev: allow `git_*` (roles.toml:12)``
    pub(crate) label: Arc<str>,
    pub(crate) line: usize,
}

/// A tool that was known at load, as it was then.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    toolset: String,
    kind: (bool, bool, bool),
    verdict: Verdict,
}

#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Hidden(Arc<str>),
    Visible { label: Arc<str>, rules: Vec<Arc<Rule>>, scope: Scope },
}

/// The role that a command starts an agent in.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    pub(crate) glob: String,
    pub(crate) role: String,
}

/// A tool whose arguments call another tool.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    pub(crate) tool: String,
    /// JSON Pointers into its arguments.
    pub(crate) name: String,
    pub(crate) arguments: Option<String>,
    pub(crate) label: Arc<str>,
}

/// Bounds on a role's calls, on top of the server's own. `None` adds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleLimits {
    /// Calls in a minute, all tools together.
    pub calls_per_minute: Option<u64>,
    /// Calls that run at once.
    pub concurrent_calls: Option<u64>,
    /// Bytes of one call's arguments, as JSON.
    pub max_argument_bytes: Option<u64>,
    /// The longest time limit in seconds that a call may ask for or run to.
    pub max_seconds: Option<u64>,
}

impl RoleLimits {
    /// The narrower of both, each.
    #[must_use]
    pub fn narrowed_by(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self {
            calls_per_minute: least(self.calls_per_minute, other.calls_per_minute),
            concurrent_calls: least(self.concurrent_calls, other.concurrent_calls),
            max_argument_bytes: least(self.max_argument_bytes, other.max_argument_bytes),
            max_seconds: least(self.max_seconds, other.max_seconds),
        }
    }
}

/// Calls in calls, at most: a dispatcher that dispatches to itself is refused.
const MAX_DISPATCH_DEPTH: usize = 4;

impl Policy {
    /// Allows every caller every call: right for tests, and for a server whose one caller already owns the
    /// machine it runs on.
    pub fn allow_all() -> Self {
        let everything = Role {
            name: "anyone".to_owned(),
            allow: vec![Listed {
                selector: Selector::Name("*".to_owned()),
                label: "allow-all".into(),
                line: 0,
            }],
            may_use: vec!["*".to_owned()],
            ..Role::default()
        };
        Self {
            compiled: Arc::new(Compiled {
                roles: HashMap::new(),
                order: Vec::new(),
                minimal: everything,
                missing: "anyone".to_owned(),
                derived: Vec::new(),
                dispatch: Vec::new(),
                known: Vec::new(),
            }),
        }
    }

    /// Whether `caller` may know that the tool exists. Depends on nothing but roles and tool: whoever sees a
    /// tool sees it before and after any call, and may call it with some arguments.
    pub fn sees(&self, caller: &Caller, tool: &ToolFacts<'_>) -> bool {
        caller.roles().all(|role| matches!(*self.role(role).verdict(tool), Verdict::Visible { .. }))
    }

    /// Judges one call. `tool` must be the facts of the tool that `call` names, and `effects` finds out where
    /// its arguments lead.
    ///
    /// # Errors
    ///
    /// [`Refusal::Hidden`] where a role of the caller does not see the tool, or where `tool` is not the tool
    /// of `call`; [`Refusal::Arguments`] where the tool is allowed and these arguments are not, or cannot be
    /// judged.
    pub fn authorize(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        call: Call,
        effects: &dyn Effects,
    ) -> Result<Authorized<Call>, Refusal> {
        // Facts of another tool would judge one call and run another.
        if tool.name != call.tool() {
            return Err(Refusal::Hidden { rule: "the facts are another tool's".into() });
        }
        let (rule, scope) = self.judge(caller, tool, call.arguments(), effects, 0)?;
        Ok(Authorized::new(call, Decision { rule }, scope))
    }

    fn judge(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn Effects,
        depth: usize,
    ) -> Result<(Arc<str>, Scope), Refusal> {
        // Whether it is seen comes first, for every role: arguments must not tell of a hidden tool.
        if caller.roles().nth(1).is_some() {
            for role in caller.roles() {
                if let Verdict::Hidden(rule) = &*self.role(role).verdict(tool) {
                    return Err(Refusal::Hidden { rule: Arc::clone(rule) });
                }
            }
        }
        let (mut allowed_by, mut scope) = (None, Scope::default());
        for name in caller.roles() {
            let role = self.role(name);
            match &*role.verdict(tool) {
                Verdict::Hidden(rule) => return Err(Refusal::Hidden { rule: Arc::clone(rule) }),
                Verdict::Visible { label, rules, scope: held } => {
                    for rule in rules {
                        rule.check(tool, arguments, effects)
                            .map_err(|reason| Refusal::Arguments { rule: Arc::clone(&rule.label), reason })?;
                    }
                    role.check_role_arguments(tool, arguments)?;
                    allowed_by.get_or_insert_with(|| Arc::clone(label));
                    scope.paths.extend(held.paths.iter().map(Arc::clone));
                    scope.sql_read_only |= held.sql_read_only;
                }
            }
        }
        if let Some(dispatch) = self.compiled.dispatch.iter().find(|dispatch| dispatch.tool == tool.name) {
            self.judge_inner(caller, dispatch, arguments, effects, depth)?;
        }
        let rule = allowed_by.ok_or_else(|| Refusal::Hidden { rule: "the caller has no role".into() })?;
        Ok((rule, scope))
    }

    /// Judges the call that is in the arguments of another.
    fn judge_inner(
        &self,
        caller: &Caller,
        dispatch: &Dispatch,
        arguments: &Map<String, Value>,
        effects: &dyn Effects,
        depth: usize,
    ) -> Result<(), Refusal> {
        let refused = |reason: String| Refusal::Arguments { rule: Arc::clone(&dispatch.label), reason };
        if depth >= MAX_DISPATCH_DEPTH {
            return Err(refused("calls in calls are nested too deeply".to_owned()));
        }
        let Some(Value::String(name)) = pointer(arguments, &dispatch.name) else {
            return Err(refused(format!("`{}` must name the tool to call", dispatch.name)));
        };
        let none = Map::new();
        let inner = match dispatch.arguments.as_ref().map(|place| (place, pointer(arguments, place))) {
            None | Some((_, None | Some(Value::Null))) => &none,
            Some((_, Some(Value::Object(inner)))) => inner,
            Some((place, Some(_))) => return Err(refused(format!("`{place}` is no object of arguments"))),
        };
        let facts = ToolFacts::external(name);
        match self.judge(caller, &facts, inner, effects, depth + 1) {
            Ok(_) => Ok(()),
            Err(Refusal::Hidden { .. }) => Err(refused("there is no such tool to call".to_owned())),
            Err(refusal) => Err(refusal),
        }
    }

    pub(crate) fn role(&self, name: &str) -> &Role {
        self.compiled.roles.get(name).unwrap_or(&self.compiled.minimal)
    }

    /// The tools that were known at load, external ones last.
    pub fn known_tools(&self) -> impl Iterator<Item = &str> {
        self.compiled.known.iter().map(String::as_str)
    }

    /// The roles that the file declares, in its order.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.compiled.order.iter().map(String::as_str)
    }

    /// Whether the file declares this role. One that it does not declare is the minimal role.
    pub fn declares(&self, role: &str) -> bool {
        self.compiled.roles.contains_key(role)
    }

    /// What the file says a role is for.
    pub fn description(&self, role: &str) -> &str {
        &self.role(role).description
    }

    /// The role of a local server that was told none: `missing_role` of the file, else the minimal role.
    pub fn missing_role(&self) -> &str {
        &self.compiled.missing
    }

    /// The role for anything unknown: `minimal`.
    pub fn minimal_role(&self) -> &str {
        &self.compiled.minimal.name
    }

    /// The bounds on the calls of `caller`: of several roles the narrowest.
    pub fn limits(&self, caller: &Caller) -> RoleLimits {
        caller.roles().fold(RoleLimits::default(), |limits, role| limits.narrowed_by(self.role(role).limits))
    }

    /// The context documents of a role, as the file names them, those of the roles it extends first.
    pub fn documents(&self, role: &str) -> &[String] {
        &self.role(role).documents
    }

    /// Whether a caller in `role` may act as `other`, or start an agent as it: itself, and what `may_use`
    /// names.
    pub fn may_use(&self, role: &str, other: &str) -> bool {
        self.role(role).may_use(other)
    }

    /// What `role` requires of the arguments of a tool, each requirement as a text that is the same for the same
    /// requirement wherever it stands. Empty where there is none, or where the tool is hidden.
    pub fn requirements(&self, role: &str, tool: &ToolFacts<'_>) -> Vec<String> {
        match &*self.role(role).verdict(tool) {
            Verdict::Hidden(_) => Vec::new(),
            Verdict::Visible { rules, .. } => rules.iter().map(|rule| rule.content()).collect(),
        }
    }

    /// The known tools that `role` may call, in the order they were given at load.
    pub fn allowed_tools(&self, role: &str) -> Vec<&str> {
        self.known(role, true)
    }

    /// The known tools that are hidden from `role`, in the order they were given at load.
    pub fn excluded_tools(&self, role: &str) -> Vec<&str> {
        self.known(role, false)
    }

    fn known(&self, role: &str, visible: bool) -> Vec<&str> {
        let table = &self.role(role).table;
        let fits = |name: &&String| {
            table.get(*name).is_some_and(|entry| matches!(entry.verdict, Verdict::Visible { .. }) == visible)
        };
        self.compiled.known.iter().filter(fits).map(String::as_str).collect()
    }

    /// The role that a command starts an agent in, by the table `derived` of the file: for `next-build 12`
    /// and `/next-build` that of `next-*`. Nothing where no line matches; the minimal role for a command
    /// that cannot be read, for it could be any.
    pub fn role_of_command(&self, command: &str) -> Option<&str> {
        let name = command.split(' ').next().unwrap_or(command);
        let name = name.strip_prefix('/').unwrap_or(name);
        let readable = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(readable) {
            return Some(self.minimal_role());
        }
        let mut lines = self.compiled.derived.iter();
        lines.find(|line| crate::rule::glob_matches(&line.glob, name)).map(|line| line.role.as_str())
    }
}

fn pointer<'a>(arguments: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let mut keys = place.strip_prefix('/')?.splitn(2, '/');
    let first = keys.next()?.replace("~1", "/").replace("~0", "~");
    let value = arguments.get(&first)?;
    match keys.next() {
        None => Some(value),
        Some(rest) => value.pointer(&format!("/{rest}")),
    }
}

impl Role {
    /// Builds the table of what it sees.
    pub(crate) fn tabulate(&mut self, tools: &[ToolFacts<'_>]) {
        self.table = tools
            .iter()
            .map(|tool| {
                let entry = Entry {
                    toolset: tool.toolset.to_owned(),
                    kind: (tool.read_only, tool.destructive, tool.open_world),
                    verdict: self.judge(tool),
                };
                (tool.name.to_owned(), entry)
            })
            .collect();
    }

    /// What it says of a tool. One that was known at load, and is still what it was, is looked up.
    pub(crate) fn verdict(&self, tool: &ToolFacts<'_>) -> Cow<'_, Verdict> {
        match self.table.get(tool.name) {
            Some(entry)
                if entry.kind == (tool.read_only, tool.destructive, tool.open_world)
                    && entry.toolset == tool.toolset =>
            {
                Cow::Borrowed(&entry.verdict)
            }
            _ => Cow::Owned(self.judge(tool)),
        }
    }

    /// Deny beats allow, and what nothing allows is denied.
    fn judge(&self, tool: &ToolFacts<'_>) -> Verdict {
        let find = |list: &[Listed]| {
            list.iter().find(|listed| listed.selector.matches(tool)).map(|listed| Arc::clone(&listed.label))
        };
        if let Some(denied) = find(&self.deny) {
            return Verdict::Hidden(denied);
        }
        let Some(label) = find(&self.allow) else {
            return Verdict::Hidden(match &self.unlisted {
                Some(label) => Arc::clone(label),
                None => "nothing allows it".into(),
            });
        };
        let rules: Vec<Arc<Rule>> =
            self.rules.iter().filter(|rule| rule.concerns(tool)).map(Arc::clone).collect();
        let mut scope = Scope::default();
        rules.iter().for_each(|rule| rule.extend(&mut scope));
        Verdict::Visible { label, rules, scope }
    }

    fn may_use(&self, other: &str) -> bool {
        other == self.name || self.may_use.iter().any(|allowed| allowed == other || allowed == "*")
    }

    /// A role that the caller asks for must be one that it may use.
    fn check_role_arguments(
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

/// What [`Policy::explain`] tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// Everything that was looked at, in order.
    pub steps: Vec<Step>,
    /// What [`Policy::authorize`] decides.
    pub decision: Result<Decision, Refusal>,
}

/// One entry or rule that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The role it belongs to, be it by extending another.
    pub role: String,
    /// The entry or rule, and where it stands.
    pub rule: Arc<str>,
    /// Its line in the file, from 1; 0 where there is none.
    pub line: usize,
    /// What it says.
    pub says: Says,
}

/// What an entry or a rule says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Says {
    /// It is about other tools.
    NoMatch,
    /// It hides the tool.
    Denies,
    /// It shows the tool.
    Allows,
    /// The arguments fit.
    Holds,
    /// The arguments do not fit, and why.
    Refuses(String),
}

impl Policy {
    /// Everything that was looked at to judge a call, and the decision.
    pub fn explain(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        call: Call,
        effects: &dyn Effects,
    ) -> Explanation {
        let mut steps = Vec::new();
        for name in caller.roles() {
            let role = self.role(name);
            let mut step = |rule: &Arc<str>, line: usize, says: Says| {
                steps.push(Step { role: role.name.clone(), rule: Arc::clone(rule), line, says });
            };
            for (list, says) in [(&role.deny, Says::Denies), (&role.allow, Says::Allows)] {
                for listed in list {
                    let says = if listed.selector.matches(tool) { says.clone() } else { Says::NoMatch };
                    step(&listed.label, listed.line, says);
                }
            }
            for rule in &role.rules {
                let says = match rule.concerns(tool) {
                    false => Says::NoMatch,
                    true => match rule.check(tool, call.arguments(), effects) {
                        Ok(()) => Says::Holds,
                        Err(reason) => Says::Refuses(reason),
                    },
                };
                step(&rule.label, rule.line, says);
            }
        }
        let decision = self.authorize(caller, tool, call, effects).map(|call| call.decision().clone());
        Explanation { steps, decision }
    }
}
