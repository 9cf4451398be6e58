//! The compiled policy: one table for what is listed and for what may be called.

use crate::approval::{Approval, ApprovalRequest, AskReason, CallFingerprint};
use crate::argument_names;
use crate::ask::UnmetRule;
use crate::caller::Caller;
use crate::decision::{Authorized, Decision, Refusal};
use crate::effect_resolver::EffectResolver;
use crate::limits::RoleLimits;
use crate::otherwise::Otherwise;
use crate::quoted::quoted;
use crate::rule::{ArgumentRule, Rule, ToolSelector};
use crate::scope::CallScope;
use crate::system_calls::SystemCallGroup;
use crate::tool::{Call, Effect, OwnedToolFacts, ToolFacts};
use crate::violation::RuleViolation;
use egress_proxy::CredentialRule;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The tools that each role may see and call. Immutable, and cheap to clone: to change it, load another.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) compiled: Arc<CompiledPolicy>,
    /// Another policy that must allow what this one allows.
    pub(crate) narrowing: Option<Arc<Policy>>,
    /// The server that has asked the persons about calls before it passed them on, if one has.
    pub(crate) asked_by: Option<Arc<str>>,
}

#[derive(Debug)]
pub(crate) struct CompiledPolicy {
    pub(crate) roles: HashMap<String, Role>,
    /// The role names, in the order of the file.
    pub(crate) order: Vec<String>,
    /// The role of a caller whose role is not declared.
    pub(crate) minimal: Role,
    pub(crate) missing: String,
    pub(crate) derived: Vec<AgentCommandRole>,
    pub(crate) dispatch: Vec<DispatchRule>,
    /// Every tool known when it was loaded, in the order given.
    pub(crate) known: Arc<[OwnedToolFacts]>,
}

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
    verdict: ToolVerdict,
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

/// The rights of a role to call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolAccess {
    /// The tool is hidden.
    Hidden,
    /// A person is asked about every call.
    Ask,
    /// The arguments decide: rules refuse some calls, or ask a person about some.
    Conditional,
    /// Every call is allowed.
    Allowed,
}

/// The result of judging a call that is not refused.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The rule that allowed it.
    rule: Option<Arc<str>>,
    scope: CallScope,
    /// The reasons to ask a person. Empty if the call is allowed.
    reasons: Vec<AskReason>,
}

impl Judgement {
    /// Adds what another judgement of the same call demands.
    pub(crate) fn narrow(&mut self, other: Self) {
        self.scope.narrow(&other.scope);
        for reason in other.reasons {
            self.ask(reason);
        }
    }

    fn ask(&mut self, reason: AskReason) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// The role that a command starts an agent in.
#[derive(Clone, Debug)]
pub(crate) struct AgentCommandRole {
    pub(crate) glob: String,
    pub(crate) role: String,
}

/// A tool whose arguments call another tool.
#[derive(Clone, Debug)]
pub(crate) struct DispatchRule {
    pub(crate) tool: String,
    /// JSON Pointers into its arguments.
    pub(crate) name: String,
    pub(crate) arguments: Option<String>,
    pub(crate) label: Arc<str>,
}

/// The deepest nesting of calls in calls: a dispatcher that dispatches to itself is refused.
const MAX_DISPATCH_DEPTH: usize = 4;

impl Policy {
    /// Allows every caller every call: right for tests, and for a server whose one caller already owns the
    /// machine it runs on.
    pub fn allow_all() -> Self {
        let everything = Role {
            name: "anyone".to_owned(),
            allow: vec![ToolEntry {
                selector: ToolSelector::Name("*".to_owned()),
                label: "allow-all".into(),
                line: 0,
            }],
            may_use: vec!["*".to_owned()],
            ..Role::default()
        };
        Self {
            // No role is declared, so every caller is in the minimal role, which allows everything here.
            compiled: Arc::new(CompiledPolicy {
                roles: HashMap::new(),
                order: Vec::new(),
                minimal: everything,
                missing: "anyone".to_owned(),
                derived: Vec::new(),
                dispatch: Vec::new(),
                known: Arc::default(),
            }),
            narrowing: None,
            asked_by: None,
        }
    }

    /// Returns this policy, narrowed by `other`: a caller sees a tool, may call it and may use an area only where both
    /// policies say so. Roles, documents and the roles of commands stay those of this policy. An earlier narrowing is
    /// replaced.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        Self { narrowing: Some(Arc::new(other.clone())), ..self.clone() }
    }

    /// Returns this policy for calls that `server` has judged by it and passed on: it has asked the persons whom the policy
    /// asks, so that nobody is asked a second time. Everything else is judged as before.
    #[must_use]
    pub fn for_calls_asked_about_by(&self, server: impl Into<Arc<str>>) -> Self {
        Self { asked_by: Some(server.into()), ..self.clone() }
    }

    /// Returns true if `caller` may know that the tool exists. Nothing but roles and tool decides this: a caller that
    /// sees a tool sees it before and after any call, and may call it with some arguments.
    pub fn sees(&self, caller: &Caller, tool: &ToolFacts<'_>) -> bool {
        caller.roles().all(|role| matches!(*self.role(role).verdict(tool), ToolVerdict::Visible { .. }))
            && self.narrowing.as_ref().is_none_or(|narrowing| narrowing.sees(caller, tool))
    }

    /// Returns true if `role` may have the tool run a program of its choice: nothing limits the command, and nobody is asked.
    pub(crate) fn runs_any_program(&self, role: &str, tool: &ToolFacts<'_>) -> bool {
        let takes_command = tool.effects.iter().any(|effect| matches!(effect, Effect::Runs { .. }));
        takes_command
            && match &*self.role(role).verdict(tool) {
                ToolVerdict::Visible { ask: None, rules, .. } => {
                    rules.iter().all(|rule| rule.commands.is_none())
                }
                ToolVerdict::Visible { .. } | ToolVerdict::Hidden(_) => false,
            }
    }

    /// Judges one call. `tool` must be the facts of the tool that `call` names, and `effects` finds out where
    /// its arguments lead.
    ///
    /// # Errors
    ///
    /// [`Refusal::Hidden`] where a role of the caller does not see the tool, or where `tool` is not the tool
    /// of `call`; [`Refusal::Arguments`] where the tool is allowed and these arguments are not, or cannot be
    /// judged; [`Refusal::Approval`] where a person must approve the call.
    pub fn authorize(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        call: Call,
        effects: &dyn EffectResolver,
    ) -> Result<Authorized<Call>, Refusal> {
        let judgement = self.judge_call(caller, tool, &call, effects)?;
        match ApprovalRequest::new(caller, &call, judgement.reasons) {
            None => {
                Ok(Authorized::new(call, Decision { rule: judgement.rule, approver: None }, judgement.scope))
            }
            Some(request) => match &self.asked_by {
                Some(server) => {
                    let decision =
                        Decision { rule: Arc::clone(request.rule()), approver: Some(Arc::clone(server)) };
                    Ok(Authorized::new(call, decision, judgement.scope))
                }
                None => Err(Refusal::Approval(request)),
            },
        }
    }

    /// Judges one call that a person has approved, as [`authorize`](Self::authorize) does. The approval is used up,
    /// whatever the answer. It stands for the approval that the policy asks for, and for nothing else: what the policy
    /// refuses now is refused.
    ///
    /// # Errors
    ///
    /// As `authorize`. [`Refusal::Arguments`] where the approval is for another call, and [`Refusal::Approval`] where
    /// the policy now asks for a reason that the person did not see.
    pub fn authorize_approved(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        call: Call,
        effects: &dyn EffectResolver,
        approval: Approval,
    ) -> Result<Authorized<Call>, Refusal> {
        let judgement = self.judge_call(caller, tool, &call, effects)?;
        let Some(request) = ApprovalRequest::new(caller, &call, judgement.reasons) else {
            return Ok(Authorized::new(
                call,
                Decision { rule: judgement.rule, approver: None },
                judgement.scope,
            ));
        };
        if !approval.is_for(CallFingerprint::of(caller, &call)) {
            let reason = "the approval is for another call; call again, and a person is asked about this one";
            return Err(Refusal::Arguments { rule: Arc::clone(request.rule()), reason: reason.to_owned() });
        }
        if !approval.covers(&request) {
            return Err(Refusal::Approval(request));
        }
        let decision =
            Decision { rule: Arc::clone(request.rule()), approver: Some(approval.into_approver()) };
        Ok(Authorized::new(call, decision, judgement.scope))
    }

    /// Judges a call by this policy and the one that narrows it.
    fn judge_call(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        call: &Call,
        effects: &dyn EffectResolver,
    ) -> Result<AllowedCall, Refusal> {
        // Facts of another tool would judge one call and run another.
        if tool.name != call.tool() {
            return Err(Refusal::Hidden { rule: "the facts are another tool's".into() });
        }
        if let Some(narrowing) = &self.narrowing
            && !narrowing.sees(caller, tool)
        {
            return Err(Refusal::Hidden { rule: "a policy that narrows this one".into() });
        }
        let mut judgement = self.judge(caller, tool, call.arguments(), effects, 0)?;
        if let Some(narrowing) = &self.narrowing {
            judgement.narrow(narrowing.judge(caller, tool, call.arguments(), effects, 0)?);
        }
        let Judgement { rule, scope, reasons } = judgement;
        let rule = rule.ok_or_else(|| Refusal::Hidden { rule: "the caller has no role".into() })?;
        Ok(AllowedCall { rule, scope, reasons })
    }

    pub(crate) fn judge(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
        depth: usize,
    ) -> Result<Judgement, Refusal> {
        // Visibility comes first, for every role: a refusal of arguments would reveal a hidden tool. With one role the
        // loop below has this order already.
        if caller.roles().nth(1).is_some() {
            for role in caller.roles() {
                if let ToolVerdict::Hidden(rule) = &*self.role(role).verdict(tool) {
                    return Err(Refusal::Hidden { rule: Arc::clone(rule) });
                }
            }
        }
        let mut judgement = Judgement::default();
        for name in caller.roles() {
            let role = self.role(name);
            match &*role.verdict(tool) {
                ToolVerdict::Hidden(rule) => return Err(Refusal::Hidden { rule: Arc::clone(rule) }),
                ToolVerdict::Visible { label, ask, rules, scope: role_scope } => {
                    let unmet = judge_rules(tool, rules, arguments, effects)?;
                    check_declared(tool, rules, arguments).map_err(|(rule, violation)| {
                        Refusal::Arguments { rule: Arc::clone(&rule.label), reason: violation.to_string() }
                    })?;
                    role.check_role_arguments(tool, arguments)?;
                    judgement.rule.get_or_insert_with(|| Arc::clone(label));
                    if let Some(ask) = ask {
                        judgement.ask(AskReason { rule: Arc::clone(ask), condition: None });
                    }
                    // The scope of every role is kept, and all of them must hold while the call runs.
                    if unmet.is_empty() {
                        judgement.scope.narrow(role_scope);
                    } else {
                        judgement.scope.narrow(&scope_of(rules, &unmet));
                    }
                    for (rule, unmet) in unmet {
                        let condition = Some(unmet.condition);
                        judgement.ask(AskReason { rule: Arc::clone(&rule.label), condition });
                    }
                }
            }
        }
        // The inner call is judged for the same caller, so that a dispatcher lends nobody its own rights.
        if let Some(dispatch) = self.compiled.dispatch.iter().find(|dispatch| dispatch.tool == tool.name) {
            judgement.narrow(self.judge_inner(caller, tool, dispatch, arguments, effects, depth)?);
        }
        self.judge_patch(caller, tool, arguments, effects, &mut judgement)?;
        Ok(judgement)
    }

    /// Judges the call that is in the arguments of another.
    fn judge_inner(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        dispatch: &DispatchRule,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
        depth: usize,
    ) -> Result<Judgement, Refusal> {
        let refused = |reason: String| Refusal::Arguments { rule: Arc::clone(&dispatch.label), reason };
        if depth >= MAX_DISPATCH_DEPTH {
            return Err(refused("calls in calls are nested too deeply".to_owned()));
        }
        if tool.is_external() {
            let judged = std::iter::once(&dispatch.name).chain(&dispatch.arguments);
            for location in judged {
                argument_names::check_variants(location, arguments)
                    .map_err(|violation| refused(violation.to_string()))?;
            }
        }
        let Some(Value::String(name)) = resolve_pointer(arguments, &dispatch.name) else {
            return Err(refused(format!("`{}` must name the tool to call", dispatch.name)));
        };
        let no_arguments = Map::new();
        let inner = match dispatch
            .arguments
            .as_ref()
            .map(|location| (location, resolve_pointer(arguments, location)))
        {
            None | Some((_, None | Some(Value::Null))) => &no_arguments,
            Some((_, Some(Value::Object(inner)))) => inner,
            Some((location, Some(_))) => {
                return Err(refused(format!("`{location}` is no object of arguments")));
            }
        };
        // As a tool that nobody vouches for, although the name may be known here: the dispatcher decides what it
        // runs under that name.
        let mut facts = ToolFacts::external(name);
        // It declares nothing: the schema of the dispatcher says nothing of the tools behind it.
        facts.declared_arguments = tool.declared_arguments.map(|_| &[][..]);
        match self.judge(caller, &facts, inner, effects, depth + 1) {
            // The scope of the inner call says nothing of the arguments of the outer one.
            Ok(judgement) => Ok(Judgement { reasons: judgement.reasons, ..Judgement::default() }),
            // The outer tool is visible, so this refuses its arguments. A hidden inner tool and a missing one read
            // the same.
            Err(Refusal::Hidden { .. }) => Err(refused("there is no such tool to call".to_owned())),
            Err(refusal) => Err(refusal),
        }
    }

    pub(crate) fn role(&self, name: &str) -> &Role {
        // An unknown name gets the minimal role and is no error, so that a caller cannot gain by a name that the
        // file does not know.
        self.compiled.roles.get(name).unwrap_or(&self.compiled.minimal)
    }

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

    /// Returns the groups of system calls that the programs of `caller` may make: those that each of its roles has.
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

    /// Returns the credentials that the programs of `caller` may use: those that each of its roles has.
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

    /// Returns the context documents of a role, as the file names them, those of the roles it extends first.
    pub fn documents(&self, role: &str) -> &[String] {
        &self.role(role).documents
    }

    /// Returns true if a caller in `role` may act as `other`, or start an agent as it: `role` itself, and the roles
    /// that `may_use` names.
    pub fn may_use(&self, role: &str, other: &str) -> bool {
        self.role(role).may_use(other)
            && self.narrowing.as_ref().is_none_or(|narrowing| narrowing.may_use(role, other))
    }

    /// Returns the requirements of `role` on the arguments of a tool, each as a text that is equal for equal
    /// requirements. Empty if there is none, or if the tool is hidden.
    pub fn requirements(&self, role: &str, tool: &ToolFacts<'_>) -> Vec<String> {
        match &*self.role(role).verdict(tool) {
            ToolVerdict::Hidden(_) => Vec::new(),
            ToolVerdict::Visible { ask, rules, .. } => {
                let asks = ask.iter().map(|_| "ask".to_owned());
                asks.chain(rules.iter().map(|rule| rule.content())).collect()
            }
        }
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

    /// Returns the role that a command starts an agent in, by the table `derived` of the file: for `next-build 12`
    /// and `/next-build` that of `next-*`. `None` if no entry matches; the minimal role for a command
    /// that cannot be read, because it could be any.
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

// `serde_json` resolves a pointer in a `Value` only, and arguments are a `Map`; so the first key is looked up here.
fn resolve_pointer<'a>(arguments: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let mut keys = pointer.strip_prefix('/')?.splitn(2, '/');
    // In this order, so that `~01` is read as `~1` (RFC 6901, section 4).
    let first = keys.next()?.replace("~1", "/").replace("~0", "~");
    let value = arguments.get(&first)?;
    match keys.next() {
        None => Some(value),
        Some(rest) => value.pointer(&format!("/{rest}")),
    }
}

/// A call that the policy does not refuse.
struct AllowedCall {
    rule: Arc<str>,
    scope: CallScope,
    reasons: Vec<AskReason>,
}

/// Judges the arguments by each rule, and returns the rules that ask a person about them.
fn judge_rules<'r>(
    tool: &ToolFacts<'_>,
    rules: &'r [Arc<Rule>],
    arguments: &Map<String, Value>,
    effects: &dyn EffectResolver,
) -> Result<Vec<(&'r Arc<Rule>, UnmetRule)>, Refusal> {
    let mut unmet = Vec::new();
    for rule in rules {
        let refused = |violation: RuleViolation| Refusal::Arguments {
            rule: Arc::clone(&rule.label),
            reason: violation.to_string(),
        };
        match (rule.check(tool, arguments, effects), rule.otherwise) {
            (Ok(()), _) => {}
            (Err(violation), Otherwise::Deny) => return Err(refused(violation)),
            (Err(_), Otherwise::Ask) => {
                unmet.push((rule, rule.unmet(tool, arguments, effects).map_err(refused)?));
            }
        }
    }
    Ok(unmet)
}

/// Returns the scope of a call of which a person approves what `unmet` forbids.
fn scope_of(rules: &[Arc<Rule>], unmet: &[(&Arc<Rule>, UnmetRule)]) -> CallScope {
    let mut scope = CallScope::default();
    for rule in rules {
        match unmet.iter().find(|(other, _)| Arc::ptr_eq(other, rule)) {
            Some((_, unmet)) => unmet.approved.extend(&mut scope),
            None => rule.extend(&mut scope),
        }
    }
    scope
}

/// Refuses an argument that neither the tool declares nor a rule names, if the declared ones are known and a rule with
/// conditions on arguments does not take additional ones. The error has the rule that refuses.
fn check_declared<'r>(
    tool: &ToolFacts<'_>,
    rules: &'r [Arc<Rule>],
    arguments: &Map<String, Value>,
) -> Result<(), (&'r Rule, RuleViolation)> {
    let (true, Some(declared)) = (tool.is_external(), tool.declared_arguments) else { return Ok(()) };
    let Some(rule) = rules.iter().find(|rule| !rule.arguments.is_empty() && !rule.additional_arguments)
    else {
        return Ok(());
    };
    let named: Vec<String> =
        rules.iter().flat_map(|rule| &rule.arguments).map(ArgumentRule::top_level_name).collect();
    let is_known = |name: &String| declared.contains(&name.as_str()) || named.contains(name);
    match arguments.keys().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let mut known: Vec<String> = declared.iter().map(|name| (*name).to_owned()).collect();
            known.extend(named);
            known.sort();
            known.dedup();
            Err((rule, RuleViolation::UndeclaredArgument { argument: name.clone(), known }))
        }
    }
}

impl Role {
    /// Returns the verdicts on the known tools. They are reached once the first is asked for, as most servers have callers
    /// of one role or two.
    fn table(&self) -> &HashMap<String, KnownToolVerdict> {
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

    fn may_use(&self, other: &str) -> bool {
        other == self.name || self.may_use.iter().any(|allowed| allowed == other || allowed == "*")
    }

    /// Checks that a role which the arguments ask for is one that this role may use.
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
