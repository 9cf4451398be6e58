//! Every tool is called for real, and every structured result fits the schema that was promised.

use crate::{all, name};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Stdio;

/// A PNG of one pixel.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0,
    0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T', 0x78, 0xda, 0x63,
    0xfc, 0xcf, 0xc0, 0x50, 0x0f, 0, 4, 0x85, 1, 0x80, 0x84, 0xa9, 0x8c, 0x21, 0, 0, 0, 0, b'I', b'E', b'N',
    b'D', 0xae, 0x42, 0x60, 0x82,
];

fn project() -> Project {
    let project = Project::with([
        ("README.md", "# A project\n\nWith words to find.\n"),
        ("src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n"),
        ("src/old.rs", "// to be moved\n"),
        ("src/gone.rs", "// to be deleted\n"),
        ("docs/notes.txt", "one\ntwo\nthree\n"),
        ("Makefile", "test:\n\t@echo tested\n"),
        ("module/Cargo.toml", "[package]\nname = \"module\"\n"),
        ("module/src/lib.rs", ""),
        // Nothing in it yet, which is a SQLite database.
        ("docs/app.db", ""),
        ("docs/state.json", "{\"a\": [1]}"),
        ("docs/app.log", "{\"level\":50,\"msg\":\"down\"}\n"),
    ]);
    std::fs::write(project.join("pixel.png"), PNG).unwrap();
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    project.git(&["config", "user.name", "A"]);
    project.git(&["config", "user.email", "a@example.org"]);
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=first"]);
    project.git(&["clone", "--quiet", "--bare", ".", "remote.git"]);
    project.git(&["remote", "add", "origin", "./remote.git"]);
    project.write(".git/info/exclude", "remote.git\n");
    project
}

/// Lists the calls of each tool, in this order. Those that succeed come first, then one that fails, so that
/// a failed result is checked too.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": "README.md"})),
        ("read_file", json!({"path": "docs/notes.txt", "offset": 2, "limit": 1})),
        ("read_multiple_files", json!({"paths": ["README.md", "docs/notes.txt"]})),
        (
            "read_multiple_files",
            json!({"paths": [{"path": "README.md", "offset": 1, "limit": 1}], "line_numbers": true}),
        ),
        ("read_media_file", json!({"path": "pixel.png"})),
        ("write_file", json!({"path": "new/file.txt", "content": "text\n"})),
        ("write_file", json!({"path": "new/file.txt", "content": "more\n", "mode": "append"})),
        ("edit_file", json!({"path": "docs/notes.txt", "edits": [{"old_string": "two", "new_string": "2"}]})),
        ("edit_file", json!({"path": "docs/notes.txt", "insert_line": 0, "new_string": "zero"})),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Add File: docs/patched.txt\n+one\n*** End Patch", "dry_run": false}),
        ),
        ("file_outline", json!({"paths": ["src"]})),
        ("list_directory", json!({})),
        ("list_directory", json!({"path": "src", "depth": 2, "details": true, "max_results": 5})),
        ("directory_tree", json!({"depth": 2})),
        ("find_files", json!({"pattern": "**/*.rs"})),
        ("search_files", json!({"pattern": "words"})),
        ("search_files", json!({"pattern": "fn", "multiline": true, "symbol": true, "include": ["src"]})),
        ("move_file", json!({"source": "src/old.rs", "destination": "src/new.rs"})),
        ("delete_file", json!({"path": "src/gone.rs"})),
        ("create_directory", json!({"path": "a/b/c"})),
        ("file_exists", json!({"path": "README.md"})),
        ("file_exists", json!({"path": "nothing"})),
        ("directory_exists", json!({"path": "src"})),
        ("directory_exists", json!({"path": "README.md"})),
        ("get_file_info", json!({"path": "README.md"})),
        ("get_file_info", json!({"path": "src"})),
        ("compile_context", json!({"role": "dev", "budget_tokens": 1000})),
        ("find_tools", json!({"query": "who wrote a line"})),
        ("find_tools", json!({"query": ""})),
        (
            "call_tools",
            json!({"calls": [{"tool": "file_exists", "arguments": {"path": "README.md"}, "expect_failure": false}], "keep_going": true}),
        ),
        ("git_status", json!({})),
        ("git_status", json!({"repository_path": "src", "limit": 1})),
        ("git_log", json!({})),
        ("git_log", json!({"max_count": 1, "revision": "HEAD", "paths": ["README.md"], "stat": true})),
        ("git_diff", json!({})),
        ("git_diff", json!({"staged": true, "stat": true, "revision": "HEAD", "paths": ["."]})),
        ("git_show", json!({})),
        ("git_show", json!({"revision": "HEAD:README.md", "max_bytes": 1000})),
        ("git_blame", json!({"path": "README.md"})),
        ("git_blame", json!({"path": "README.md", "start_line": 1, "end_line": 2, "revision": "HEAD"})),
        ("git_list_branches", json!({})),
        ("git_current_branch", json!({})),
        ("git_add", json!({"files": ["new"]})),
        ("git_commit", json!({"message": "second"})),
        ("git_create_branch", json!({"name": "topic", "start_point": "HEAD~1"})),
        ("git_stash", json!({"action": "push", "message": "later", "include_untracked": true})),
        ("git_stash", json!({"action": "pop", "index": 0})),
        ("git_stash", json!({})),
        ("git_restore", json!({"files": ["src"], "staged": true, "source": "HEAD"})),
        ("git_restore", json!({"files": ["src"]})),
        ("git_clean", json!({"include_ignored": false})),
        ("git_clean", json!({"files": ["src"], "dry_run": true})),
        ("git_checkout", json!({"branch": "topic"})),
        ("git_worktree", json!({"action": "add", "path": "tree", "branch": "side", "start_point": "HEAD"})),
        ("git_worktree", json!({"action": "remove", "path": "tree", "force": true})),
        ("git_worktree", json!({})),
        ("git_merge", json!({"revision": "main", "message": "merged"})),
        ("git_rebase", json!({"onto": "main"})),
        ("git_fetch", json!({"remote": "origin", "prune": true, "all_tags": true})),
        ("git_pull", json!({"branch": "main"})),
        ("git_push", json!({"dry_run": true, "force_with_lease": false})),
        ("run_command", json!({"command": "echo hello"})),
        (
            "run_command",
            json!({
                "command": ["sh", "-c", "seq 100000; echo $A >&2; cat"], "working_directory": "src", "timeout_ms": 30_000,
                "stdin": "input", "env": {"A": "b"}, "max_output_bytes": 1000
            }),
        ),
        // The output of the run above that had no room is kept as command 1.
        (
            "start_command",
            json!({"command": ["cat"], "working_directory": "src", "env": {"A": "b"}, "timeout_ms": 60_000}),
        ),
        ("write_command_input", json!({"id": 2, "text": "hello\n"})),
        ("read_command_output", json!({"id": 2, "cursor": 0, "wait_ms": 5000, "max_bytes": 1000})),
        ("list_commands", json!({})),
        ("stop_command", json!({"id": 2, "grace_ms": 100})),
        ("read_command_output", json!({"id": 2})),
        ("list_commands", json!({})),
        ("get_diagnostics", json!({})),
        ("build", json!({"project_path": "Makefile", "ecosystem": "make", "timeout_ms": 60_000})),
        ("restore", json!({"project_path": "module"})),
        ("run_tests", json!({"project_path": "Makefile", "runner": "make", "timeout_ms": 60_000})),
        ("run_test_suite", json!({"test_path": "."})),
        ("run_test_task", json!({"test_path": ".", "reporter": "json"})),
        ("run_test_task", json!({"test_path": ".", "reporter": "tap"})),
        ("db_bridge", json!({"action": "query", "payload": "SELECT 1 AS n", "database": "docs/app.db"})),
        ("db_bridge", json!({"action": "schema", "database": "docs/app.db"})),
        ("inspect_state", json!({"path": "process.env.PATH", "depth": 1})),
        ("inspect_state", json!({"path": "a[0]", "target": "file:docs/state.json"})),
        ("capture_trace", json!({"duration_ms": 100, "type": "network", "target": "server"})),
        ("get_logs", json!({"level": "error", "limit": 5, "source": "docs/app.log"})),
        ("status", json!({})),
        ("pause", json!({})),
        ("resume", json!({})),
        ("new_session", json!({"command": ["sleep", "60"], "working_directory": "src", "role": "worker"})),
        ("run_agent_command", json!({"command": "/next-build", "args": "12"})),
        // To the session that was started last.
        ("send_message", json!({"session_id": "", "text": "hello"})),
        ("list_sessions", json!({})),
        ("logs", json!({"lines": 5, "since": "1h", "level": "info"})),
        ("end_session", json!({"session_id": "", "grace": 0})),
        ("status", json!({})),
    ]
}

/// Calls that are no mistake of the caller's and end in `isError` with a report.
fn failing_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("run_command", json!({"command": ["sh", "-c", "echo out; echo err >&2; exit 7"]})),
        ("run_command", json!({"command": ["sh", "-c", "kill -SEGV $$"]})),
        ("run_command", json!({"command": ["sleep", "10"], "timeout_ms": 50})),
        ("run_tests", json!({"runner": "mix"})),
    ]
}

/// The schema of a report on a build or on tests. The list has only its verdict: each of the five tools would add a
/// kilobyte to every conversation.
fn whole_schema(tool: &str, arguments: &Value) -> Option<Value> {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = match tool {
        "build" | "restore" => {
            settings.into_generator().into_root_schema_for::<core_tools::ci::BuildReport>()
        }
        "run_test_task" if arguments["reporter"] == "tap" => {
            return Some(json!({
                "type": "object",
                "required": ["success", "passed", "failed", "skipped", "tap"],
                "properties": {
                    "success": {"type": ["boolean", "null"]},
                    "passed": {"type": "integer"},
                    "failed": {"type": "integer"},
                    "skipped": {"type": "integer"},
                    "tap": {"type": "string", "pattern": "^TAP version 14\n"},
                },
                "additionalProperties": false,
            }));
        }
        "run_tests" | "run_test_suite" | "run_test_task" => {
            settings.into_generator().into_root_schema_for::<core_tools::testing::TestReport>()
        }
        "status" => {
            settings.into_generator().into_root_schema_for::<core_tools::sessions::SupervisorStatus>()
        }
        "pause" | "resume" => {
            settings.into_generator().into_root_schema_for::<core_tools::sessions::SupervisorPauseChange>()
        }
        "new_session" | "run_agent_command" => {
            settings.into_generator().into_root_schema_for::<core_tools::sessions::SessionStarted>()
        }
        "db_bridge" => settings.into_generator().into_root_schema_for::<core_tools::db::DbResponse>(),
        _ => return None,
    };
    Some(schema.to_value())
}

/// Checks one answer against what the tool's entry in the list promises.
fn check(tool: &Value, arguments: &Value, result: &Value) {
    let (name, schema) = (name(tool), &tool["inputSchema"]);
    jsonschema::validate(schema, arguments)
        .unwrap_or_else(|error| panic!("{name}: the call does not fit: {error}"));
    let content = result["content"].as_array().unwrap();
    assert!(!content.is_empty(), "{name}: nothing for clients that show content only");
    match tool.get("outputSchema") {
        Some(schema) => {
            let structured = result.get("structuredContent").unwrap_or_else(|| panic!("{name}: {result}"));
            jsonschema::validate(schema, structured)
                .unwrap_or_else(|error| panic!("{name} promised another result: {error}\n{structured}"));
            let known = schema["properties"].as_object().cloned().unwrap_or_default();
            if let Some(whole) = whole_schema(name, arguments) {
                jsonschema::validate(&whole, structured)
                    .unwrap_or_else(|error| panic!("{name} sends another report: {error}\n{structured}"));
                return;
            }
            for key in structured.as_object().unwrap().keys() {
                assert!(known.contains_key(key), "{name} sends `{key}`, which it does not promise");
            }
        }
        None => assert_eq!(result.get("structuredContent"), None, "{name}"),
    }
}

#[test]
fn every_tool_answers_a_valid_call_with_what_its_schema_promises() {
    let tools = all();
    let by_name: BTreeMap<_, _> = tools.iter().map(|tool| (name(tool), tool)).collect();
    for era in [Era::Initialize("2025-06-18"), Era::Modern] {
        let project = project();
        let mut command = project.server();
        command.env("CORETOOLS_SESSIONS_COMMAND", "sh,-c,sleep 60");
        let mut wire = Wire::connect(command, era);
        let mut called = BTreeSet::new();
        let mut session = String::new();
        for (name, mut arguments) in calls() {
            let tool = by_name.get(name).unwrap_or_else(|| panic!("{name} is not listed"));
            if arguments.get("session_id").is_some() {
                arguments["session_id"] = session.clone().into();
            }
            let result = wire.call(name, arguments.clone());
            assert_eq!(result["isError"], false, "{name} {arguments}: {result}");
            if let Some(id) = result["structuredContent"]["session_id"].as_str() {
                session = id.to_owned();
            }
            check(tool, &arguments, &result);
            called.insert(name);
        }
        for (name, arguments) in failing_calls() {
            let result = wire.call(name, arguments.clone());
            assert_eq!(result["isError"], true, "{name} {arguments}: {result}");
            check(by_name[name], &arguments, &result);
        }
        let listed: BTreeSet<_> = by_name.keys().copied().collect();
        let missing: Vec<_> = listed.difference(&called).collect();
        assert!(missing.is_empty(), "add a call of {missing:?} to this test");
    }
}

#[test]
fn a_tool_that_says_it_only_reads_changes_nothing() {
    let tools = all();
    let reads = |wanted: &str| {
        let tool = tools.iter().find(|tool| name(tool) == wanted);
        tool.is_some_and(|tool| tool["annotations"]["readOnlyHint"] == true)
    };
    let project = project();
    let state = || {
        let output = std::process::Command::new("sh")
            .args(["-c", "find . -type f -printf '%p %s %m %T@\\n' | sort; find . -type d | sort"])
            .current_dir(project.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = state();
    let mut wire = Wire::connect(project.server(), Era::Modern);
    for (name, arguments) in calls().into_iter().filter(|(name, _)| reads(name)) {
        wire.call(name, arguments);
    }
    assert_eq!(state(), before);
}

#[test]
fn the_same_request_gives_the_same_bytes_in_every_process() {
    let project = project();
    for (tool, arguments) in [
        ("read_file", json!({"path": "README.md"})),
        ("list_directory", json!({"depth": 3, "details": true})),
        ("directory_tree", json!({})),
        ("find_files", json!({"pattern": "**/*"})),
        ("search_files", json!({"pattern": "o"})),
        ("get_file_info", json!({"path": "src/main.rs"})),
        (
            "edit_file",
            json!({"path": "README.md", "edits": [{"old_string": "A", "new_string": "B"}], "dry_run": true}),
        ),
        ("read_file", json!({"path": "nothing"})),
        ("read_file", json!({"path": "nothing", "what": 1, "limit": 0})),
    ] {
        let answer = || {
            let mut params = json!({"name": tool, "arguments": arguments});
            Era::Modern.fill(&mut params);
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let mut server = project.server().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            server.stdin.take().unwrap().write_all(format!("{request}\n").as_bytes()).unwrap();
            String::from_utf8(server.wait_with_output().unwrap().stdout).unwrap()
        };
        let first = answer();
        assert!(first.contains("\"result\""), "{tool}: {first}");
        for _ in 0..3 {
            assert_eq!(answer(), first, "{tool}");
        }
    }
}
