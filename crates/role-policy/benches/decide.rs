//! What a decision and a load cost: `cargo bench --package role-policy`.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and has nobody to answer to"
)]

use role_policy::{Call, Caller, Effect, LexicalResolver, Policy, ToolFacts};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// 50 tools, 10 roles that extend each other, 2 to 40 entries each.
const TOOLS: usize = 50;
const ROLES: usize = 10;

fn main() {
    let names: Vec<String> =
        (0..200).map(|index| format!("{}_{index}", ["read", "write", "git", "next"][index % 4])).collect();
    let facts: Vec<ToolFacts<'_>> = names
        .iter()
        .map(|name| {
            ToolFacts::new(name, "bench")
                .read_only(name.starts_with("read"))
                .destructive(name.starts_with("write"))
                .open_world(false)
                .effects(&[Effect::Writes("path"), Effect::Runs { command: "command", environment: "env" }])
        })
        .collect();
    decisions(facts.get(..TOOLS).expect("50 of 200"));
    load(&facts);
}

fn decisions(tools: &[ToolFacts<'_>]) {
    let mut text = "version = 1\n".to_owned();
    for role in 0..ROLES {
        let extends = if role == 0 { String::new() } else { format!("extends = \"r{}\"\n", role - 1) };
        let allow: Vec<String> =
            (0..4).map(|index| format!("{}_{}", ["read", "git"][index % 2], role * 4 + index)).collect();
        let _ = writeln!(text, "[roles.r{role}]\n{extends}allow = {allow:?}\ndeny = [\"next_*\"]");
    }
    let _ = writeln!(
        text,
        "[roles.plain]\nallow = [\"*\"]\n[roles.bound]\nextends = \"r9\"\nallow = [\"*\"]\n[[roles.bound.require]]\nid = \"P\"\ntools = [\"*\"]\n\
         write_within = [\"src\", \"tests\"]\nnot_within = [\"src/secret\"]\ncommands = [\"cargo test\", \"cargo check\", \"git status\"]\n\
         [roles.bound.require.arguments]\nmode = {{ one_of = [\"create\", \"append\"] }}"
    );
    let policy = Policy::load(&text, "bench", tools).expect("a policy").policy;
    let tool = tools.first().expect("50 tools");
    let arguments = object(
        json!({ "path": "src/deep/er/file.rs", "mode": "create", "command": ["cargo", "test", "--all"] }),
    );

    let plain = Caller::new("plain");
    report("decide whether a role sees a tool, by name", || {
        black_box(policy.sees(black_box(&plain), black_box(tool)))
    });
    report_calls("decide a call, by the tool's name", &policy, &plain, tool, &arguments);
    report_calls(
        "decide a call, by path, command and argument",
        &policy,
        &Caller::new("bound"),
        tool,
        &arguments,
    );
    report_calls(
        "decide a call for two roles, one of which has requirements",
        &policy,
        &Caller::new("plain").narrowed_by("bound"),
        tool,
        &arguments,
    );
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Calls are made beforehand: a server has the arguments anyway.
fn report_calls(
    what: &str,
    policy: &Policy,
    caller: &Caller,
    tool: &ToolFacts<'_>,
    arguments: &Map<String, Value>,
) {
    // Few enough to stay in the cache, as the one call of a server does.
    const BATCH: u32 = 50;
    let mut times = Vec::new();
    for _ in 0..4000 {
        let calls: Vec<Call> = (0..BATCH).map(|_| Call::new(tool.name, arguments.clone())).collect();
        let mut allowed = Vec::with_capacity(50);
        let started = Instant::now();
        for call in calls {
            allowed.push(policy.authorize(black_box(caller), black_box(tool), call, &LexicalResolver));
        }
        times.push(started.elapsed() / BATCH);
        assert!(allowed.iter().all(Result::is_ok), "the benchmark judges calls that are allowed");
    }
    print(what, &mut times);
}

fn report<T>(what: &str, mut run: impl FnMut() -> T) {
    const BATCH: u32 = 1000;
    let mut times: Vec<Duration> = (0..400)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..BATCH {
                black_box(run());
            }
            started.elapsed() / BATCH
        })
        .collect();
    print(what, &mut times);
}

fn load(tools: &[ToolFacts<'_>]) {
    let mut text = "version = 1\n".to_owned();
    for role in 0..10 {
        let _ = writeln!(text, "[roles.r{role}]\nallow = [\"read_*\", \"write_*\"]");
        for rule in 0..100 {
            let _ = writeln!(
                text,
                "[[roles.r{role}.require]]\nid = \"R{rule}\"\ntools = [\"write_{}*\"]\nwrite_within = [\"src/{rule}\"]",
                rule % 20 * 4 + 1
            );
        }
    }
    let mut times: Vec<Duration> = (0..30)
        .map(|_| {
            let started = Instant::now();
            black_box(Policy::load(&text, "bench", tools).expect("a policy"));
            started.elapsed()
        })
        .collect();
    print("load 1,000 rules for 200 tools", &mut times);
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{what:<45} p50 {:>10.0?}  p99 {:>10.0?}", at(50), at(99));
}
