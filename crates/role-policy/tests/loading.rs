//! What is said of a policy file.
#![allow(clippy::panic, reason = "a test says what is wrong by ending")]

use role_policy::{BUILTIN, Caller, Effect, Policy, ToolFacts};

const READ: ToolFacts<'static> = ToolFacts::new("read_file", "filesystem")
    .read_only(true)
    .open_world(false)
    .effects(&[Effect::Reads("path")]);
const WRITE: ToolFacts<'static> =
    ToolFacts::new("write_file", "filesystem").open_world(false).effects(&[Effect::Writes("path")]);
const RUN: ToolFacts<'static> =
    ToolFacts::new("run_command", "ci").effects(&[Effect::Runs { command: "command", environment: "env" }]);

fn said(text: &str) -> String {
    match Policy::load(text, "roles.toml", &[READ, WRITE, RUN]) {
        Ok(loaded) => loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_thing_that_is_wrong_is_named_with_its_line_and_the_nearest_name() {
    insta::assert_snapshot!(said(
        r#"
version = 2
verison = 1
missing_role = "orchestratr"
external_tools = ["git_*"]
derived = [{ command = "/next-*", role = "nobody" }, { command = "x" }]
dispatch = [{ tool = "call", name = "tool_name" }]
[roles.Orchestrator]
[roles.orchestrator]
allow = ["read_flie", "toolset:filesytem", "annotation:readonly", "git status", ""]
deny = ["write_fiel", "delete_*", 7]
extends = "worker"
[roles.worker]
alow = ["*"]
extends = ["orchestrator", "nobody"]
may_use = "orchestrater"
limits = { calls_per_minute = 0, calls = 3 }
[[roles.worker.require]]
tools = ["write_file"]
[[roles.worker.require]]
id = "W"
write_within = ["/etc", "../x", "src/*"]
environment = ["PATH"]
commands = ["echo 'x'", []]
sql = "write"
[roles.worker.require.arguments]
mode = "create"
path = { one_of = "x", max = nan }
"#
    ));
}

#[test]
fn a_network_that_cannot_be_read_is_named_with_its_line() {
    for (network, problem) in [
        ("\"some\"", "roles.toml:4: error: `network` is \"some\"; expected \"none\", \"allow\" or { hosts"),
        ("true", "`network` is of type boolean; expected \"none\""),
        ("{}", "`network` names no hosts"),
        ("{ host = [] }", "`host`"),
        ("{ hosts = [\"https://a.example\"] }", "`https://a.example` is a URL"),
        ("{ hosts = [\"a.*.example\"] }", "only `*.NAME` and `*` are known"),
        ("{ hosts = [\"127.1\"] }", "ends in a number"),
    ] {
        let text = format!("version = 1\n[roles.a]\nallow = [\"*\"]\nnetwork = {network}\n");
        let said = said(&text);
        assert!(said.contains(problem), "{network}: {said}");
    }
    let text = "version = 1\n[roles.a]\nallow = [\"*\"]\nnetwork = { hosts = [] }\n";
    assert!(!said(text).contains("network"));
}

#[test]
fn what_may_not_be_meant_is_a_warning() {
    insta::assert_snapshot!(said(
        r#"
version = 1
[roles.a]
allow = ["read_file", "write_file", "run_comand", "run_command"]
deny = ["write_*"]
[[roles.a.require]]
id = "never-asked"
tools = ["write_file"]
write_within = ["src"]
[[roles.a.require]]
id = "anything"
tools = ["run_command"]
commands = ["python3 tools/check.py", "/bin/bash", "git", "git status", "cargo test", "ls"]
environment = ["RUST_LOG", "LD_PRELOAD"]
"#
    ));
}

#[test]
fn a_limit_of_commands_that_another_tool_goes_around_is_a_warning() {
    const START: ToolFacts<'static> = ToolFacts::new("start_command", "ci")
        .effects(&[Effect::Runs { command: "command", environment: "env" }]);
    let warnings = |role: &str, tools: &str| {
        let text = format!(
            "version = 1\n[roles.builder]\n{role}\n[[roles.builder.require]]\nid = \"programs\"\ntools = [{tools}]\ncommands = [\"ls\"]\n"
        );
        let loaded = Policy::load(&text, "roles.toml", &[READ, WRITE, RUN, START])
            .unwrap_or_else(|error| panic!("{error}"));
        loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let found = warnings("allow = [\"*\"]", "\"run_command\"");
    assert!(found.len() == 1 && found[0].contains("`start_command` of the same role runs any"), "{found:?}");
    for (role, tools) in [
        ("allow = [\"*\"]", "\"run_command\", \"start_command\""),
        ("allow = [\"*\"]\ndeny = [\"start_command\"]", "\"run_command\""),
        ("allow = [\"*\"]\nask = [\"start_command\"]", "\"run_command\""),
        ("allow = [\"run_command\"]", "\"run_command\""),
    ] {
        assert_eq!(warnings(role, tools), [] as [&str; 0], "{role} {tools}");
    }
}

#[test]
fn examples_that_do_not_hold_keep_the_file_from_being_used() {
    insta::assert_snapshot!(said(
        r#"
version = 1
[roles.a]
allow = ["read_file", "write_file"]
must_allow = [{ tool = "run_command" }, { tool = "read_file", arguments = { path = "x" } }]
must_deny = [{ tool = "read_file", arguments = { path = "x" } }, { tool = "raed_file" }]
[[roles.a.require]]
id = "docs"
tools = ["write_file"]
write_within = ["docs"]
must_allow = [{ arguments = { path = "src/a" } }, { arguments = { path = "docs/a" } }]
must_deny = [{ arguments = { path = "docs/../docs/a" } }, { arguments = { path = "docs/../a" } }]
"#
    ));
}

#[test]
fn a_role_must_not_lend_what_it_does_not_have() {
    insta::assert_snapshot!(said(r#"
version = 1
[roles.a]
allow = ["read_file"]
may_use = ["b", "c"]
[roles.b]
allow = ["*"]
[roles.c]
allow = ["annotation:read-only"]
"#), @"roles.toml:5: error: `a` may use `b`, which sees what `a` does not: `write_file`, `run_command`");
}

#[test]
fn text_that_is_no_toml_is_an_error_with_its_line() {
    insta::assert_snapshot!(said("version = 1\n[roles.a\nallow = []"), @"roles.toml:2: error: unclosed table, expected `]`");
    insta::assert_snapshot!(said(""), @"roles.toml:1: error: `version = 1` is missing");
}

#[test]
fn a_larger_file_than_is_read_is_refused() {
    assert!(said(&" ".repeat((4 << 20) + 1)).contains("at most 4194304 are read"));
}

#[test]
fn the_built_in_policy_is_one() {
    // Its names are checked where all tools are known, in core-tools.
    let policy = Policy::load(BUILTIN, "built-in", &[]).unwrap_or_else(|error| panic!("{error}")).policy;
    let roles: Vec<&str> = policy.roles().collect();
    assert_eq!(
        roles,
        [
            "minimal",
            "orchestrator",
            "worker",
            "readonly",
            "architect",
            "lead",
            "senior",
            "dev",
            "qa",
            "security"
        ]
    );
    assert_eq!(policy.missing_role(), "orchestrator");
    assert_eq!(policy.excluded_tools("worker"), ["next_work", "next_prepare", "mark_phase", "start_session"]);
    assert!(policy.excluded_tools("orchestrator").is_empty());
    assert!(policy.roles().all(|role| !policy.description(role).is_empty()));
}

#[test]
fn the_built_in_policy_is_for_servers_with_some_of_its_tools_too() {
    let error = Policy::load(BUILTIN, "roles.toml", &[READ]).unwrap_err().to_string();
    assert!(error.contains("`git_commit` in `deny` of `qa` matches no tool"), "{error}");
    let loaded = Policy::builtin(&[READ]).unwrap();
    assert!(loaded.warnings.is_empty());
    let roles: Vec<&str> = loaded.policy.roles().collect();
    assert_eq!(roles, Policy::load(BUILTIN, "built-in", &[]).unwrap().policy.roles().collect::<Vec<_>>());
    for role in roles {
        assert_eq!(loaded.policy.sees(&Caller::new(role), &READ), role != "minimal", "{role}");
    }
}

#[test]
fn a_kind_may_be_denied_before_there_is_a_tool_of_it_and_a_name_may_not() {
    let text = |denied: &str| {
        format!("version = 1\n[roles.minimal]\nallow = [\"read_file\"]\ndeny = [\"{denied}\"]\n")
    };
    let load =
        |denied: &str| Policy::load(&text(denied), "roles.toml", &[READ]).map(|loaded| loaded.warnings.len());
    assert_eq!(load("annotation:open-world").unwrap(), 0);
    assert!(load("run_command").unwrap_err().to_string().contains("`run_command` in `deny`"));
}

#[test]
fn two_rules_of_a_role_with_one_id_are_refused() {
    let rule = "[[roles.r.require]]\nid = \"a\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]\n";
    let head = "version = 1\nmissing_role = \"r\"\n[roles.r]\nallow = [\"*\"]\n";
    let problem = said(&format!("{head}{rule}{rule}"));
    assert!(problem.contains("has a rule `a` already, in line 5"), "{problem}");
    // Roles that extend each other may have rules of one name: the label has the role.
    let other = "[roles.s]\nextends = \"r\"\n[[roles.s.require]]\nid = \"a\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]\n";
    assert_eq!(said(&format!("{head}{rule}{other}")), "");
}
