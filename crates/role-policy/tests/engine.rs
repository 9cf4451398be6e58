//! How calls are judged.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what is wrong by ending")]

use role_policy::{
    Access, Call, CallScope, Caller, Effect, EffectResolver, ExplainVerdict, LexicalResolver, NetworkAccess,
    NetworkHost, PatchParts, PatchedPath, Policy, Refusal, ResolveError, SystemCallGroup, ToolFacts,
};
use serde_json::{Map, Value, json};

const READ: ToolFacts<'static> = ToolFacts::new("read_file", "filesystem")
    .read_only(true)
    .open_world(false)
    .effects(&[Effect::Reads("path")]);
const WRITE: ToolFacts<'static> =
    ToolFacts::new("write_file", "filesystem").open_world(false).effects(&[Effect::Writes("path")]);
const MOVE: ToolFacts<'static> = ToolFacts::new("move_file", "filesystem")
    .open_world(false)
    .effects(&[Effect::Moves("source"), Effect::Replaces("destination")]);
const RUN: ToolFacts<'static> = ToolFacts::new("run_command", "ci").effects(&[
    Effect::Reads("working_directory"),
    Effect::Runs { command: "command", environment: "env" },
    Effect::Shell("shell"),
]);
const DATABASE: ToolFacts<'static> =
    ToolFacts::new("db_bridge", "introspection").open_world(false).effects(&[Effect::Sql("action")]);
const AGENT: ToolFacts<'static> =
    ToolFacts::new("run_agent_command", "sessions").open_world(false).effects(&[Effect::Role("role")]);
const TOOLS: [ToolFacts<'static>; 6] = [READ, WRITE, MOVE, RUN, DATABASE, AGENT];

fn load(roles: &str) -> Policy {
    match Policy::load(&format!("version = 1\n{roles}"), "roles.toml", &TOOLS) {
        Ok(loaded) => loaded.policy,
        Err(error) => panic!("{error}"),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn judge(
    policy: &Policy,
    caller: &Caller,
    tool: ToolFacts<'_>,
    arguments: Value,
) -> Result<CallScope, Refusal> {
    let call = Call::new(tool.name, object(arguments));
    policy.authorize(caller, &tool, call, &LexicalResolver).map(|call| call.scope().clone())
}

fn reason(refused: Result<CallScope, Refusal>) -> String {
    match refused.expect_err("refused") {
        Refusal::Arguments { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

fn is_hidden(refused: &Result<CallScope, Refusal>) -> bool {
    matches!(refused, Err(Refusal::Hidden { .. }))
}

#[test]
fn deny_beats_allow_in_whatever_order() {
    let policy = load("[roles.a]\nallow = [\"write_file\", \"*\"]\ndeny = [\"write_*\"]");
    let a = Caller::new("a");
    assert!(!policy.sees(&a, &WRITE) && is_hidden(&judge(&policy, &a, WRITE, json!({ "path": "x" }))));
    assert!(policy.sees(&a, &READ) && judge(&policy, &a, READ, json!({ "path": "x" })).is_ok());
}

#[test]
fn what_nothing_allows_is_hidden_and_so_is_everything_from_an_unknown_role() {
    let policy = load("[roles.a]\nallow = [\"read_file\"]");
    assert!(is_hidden(&judge(&policy, &Caller::new("a"), WRITE, json!({}))));
    for unknown in ["A", "a ", "", "nobody", "orchestrator"] {
        assert!(
            is_hidden(&judge(&policy, &Caller::new(unknown), READ, json!({ "path": "x" }))),
            "{unknown:?}"
        );
    }
}

#[test]
fn an_unknown_role_is_the_minimal_one_where_that_is_declared() {
    let policy = load("[roles.minimal]\nallow = [\"read_file\"]\n[roles.a]\nallow = [\"*\"]");
    let stranger = Caller::new("stranger");
    assert!(policy.sees(&stranger, &READ) && !policy.sees(&stranger, &WRITE));
}

#[test]
fn tools_are_chosen_by_name_toolset_and_annotation() {
    let policy = load(
        "[roles.a]\nallow = [\"toolset:ci\"]\n[roles.b]\nallow = [\"annotation:read-only\"]\n\
         [roles.c]\nallow = [\"*\"]\ndeny = [\"annotation:destructive\"]\n\
         [roles.d]\nallow = [\"*\"]\ndeny = [\"annotation:open-world\"]",
    );
    let seen = |role: &str| policy.allowed_tools(role).join(" ");
    assert_eq!(seen("a"), "run_command");
    assert_eq!(seen("b"), "read_file");
    assert_eq!(seen("c"), "read_file");
    assert_eq!(seen("d"), "read_file write_file move_file db_bridge run_agent_command");
    assert_eq!(policy.excluded_tools("d"), ["run_command"]);
}

#[test]
fn a_tool_is_judged_by_what_it_is_now_and_not_by_a_namesake_known_at_load() {
    let policy = load("[roles.a]\nallow = [\"annotation:read-only\"]");
    // Another server's tool of the same name, which vouches for nothing.
    let foreign = ToolFacts::new("read_file", "wrapped").open_world(false).effects(READ.effects);
    assert!(policy.sees(&Caller::new("a"), &READ) && !policy.sees(&Caller::new("a"), &foreign));
}

#[test]
fn facts_of_another_tool_authorize_nothing() {
    let policy = Policy::allow_all();
    let call = Call::new("write_file", Map::new());
    assert!(policy.authorize(&Caller::new("a"), &READ, call, &LexicalResolver).is_err());
}

#[test]
fn names_are_compared_byte_for_byte() {
    let policy = load("[roles.a]\nallow = [\"read_file\"]");
    for name in ["Read_file", "READ_FILE", "read_file ", "read_file\0", "read\u{5f}file2", "ｒead_file", ""]
    {
        assert!(
            !policy.sees(
                &Caller::new("a"),
                &ToolFacts::new(name, "filesystem").read_only(true).open_world(false)
            ),
            "{name:?}"
        );
    }
}

#[test]
fn a_role_has_what_it_extends_denials_and_requirements_included() {
    let policy = load(
        "[roles.base]\nallow = [\"*\"]\ndeny = [\"move_file\"]\n\
         [[roles.base.require]]\nid = \"R\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]\n\
         [roles.child]\nextends = [\"base\"]\nallow = [\"move_file\", \"write_file\"]",
    );
    let child = Caller::new("child");
    assert!(is_hidden(&judge(&policy, &child, MOVE, json!({ "source": "a", "destination": "b" }))));
    assert!(judge(&policy, &child, WRITE, json!({ "path": "docs/a" })).is_ok());
    assert!(reason(judge(&policy, &child, WRITE, json!({ "path": "src/a" }))).contains("only in `docs`"));
}

#[test]
fn of_several_roles_all_must_allow() {
    let policy = load(
        "[roles.human]\nallow = [\"read_file\", \"write_file\"]\n[roles.session]\nallow = [\"write_file\", \"run_command\"]\n\
         [[roles.session.require]]\nid = \"S\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]",
    );
    for both in [Caller::new("human").narrowed_by("session"), Caller::new("session").narrowed_by("human")] {
        assert!(!policy.sees(&both, &READ) && !policy.sees(&both, &RUN) && policy.sees(&both, &WRITE));
        assert!(judge(&policy, &both, WRITE, json!({ "path": "docs/a" })).is_ok());
        assert!(judge(&policy, &both, WRITE, json!({ "path": "src/a" })).is_err());
    }
    // A role that is not declared takes everything away.
    assert!(!policy.sees(&Caller::new("human").narrowed_by("typo"), &WRITE));
}

/// A policy with roles that have credentials, and roles that have less.
const CREDENTIALS: &str = "[roles.a]\nallow = [\"*\"]\nnetwork = { hosts = [\"git.example\", \"*.packages.example:443\"] }\n\
     [[roles.a.credentials]]\nhost = \"git.example\"\nsecret = { variable = \"T\" }\n\
     [roles.b]\nextends = [\"a\"]\n\
     [[roles.b.credentials]]\nhost = \"npm.packages.example\"\nheader = \"PRIVATE-TOKEN\"\nvalue = \"{secret}\"\n\
     secret = { file = \"/secret\" }\nca_file = \"/ca.pem\"\n\
     [roles.c]\nallow = [\"*\"]\n";

#[test]
fn the_credentials_of_several_roles_are_those_of_all_of_them() {
    let policy = load(CREDENTIALS);
    let hosts = |policy: &Policy, caller: &Caller| -> Vec<String> {
        policy.credentials(caller).iter().map(ToString::to_string).collect()
    };
    let (git, npm) = ("git.example:443 (Authorization)", "npm.packages.example:443 (PRIVATE-TOKEN)");
    assert_eq!(hosts(&policy, &Caller::new("a")), [git]);
    assert_eq!(hosts(&policy, &Caller::new("b")), [git, npm]);
    assert_eq!(hosts(&policy, &Caller::new("b").narrowed_by("a")), [git]);
    for none in [Caller::new("c"), Caller::new("typo"), Caller::new("b").narrowed_by("c")] {
        assert!(hosts(&policy, &none).is_empty());
    }
    assert_eq!(policy.all_credentials().len(), 2);
    // Another policy that narrows must have the very same: another secret for the host is another credential.
    let other = load(&CREDENTIALS.replace("variable = \"T\"", "variable = \"U\""));
    assert_eq!(hosts(&policy.narrowed_by(&other), &Caller::new("b")), [npm]);
}

#[test]
fn a_credential_that_cannot_be_meant_is_an_error_with_its_line() {
    for (from, to, part) in [
        ("\"git.example\", ", "", "has a credential for `git.example:443`, and its `network` does not name"),
        ("host = \"git.example\"", "host = \"*.example\"", "is no host of a credential"),
        ("variable = \"T\"", "variable = \"T\", file = \"/a\"", "`secret` has one source"),
        ("variable = \"T\"", "variable = \"\"", "is no name of a variable"),
        ("file = \"/secret\"", "file = \"secret\"", "no absolute path"),
        ("\"/ca.pem\"", "\"ca.pem\"", "no absolute path"),
        ("\"{secret}\"", "\"token\"", "needs `{secret}` once"),
        ("\"PRIVATE-TOKEN\"", "\"Host\"", "is no header that may hold a credential"),
        ("value = \"{secret}\"", "value = \"{secret}\"\nbasic_user = \"me\"", "and not both"),
        (
            "host = \"npm.packages.example\"",
            "host = \"git.example\"",
            "two credentials for `git.example:443`",
        ),
        ("host = \"npm.packages.example\"\n", "", "needs `host` and `secret`"),
        (
            "extends = [\"a\"]",
            "extends = [\"a\"]\nnetwork = \"none\"",
            "`b` has a credential for `git.example:443`",
        ),
        ("header = ", "heder = ", "header"),
    ] {
        assert!(CREDENTIALS.contains(from), "{from}");
        let text = format!("version = 1\n{}", CREDENTIALS.replacen(from, to, 1));
        let error = Policy::load(&text, "roles.toml", &TOOLS).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("roles.toml:"), "{from} -> {to}: {error}");
    }
}

#[test]
fn the_system_calls_of_several_roles_are_those_of_all_of_them() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\nsystem_calls = [\"tracing\"]\n\
         [roles.b]\nextends = [\"a\"]\nsystem_calls = \"profiling\"\n[roles.c]\nallow = [\"*\"]",
    );
    let (tracing, profiling) = (SystemCallGroup::Tracing, SystemCallGroup::Profiling);
    assert_eq!(policy.system_calls(&Caller::new("a")), [tracing]);
    assert_eq!(policy.system_calls(&Caller::new("b")), [tracing, profiling]);
    assert_eq!(policy.system_calls(&Caller::new("b").narrowed_by("a")), [tracing]);
    for none in [Caller::new("c"), Caller::new("typo"), Caller::new("b").narrowed_by("c")] {
        assert_eq!(policy.system_calls(&none), []);
    }
    let narrowed =
        policy.narrowed_by(&load("[roles.b]\nsystem_calls = [\"user_namespaces\", \"profiling\"]"));
    assert_eq!(narrowed.system_calls(&Caller::new("b")), [profiling]);
    let Err(error) = Policy::load("version = 1\n[roles.a]\nsystem_calls = [\"trace\"]", "roles.toml", &TOOLS)
    else {
        panic!("it is no group");
    };
    assert!(
        error.to_string().contains("`trace`; it may have `tracing`, `profiling`, `user_namespaces`"),
        "{error}"
    );
}

#[test]
fn a_narrowed_policy_allows_what_both_allow() {
    let whole = load("[roles.r]\nallow = [\"*\"]\nlimits = { calls_per_minute = 9 }");
    let part = load(
        "[roles.r]\nallow = [\"*\"]\ndeny = [\"run_command\"]\nlimits = { calls_per_minute = 3 }\n\
         [[roles.r.require]]\nid = \"docs\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]",
    );
    let caller = Caller::new("r");
    for narrowed in [whole.narrowed_by(&part), part.narrowed_by(&whole)] {
        assert!(narrowed.sees(&caller, &READ) && !narrowed.sees(&caller, &RUN));
        assert!(is_hidden(&judge(&narrowed, &caller, RUN, json!({"command": ["ls"]}))));
        assert!(judge(&narrowed, &caller, WRITE, json!({"path": "docs/a"})).is_ok());
        assert!(reason(judge(&narrowed, &caller, WRITE, json!({"path": "a"}))).contains("only in `docs`"));
        assert_eq!(narrowed.limits(&caller).calls_per_minute, Some(3));
        assert_eq!(narrowed.allowed_tools("r").len(), TOOLS.len() - 1);
        assert!(!narrowed.grants_area(&caller, "mcp/prompts"));
    }
    // A role that only one of them has is in the other the minimal one, which sees nothing.
    let other = load("[roles.other]\nallow = [\"*\"]");
    assert!(!whole.narrowed_by(&other).sees(&caller, &READ));
}

#[test]
fn a_hidden_tool_is_hidden_whatever_the_arguments_and_whichever_role_hides_it() {
    let policy = load(
        "[roles.a]\nallow = [\"write_file\"]\n[[roles.a.require]]\nid = \"S\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]\n\
         [roles.b]\nallow = [\"read_file\"]",
    );
    let caller = Caller::new("a").narrowed_by("b");
    for arguments in
        [json!({}), json!({ "path": "src/a" }), json!({ "path": 7 }), json!({ "path": "docs/a" })]
    {
        assert!(is_hidden(&judge(&policy, &caller, WRITE, arguments)));
    }
}

#[test]
fn paths_are_judged_by_where_they_lead() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"P\"\ntools = [\"toolset:filesystem\"]\n\
         read_within = [\".\"]\nwrite_within = [\"src\", \"lib:docs\"]\nnot_within = [\"src/secret\", \".git\"]",
    );
    let a = Caller::new("a");
    for path in ["src", "src/a", "./src//a/", "docs/../src/a", "lib:docs/a"] {
        assert!(judge(&policy, &a, WRITE, json!({ "path": path })).is_ok(), "{path}");
    }
    for path in [
        "src2/a",
        "srcs",
        ".",
        "src/..",
        "src/../x",
        "../src/a",
        "/src/a",
        "src/secret",
        "src/secret/a",
        "src/x/../secret/a",
        "lib:src/a",
        "other:docs/a",
        "lib:.",
        "",
        "src\\a",
        "a\0b",
    ] {
        assert!(judge(&policy, &a, WRITE, json!({ "path": path })).is_err(), "{path}");
    }
    assert!(judge(&policy, &a, READ, json!({ "path": "README.md" })).is_ok());
    for path in [".git/config", ".git", "x/../.git/config", "lib:README.md"] {
        assert!(judge(&policy, &a, READ, json!({ "path": path })).is_err(), "{path}");
    }
    // A twin by prefix is another folder.
    assert!(judge(&policy, &a, READ, json!({ "path": ".github/x" })).is_ok());
}

#[test]
fn every_path_of_a_call_is_judged_and_one_left_out_is_the_root() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"P\"\ntools = [\"*\"]\nread_within = [\"src\"]\nwrite_within = [\"src\"]",
    );
    let a = Caller::new("a");
    assert!(judge(&policy, &a, MOVE, json!({ "source": "src/a", "destination": "src/b" })).is_ok());
    assert!(judge(&policy, &a, MOVE, json!({ "source": "src/a", "destination": "b" })).is_err());
    assert!(judge(&policy, &a, MOVE, json!({ "source": "b", "destination": "src/a" })).is_err());
    assert!(judge(&policy, &a, READ, json!({ "path": ["src/a", "src/b"] })).is_ok());
    assert!(judge(&policy, &a, READ, json!({ "path": ["src/a", "b"] })).is_err());
    for odd in [
        json!({}),
        json!({ "path": null }),
        json!({ "path": 7 }),
        json!({ "path": [7] }),
        json!({ "path": {} }),
    ] {
        assert!(judge(&policy, &a, READ, odd.clone()).is_err(), "{odd}");
    }
}

/// A file system with one link in it, and programs in one folder.
struct LinkedFileSystem;

impl EffectResolver for LinkedFileSystem {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        match path {
            "docs/link" => Ok("src/main.rs".to_owned()),
            "broken" => Err(ResolveError::other("it cannot be followed")),
            path => LexicalResolver.resolve_path(path),
        }
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        match word {
            "cargo" | "/usr/bin/cargo" | "/usr/bin/../bin/cargo" => Ok("/usr/bin/cargo".to_owned()),
            "./cargo" => Ok("/home/me/project/cargo".to_owned()),
            "git" => Ok("/usr/bin/git".to_owned()),
            "sh" => Ok("/usr/bin/sh".to_owned()),
            word => Err(ResolveError::other(format!("there is no program `{word}`"))),
        }
    }

    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        LexicalResolver.split_command(line)
    }
}

#[test]
fn a_link_is_judged_as_what_it_leads_to_and_what_cannot_be_followed_is_refused() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"P\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]",
    );
    for (path, allowed) in [("docs/a", true), ("docs/link", false), ("broken", false)] {
        let call = Call::new("write_file", object(json!({ "path": path })));
        let judged = policy.authorize(&Caller::new("a"), &WRITE, call, &LinkedFileSystem);
        assert_eq!(judged.is_ok(), allowed, "{path}");
    }
}

fn may_run(rule: &str, arguments: Value) -> Result<(), String> {
    let policy = load(&format!(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"C\"\ntools = [\"run_command\"]\n{rule}"
    ));
    let call = Call::new("run_command", object(arguments));
    policy
        .authorize(&Caller::new("a"), &RUN, call, &LinkedFileSystem)
        .map(|_| ())
        .map_err(|refused| refused.to_string())
}

#[test]
fn commands_are_judged_by_the_program_that_would_start_and_its_first_arguments() {
    let rule = "commands = [\"cargo test\", [\"git\", \"log\", \"-n 1\"]]";
    for command in [
        json!("cargo test"),
        json!("cargo  test --all"),
        json!(["cargo", "test"]),
        json!("/usr/bin/cargo test"),
        json!(["git", "log", "-n 1"]),
    ] {
        assert_eq!(may_run(rule, json!({ "command": command })), Ok(()), "{command}");
    }
    for command in [
        json!("./cargo test"),
        json!("cargo"),
        json!("cargo testing"),
        json!("cargo --config x test"),
        json!("cargo test;"),
        json!("git log -n 1"),
        json!("sh -c 'cargo test'"),
        json!("env cargo test"),
        json!(["cargo test"]),
        json!([]),
        json!(""),
        json!(["cargo", 7]),
        json!(null),
        json!({ "cargo": "test" }),
    ] {
        if command != json!("cargo test;") {
            assert!(may_run(rule, json!({ "command": command })).is_err(), "{command}");
        }
    }
    assert!(may_run(rule, json!({ "command": "cargo test;" })).unwrap_err().contains("`cargo test`"));
    assert!(may_run(rule, json!({})).is_err());
    assert!(may_run("commands = []", json!({ "command": "cargo test" })).unwrap_err().contains("no program"));
}

#[test]
fn a_line_of_a_shell_is_judged_as_the_shell() {
    let line = |shell: Value| json!({ "command": "cargo test", "shell": shell });
    for shell in [json!(true), json!("yes"), json!(1), json!([])] {
        assert!(may_run("commands = [\"cargo\"]", line(shell.clone())).is_err(), "{shell}");
        assert!(may_run("commands = [\"sh\"]", line(shell.clone())).is_ok(), "{shell}");
        assert!(may_run("commands = [[\"sh\", \"-c\", \"cargo test\"]]", line(shell)).is_ok());
    }
    for shell in [json!(false), Value::Null] {
        assert!(may_run("commands = [\"cargo\"]", line(shell.clone())).is_ok(), "{shell}");
        assert!(may_run("commands = [\"sh\"]", line(shell)).is_err());
    }
    let words = json!({ "command": ["cargo", "test"], "shell": true });
    assert!(may_run("commands = [\"cargo\"]", words).is_err());
}

#[test]
fn where_commands_are_limited_so_is_the_environment_that_could_change_them() {
    let rule = "commands = [\"cargo test\"]";
    for variables in [
        json!({ "PATH": "/tmp" }),
        json!({ "LD_PRELOAD": "x" }),
        json!({ "RUST_LOG": "x" }),
        json!("PATH=x"),
        json!([]),
    ] {
        let arguments = json!({ "command": "cargo test", "env": variables });
        assert!(may_run(rule, arguments).is_err(), "{variables}");
    }
    let rule = "commands = [\"cargo test\"]\nenvironment = [\"RUST_LOG\"]";
    assert_eq!(may_run(rule, json!({ "command": "cargo test", "env": { "RUST_LOG": "x" } })), Ok(()));
    assert!(
        may_run(rule, json!({ "command": "cargo test", "env": { "RUST_LOG": "x", "PATH": "y" } })).is_err()
    );
}

#[test]
fn a_rule_for_what_a_tool_does_not_declare_refuses() {
    for rule in ["commands = [\"cargo\"]", "sql = \"read\""] {
        let policy = load(&format!(
            "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"C\"\ntools = [\"*\"]\n{rule}"
        ));
        assert!(judge(&policy, &Caller::new("a"), READ, json!({ "path": "x" })).is_err(), "{rule}");
    }
}

#[test]
fn databases_can_be_read_only_in_the_decision_and_for_whoever_runs_the_call() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"D\"\ntools = [\"db_bridge\"]\nsql = \"read\"",
    );
    let a = Caller::new("a");
    for action in ["query", "schema"] {
        assert!(judge(&policy, &a, DATABASE, json!({ "action": action })).unwrap().sql_read_only());
    }
    for arguments in
        [json!({ "action": "seed" }), json!({ "action": "Query" }), json!({}), json!({ "action": ["query"] })]
    {
        assert!(judge(&policy, &a, DATABASE, arguments.clone()).is_err(), "{arguments}");
    }
}

#[test]
fn arguments_are_judged_by_value_and_one_left_out_does_not_hold() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"A\"\ntools = [\"write_file\"]\nonly = true\n\
         [roles.a.require.arguments]\npath = { matches = \"*.md\" }\nmode = { one_of = [\"create\", \"append\"] }\n\
         content = { max_length = 3, optional = true }\nlines = { min = 1, max = 10, optional = true }\n\
         \"/options/depth\" = { equals = 2, optional = true }\nforce = { absent = true }",
    );
    let a = Caller::new("a");
    let with = |more: Value| {
        let mut arguments = object(json!({ "path": "a.md", "mode": "create" }));
        arguments.extend(object(more));
        judge(&policy, &a, WRITE, Value::Object(arguments))
    };
    for fits in [
        json!({}),
        json!({ "content": "äöü" }),
        json!({ "lines": 10 }),
        json!({ "lines": 1.5 }),
        json!({ "options": { "depth": 2 } }),
    ] {
        assert!(with(fits.clone()).is_ok(), "{fits}");
    }
    for wrong in [
        json!({ "path": "a.rs" }),
        json!({ "path": 7 }),
        json!({ "mode": "overwrite" }),
        json!({ "mode": "Create" }),
        json!({ "content": "four" }),
        json!({ "content": 4 }),
        json!({ "lines": 0 }),
        json!({ "lines": 11 }),
        json!({ "lines": "5" }),
        json!({ "options": { "depth": 3 } }),
        json!({ "force": false }),
        json!({ "other": 1 }),
    ] {
        assert!(with(wrong.clone()).is_err(), "{wrong}");
    }
    assert!(reason(judge(&policy, &a, WRITE, json!({ "path": "a.md" }))).contains("`mode` must be given"));
}

#[test]
fn a_role_in_the_arguments_must_be_one_that_the_caller_may_use() {
    let policy = load(
        "[roles.lead]\nallow = [\"*\"]\nmay_use = [\"dev\"]\n[roles.dev]\nallow = [\"run_agent_command\"]\n[roles.boss]\nallow = [\"*\"]\nmay_use = \"*\"",
    );
    let may = |role: &str, asked: Value| {
        judge(&policy, &Caller::new(role), AGENT, json!({ "role": asked })).is_ok()
    };
    assert!(may("lead", json!("dev")) && may("lead", json!("lead")) && may("lead", json!(null)));
    assert!(
        !may("lead", json!("boss"))
            && !may("dev", json!("lead"))
            && !may("dev", json!(["dev"]))
            && !may("lead", json!("Dev"))
    );
    assert!(may("boss", json!("lead")));
    assert!(
        judge(&policy, &Caller::new("boss").narrowed_by("dev"), AGENT, json!({ "role": "lead" })).is_err()
    );
}

#[test]
fn a_call_in_the_arguments_of_another_is_judged_too() {
    let roles = "dispatch = [{ tool = \"run_command\", name = \"/tool\", arguments = \"/with\" }]\n\
         [roles.a]\nallow = [\"run_command\", \"write_file\"]\n[[roles.a.require]]\nid = \"N\"\ntools = [\"write_file\"]\n\
         arguments = { path = { within = [\"docs\"] } }";
    let policy = load(roles);
    let may = |arguments: Value| judge(&policy, &Caller::new("a"), RUN, arguments).is_ok();
    assert!(may(json!({ "tool": "write_file", "with": { "path": "docs/a" } })));
    assert!(!may(json!({ "tool": "write_file", "with": { "path": "src/a" } })));
    assert!(!may(json!({ "tool": "read_file", "with": { "path": "docs/a" } })));
    for odd in [
        json!({}),
        json!({ "tool": 7 }),
        json!({ "tool": "write_file", "with": [] }),
        json!({ "tool": "Write_file" }),
    ] {
        assert!(!may(odd.clone()), "{odd}");
    }
    let mut nested = json!({ "tool": "write_file", "with": { "path": "docs/a" } });
    assert!(may(json!({ "tool": "run_command", "with": nested.clone() })));
    for _ in 0..5 {
        nested = json!({ "tool": "run_command", "with": nested });
    }
    assert!(!may(nested));
}

#[test]
fn what_may_be_reached_goes_along_with_the_call() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\nroots = [\"src\", \"docs\"]\n[roles.b]\nallow = [\"*\"]\n[[roles.b.require]]\nid = \"P\"\ntools = [\"*\"]\n\
         write_within = [\"src/gen\", \"docs\"]\nnot_within = [\"src/gen/x\"]",
    );
    let both = Caller::new("a").narrowed_by("b");
    let scope = judge(&policy, &both, WRITE, json!({ "path": "src/gen/a" })).unwrap();
    assert!(!scope.reaches_all_paths());
    assert_eq!(scope.folders(Access::Read), Some(vec!["src", "docs"]));
    assert_eq!(scope.folders(Access::Write), Some(vec!["src/gen", "docs"]));
    assert!(scope.check_path(Access::Write, "src/gen/a").is_ok());
    assert!(scope.check_path(Access::Write, "src/gen/x/a").is_err());
    assert!(scope.check_path(Access::Write, "src/a").is_err());
    assert!(scope.check_path(Access::Read, "src/a").is_ok());
    assert!(judge(&Policy::allow_all(), &both, WRITE, json!({})).unwrap().reaches_all_paths());
}

#[test]
fn the_narrowest_network_goes_along_with_the_call() {
    let policy = load(
        "[roles.base]\nallow = [\"*\"]\nnetwork = { hosts = [\"*.example:443\", \"b.test\"] }\n\
         [roles.narrow]\nextends = [\"base\"]\nnetwork = { hosts = [\"A.example.\", \"c.test\"] }\n\
         [roles.wide]\nextends = [\"base\"]\nnetwork = \"allow\"\n\
         [roles.offline]\nallow = [\"*\"]\n[[roles.offline.require]]\nid = \"N\"\ntools = [\"run_command\"]\n\
         network = \"none\"",
    );
    let network = |role: &str, tool: ToolFacts<'static>| {
        judge(&policy, &Caller::new(role), tool, json!({})).unwrap().network().clone()
    };
    let reaches = |role: &str, host: &str| match network(role, WRITE) {
        NetworkAccess::Hosts(hosts) => hosts.check(&NetworkHost::parse(host).expect("a host"), 443).is_ok(),
        other => panic!("{other}"),
    };
    assert!(reaches("base", "a.example") && reaches("base", "b.test") && !reaches("base", "c.test"));
    assert!(reaches("narrow", "a.example") && !reaches("narrow", "b.test") && !reaches("narrow", "c.test"));
    // A role cannot allow more than what it extends.
    assert!(reaches("wide", "b.test") && !reaches("wide", "c.test"));
    assert_eq!(network("offline", RUN), NetworkAccess::None);
    assert_eq!(network("offline", WRITE), NetworkAccess::Allow);
    let both = Caller::new("base").narrowed_by("offline");
    let scope = judge(&policy, &both, RUN, json!({})).unwrap();
    assert_eq!(*scope.network(), NetworkAccess::None);
    assert!(!policy.requirements("base", &RUN).is_empty(), "the role is not one that may do everything");

    // What another server's tools connect to cannot be limited, so they are refused.
    let external = ToolFacts::external("fetch");
    let refused = judge(&policy, &Caller::new("base"), external, json!({}));
    assert!(reason(refused).contains("this role's `network` cannot limit"));
}

#[test]
fn a_command_says_which_role_its_agent_has() {
    let policy =
        load("derived = [{ command = \"next-*\", role = \"w\" }]\n[roles.w]\nallow = [\"read_file\"]");
    for command in ["next-build", "/next-build", "/next-build 12 --x", "next-"] {
        assert_eq!(policy.role_of_command(command), Some("w"), "{command}");
    }
    for command in ["plan", "/prepare-next-x", "next"] {
        assert_eq!(policy.role_of_command(command), None, "{command}");
    }
    for command in ["", "/", "//next-build", " next-build", "Next-build", "next-build\tx", "ｎext-build"] {
        assert_eq!(policy.role_of_command(command), Some("minimal"), "{command:?}");
    }
}

#[test]
fn an_explanation_names_everything_that_was_looked_at_and_ends_as_the_call_would() {
    let policy = load(
        "[roles.a]\nallow = [\"read_file\", \"write_*\"]\ndeny = [\"move_file\"]\n[[roles.a.require]]\nid = \"P\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]",
    );
    let call = Call::new("write_file", object(json!({ "path": "src/a" })));
    let explained = policy.explain(&Caller::new("a"), &WRITE, call, &LexicalResolver);
    let steps: Vec<(&str, usize)> = explained.steps.iter().map(|step| (&*step.rule, step.line)).collect();
    assert_eq!(
        steps,
        [
            ("a: deny `move_file` (roles.toml:4)", 4),
            ("a: allow `read_file` (roles.toml:3)", 3),
            ("a: allow `write_*` (roles.toml:3)", 3),
            ("a: require `P` (roles.toml:5)", 5),
        ]
    );
    let says: Vec<&ExplainVerdict> = explained.steps.iter().map(|step| &step.says).collect();
    assert!(matches!(
        says.as_slice(),
        [
            ExplainVerdict::NoMatch,
            ExplainVerdict::NoMatch,
            ExplainVerdict::Allows,
            ExplainVerdict::Refuses(_)
        ]
    ));
    assert_eq!(&**explained.decision.unwrap_err().rule(), "a: require `P` (roles.toml:5)");
}

#[test]
fn what_another_server_does_with_paths_is_not_known_so_no_rule_for_paths_allows_it() {
    for rule in ["write_within = [\"docs\"]", "read_within = [\".\"]", "not_within = [\"secrets\"]"] {
        let policy = load(&format!(
            "external_tools = [\"put\"]\n[roles.a]\nallow = [\"put\"]\n[[roles.a.require]]\nid = \"r\"\ntools = [\"put\"]\n{rule}"
        ));
        let put = ToolFacts::external("put");
        let refused = reason(judge(&policy, &Caller::new("a"), put, json!({"path": "docs/a"})));
        assert!(refused.contains("which of its arguments are paths is not known"), "{refused}");
    }
    let policy = load(
        "external_tools = [\"put\"]\n[roles.a]\nallow = [\"put\"]\n[[roles.a.require]]\nid = \"r\"\ntools = [\"put\"]\n\
         arguments = { path = { within = [\"docs\"] } }",
    );
    let put = ToolFacts::external("put");
    assert!(judge(&policy, &Caller::new("a"), put, json!({"path": "docs/a"})).is_ok());
    assert!(judge(&policy, &Caller::new("a"), put, json!({"path": "src/a"})).is_err());
}

#[test]
fn a_colon_in_a_name_further_on_names_no_root() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"r\"\ntools = [\"read_file\"]\nnot_within = [\"secrets\"]",
    );
    for path in ["secrets/a:b", "secrets/a:b/c", "secrets"] {
        assert!(judge(&policy, &Caller::new("a"), READ, json!({"path": path})).is_err(), "{path}");
    }
    assert!(judge(&policy, &Caller::new("a"), READ, json!({"path": "open/a:b"})).is_ok());
}

#[test]
fn what_is_moved_is_reached_with_all_that_it_holds() {
    let moves = WRITE.effects(&[Effect::Moves("path"), Effect::Replaces("to")]);
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"r\"\ntools = [\"*\"]\nnot_within = [\"a/secrets\"]\n\
         [roles.b]\nallow = [\"*\"]\n[[roles.b.require]]\nid = \"r\"\ntools = [\"*\"]\nread_within = [\"docs\"]",
    );
    let judge = |role: &str, tool, arguments| judge(&policy, &Caller::new(role), tool, arguments).is_ok();
    for path in [".", "a", "a/secrets", "a/secrets/x"] {
        assert!(!judge("a", moves, json!({"path": path, "to": "b"})), "moves {path}");
    }
    assert!(!judge("a", moves, json!({"path": "b"})), "a name that is left out is none");
    assert!(judge("a", moves, json!({"path": "b", "to": "a/c"})));
    assert!(!judge("b", moves, json!({"path": "src", "to": "docs/src"})), "moving is reading");
    assert!(judge("b", moves, json!({"path": "docs/a", "to": "src/a"})));
}

/// Reads a patch with a word and a path on each line.
struct PatchResolver;

impl EffectResolver for PatchResolver {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        LexicalResolver.resolve_path(path)
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        LexicalResolver.resolve_program(word)
    }

    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        LexicalResolver.split_command(line)
    }

    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        let lines = patch.lines().map(|line| match line.split_once(' ') {
            Some(("edit", path)) => Ok(PatchedPath::Edited(path.to_owned())),
            Some(("create", path)) => Ok(PatchedPath::Created(path.to_owned())),
            Some(("remove", path)) => Ok(PatchedPath::Removed(path.to_owned())),
            Some(("move", path)) => Ok(PatchedPath::Moved(path.to_owned())),
            _ => Err(ResolveError::other("no patch")),
        });
        lines.collect()
    }
}

const PATCHES: [Effect; 1] = [Effect::Patches {
    patch: "patch",
    parts: PatchParts {
        edit: "write_file",
        create: "write_file",
        remove: "delete_file",
        rename: "move_file",
    },
}];

/// A policy of before there was a patch tool limits what a patch does as well.
#[test]
fn a_part_of_a_patch_is_judged_as_the_tool_that_does_the_same() {
    let patch = ToolFacts::new("patch", "filesystem").destructive(true).effects(&PATCHES);
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\ndeny = [\"move_file\"]\n\
         [[roles.a.require]]\nid = \"r\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]\n\
         [roles.b]\nallow = [\"patch\"]\n[roles.c]\nallow = [\"*\"]\n\
         [roles.d]\nallow = [\"*\"]\n[[roles.d.require]]\nid = \"dry\"\ntools = [\"write_file\"]\n\
         arguments = { dry_run = { equals = true }, path = { matches = \"*\" } }",
    );
    let judge = |caller: &Caller, arguments: Value| {
        policy.authorize(caller, &patch, Call::new(patch.name, object(arguments)), &PatchResolver)
    };
    let allowed = |role: &str, text: &str| judge(&Caller::new(role), json!({"patch": text})).is_ok();
    // The tool that removes is not known to this policy, so nothing judges it.
    for text in ["edit docs/a", "create docs/b", "remove src/a", "edit docs/a\nremove docs/b"] {
        assert!(allowed("a", text), "{text}");
    }
    for text in ["edit src/a", "create src/b", "edit docs/a\ncreate docs/../src/b", "move docs/a"] {
        assert!(!allowed("a", text), "{text}");
        assert!(!allowed("b", text), "a role that may call none of the tools: {text}");
        assert!(allowed("c", text), "nothing is limited: {text}");
    }
    let refusal = judge(&Caller::new("a"), json!({"patch": "move docs/a"})).unwrap_err().to_string();
    assert!(refusal.contains("would move `docs/a`") && !refusal.contains("move_file"), "{refusal}");
    assert!(
        allowed("c", "something else"),
        "what is no patch is for the tool to say, where nothing is limited"
    );
    assert!(!allowed("a", "something else"));
    assert!(judge(&Caller::new("a"), json!({})).is_err());
    assert!(
        judge(&Caller::new("a").narrowed_by("c"), json!({"patch": "edit src/a"})).is_err(),
        "every role counts"
    );
    assert!(judge(&Caller::new("d"), json!({"patch": "edit a", "dry_run": true})).is_ok());
    assert!(judge(&Caller::new("d"), json!({"patch": "edit a"})).is_err());
    let scope =
        judge(&Caller::new("a"), json!({"patch": "edit docs/a\nedit docs/b"})).unwrap().scope().clone();
    assert!(scope.check_path(Access::Write, "src/a").is_err(), "the limit holds while the patch is applied");
}

#[test]
fn every_path_in_a_patch_is_judged_by_its_use() {
    let patch = ToolFacts::new("patch", "filesystem").destructive(true).effects(&PATCHES);
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"r\"\ntools = [\"*\"]\nread_within = [\"docs\", \"src\"]\n\
         write_within = [\"docs\", \"new\"]\nnot_within = [\"docs/secret\"]\n[roles.b]\nallow = [\"*\"]",
    );
    let judge = |role: &str, text: &str, resolver: &dyn EffectResolver| {
        let call = Call::new(patch.name, object(json!({"patch": text})));
        policy.authorize(&Caller::new(role), &patch, call, resolver).is_ok()
    };
    for text in ["edit docs/a", "create new/a", "remove docs/a", "move docs/a", "edit docs/a\ncreate new/b"] {
        assert!(judge("a", text, &PatchResolver), "{text}");
    }
    for text in [
        "edit src/a",
        "edit new/a",
        "create src/a",
        "remove src/a",
        "remove docs",
        "move src/a",
        "move new/a",
        "edit docs/secret/a",
        "create docs/../src/a",
        "edit docs/a\nremove src/a",
        "something else",
    ] {
        assert!(!judge("a", text, &PatchResolver), "{text}");
        assert!(judge("b", text, &PatchResolver), "nothing is limited: {text}");
    }
    assert!(!judge("a", "edit docs/a", &LexicalResolver), "a resolver that reads no patches");
}

#[test]
fn a_path_in_an_object_is_judged_as_a_path() {
    let read = READ.effects(&[Effect::Reads("paths")]);
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"r\"\ntools = [\"*\"]\nread_within = [\"docs\"]",
    );
    let judge = |paths| judge(&policy, &Caller::new("a"), read, json!({"paths": paths})).is_ok();
    assert!(judge(json!(["docs/a", {"path": "docs/b", "offset": 3}])));
    for paths in [
        json!([{"path": "src/a"}]),
        json!([{"file": "docs/a"}]),
        json!([{"path": 1}]),
        json!({"path": "docs/a"}),
    ] {
        assert!(!judge(paths.clone()), "{paths}");
    }
}
