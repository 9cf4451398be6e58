//! What holds for every policy.
#![allow(clippy::panic, reason = "a test says what is wrong by ending")]

use proptest::prelude::*;
use role_policy::{Call, Caller, Effect, LexicalResolver, Policy, Refusal, ToolFacts};
use serde_json::{Map, Value};
use std::fmt::Write as _;

const NAMES: [&str; 8] = [
    "read_file",
    "write_file",
    "list_directory",
    "git_status",
    "git_commit",
    "run_command",
    "next_work",
    "next_prepare",
];

fn tools() -> Vec<ToolFacts<'static>> {
    NAMES
        .iter()
        .enumerate()
        .map(|(index, name)| {
            ToolFacts::new(name, if index < 3 { "filesystem" } else { "other" })
                .read_only(index % 3 == 0)
                .destructive(index % 3 == 1)
                .open_world(index % 4 == 3)
                .effects(&[Effect::Writes("path")])
        })
        .collect()
}

fn selector() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(&NAMES[..]).prop_map(str::to_owned),
        proptest::sample::select(&["*", "git_*", "*_file", "next_*", "*e*", "r*_*e"][..])
            .prop_map(str::to_owned),
        proptest::sample::select(
            &[
                "toolset:filesystem",
                "toolset:other",
                "annotation:read-only",
                "annotation:destructive",
                "annotation:open-world"
            ][..]
        )
        .prop_map(str::to_owned),
    ]
}

#[derive(Clone, Debug)]
struct Role {
    allow: Vec<String>,
    deny: Vec<String>,
    ask: Vec<String>,
    within: Option<(String, &'static str)>,
    /// True if the rule asks instead of refusing.
    otherwise_ask: bool,
}

fn role() -> impl Strategy<Value = Role> {
    let list = || proptest::collection::vec(selector(), 0..4);
    let within =
        proptest::option::of((selector(), proptest::sample::select(&["src", "docs", "src/deep", "."][..])));
    (list(), list(), proptest::collection::vec(selector(), 0..2), within, any::<bool>()).prop_map(
        |(allow, deny, ask, within, otherwise_ask)| Role { allow, deny, ask, within, otherwise_ask },
    )
}

fn load(roles: &[(&str, &Role)]) -> Policy {
    let mut text = "version = 1\n".to_owned();
    for (name, role) in roles {
        let _ = writeln!(
            text,
            "[roles.{name}]\nallow = {:?}\ndeny = {:?}\nask = {:?}",
            role.allow, role.deny, role.ask
        );
        if let Some((tools, folder)) = &role.within {
            let otherwise = if role.otherwise_ask { "ask" } else { "deny" };
            let _ = writeln!(
                text,
                "[[roles.{name}.require]]\nid = \"W\"\ntools = [{tools:?}]\nwrite_within = [{folder:?}]\notherwise = \"{otherwise}\""
            );
        }
    }
    match Policy::load(&text, "roles.toml", &tools()) {
        Ok(loaded) => loaded.policy,
        Err(error) => panic!("{error}\n{text}"),
    }
}

const PATHS: [&str; 6] = ["src/a", "docs/a", "src/deep/a", "a", "../a", "src/../docs/a"];

/// Every call there is in this small world.
fn calls() -> impl Iterator<Item = (ToolFacts<'static>, Call)> {
    tools().into_iter().flat_map(|tool| {
        PATHS.iter().map(move |path| {
            let arguments = Map::from_iter([("path".to_owned(), Value::from(*path))]);
            (tool, Call::new(tool.name, arguments))
        })
    })
}

fn allowed(policy: &Policy, caller: &Caller) -> Vec<bool> {
    calls().map(|(tool, call)| policy.authorize(caller, &tool, call, &LexicalResolver).is_ok()).collect()
}

/// The decision about a call, from the widest to the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Decided {
    Allow,
    Ask,
    Deny,
}

fn decisions(policy: &Policy, caller: &Caller) -> Vec<Decided> {
    calls()
        .map(|(tool, call)| match policy.authorize(caller, &tool, call, &LexicalResolver) {
            Ok(_) => Decided::Allow,
            Err(Refusal::Approval(_)) => Decided::Ask,
            Err(_) => Decided::Deny,
        })
        .collect()
}

/// The decision about a call by the definition alone: deny beats ask, ask beats allow, no match is deny.
fn expected(role: &Role) -> Vec<Decided> {
    // One policy for each part of the role, so that nothing but the order of effects is left to this function.
    let part = |allow: &[String], within| {
        let role =
            Role { allow: allow.to_vec(), deny: Vec::new(), ask: Vec::new(), within, otherwise_ask: false };
        allowed(&load(&[("a", &role)]), &Caller::new("a"))
    };
    let (allows, denies, asks) = (part(&role.allow, None), part(&role.deny, None), part(&role.ask, None));
    let holds = part(&["*".to_owned()], role.within.clone());
    // A path that leads outside cannot be judged, so nobody is asked about it.
    let judgeable = calls().map(|(_, call)| call.arguments().get("path") != Some(&Value::from("../a")));
    let rules =
        holds.into_iter().zip(judgeable).map(|(holds, judgeable)| match (holds, role.otherwise_ask) {
            (true, _) => Decided::Allow,
            (false, true) if judgeable => Decided::Ask,
            (false, _) => Decided::Deny,
        });
    rules
        .zip(allows.into_iter().zip(denies).zip(asks))
        .map(|(rules, ((allows, denies), asks))| match (denies, asks, allows) {
            (true, _, _) | (false, false, false) => Decided::Deny,
            (false, true, _) => rules.max(Decided::Ask),
            (false, false, true) => rules,
        })
        .collect()
}

/// Whether everything in `less` is in `more`.
fn within(less: &[bool], more: &[bool]) -> bool {
    less.iter().zip(more).all(|(less, more)| !less || *more)
}

proptest! {
    #[test]
    fn a_further_denial_never_allows_more(role in role(), denied in selector()) {
        let mut narrower = role.clone();
        narrower.deny.push(denied);
        let (more, less) = (load(&[("a", &role)]), load(&[("a", &narrower)]));
        prop_assert!(within(&allowed(&less, &Caller::new("a")), &allowed(&more, &Caller::new("a"))));
    }

    #[test]
    fn a_further_requirement_never_allows_more(role in role(), requirement in (selector(), proptest::sample::select(&["src", "docs"][..]))) {
        let (before, mut narrower) = (Role { within: None, ..role.clone() }, role);
        narrower.within = Some(requirement);
        let (more, less) = (load(&[("a", &before)]), load(&[("a", &narrower)]));
        prop_assert!(within(&allowed(&less, &Caller::new("a")), &allowed(&more, &Caller::new("a"))));
    }

    #[test]
    fn a_further_role_never_widens(first in role(), second in role()) {
        let policy = load(&[("a", &first), ("b", &second)]);
        let both = allowed(&policy, &Caller::new("a").narrowed_by("b"));
        let expected: Vec<bool> = allowed(&policy, &Caller::new("a"))
            .into_iter()
            .zip(allowed(&policy, &Caller::new("b")))
            .map(|(a, b)| a && b)
            .collect();
        prop_assert_eq!(both, expected);
    }

    #[test]
    fn deny_beats_ask_and_ask_beats_allow(role in role()) {
        prop_assert_eq!(decisions(&load(&[("a", &role)]), &Caller::new("a")), expected(&role));
    }

    #[test]
    fn whatever_narrows_never_widens_a_decision(first in role(), second in role()) {
        let policy = load(&[("a", &first), ("b", &second)]);
        let a = decisions(&policy, &Caller::new("a"));
        let b = decisions(&policy, &Caller::new("b"));
        let narrowest: Vec<Decided> = a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect();
        prop_assert_eq!(&decisions(&policy, &Caller::new("a").narrowed_by("b")), &narrowest);
        let narrowed = load(&[("a", &first)]).narrowed_by(&load(&[("a", &second)]));
        prop_assert_eq!(&decisions(&narrowed, &Caller::new("a")), &narrowest);
    }

    #[test]
    fn hidden_is_refused_whatever_the_arguments_and_seen_is_accepted_for_some(role in role()) {
        let policy = load(&[("a", &role)]);
        let caller = Caller::new("a");
        for tool in tools() {
            let answers: Vec<_> = calls()
                .filter(|(other, _)| other.name == tool.name)
                .map(|(tool, call)| policy.authorize(&caller, &tool, call, &LexicalResolver))
                .collect();
            if policy.sees(&caller, &tool) {
                let accepted = |answer: &Result<_, Refusal>| matches!(answer, Ok(_) | Err(Refusal::Approval(_)));
                prop_assert!(answers.iter().any(accepted));
            } else {
                let hidden = |answer: &Result<_, Refusal>| matches!(answer, Err(Refusal::Hidden { .. }));
                prop_assert!(answers.iter().all(hidden));
            }
        }
    }

    #[test]
    fn an_explanation_decides_as_the_call_does(role in role()) {
        let policy = load(&[("a", &role)]);
        let caller = Caller::new("a");
        for (tool, call) in calls() {
            let explained = policy.explain(&caller, &tool, call.clone(), &LexicalResolver).decision.map(|decision| decision.rule);
            let decided = policy.authorize(&caller, &tool, call, &LexicalResolver).map(|call| call.decision().rule.clone());
            prop_assert_eq!(explained, decided);
        }
    }

    #[test]
    fn no_text_makes_the_loader_panic(text in "\\PC{0,400}") {
        let _ = Policy::load(&text, "roles.toml", &tools());
    }

    #[test]
    fn no_damage_to_a_policy_makes_the_loader_panic(at in 0usize..5000, insert in "\\PC{0,3}", cut in 0usize..40) {
        let mut text: Vec<char> = role_policy::BUILTIN.chars().collect();
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, insert.chars());
        let text: String = text.into_iter().collect();
        let _ = Policy::load(&text, "roles.toml", &[]);
    }
}
