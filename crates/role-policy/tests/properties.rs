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
    within: Option<(String, &'static str)>,
}

fn role() -> impl Strategy<Value = Role> {
    let list = || proptest::collection::vec(selector(), 0..4);
    let within =
        proptest::option::of((selector(), proptest::sample::select(&["src", "docs", "src/deep", "."][..])));
    (list(), list(), within).prop_map(|(allow, deny, within)| Role { allow, deny, within })
}

fn load(roles: &[(&str, &Role)]) -> Policy {
    let mut text = "version = 1\n".to_owned();
    for (name, role) in roles {
        let _ = writeln!(text, "[roles.{name}]\nallow = {:?}\ndeny = {:?}", role.allow, role.deny);
        if let Some((tools, folder)) = &role.within {
            let _ = writeln!(
                text,
                "[[roles.{name}.require]]\nid = \"W\"\ntools = [{tools:?}]\nwrite_within = [{folder:?}]"
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
    fn hidden_is_refused_whatever_the_arguments_and_seen_is_accepted_for_some(role in role()) {
        let policy = load(&[("a", &role)]);
        let caller = Caller::new("a");
        for tool in tools() {
            let answers: Vec<_> = calls()
                .filter(|(other, _)| other.name == tool.name)
                .map(|(tool, call)| policy.authorize(&caller, &tool, call, &LexicalResolver))
                .collect();
            if policy.sees(&caller, &tool) {
                prop_assert!(answers.iter().any(Result::is_ok));
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
