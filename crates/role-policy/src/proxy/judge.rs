//! The only place of the proxy that asks the policy.

use super::json::{Json, Object};
use super::methods::Area;
use crate::policy::Role;
use crate::rule::{Selector, glob_matches};
use crate::{Authorized, Call, Caller, Effects, Policy, Refusal, RoleLimits, ToolFacts};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The policy in force. A clone sees what any other clone [sets](Self::replace).
#[derive(Clone, Debug)]
pub struct PolicyHandle(Arc<RwLock<Policy>>);

impl PolicyHandle {
    /// Begins with `policy`.
    pub fn new(policy: Policy) -> Self {
        Self(Arc::new(RwLock::new(policy)))
    }

    /// Puts another policy in force: the next call is judged by it.
    pub fn replace(&self, policy: Policy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    fn get(&self) -> Policy {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is taken away from a caller beside what its policy takes: it can only narrow.
#[derive(Clone, Debug, Default)]
pub struct Narrowing {
    /// Where there are names here, only these tools.
    pub only: BTreeSet<String>,
    /// None of these tools.
    pub hidden: BTreeSet<String>,
}

impl Narrowing {
    fn is_nothing(&self) -> bool {
        self.only.is_empty() && self.hidden.is_empty()
    }

    fn allows(&self, name: &str) -> bool {
        (self.only.is_empty() || self.only.contains(name)) && !self.hidden.contains(name)
    }
}

/// What one caller may see and call of a server that is not ours.
pub(super) struct Judge {
    policy: PolicyHandle,
    caller: Caller,
    narrowing: Narrowing,
    effects: Arc<dyn Effects + Send + Sync>,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// A call that may be sent, with the arguments as they were judged. Only [`Judge::call`] makes one.
#[derive(Debug)]
pub(super) struct Permit {
    authorized: Authorized<Call>,
}

impl Permit {
    /// The rule that allows the call.
    pub(super) fn rule(&self) -> Arc<str> {
        Arc::clone(&self.authorized.decision().rule)
    }
}

/// Why a call may not be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotPermitted {
    /// For the caller there is no such tool. The rule is for the operator.
    Hidden(Arc<str>),
    /// Not with these arguments; the words are for the caller.
    Arguments { rule: Arc<str>, words: String },
}

impl Judge {
    pub(super) fn new(
        policy: PolicyHandle,
        caller: Caller,
        narrowing: Narrowing,
        effects: Arc<dyn Effects + Send + Sync>,
    ) -> Self {
        Self { policy, caller, narrowing, effects }
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What bounds the caller's calls.
    pub(super) fn limits(&self) -> RoleLimits {
        self.policy.get().limits(&self.caller)
    }

    /// Whether the caller may know of the tool.
    pub(super) fn sees(&self, tool: &str) -> bool {
        self.narrowing.allows(tool) && self.policy.get().sees(&self.caller, &ToolFacts::external(tool))
    }

    /// Whether the caller has what the server offers in `area`.
    pub(super) fn grants(&self, area: Area) -> bool {
        self.grants_name(area.name())
    }

    /// Whether the caller gets the server's instructions, which may name any tool.
    pub(super) fn grants_instructions(&self) -> bool {
        self.grants_name("mcp/instructions")
    }

    /// Of what is in an area the policy knows nothing: it may name, or do, what was taken away from the
    /// caller. So each of its roles must take nothing away, or name the area.
    fn grants_name(&self, name: &str) -> bool {
        let policy = self.policy.get();
        self.narrowing.is_nothing()
            && policy.sees(&self.caller, &ToolFacts::external(name))
            && self.caller.roles().all(|role| {
                let role = policy.role(role);
                names(role, name) || takes_nothing_away(role)
            })
    }

    /// Judges one call.
    pub(super) fn call(&self, tool: &str, arguments: Option<&Object<'_>>) -> Result<Permit, NotPermitted> {
        if !self.narrowing.allows(tool) {
            return Err(NotPermitted::Hidden("narrowing: --only, --hide".into()));
        }
        let policy = self.policy.get();
        let facts = ToolFacts::external(tool);
        // By name first: a caller who may not know of the tool learns nothing of its arguments.
        let seen = policy.sees(&self.caller, &facts);
        let judged = arguments.map_or_else(|| Some(serde_json::Map::new()), Object::to_map);
        if seen && judged.is_none() {
            return Err(NotPermitted::Arguments {
                rule: "a number is too large".into(),
                words: "a number in the arguments is too large to be judged exactly".to_owned(),
            });
        }
        let call = Call::new(tool, judged.unwrap_or_default());
        match policy.authorize(&self.caller, &facts, call, &*self.effects) {
            Ok(authorized) => Ok(Permit { authorized }),
            Err(Refusal::Hidden { rule }) => Err(NotPermitted::Hidden(rule)),
            Err(Refusal::Arguments { rule, reason }) => Err(NotPermitted::Arguments { rule, words: reason }),
        }
    }
}

/// Whether the role allows `name` by a selector that means what is no tool: `mcp/prompts`, `mcp/*`.
fn names(role: &Role, name: &str) -> bool {
    role.allow.iter().any(|listed| match &listed.selector {
        Selector::Name(glob) => glob.starts_with("mcp/") && glob_matches(glob, name),
        _ => false,
    })
}

/// Whether the role may call every tool that a server may have, with any arguments.
fn takes_nothing_away(role: &Role) -> bool {
    let all = |selector: &Selector| match selector {
        Selector::Name(glob) => glob.bytes().all(|byte| byte == b'*'),
        any => any.matches(&ToolFacts::external("")),
    };
    let none = |selector: &Selector| match selector {
        // No tool has a slash in its name.
        Selector::Name(glob) => glob.contains('/'),
        any => !any.matches(&ToolFacts::external("")),
    };
    role.allow.iter().any(|listed| all(&listed.selector))
        && role.deny.iter().all(|listed| none(&listed.selector))
        && role.rules.iter().all(|rule| rule.tools.iter().all(none))
}

/// Whether a tool may have this name: what every client takes, and nothing that looks like another name.
pub(super) fn is_safe_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// The name and the arguments of a `tools/call`, if its parameters fit.
pub(super) fn call_parts<'m, 'a>(params: &'m Object<'a>) -> Option<(&'m str, Option<&'m Object<'a>>)> {
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
    use crate::Lexical;

    #[test]
    fn narrowing_takes_tools_away_and_every_area_with_them() {
        let judge = |only: &[&str], hidden: &[&str]| {
            let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let narrowing = Narrowing { only: set(only), hidden: set(hidden) };
            Judge::new(
                PolicyHandle::new(Policy::allow_all()),
                Caller::new("worker"),
                narrowing,
                Arc::new(Lexical),
            )
        };
        let all = judge(&[], &[]);
        assert!(all.sees("a") && Area::ALL.into_iter().all(|area| all.grants(area)));
        for (only, hidden) in [(&["a"][..], &[][..]), (&[], &["b"]), (&["a", "b"], &["b"])] {
            let narrow = judge(only, hidden);
            assert!(narrow.sees("a") && !narrow.sees("b"));
            assert!(!Area::ALL.into_iter().any(|area| narrow.grants(area)));
            assert!(matches!(narrow.call("b", None), Err(NotPermitted::Hidden(_))));
        }
    }

    #[test]
    fn a_role_from_which_anything_is_taken_away_has_the_areas_that_it_names_and_no_others() {
        let granted = |role: &str| {
            let file = format!("version = 1\nexternal_tools = [\"a\", \"b\"]\n[roles.r]\n{role}\n");
            let policy = Policy::load(&file, "roles.toml", &[]).expect(role).policy;
            let handle = PolicyHandle::new(policy);
            let judge = Judge::new(handle, Caller::new("r"), Narrowing::default(), Arc::new(Lexical));
            let areas = Area::ALL.into_iter().filter(|area| judge.grants(*area)).map(Area::name);
            let instructions = judge.grants_instructions().then_some("mcp/instructions");
            areas.chain(instructions).collect::<Vec<_>>()
        };
        const ALL: [&str; 6] = [
            "mcp/prompts",
            "mcp/resources",
            "mcp/completions",
            "mcp/tasks",
            "mcp/skills",
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
        let judge = Judge::new(
            PolicyHandle::new(Policy::allow_all()),
            Caller::new("x"),
            Narrowing::default(),
            Arc::new(Lexical),
        );
        for (text, permitted) in
            [("{\"n\":18446744073709551616}", false), ("{\"n\":[1e999]}", false), ("{\"n\":1}", true)]
        {
            let json = Json::parse(text.as_bytes()).unwrap();
            assert_eq!(judge.call("a", json.as_object()).is_ok(), permitted, "{text}");
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
