//! The only module of the proxy that asks the policy.

use super::input_schema::{AmbiguousNames, InputSchema};
use super::methods::ProtocolArea;
use json_rpc::json::{Json, JsonObject};
use role_policy::{
    Approval, ApprovalRequest, Authorized, Call, Caller, EffectResolver, Policy, Refusal, RoleLimits,
    ToolFacts,
};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The policy in force. A clone sees what any other clone [sets](Self::replace).
#[derive(Clone, Debug)]
pub struct PolicyHandle(Arc<RwLock<Policy>>);

impl PolicyHandle {
    /// Creates a handle with `policy` in force.
    pub fn new(policy: Policy) -> Self {
        Self(Arc::new(RwLock::new(policy)))
    }

    /// Puts another policy in force: the next call is judged by it.
    pub fn replace(&self, policy: Policy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    fn get(&self) -> Policy {
        // A clone, which is a count in `Policy`, so that the lock is not held while a call is judged.
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The tool of CoreTools' own server that calls its other tools.
const DISPATCHER: &str = "call_tools";

/// A filter of tools on top of the policy: it can only hide more.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolFilter {
    /// If not empty, every other tool is hidden.
    pub only: BTreeSet<String>,
    /// Tools that are hidden.
    pub hidden: BTreeSet<String>,
}

impl ToolFilter {
    /// Hides every tool that is not in `tools`. With no tools it hides nothing.
    #[must_use]
    pub fn only(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Hides `tools`, and with them the tool `call_tools` of CoreTools' own server, which could call them.
    #[must_use]
    pub fn hidden(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.hidden = tools.into_iter().map(Into::into).collect();
        self
    }

    fn is_empty(&self) -> bool {
        self.only.is_empty() && self.hidden.is_empty()
    }

    fn allows(&self, name: &str) -> bool {
        // CoreTools' own server makes the calls in a call of this tool by itself, where no filter sees which tools they name.
        if name == DISPATCHER && !self.hidden.is_empty() {
            return false;
        }
        (self.only.is_empty() || self.only.contains(name)) && !self.hidden.contains(name)
    }
}

/// Decides which tools of the server one caller may see and call.
pub(super) struct Authorizer {
    policy: PolicyHandle,
    caller: Caller,
    filter: ToolFilter,
    effects: Arc<dyn EffectResolver + Send + Sync>,
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorizer").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// A call that may be sent, with the arguments as they were judged. Only [`Authorizer::authorize`] makes one.
#[derive(Debug)]
pub(super) struct AuthorizedCall {
    authorized: Authorized<Call>,
}

impl AuthorizedCall {
    /// Returns the rule that allows the call. For a call that a person approved it says who did.
    pub(super) fn rule(&self) -> Arc<str> {
        let decision = self.authorized.decision();
        Arc::clone(decision.approver.as_ref().unwrap_or(&decision.rule))
    }
}

/// The refusal of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallRefusal {
    /// The tool does not exist for the caller. The rule is for the operator.
    Hidden(Arc<str>),
    /// The arguments are not allowed; `reason` is for the caller.
    Arguments { rule: Arc<str>, reason: String },
    /// A person must approve the call.
    Approval(Box<ApprovalRequest>),
}

impl Authorizer {
    pub(super) fn new(
        policy: PolicyHandle,
        caller: Caller,
        filter: ToolFilter,
        effects: Arc<dyn EffectResolver + Send + Sync>,
    ) -> Self {
        Self { policy, caller, filter, effects }
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the limits of the caller's calls.
    pub(super) fn limits(&self) -> RoleLimits {
        self.policy.get().limits(&self.caller)
    }

    /// Returns true if the caller may know of the tool.
    pub(super) fn sees(&self, tool: &str) -> bool {
        self.filter.allows(tool) && self.policy.get().sees(&self.caller, &ToolFacts::external(tool))
    }

    /// Returns true if the caller may use what the server offers in `area`.
    pub(super) fn grants(&self, area: ProtocolArea) -> bool {
        if ProtocolArea::OF_CLIENT.contains(&area) {
            // The filter hides what the server offers, and this is what the client does.
            return self.policy.get().grants_area(&self.caller, area.name());
        }
        self.grants_name(area.name())
    }

    /// Returns true if the caller may read the server's instructions, which may name any tool.
    pub(super) fn grants_instructions(&self) -> bool {
        self.grants_name("mcp/instructions")
    }

    fn grants_name(&self, name: &str) -> bool {
        // A prompt or a resource may show what the filter hides, so with a filter no area is granted.
        self.filter.is_empty() && self.policy.get().grants_area(&self.caller, name)
    }

    /// Judges one call, with the approval of a person if there is one. `definition` is the server's definition of the tool,
    /// if it has such a tool.
    pub(super) fn authorize(
        &self,
        tool: &str,
        definition: Option<&JsonObject<'_>>,
        arguments: Option<&JsonObject<'_>>,
        approval: Option<Approval>,
    ) -> Result<AuthorizedCall, CallRefusal> {
        if !self.filter.allows(tool) {
            return Err(CallRefusal::Hidden("narrowing: --only, --hide".into()));
        }
        let policy = self.policy.get();
        let schema = definition.and_then(InputSchema::of);
        let declared = schema.map(InputSchema::declared_arguments).unwrap_or_default();
        let facts = ToolFacts::external(tool).declared_arguments(&declared);
        // By name first: a caller who may not know of the tool learns nothing of its arguments.
        let is_visible = policy.sees(&self.caller, &facts);
        let judged_arguments = arguments.map_or_else(|| Some(serde_json::Map::new()), JsonObject::to_map);
        // The policy judges 64-bit numbers. A larger one would be judged as another than the server reads.
        if is_visible && judged_arguments.is_none() {
            return Err(CallRefusal::Arguments {
                rule: "a number is too large".into(),
                reason: "a number in the arguments is too large to be judged exactly".to_owned(),
            });
        }
        if is_visible
            && let Some(AmbiguousNames { first, second }) =
                schema.zip(arguments).and_then(|(schema, arguments)| schema.ambiguous_names(arguments))
        {
            return Err(CallRefusal::Arguments {
                rule: "two names are one to some parsers".into(),
                reason: format!(
                    "`{}` and `{}` are one name to some parsers, so the server could read another value than the one \
                     that is judged; give one of them",
                    short(&first),
                    short(&second)
                ),
            });
        }
        let call = Call::new(tool, judged_arguments.unwrap_or_default());
        let judged = match approval {
            None => policy.authorize(&self.caller, &facts, call, &*self.effects),
            // An approval that does not fit any more is asked about again.
            Some(approval) => policy.authorize_approved(&self.caller, &facts, call, &*self.effects, approval),
        };
        match judged {
            Ok(authorized) => Ok(AuthorizedCall { authorized }),
            Err(Refusal::Arguments { rule, reason }) => Err(CallRefusal::Arguments { rule, reason }),
            Err(Refusal::Approval(request)) => Err(CallRefusal::Approval(Box::new(request))),
            // A refusal that this crate does not know yet tells the client least when the tool does not exist for it.
            Err(refusal) => Err(CallRefusal::Hidden(Arc::clone(refusal.rule()))),
        }
    }
}

/// Cuts a name for a message: it is the client's and may have megabytes.
fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Returns true if a tool may have this name: every client takes it, and it cannot look like another name.
pub(super) fn is_safe_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// Returns the name and the arguments of a `tools/call`, if its parameters fit.
pub(super) fn name_and_arguments<'m, 'a>(
    params: &'m JsonObject<'a>,
) -> Option<(&'m str, Option<&'m JsonObject<'a>>)> {
    let name = params.get("name")?.as_str()?;
    match params.get("arguments") {
        None => Some((name, None)),
        Some(Json::Object(arguments)) => Some((name, Some(arguments))),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use role_policy::LexicalResolver;

    #[test]
    fn narrowing_takes_tools_away_and_every_area_of_the_server_with_them() {
        let authorizer = |only: &[&str], hidden: &[&str]| {
            let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let filter = ToolFilter { only: set(only), hidden: set(hidden) };
            Authorizer::new(
                PolicyHandle::new(Policy::allow_all()),
                Caller::new("worker"),
                filter,
                Arc::new(LexicalResolver),
            )
        };
        let all = authorizer(&[], &[]);
        assert!(all.sees("a") && ProtocolArea::ALL.into_iter().all(|area| all.grants(area)));
        for (only, hidden) in [(&["a"][..], &[][..]), (&[], &["b"]), (&["a", "b"], &["b"])] {
            let filter_server_info = authorizer(only, hidden);
            assert!(filter_server_info.sees("a") && !filter_server_info.sees("b"));
            for area in ProtocolArea::ALL {
                // The filter hides what the server offers, and not what the client does for it.
                let is_of_client = ProtocolArea::OF_CLIENT.contains(&area);
                assert_eq!(filter_server_info.grants(area), is_of_client, "{}", area.name());
            }
            assert!(matches!(
                filter_server_info.authorize("b", None, None, None),
                Err(CallRefusal::Hidden(_))
            ));
        }
    }

    #[test]
    fn a_role_from_which_anything_is_taken_away_has_the_areas_that_it_names_and_no_others() {
        let granted = |role: &str| {
            let file = format!("version = 1\nexternal_tools = [\"a\", \"b\"]\n[roles.r]\n{role}\n");
            let policy = Policy::load(&file, "roles.toml", &[]).expect(role).policy;
            let handle = PolicyHandle::new(policy);
            let authorizer =
                Authorizer::new(handle, Caller::new("r"), ToolFilter::default(), Arc::new(LexicalResolver));
            let areas =
                ProtocolArea::ALL.into_iter().filter(|area| authorizer.grants(*area)).map(ProtocolArea::name);
            let instructions = authorizer.grants_instructions().then_some("mcp/instructions");
            areas.chain(instructions).collect::<Vec<_>>()
        };
        const ALL: [&str; 9] = [
            "mcp/prompts",
            "mcp/resources",
            "mcp/completions",
            "mcp/tasks",
            "mcp/skills",
            "mcp/sampling",
            "mcp/elicitation",
            "mcp/roots",
            "mcp/instructions",
        ];
        let rule = "[[roles.r.require]]\nid = \"R\"\ntools = [\"a\"]\narguments = { x = { max = 1 } }";
        for (role, areas) in [
            ("allow = [\"*\"]", &ALL[..]),
            ("allow = [\"toolset:external\"]", &ALL),
            ("allow = [\"a\", \"mcp/*\"]", &ALL),
            ("allow = [\"*\"]\ndeny = [\"annotation:read-only\", \"toolset:git\"]", &ALL),
            ("allow = [\"*\"]\ndeny = [\"a\"]", &[]),
            ("allow = [\"*\"]\ndeny = [\"*b*\"]", &[]),
            ("allow = [\"*\"]\ndeny = [\"mcp/*\"]", &[]),
            ("allow = [\"a\", \"b\"]", &[]),
            ("allow = [\"*\", \"mcp/prompts\"]\ndeny = [\"a\"]", &["mcp/prompts"]),
            ("allow = [\"a\", \"mcp/instructions\"]", &["mcp/instructions"]),
            (&format!("allow = [\"*\"]\n{rule}"), &[]),
            (&format!("allow = [\"*\", \"mcp/tasks\"]\n{rule}"), &["mcp/tasks"]),
        ] {
            assert_eq!(granted(role), areas, "{role}");
        }
    }

    #[test]
    fn arguments_that_cannot_be_judged_as_they_are_written_are_refused() {
        let authorizer = Authorizer::new(
            PolicyHandle::new(Policy::allow_all()),
            Caller::new("x"),
            ToolFilter::default(),
            Arc::new(LexicalResolver),
        );
        for (text, permitted) in
            [("{\"n\":18446744073709551616}", false), ("{\"n\":[1e999]}", false), ("{\"n\":1}", true)]
        {
            let json = Json::parse(text.as_bytes()).unwrap();
            assert_eq!(authorizer.authorize("a", None, json.as_object(), None).is_ok(), permitted, "{text}");
        }
    }

    #[test]
    fn safe_names_are_the_ones_that_look_like_no_other() {
        for (name, safe) in [
            ("read_file", true),
            ("a.b-C_9", true),
            ("", false),
            ("read file", false),
            ("re\u{430}d", false),
            ("mcp/prompts", false),
            ("read\u{200b}", false),
        ] {
            assert_eq!(is_safe_name(name), safe, "{name:?}");
        }
        assert!(is_safe_name(&"x".repeat(128)) && !is_safe_name(&"x".repeat(129)));
    }
}
