//! The work that is counted within this test binary: it runs one of its ignored tests under valgrind.

use crate::valgrind::CountedProgram;
use core_tools::ci::{Commands, ServerFacts};
use core_tools::mcp::{CallContext, Host, Toolset, ci};
use core_tools::redact::{RedactionOptions, Redactor};
use core_tools::workspace::Workspace;
use process_runner::Runner;
use role_policy::{Call, Caller, LexicalResolver, Policy, ToolFacts};
use serde_json::{Map, Value, json};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// The variable with the number of operations that a counted test makes.
const OPERATIONS: &str = "COUNTED_OPERATIONS";

/// Counts one command, from the call of the tool to its answer. The server itself cannot be counted while it runs
/// commands: its guardian is this program again (`/proc/self/exe`), which under valgrind is valgrind.
pub(crate) fn echo() -> u64 {
    per_operation("workloads::counted_echo", 20)
}

/// Counts one decision of the built-in policy.
pub(crate) fn decision() -> u64 {
    per_operation("workloads::counted_decision", 5_000)
}

/// Counts what `operations` more of them take, and divides.
fn per_operation(test: &str, operations: u64) -> u64 {
    // The first sets up what later ones use.
    let [few, many] = [1, 1 + operations].map(|operations| {
        let counted = CountedProgram::new();
        let this = std::env::current_exe().expect("this program has a path");
        let mut command = counted.command(&this);
        command.args(["--exact", test, "--ignored", "--test-threads=1"]);
        let output = command.env(OPERATIONS, operations.to_string()).output().expect("valgrind runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        counted.count()
    });
    many.saturating_sub(few) / operations
}

fn operations() -> u64 {
    std::env::var(OPERATIONS).ok().and_then(|number| number.parse().ok()).unwrap_or(1)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

fn commands() -> Toolset {
    let workspace = Workspace::new(["/"]).expect("a workspace");
    let redactor = Redactor::new(RedactionOptions::default()).expect("a redactor");
    let runner = Runner::builder().adopt_orphans().build();
    let commands = Commands::new(runner, Arc::new(workspace), redactor);
    ci::toolset(commands, ServerFacts::new("counted", "1"), Duration::from_secs(60))
}

#[test]
#[ignore = "counted by no_operation_takes_more_instructions_than_recorded"]
fn counted_echo() {
    let toolset = commands();
    let facts: Vec<_> = toolset.facts().collect();
    let policy = Policy::builtin(&facts).expect("the built-in policy").policy;
    let redactor = Redactor::new(RedactionOptions::default()).expect("a redactor");
    let host = Host::builder(policy, redactor).toolset(toolset).build().expect("a host");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for _ in 0..operations() {
            let context = CallContext::new(Caller::new("orchestrator"), Default::default());
            let arguments = object(json!({"command": ["echo", "hello"]}));
            let answer = host.call("run_command", arguments, context).await.expect("the tool is there");
            assert!(answer.to_text().contains("hello"), "{}", answer.to_text());
        }
    });
}

#[test]
#[ignore = "counted by no_operation_takes_more_instructions_than_recorded"]
fn counted_decision() {
    let toolset = commands();
    let facts: Vec<ToolFacts<'_>> = toolset.facts().collect();
    let policy = Policy::builtin(&facts).expect("the built-in policy").policy;
    let tool = facts.iter().find(|tool| tool.name == "run_command").expect("the tool is there");
    let caller = Caller::new("dev");
    for _ in 0..operations() {
        let call = Call::new(tool.name, Map::new());
        let decision = policy.authorize(black_box(&caller), black_box(tool), call, &LexicalResolver);
        assert!(black_box(decision).is_ok(), "the policy allows it");
    }
}
