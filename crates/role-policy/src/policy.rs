//! The compiled policy: one table for what is listed and for what may be called.

mod queries;
mod role;

pub(crate) use role::{Role, ToolEntry, ToolVerdict};

use crate::approval::{Approval, ApprovalRequest, AskReason, CallFingerprint};
use crate::argument_names;
use crate::ask::UnmetRule;
use crate::caller::Caller;
use crate::decision::{Authorized, Decision, Refusal};
use crate::effect_resolver::EffectResolver;
use crate::otherwise::Otherwise;
use crate::rule::{ArgumentRule, Rule, ToolSelector};
use crate::scope::CallScope;
use crate::tool::{Call, Effect, OwnedToolFacts, ToolFacts};
use crate::violation::RuleViolation;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The tools that each role may see and call. Immutable, and cheap to clone: to change it, load another.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) compiled: Arc<CompiledPolicy>,
    /// Another policy that must allow what this one allows.
    pub(crate) narrowing: Option<Arc<Policy>>,
    /// The server that has asked the persons about calls before it passed them on, if one has.
    pub(crate) asked_by: Option<Arc<str>>,
    /// The role by which every caller is judged, whatever its own roles. None: its own.
    pub(crate) fixed_role: Option<Arc<str>>,
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
            fixed_role: None,
        }
    }

    /// Returns this policy, narrowed by `other`: a caller sees a tool, may call it and may use an area only where both
    /// policies say so. Roles, documents and the roles of commands stay those of this policy. A second call replaces
    /// the narrowing of the first.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        Self { narrowing: Some(Arc::new(other.clone())), ..self.clone() }
    }

    /// Returns this policy for every caller in `role`, whatever roles the caller has: to [narrow](Self::narrowed_by) a policy
    /// whose roles have other names, or other rights under the same name.
    #[must_use]
    pub fn for_role(&self, role: impl Into<Arc<str>>) -> Self {
        Self { fixed_role: Some(role.into()), ..self.clone() }
    }

    /// Returns this policy for calls that `server` has judged by it and passed on. `server` has asked the persons whom this
    /// policy asks, so that nobody is asked a second time. Everything else is judged as before.
    ///
    /// `server` does not know the policy that [narrows](Self::narrowed_by) this one. A call that the narrowing policy asks
    /// about is refused, because nobody has answered that question.
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
            && self.narrowing.as_ref().is_none_or(|narrowing| narrowing.runs_any_program(role, tool))
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
                Some(_) if judgement.is_asked_by_narrowing => Err(Refusal::Arguments {
                    rule: Arc::clone(request.rule()),
                    reason: "a policy of this machine asks a person about this call, and the server that passed the \
                             call on does not know that question"
                        .to_owned(),
                }),
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
    /// whatever the answer. The approval answers only the question that the policy asks. A call that the policy refuses
    /// now is refused in spite of the approval.
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
        let mut is_asked_by_narrowing = false;
        if let Some(narrowing) = &self.narrowing {
            let narrower = narrowing.judge(caller, tool, call.arguments(), effects, 0)?;
            is_asked_by_narrowing = !narrower.reasons.is_empty();
            judgement.narrow(narrower);
        }
        let Judgement { rule, scope, reasons } = judgement;
        let rule = rule.ok_or_else(|| Refusal::Hidden { rule: "the caller has no role".into() })?;
        Ok(AllowedCall { rule, scope, reasons, is_asked_by_narrowing })
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
        let name = self.fixed_role.as_deref().unwrap_or(name);
        // An unknown name gets the minimal role and is no error, so that a caller cannot gain by a name that the
        // file does not know.
        self.compiled.roles.get(name).unwrap_or(&self.compiled.minimal)
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
    /// True if the policy that narrows this one has a reason to ask.
    is_asked_by_narrowing: bool,
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
