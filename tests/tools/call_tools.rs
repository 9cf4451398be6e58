//! Several calls in one.

use crate::serve;
use integration_tests::{Era, Project, Wire, alive, unique_seconds, wait_until, wait_until_gone};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

fn write(path: &str) -> Value {
    call("write_file", json!({"path": path, "content": "text\n"}))
}

fn shell(script: &str) -> Value {
    call("run_command", json!({"command": ["sh", "-c", script]}))
}

/// Returns the line of each call, without its seconds, and what stands below it.
fn parts(text: &str) -> Vec<(&str, &str)> {
    let calls = text.split("==> ").skip(1);
    let parts = calls.map(|call| {
        let (head, text) = call.split_once('\n').unwrap();
        let (name, seconds) = head.rsplit_once(" (").unwrap();
        assert!(seconds.strip_suffix(" s)").unwrap().parse::<f64>().is_ok(), "{head}");
        (name, text)
    });
    parts.collect()
}

#[test]
fn calls_are_made_one_after_the_other_and_the_answer_has_the_text_of_each() {
    for era in Era::BOTH {
        let (project, mut wire) = integration_tests::serve([("a.txt", "one\n")], era);
        let edit = json!({"path": "a.txt", "edits": [{"old_string": "one", "new_string": "two"}]});
        let calls = [
            call("edit_file", edit),
            call("read_file", json!({"path": "a.txt"})),
            call(
                "run_command",
                json!({"command": ["sh", "-c", "cat a.txt; echo $WORD"], "env": {"WORD": "said"}}),
            ),
            json!({"tool": "list_directory"}),
        ];
        let result = wire.call("call_tools", json!({"calls": calls}));
        assert_eq!(result["isError"], false, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let parts = parts(text);
        let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["1. edit_file", "2. read_file", "3. run_command", "4. list_directory"]);
        assert!(parts[1].1.contains("two"), "{text}");
        assert!(parts[2].1.contains("two\nsaid"), "{text}");
        assert!(parts[3].1.contains("a.txt"), "{text}");
        assert_eq!(project.read("a.txt"), "two\n");
    }
}

#[test]
fn the_first_that_fails_is_the_last_that_is_made() {
    let (project, mut wire) = serve([]);
    let calls = [write("a"), shell("echo out of order; exit 3"), write("b"), write("c")];
    let text = wire.failure("call_tools", json!({"calls": calls}));
    let parts = parts(&text);
    let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["1. write_file", "2. run_command: failed"]);
    assert!(parts[1].1.contains("out of order"), "{text}");
    assert_eq!(
        text.lines().last(),
        Some("Not run, since 2. run_command failed: 3. write_file, 4. write_file")
    );
    assert!(project.join("a").exists() && !project.join("b").exists() && !project.join("c").exists());
}

#[test]
fn failed_tests_keep_the_commit_behind_them_from_being_made() {
    let (project, mut wire) = serve([("Makefile", "test:\n\tgrep -q right answer\n"), ("answer", "wrong\n")]);
    project.git(&["init", "--quiet"]);
    let calls = |answer: &str| {
        let files = json!({"message": "answered", "files": ["answer"]});
        let tests = call("run_tests", json!({"runner": "make"}));
        json!({"calls": [call("write_file", json!({"path": "answer", "content": answer})), tests, call("git_commit", files)]})
    };
    let text = wire.failure("call_tools", calls("left\n"));
    assert!(text.contains("==> 2. run_tests: failed") && text.ends_with("failed: 3. git_commit\n"), "{text}");
    let text = wire.text("call_tools", calls("right\n"));
    assert!(text.contains("==> 3. git_commit ("), "{text}");
    assert_eq!(project.git(&["log", "--format=%s"]).trim(), "answered");
}

#[test]
fn the_rest_is_made_after_a_failure_if_the_caller_says_so() {
    let (project, mut wire) = serve([]);
    let calls = [
        write("a"),
        shell("exit 3"),
        call("no_such_tool", json!({})),
        call("read_file", json!({"pth": 1})),
        write("b"),
    ];
    // The caller wants every answer, and has them.
    let text = wire.text("call_tools", json!({"calls": calls, "keep_going": true}));
    let parts = parts(&text);
    let failed: Vec<_> = parts.iter().map(|(name, _)| name.ends_with(": failed")).collect();
    assert_eq!(failed, [false, true, true, true, false], "{text}");
    assert!(parts[2].1.contains("no tool is called `no_such_tool`"), "{text}");
    assert!(parts[3].1.contains("invalid arguments for `read_file`"), "{text}");
    assert!(!text.contains("Not run") && project.join("b").exists(), "{text}");
    // Without one that succeeded, there is nothing to have.
    let calls = [shell("exit 3"), call("no_such_tool", json!({}))];
    wire.failure("call_tools", json!({"calls": calls, "keep_going": true}));
}

#[test]
fn a_call_that_is_to_fail_stops_the_rest_if_it_succeeds() {
    let (project, mut wire) = serve([]);
    let fails = |script: &str| {
        let mut call = shell(script);
        call["expect_failure"] = json!(true);
        call
    };
    let text =
        wire.text("call_tools", json!({"calls": [fails("echo red; exit 1"), write("fix"), shell("true")]}));
    let names: Vec<_> = parts(&text).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["1. run_command: failed, as expected", "2. write_file", "3. run_command"]);
    assert!(text.contains("red") && project.join("fix").exists(), "{text}");
    let text = wire.failure("call_tools", json!({"calls": [fails("true"), write("other")]}));
    assert!(text.ends_with("Not run, since 1. run_command succeeded: 2. write_file\n"), "{text}");
    assert!(!project.join("other").exists(), "{text}");
    // What was not run at all has not failed as it was meant to.
    let mut unknown = call("no_such_tool", json!({}));
    unknown["expect_failure"] = json!(true);
    let text = wire.failure("call_tools", json!({"calls": [unknown, write("other")]}));
    assert!(text.contains("Not run, since 1. no_such_tool failed: 2. write_file"), "{text}");
}

#[test]
fn calls_are_understood_in_the_words_of_other_tools_for_several_calls() {
    let (_project, mut wire) = serve([("a.txt", "one\n")]);
    let path = json!({"path": "a.txt"});
    for given in [
        json!({"name": "read_file", "arguments": path}),
        json!({"tool": "read_file", "args": path}),
        json!({"tool_name": "read_file", "input": path}),
        json!({"recipient_name": "read_file", "parameters": {"file_path": "a.txt"}}),
        json!({"tool": "read_file", "arguments": path.to_string()}),
        json!({"tool": "mcp__core-tools__read_file", "arguments": path}),
        json!({"tool": "read_file", "arguments": path, "description": "Reads it."}),
    ] {
        for calls in [json!([given]), json!(json!([given]).to_string()), given.clone()] {
            let text = wire.text("call_tools", json!({"calls": calls}));
            assert_eq!(parts(&text)[0].0, "1. read_file", "{given}");
            assert!(text.contains("one"), "{given}: {text}");
        }
    }
}

#[test]
fn what_is_wrong_with_the_list_is_said_before_anything_is_run() {
    let (project, mut wire) = serve([]);
    let many: Vec<_> = (0..21).map(|number| write(&format!("{number}"))).collect();
    let inner = json!({"calls": [write("b")]});
    for (calls, expected) in [
        (json!(many), "`calls` has 21 items: expected at most 20"),
        (json!([]), "`calls` has 0 items: expected at least 1"),
        (json!([write("a"), "write_file"]), "`calls[1]` is the string \"write_file\": expected an object"),
        (json!([write("a"), {"arguments": {}}]), "`calls[1].tool` is missing"),
        (json!([write("a"), {"tool": "read_file", "arguments": [1]}]), "`calls[1].arguments` is"),
        (json!([write("a"), {"tool": "read_file", "path": "a"}]), "`calls[1].path`"),
        (
            json!([write("a"), call("call_tools", inner.clone())]),
            "`calls[1].tool` is \"call_tools\", which cannot call itself",
        ),
        (json!([write("a"), call("mcp__x__call_tools", inner.clone())]), "which cannot call itself"),
    ] {
        let said = wire.failure("call_tools", json!({"calls": calls}));
        assert!(said.contains("invalid arguments for `call_tools`") && said.contains(expected), "{said}");
        assert_eq!(std::fs::read_dir(project.path()).unwrap().count(), 0, "{said}");
    }
    let text = wire.text("call_tools", json!({"calls": many[..20]}));
    assert_eq!(parts(&text).len(), 20);
    assert_eq!(std::fs::read_dir(project.path()).unwrap().count(), 20);
}

#[test]
fn a_call_that_is_cancelled_ends_the_one_that_runs_and_makes_no_further_one() {
    for era in Era::BOTH {
        let (project, mut wire) = integration_tests::serve([], era);
        let seconds = unique_seconds();
        let calls = [write("a"), shell(&format!("sleep {seconds}")), write("b")];
        let id = wire.ask(
            "tools/call",
            json!({"name": "call_tools", "arguments": {"calls": calls, "keep_going": true}}),
        );
        wait_until(SOON, "the second runs", || !alive(&seconds).is_empty());
        wire.notify("notifications/cancelled", json!({"requestId": id}));
        wait_until_gone(&seconds, SOON);
        // Served after the end of the cancelled one: what it would have written would be there.
        wire.close_input();
        wire.wait(SOON);
        assert!(project.join("a").exists() && !project.join("b").exists(), "{era:?}");
    }
}

#[test]
fn the_time_limit_of_one_call_ends_that_call_alone() {
    let (project, mut wire) = serve([]);
    let seconds = unique_seconds();
    let slow = call("run_command", json!({"command": ["sleep", seconds], "timeout_ms": 300}));
    let calls = [slow, write("b")];
    let text = wire.text("call_tools", json!({"calls": calls, "keep_going": true}));
    assert!(text.contains("==> 1. run_command: failed") && text.contains("==> 2. write_file ("), "{text}");
    assert!(text.contains("time"), "{text}");
    assert!(alive(&seconds).is_empty() && project.join("b").exists());
    let text = wire.failure("call_tools", json!({"calls": calls}));
    assert_eq!(text.lines().last(), Some("Not run, since 1. run_command failed: 2. write_file"));
}

#[test]
fn a_client_that_waits_hears_which_call_runs_and_what_it_says() {
    for era in Era::BOTH {
        let project = Project::empty();
        let mut wire = Wire::connect(project.server(), era);
        let calls = [shell("sleep 1.5"), shell("for i in 1 2 3 4; do echo step $i; sleep 0.5; done")];
        let id = wire.ask(
            "tools/call",
            json!({"name": "call_tools", "arguments": {"calls": calls}, "_meta": {"progressToken": "t"}}),
        );
        let answer = wire.answer(id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let told: Vec<_> = wire.others().iter().map(|message| message["params"]["message"].clone()).collect();
        assert_eq!(told[0], "1. run_command, of 2", "{told:?}");
        assert!(told.iter().any(|message| message.as_str().unwrap().starts_with("step ")), "{told:?}");
    }
}

#[test]
fn secrets_are_masked_in_every_text() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let (_project, mut wire) = serve([("app.env", format!("GITHUB_TOKEN={token}\n").as_str())]);
    let calls = [call("read_file", json!({"path": "app.env"})), shell("cat app.env; exit 1"), write("b")];
    let text = wire.failure("call_tools", json!({"calls": calls}));
    assert!(text.matches("[redacted:").count() >= 2 && !text.contains("0123456789abc"), "{text}");
    let named = wire.failure("call_tools", json!({"calls": [{"tool": token}]}));
    assert!(!named.contains("0123456789abc"), "{named}");
}

#[test]
fn a_picture_is_named_and_left_out_and_a_long_text_is_cut() {
    let (project, mut wire) = serve([]);
    // A PNG of one pixel.
    let pixel = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    std::fs::write(project.join("pixel.png"), pixel).unwrap();
    let result =
        wire.call("call_tools", json!({"calls": [call("read_media_file", json!({"path": "pixel.png"}))]}));
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("call the tool alone"), "{result}");
    let script = "head -c 200000 /dev/zero | tr '\\0' x";
    let long = json!({"command": ["sh", "-c", script], "max_output_bytes": 1_000_000});
    let long = call("run_command", long);
    let text = wire.text("call_tools", json!({"calls": vec![long; 20]}));
    assert!(text.len() < (1 << 20) + 4096, "{}", text.len());
    assert_eq!((parts(&text).len(), text.matches("bytes left out").count()), (20, 20));
}

#[test]
fn what_one_call_finds_is_listed_from_then_on() {
    let project = Project::empty();
    let mut command = project.server();
    command.args(["--toolsets", "standard"]);
    let mut wire = Wire::connect(command, Era::Modern);
    wire.text("call_tools", json!({"calls": [call("find_tools", json!({"query": "git_blame"}))]}));
    let tools = wire.request("tools/list", json!({}))["result"]["tools"].take();
    assert!(tools.as_array().unwrap().iter().any(|tool| tool["name"] == "git_blame"), "{tools}");
}
