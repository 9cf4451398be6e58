//! A policy file of any text is read or refused; and what is read decides the same in every way that
//! it can be asked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use role_policy::source::{NamedRole, RoleSources, resolve};
use role_policy::{Call, Caller, Effect, LexicalResolver, Policy, ToolFacts};
use serde_json::{Map, Value, json};

const READ: ToolFacts<'static> = ToolFacts::new("read_file", "filesystem")
    .read_only(true)
    .open_world(false)
    .effects(&[Effect::Reads("path")]);

const TOOLS: [ToolFacts<'static>; 4] = [
    READ,
    ToolFacts::new("write_file", "filesystem").open_world(false).effects(&[Effect::Writes("path")]),
    ToolFacts::new("move_file", "filesystem")
        .open_world(false)
        .effects(&[Effect::Moves("source"), Effect::Replaces("destination")]),
    ToolFacts::new("run_command", "ci").effects(&[
        Effect::Reads("working_directory"),
        Effect::Runs { command: "command", environment: "env" },
    ]),
];

fn arguments() -> [Map<String, Value>; 4] {
    [
        json!({}),
        json!({"path": "src/../docs/a:b", "source": "docs", "destination": "src/x"}),
        json!({"path": ["docs", "../x"], "command": "git status", "env": {"A": "b"}}),
        json!({"path": 7, "command": ["cargo", "test"], "working_directory": "."}),
    ]
    .map(|value| value.as_object().cloned().unwrap_or_default())
}

fuzz_target!(|text: &str| {
    let Ok(loaded) = Policy::load(text, "roles.toml", &TOOLS) else { return };
    let policy = loaded.policy;
    let roles: Vec<String> = policy.roles().map(str::to_owned).chain(["no-such-role".to_owned()]).collect();
    for role in &roles {
        let caller = Caller::new(role.as_str());
        let narrowed = roles.iter().map(|other| caller.clone().narrowed_by(other.as_str()));
        for caller in std::iter::once(caller.clone()).chain(narrowed) {
            for tool in &TOOLS {
                let seen = policy.sees(&caller, tool);
                for arguments in arguments() {
                    let call = || Call::new(tool.name, arguments.clone());
                    let decision = policy.authorize(&caller, tool, call(), &LexicalResolver);
                    assert!(seen || decision.is_err(), "a hidden tool was called");
                    let explained = policy.explain(&caller, tool, call(), &LexicalResolver).decision;
                    assert_eq!(explained.is_ok(), decision.is_ok(), "explained otherwise than decided");
                    if decision.is_ok() && caller.roles().count() > 1 {
                        for role in caller.roles() {
                            let alone = policy.authorize(&Caller::new(role), tool, call(), &LexicalResolver);
                            assert!(alone.is_ok(), "a further role allowed more");
                        }
                    }
                }
            }
        }
        assert!(policy.allowed_tools(role).iter().all(|tool| !policy.excluded_tools(role).contains(tool)));
    }
    let mut sources = RoleSources::default();
    sources.named.push(NamedRole { source: "flag".to_owned(), role: text.to_owned() });
    sources.command = Some(text.to_owned());
    let resolved = resolve(&policy, &sources).caller;
    assert!(resolved.roles().all(|role| policy.declares(role) || role == policy.minimal_role()));
});
