//! The only place of the proxy that asks the policy.

use super::json::{Json, Object};
use super::methods::Area;
use crate::{Authorized, Call, Caller, Effects, Policy, Refusal, ToolFacts};
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
    _authorized: Authorized<Call>,
}

/// Why a call may not be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotPermitted {
    /// For the caller there is no such tool.
    Hidden,
    /// Not with these arguments; the words are for the caller.
    Arguments(String),
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

    /// Whether the caller may know of the tool.
    pub(super) fn sees(&self, tool: &str) -> bool {
        self.narrowing.allows(tool) && self.policy.get().sees(&self.caller, &ToolFacts::external(tool))
    }

    /// Whether the caller has what the server offers in `area`. Of what is in it the policy knows nothing,
    /// so that a caller from whom single tools are taken away by name alone has none of it.
    pub(super) fn grants(&self, area: Area) -> bool {
        self.narrowing.only.is_empty()
            && self.narrowing.hidden.is_empty()
            && self.policy.get().sees(&self.caller, &ToolFacts::external(area.name()))
    }

    /// Judges one call.
    pub(super) fn call(&self, tool: &str, arguments: Option<&Object<'_>>) -> Result<Permit, NotPermitted> {
        // Judged by name first: a caller who may not know of the tool learns nothing of its arguments.
        if !self.sees(tool) {
            return Err(NotPermitted::Hidden);
        }
        let Some(judged) = arguments.map_or_else(|| Some(serde_json::Map::new()), Object::to_map) else {
            let words = "a number in the arguments is too large to be judged exactly";
            return Err(NotPermitted::Arguments(words.to_owned()));
        };
        let call = Call::new(tool, judged);
        match self.policy.get().authorize(&self.caller, &ToolFacts::external(tool), call, &*self.effects) {
            Ok(authorized) => Ok(Permit { _authorized: authorized }),
            Err(Refusal::Hidden { .. }) => Err(NotPermitted::Hidden),
            Err(refusal @ Refusal::Arguments { .. }) => Err(NotPermitted::Arguments(refusal.to_string())),
        }
    }
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
            assert_eq!(narrow.call("b", None).expect_err("hidden"), NotPermitted::Hidden);
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
