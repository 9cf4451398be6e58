//! Calls that a person must approve.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what is wrong by ending")]

use role_policy::{
    Access, ApprovalRequest, Authorized, Call, Caller, Effect, EffectResolver, ExplainVerdict,
    LexicalResolver, PatchParts, PatchedPath, Policy, Refusal, ResolveError, ToolAccess, ToolFacts,
};
use serde_json::{Map, Value, json};
use std::cell::Cell;

const READ: ToolFacts<'static> = ToolFacts::new("read_file", "filesystem")
    .read_only(true)
    .open_world(false)
    .effects(&[Effect::Reads("path")]);
const WRITE: ToolFacts<'static> =
    ToolFacts::new("write_file", "filesystem").open_world(false).effects(&[Effect::Writes("path")]);
const DELETE: ToolFacts<'static> =
    ToolFacts::new("delete_file", "filesystem").open_world(false).effects(&[Effect::Replaces("path")]);
const RUN: ToolFacts<'static> = ToolFacts::new("run_command", "ci").effects(&[
    Effect::Reads("working_directory"),
    Effect::Runs { command: "command", environment: "env" },
    Effect::Shell("shell"),
]);
const PUSH: ToolFacts<'static> = ToolFacts::new("git_push", "git");
const PATCH: ToolFacts<'static> =
    ToolFacts::new("apply_patch", "filesystem").open_world(false).effects(&[Effect::Patches {
        patch: "patch",
        parts: PatchParts {
            edit: "write_file",
            create: "write_file",
            remove: "delete_file",
            rename: "delete_file",
        },
    }]);
const TOOLS: [ToolFacts<'static>; 6] = [READ, WRITE, DELETE, RUN, PUSH, PATCH];

/// Reads each line of a patch as a file that is created; resolves `link` to what a test says.
struct Resolver(Cell<&'static str>);

impl EffectResolver for Resolver {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        if path == "link" { Ok(self.0.get().to_owned()) } else { LexicalResolver.resolve_path(path) }
    }
    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        Ok(format!("/usr/bin/{word}"))
    }
    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        LexicalResolver.split_command(line)
    }
    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        Ok(patch.lines().map(|line| PatchedPath::Created(line.to_owned())).collect())
    }
}

/// Returns a resolver of which no test changes where `link` leads.
fn resolver() -> Resolver {
    Resolver(Cell::new("docs/a"))
}

fn try_load(roles: &str) -> Result<Policy, String> {
    Policy::load(&format!("version = 1\n{roles}"), "roles.toml", &TOOLS)
        .map(|loaded| loaded.policy)
        .map_err(|error| error.to_string())
}

fn load(roles: &str) -> Policy {
    try_load(roles).unwrap_or_else(|error| panic!("{error}"))
}

fn call(tool: ToolFacts<'_>, arguments: Value) -> Call {
    let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
    Call::new(tool.name, arguments)
}

fn judge(
    policy: &Policy,
    caller: &Caller,
    tool: ToolFacts<'_>,
    arguments: Value,
) -> Result<Authorized<Call>, Refusal> {
    policy.authorize(caller, &tool, call(tool, arguments), &resolver())
}

fn asked(result: Result<Authorized<Call>, Refusal>) -> ApprovalRequest {
    match result {
        Err(Refusal::Approval(request)) => request,
        other => panic!("not asked about: {other:?}"),
    }
}

fn conditions(request: &ApprovalRequest) -> Vec<&str> {
    request.reasons().filter_map(|reason| reason.condition.as_deref()).collect()
}

#[test]
fn deny_beats_ask_and_ask_beats_allow_in_whatever_order_and_an_asked_tool_is_visible() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\nask = [\"git_push\", \"write_file\"]\ndeny = [\"write_*\"]\n\
         [roles.b]\nextends = \"a\"\nallow = [\"git_push\"]\n[roles.c]\nask = [\"git_push\"]",
    );
    let a = Caller::new("a");
    assert_eq!(&**asked(judge(&policy, &a, PUSH, json!({}))).rule(), "a: ask `git_push` (roles.toml:4)");
    assert!(matches!(judge(&policy, &a, WRITE, json!({ "path": "a" })), Err(Refusal::Hidden { .. })));
    assert!(judge(&policy, &a, READ, json!({ "path": "a" })).is_ok());
    // What a role extends is kept: the child cannot allow what its parent asks about.
    asked(judge(&policy, &Caller::new("b"), PUSH, json!({})));
    // `ask` alone shows the tool.
    let c = Caller::new("c");
    assert!(policy.sees(&c, &PUSH) && !policy.sees(&c, &READ));
    asked(judge(&policy, &c, PUSH, json!({})));
    assert_eq!(policy.access("c", &PUSH), ToolAccess::Ask);
    assert_eq!(policy.access("c", &READ), ToolAccess::Hidden);
    assert_eq!(policy.access("a", &READ), ToolAccess::Allowed);
    // Who asks "is anything kept from this role" must hear of it.
    assert_eq!(policy.requirements("c", &PUSH), ["ask"]);
}

#[test]
fn a_source_that_narrows_turns_allow_into_ask_and_never_ask_into_allow() {
    let policy = load("[roles.a]\nallow = [\"*\"]\n[roles.b]\nallow = [\"*\"]\nask = [\"git_push\"]");
    for caller in [Caller::new("a").narrowed_by("b"), Caller::new("b").narrowed_by("a")] {
        asked(judge(&policy, &caller, PUSH, json!({})));
    }
    let narrower = load("[roles.a]\nallow = [\"*\"]\nask = [\"git_push\"]");
    let wide = load("[roles.a]\nallow = [\"*\"]");
    for policy in [wide.narrowed_by(&narrower), narrower.narrowed_by(&wide)] {
        asked(judge(&policy, &Caller::new("a"), PUSH, json!({})));
        assert_eq!(policy.access("a", &PUSH), ToolAccess::Ask);
    }
}

#[test]
fn a_policy_for_a_role_narrows_every_caller_and_its_questions_are_answered_by_nobody_else() {
    let front = load("[roles.a]\nallow = [\"*\"]\nask = [\"write_file\"]\n[roles.b]\nallow = [\"*\"]");
    let operator = load("[roles.a]\nallow = [\"*\"]\n[roles.b]\nallow = [\"read_file\"]");
    let narrowed = front.narrowed_by(&operator.for_role("b"));
    for caller in [Caller::new("a"), Caller::new("b")] {
        assert!(judge(&narrowed, &caller, READ, json!({ "path": "a" })).is_ok());
        assert!(!narrowed.sees(&caller, &PUSH), "the role b of the operator, whatever b is in front");
        assert!(matches!(judge(&narrowed, &caller, PUSH, json!({})), Err(Refusal::Hidden { .. })));
    }
    // The server in front has asked what its own policy asks, and no more.
    let operator = load("[roles.a]\nallow = [\"*\"]\n[roles.b]\nallow = [\"*\"]\nask = [\"git_push\"]");
    let narrowed = front.narrowed_by(&operator.for_role("b")).for_calls_asked_about_by("the front");
    let caller = Caller::new("a");
    assert!(judge(&narrowed, &caller, WRITE, json!({ "path": "a" })).is_ok());
    assert!(matches!(judge(&narrowed, &caller, PUSH, json!({})), Err(Refusal::Arguments { .. })));
    assert!(judge(&front.for_calls_asked_about_by("the front"), &caller, PUSH, json!({})).is_ok());
}

#[test]
fn a_rule_that_does_not_hold_asks_with_every_condition_and_what_cannot_be_judged_is_refused() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"programs\"\ntools = [\"run_command\"]\n\
         commands = [\"cargo\", \"git status\"]\nread_within = [\"src\"]\notherwise = \"ask\"\nreason = \"Ask Ada.\"",
    );
    let a = Caller::new("a");
    assert!(judge(&policy, &a, RUN, json!({ "command": "cargo test", "working_directory": "src" })).is_ok());
    let request = asked(judge(&policy, &a, RUN, json!({ "command": "curl x", "working_directory": "docs" })));
    assert_eq!(
        conditions(&request),
        [
            "`working_directory`: this role may read only in `src`, and `docs` is elsewhere; `command`: this role may \
          run only `cargo`, `git status`, and nothing that begins otherwise (the call would run `/usr/bin/curl`). \
          Ask Ada."
        ]
    );
    // One condition that can be approved does not hide one that cannot be judged.
    for arguments in [
        json!({ "command": "curl 'x'", "working_directory": "docs" }),
        json!({ "command": "curl", "working_directory": "../x" }),
        json!({ "command": [1], "working_directory": "docs" }),
    ] {
        let refused = judge(&policy, &a, RUN, arguments.clone());
        assert!(matches!(refused, Err(Refusal::Arguments { .. })), "{arguments}: {refused:?}");
    }
}

#[test]
fn a_rule_that_denies_beats_a_rule_that_asks() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\nask = [\"write_file\"]\n\
         [[roles.a.require]]\nid = \"asks\"\ntools = [\"write_file\"]\nwrite_within = [\"src\"]\notherwise = \"ask\"\n\
         [[roles.a.require]]\nid = \"denies\"\ntools = [\"write_file\"]\nnot_within = [\"secrets\"]",
    );
    let a = Caller::new("a");
    let refused = judge(&policy, &a, WRITE, json!({ "path": "secrets/x" }));
    assert!(matches!(refused, Err(Refusal::Arguments { .. })), "{refused:?}");
    assert_eq!(asked(judge(&policy, &a, WRITE, json!({ "path": "docs/x" }))).reasons().count(), 2);
}

#[test]
fn an_approval_runs_the_exact_call_of_the_exact_caller() {
    let policy = load("[roles.a]\nallow = [\"*\"]\nask = [\"write_file\"]\n[roles.b]\nextends = \"a\"");
    let caller = Caller::new("a").with_principal("ada");
    let arguments = json!({ "path": "a", "content": "x", "more": { "b": 1, "a": [true, null] } });
    let approve = || asked(judge(&policy, &caller, WRITE, arguments.clone())).approve("Ada, at the terminal");
    let run = |caller: &Caller, arguments: &Value| {
        policy.authorize_approved(caller, &WRITE, call(WRITE, arguments.clone()), &resolver(), approve())
    };
    // The order of members is no part of the call.
    let reordered = json!({ "more": { "a": [true, null], "b": 1 }, "content": "x", "path": "a" });
    let allowed = run(&caller, &reordered).expect("the same call");
    assert_eq!(allowed.decision().approver.as_deref(), Some("Ada, at the terminal"));
    assert_eq!(&*allowed.decision().rule, "a: ask `write_file` (roles.toml:4)");
    for changed in [
        json!({ "path": "a", "content": "y", "more": { "b": 1, "a": [true, null] } }),
        json!({ "path": "b", "content": "x", "more": { "b": 1, "a": [true, null] } }),
        json!({ "path": "a", "content": "x", "more": { "b": 1, "a": [true] } }),
        json!({ "path": "a", "content": "x", "more": { "b": "1", "a": [true, null] } }),
        json!({ "path": "a", "content": "x" }),
        json!({}),
    ] {
        let refused = run(&caller, &changed).expect_err("another call");
        assert!(refused.to_string().contains("another call"), "{refused}");
    }
    for other in [
        Caller::new("a"),
        Caller::new("a").with_principal("bob"),
        Caller::new("b").with_principal("ada"),
        caller.clone().narrowed_by("b"),
        caller.clone().with_session("s"),
    ] {
        assert!(run(&other, &arguments).is_err(), "{other:?}");
    }
}

#[test]
fn an_approval_survives_a_change_of_the_policy_only_if_it_still_fits() {
    let rule = |within: &str| {
        format!(
            "[[roles.a.require]]\nid = \"W\"\ntools = [\"write_file\"]\nwrite_within = [{within}]\notherwise = \"ask\"\n"
        )
    };
    let before = load(&format!("[roles.a]\nallow = [\"*\"]\n{}", rule("\"src\"")));
    let a = Caller::new("a");
    let arguments = json!({ "path": "docs/x" });
    let approve = || asked(judge(&before, &a, WRITE, arguments.clone())).approve("Ada");
    let run = |policy: &Policy| {
        policy.authorize_approved(&a, &WRITE, call(WRITE, arguments.clone()), &resolver(), approve())
    };
    let moved = load(&format!("\n\n# A comment.\n[roles.a]\nallow = [\"*\"]\n{}", rule("\"src\"")));
    assert!(run(&moved).is_ok(), "only the line of the rule changed");
    let allowed = run(&load("[roles.a]\nallow = [\"*\"]")).expect("allowed now");
    assert_eq!(allowed.decision().approver, None, "the policy alone allows it");
    let denied = load("[roles.a]\nallow = [\"*\"]\ndeny = [\"write_file\"]");
    assert!(matches!(run(&denied), Err(Refusal::Hidden { .. })));
    let refused =
        load(&format!("[roles.a]\nallow = [\"*\"]\n{}", rule("\"src\"").replace("\"ask\"", "\"deny\"")));
    assert!(matches!(run(&refused), Err(Refusal::Arguments { .. })));
    for other_reason in [
        format!("[roles.a]\nallow = [\"*\"]\n{}", rule("\"src\", \"lib\"")),
        format!("[roles.a]\nallow = [\"*\"]\nask = [\"write_file\"]\n{}", rule("\"src\"")),
    ] {
        assert!(matches!(run(&load(&other_reason)), Err(Refusal::Approval(_))), "{other_reason}");
    }
}

#[test]
fn an_approved_path_is_what_the_call_may_reach_and_no_other() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"W\"\ntools = [\"*_file\"]\nread_within = [\"src\"]\n\
         write_within = [\"src\"]\nnot_within = [\"docs\", \"docs/deep/secret\"]\notherwise = \"ask\"",
    );
    let a = Caller::new("a");
    let changing = Resolver(Cell::new("docs/deep"));
    let judge = || policy.authorize(&a, &WRITE, call(WRITE, json!({ "path": "link" })), &changing);
    let run = |approval| {
        policy.authorize_approved(&a, &WRITE, call(WRITE, json!({ "path": "link" })), &changing, approval)
    };
    let scope = run(asked(judge()).approve("Ada")).expect("approved").scope().clone();
    let may_write = |path: &str| scope.check_path(Access::Write, path).is_ok();
    assert!(may_write("docs/deep") && may_write("docs/deep/a") && may_write("src/a"));
    assert!(!may_write("docs/a") && !may_write("docs/deep/secret/a") && !may_write("lib/a"));
    assert!(scope.check_path(Access::Read, "docs/deep").is_err(), "only writing was asked about");
    // The link leads elsewhere when the answer comes: nobody approved that.
    let approval = asked(judge()).approve("Ada");
    changing.0.set("docs/other");
    assert!(matches!(run(approval), Err(Refusal::Approval(_))));
}

#[test]
fn a_patch_asks_about_each_part_that_its_tool_asks_about() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\nask = [\"delete_file\"]\n[[roles.a.require]]\nid = \"W\"\n\
         tools = [\"write_file\"]\nwrite_within = [\"src\"]\notherwise = \"ask\"",
    );
    let a = Caller::new("a");
    assert!(judge(&policy, &a, PATCH, json!({ "patch": "src/a" })).is_ok());
    let request = asked(judge(&policy, &a, PATCH, json!({ "patch": "src/a\ndocs/b\nlib/c" })));
    assert_eq!(conditions(&request).len(), 2);
    let arguments = json!({ "patch": "src/a\ndocs/b\nlib/c" });
    let approved =
        policy.authorize_approved(&a, &PATCH, call(PATCH, arguments), &resolver(), request.approve("Ada"));
    let scope = approved.expect("approved").scope().clone();
    assert!(scope.check_path(Access::Write, "elsewhere").is_err());
}

#[test]
fn a_call_in_a_call_is_asked_about() {
    let policy = load(
        "external_tools = [\"proxy_call\", \"danger\"]\n\
         dispatch = [{ tool = \"proxy_call\", name = \"/tool\", arguments = \"/arguments\" }]\n\
         [roles.a]\nallow = [\"*\"]\nask = [\"danger\"]",
    );
    let facts = ToolFacts::external("proxy_call");
    let judged =
        |tool: &str| judge(&policy, &Caller::new("a"), facts, json!({ "tool": tool, "arguments": {} }));
    asked(judged("danger"));
    assert!(judged("safe").is_ok());
}

#[test]
fn an_explanation_names_what_asks() {
    let policy = load(
        "[roles.a]\nallow = [\"*\"]\nask = [\"git_push\"]\n[[roles.a.require]]\nid = \"W\"\ntools = [\"write_file\"]\n\
         write_within = [\"src\"]\notherwise = \"ask\"",
    );
    let a = Caller::new("a");
    let explain = |tool, arguments| {
        let explanation = policy.explain(&a, &tool, call(tool, arguments), &resolver());
        assert!(matches!(explanation.decision, Err(Refusal::Approval(_))));
        explanation.steps.into_iter().map(|step| step.says).collect::<Vec<_>>()
    };
    assert_eq!(
        explain(PUSH, json!({})),
        [ExplainVerdict::Asks(None), ExplainVerdict::Allows, ExplainVerdict::NoMatch]
    );
    let asks = "`path`: this role may write only in `src`, and `docs/x` is elsewhere".to_owned();
    assert_eq!(
        explain(WRITE, json!({ "path": "docs/x" })),
        [ExplainVerdict::NoMatch, ExplainVerdict::Allows, ExplainVerdict::Asks(Some(asks))]
    );
}

#[test]
fn mistakes_about_asking_are_found_at_load() {
    for (file, expected) in [
        ("[roles.a]\nallow = [\"*\"]\nask = [\"git_psuh\"]", "did you mean `git_push`?"),
        (
            "[roles.a]\nallow = [\"*\"]\nask = [\"git_push\"]\nmust_allow = [{ tool = \"git_push\" }]",
            "must be allowed and is asked about by a: ask `git_push`",
        ),
        (
            "[roles.a]\nallow = [\"*\"]\nask = [\"git_push\"]\nmust_deny = [{ tool = \"git_push\" }]",
            "must be denied and is asked about by",
        ),
        (
            "[roles.a]\nallow = [\"*\"]\nmust_ask = [{ tool = \"git_push\" }]",
            "must be asked about and is allowed by",
        ),
        (
            "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"W\"\ntools = [\"write_file\"]\n\
          write_within = [\"src\"]\notherwise = \"perhaps\"",
            "expected \"ask\" or \"deny\"",
        ),
        (
            "[roles.a]\nallow = [\"*\"]\n[[roles.a.require]]\nid = \"W\"\ntools = [\"write_file\"]\notherwise = \"ask\"",
            "the rule `W` requires nothing",
        ),
        (
            "[roles.a]\nallow = [\"*\"]\nask = [\"git_push\"]\nmay_use = [\"b\"]\n[roles.b]\nallow = [\"*\"]",
            "`a` may use `b`, which calls without asking what `a` asks about: `git_push`",
        ),
    ] {
        let error = try_load(file).expect_err(file);
        assert!(error.contains(expected), "{error}");
    }
    let ineffective = "version = 1\n[roles.a]\nallow = [\"*\"]\nask = [\"git_push\"]\ndeny = [\"git_*\"]";
    let loaded = Policy::load(ineffective, "roles.toml", &TOOLS).expect("a warning");
    assert!(
        loaded.warnings.iter().any(|warning| warning.message.contains("asks about nothing")),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn nobody_is_asked_about_an_area_so_it_is_not_granted() {
    let a = Caller::new("a");
    let granted = |role: &str| load(&format!("[roles.a]\n{role}")).grants_area(&a, "mcp/prompts");
    assert!(granted("allow = [\"*\"]"));
    assert!(!granted("allow = [\"*\"]\nask = [\"git_push\"]"), "a prompt may name the tool");
    assert!(granted("allow = [\"*\", \"mcp/prompts\"]\nask = [\"git_push\"]"));
    assert!(!granted("ask = [\"*\"]"));
}

#[test]
fn a_fingerprint_is_read_as_it_is_written() {
    use role_policy::CallFingerprint;
    let call = Call::new("git_push", Map::new());
    let print = CallFingerprint::of(&Caller::new("a"), &call);
    assert_eq!(CallFingerprint::parse(&print.to_string()), Some(print));
    for wrong in ["", "00", "+1", &"é".repeat(32), &"g".repeat(64)] {
        assert_eq!(CallFingerprint::parse(wrong), None, "{wrong}");
    }
}
