//! Sources only narrow.
#![allow(clippy::panic, reason = "a test says what is wrong by ending")]

use proptest::prelude::*;
use role_policy::source::{NamedRole, RoleSources, resolve};
use role_policy::{Caller, LexicalResolver, Policy, ToolFacts};

const ROLES: &str = "version = 1\nmissing_role = \"all\"\nderived = [{ command = \"next-*\", role = \"few\" }]\n\
    [roles.minimal]\nallow = [\"t0\"]\n[roles.all]\nallow = [\"*\"]\n[roles.few]\nallow = [\"t0\", \"t1\"]\n[roles.other]\nallow = [\"t0\", \"t2\"]";

fn tool(name: &str) -> ToolFacts<'_> {
    ToolFacts::new(name, "t").read_only(true).open_world(false)
}

fn policy() -> Policy {
    Policy::load(ROLES, "roles.toml", &[tool("t0"), tool("t1"), tool("t2")])
        .unwrap_or_else(|error| panic!("{error}"))
        .policy
}

fn seen(policy: &Policy, caller: &Caller) -> Vec<bool> {
    ["t0", "t1", "t2"].iter().map(|name| policy.sees(caller, &tool(name))).collect()
}

fn source() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(
        proptest::sample::select(&["all", "few", "other", "minimal", "All", "", "unheard-of"][..])
            .prop_map(str::to_owned),
    )
}

fn sources(parts: &[Option<String>; 4]) -> RoleSources {
    let [named @ .., command] = parts;
    let mut sources = RoleSources::default();
    let name = |role: &String| NamedRole { source: "test".to_owned(), role: role.clone() };
    sources.named = named.iter().flatten().map(name).collect();
    sources.command.clone_from(command);
    sources
}

proptest! {
    #[test]
    fn a_further_source_never_gives_a_tool(ceiling in source(), environment in source(), human in source(), further in source()) {
        let policy = policy();
        prop_assume!(ceiling.is_some());
        let before = resolve(&policy, &sources(&[ceiling.clone(), environment.clone(), None, None]));
        let after = resolve(&policy, &sources(&[ceiling, environment, human, further.map(|name| format!("next-{name}"))]));
        for (before, after) in seen(&policy, &before.caller).into_iter().zip(seen(&policy, &after.caller)) {
            prop_assert!(before || !after);
        }
    }

    #[test]
    fn a_role_that_is_not_declared_is_the_minimal_one(name in "\\PC{0,40}") {
        let policy = policy();
        prop_assume!(!policy.declares(&name));
        let resolved = resolve(&policy, &sources(&[Some(name), None, None, None]));
        prop_assert_eq!(seen(&policy, &resolved.caller), [true, false, false]);
        prop_assert!(resolved.evidence.iter().all(|evidence| evidence.distrust.is_some()));
    }
}

#[test]
fn no_source_is_the_missing_role_and_only_then() {
    let policy = policy();
    assert_eq!(resolve(&policy, &RoleSources::default()).caller.role(), "all");
    let command = resolve(&policy, &sources(&[None, None, None, Some("/next-work 3".to_owned())]));
    assert_eq!(command.caller.role(), "few");
    // A command that derives nothing says nothing.
    assert_eq!(
        resolve(&policy, &sources(&[None, None, None, Some("/plan".to_owned())])).caller.role(),
        "all"
    );
    // Its calls are those of the role.
    let call = role_policy::Call::new("t2", serde_json::Map::new());
    assert!(policy.authorize(&command.caller, &tool("t2"), call, &LexicalResolver).is_err());
}
