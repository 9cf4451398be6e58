//! The roles of a policy in front of another server, and everything that says which one holds.

use crate::{LEGACY, WrapSetup, call, names, setup};
use integration_tests::{Era, Wire};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};

/// The tools that a worker may not call.
const ORCHESTRATION: [&str; 9] = [
    "next_work",
    "next_prepare",
    "next_anything",
    "mark_phase",
    "start_session",
    "end_session",
    "send_message",
    "run_agent_command",
    "pause",
];
const WORK: [&str; 3] = ["echo", "get_context", "sleep"];

fn tool(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": schema})
}

fn orchestra(flags: &[&str]) -> WrapSetup {
    let tools: Vec<Value> = WORK.into_iter().chain(ORCHESTRATION).map(tool).collect();
    setup(flags).offering(&json!(tools))
}

/// The answer to a call, with what tells one call from another taken out.
fn refusal(wire: &mut Wire, tool: &str) -> Value {
    let mut answer = wire.request("tools/call", json!({"name": tool, "arguments": {"path": "x"}}));
    answer["id"] = json!(0);
    serde_json::from_str(&answer.to_string().replace(tool, "NAME")).unwrap()
}

/// The client behind `wire` is a worker.
fn is_worker(setup: &WrapSetup, wire: &mut Wire, era: Era) {
    assert_eq!(names(wire), WORK);
    let unknown = refusal(wire, "nothing_like_it");
    assert_eq!(unknown["error"]["code"], if era == Era::Modern { -32602 } else { -32601 });
    for tool in ORCHESTRATION {
        assert_eq!(refusal(wire, tool), unknown, "{tool}");
        assert_eq!(setup.calls(tool), 0);
    }
    assert_eq!(wire.text("echo", json!({"path": "x"})), r#"{"path": "x"}"#);
}

fn sees_everything(wire: &mut Wire) {
    assert_eq!(names(wire).len(), WORK.len() + ORCHESTRATION.len());
    for tool in ORCHESTRATION {
        assert_eq!(wire.text(tool, json!({})), format!("called {tool}"));
    }
}

#[test]
fn a_worker_neither_sees_nor_calls_what_an_orchestrator_does() {
    for era in Era::BOTH {
        let setup = orchestra(&["--role", "worker"]);
        is_worker(&setup, &mut setup.connect(era), era);
        let setup = orchestra(&["--role", "orchestrator"]);
        sees_everything(&mut setup.connect(era));
    }
}

#[test]
fn the_first_request_of_a_session_may_be_the_refused_one() {
    for era in Era::BOTH {
        let setup = orchestra(&["--role", "worker"]);
        let mut wire = setup.connect(era);
        let (hidden, unknown) = (refusal(&mut wire, "next_work"), refusal(&mut wire, "nothing"));
        assert_eq!(hidden, unknown);
        assert_eq!(setup.calls("next_work"), 0);
    }
}

#[test]
fn roles_that_trust_only_annotations_trust_none_of_another_server() {
    let mut reads = tool("read_file");
    reads["annotations"] = json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false});
    for role in ["readonly", "security", "minimal", "no_such_role"] {
        for era in Era::BOTH {
            let setup = setup(&["--role", role]).offering(&json!([reads, tool("echo")]));
            let mut wire = setup.connect(era);
            assert_eq!(names(&mut wire), [""; 0], "{role}");
            assert_eq!(refusal(&mut wire, "read_file"), refusal(&mut wire, "nothing"));
        }
    }
}

#[test]
fn a_role_comes_from_the_environment_the_marker_and_the_command_and_each_only_narrows() {
    let marked = |content: &str, mode: u32| {
        let setup = orchestra(&[]);
        setup.project.write("session/teleclaude_role", content);
        let folder = setup.project.join("session");
        std::fs::set_permissions(folder.join("teleclaude_role"), PermissionsExt::from_mode(mode)).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
        setup
    };
    let connect = |setup: &WrapSetup, variables: &[(&str, &str)], era: Era| {
        let mut command = setup.command();
        let folder = setup.project.join("session");
        if folder.exists() {
            command.env("TMPDIR", folder);
        }
        command.envs(variables.iter().copied());
        Wire::connect(command, era)
    };
    for era in Era::BOTH {
        // Nothing says anything.
        sees_everything(&mut connect(&orchestra(&[]), &[], era));

        let setup = marked("worker\n", 0o600);
        is_worker(&setup, &mut connect(&setup, &[], era), era);
        // More than the marker allows cannot be had elsewhere.
        is_worker(&setup, &mut connect(&setup, &[("CORETOOLS_ROLE", "orchestrator")], era), era);
        let setup = marked("orchestrator\n", 0o600);
        is_worker(&setup, &mut connect(&setup, &[("CORETOOLS_ROLE", "worker")], era), era);
        let setup = orchestra(&["--agent-command", "/next-build 12"]);
        is_worker(&setup, &mut connect(&setup, &[], era), era);
        let setup = orchestra(&["--role", "orchestrator"]);
        is_worker(&setup, &mut connect(&setup, &[("CORETOOLS_AGENT_COMMAND", "next-build")], era), era);

        // What cannot be trusted is the minimal role.
        for (content, mode) in [("worker\n", 0o666), ("", 0o600), ("wroker", 0o600), ("a b c", 0o600)] {
            let setup = marked(content, mode);
            let mut wire = connect(&setup, &[], era);
            assert_eq!(names(&mut wire), [""; 0], "{content:?} {mode:o}");
            assert_eq!(refusal(&mut wire, "next_work"), refusal(&mut wire, "nothing"));
        }
        let setup = orchestra(&[]);
        assert_eq!(names(&mut connect(&setup, &[("CORETOOLS_ROLE", "Worker")], era)), [""; 0]);
    }
}

/// Rules for a server that this project does not know.
const POLICY: &str = r#"
version = 1
external_tools = ["echo", "sleep", "write_file", "start_session"]

[roles.writer]
allow = ["echo", "sleep", "write_file"]

[[roles.writer.require]]
id = "docs-only"
tools = ["echo"]
arguments = { path = { within = ["docs"] } }
must_allow = [{ arguments = { path = "docs/a.md" } }]
must_deny = [{ arguments = { path = "docs/../src/a.rs" } }, { arguments = {} }]

[[roles.writer.require]]
id = "not-judged"
tools = ["write_file"]
write_within = ["docs"]

[roles.orchestrator]
allow = ["*"]
"#;

#[test]
fn a_rule_for_a_path_judges_where_it_leads_whichever_way_it_is_written() {
    for era in Era::BOTH {
        let setup = orchestra(&["--policy", "roles.toml", "--role", "writer"]);
        setup.project.write("roles.toml", POLICY);
        setup.project.write("docs/a.md", "");
        setup.project.write("src/a.rs", "");
        symlink("../src", setup.project.join("docs/out")).unwrap();
        symlink("docs", setup.project.join("alias")).unwrap();
        symlink("/etc", setup.project.join("docs/etc")).unwrap();
        let mut wire = setup.connect(era);
        assert_eq!(names(&mut wire), ["echo", "sleep"]);
        let absolute = |path: &str| setup.project.join(path).to_str().unwrap().to_owned();
        let allowed = ["docs", "docs/a.md", "./docs//new/b.md", "src/../docs/a.md", "alias/a.md"];
        for path in allowed.into_iter().map(str::to_owned).chain(allowed.map(absolute)) {
            wire.text("echo", json!({"path": path}));
        }
        let sent = setup.calls("echo");
        let refused = [
            "src/a.rs",
            "docs/../src/a.rs",
            "docs/out/a.rs",
            "docs/etc/passwd",
            "alias/../src",
            "documents",
            ".",
            "..",
        ];
        let elsewhere = ["/etc/passwd", "/", "", "~/docs/a.md", "file:///etc/passwd", "docs/\0/../a.md"];
        for path in refused.into_iter().chain(elsewhere).map(str::to_owned).chain(refused.map(absolute)) {
            let answer = wire.request("tools/call", json!({"name": "echo", "arguments": {"path": path}}));
            assert_eq!(answer["result"]["isError"], true, "{path}: {answer}");
        }
        for arguments in [json!({}), json!({"path": 5}), json!({"path": null}), json!({"path": ["src"]})] {
            let answer = wire.request("tools/call", json!({"name": "echo", "arguments": arguments}));
            assert_eq!(answer["result"]["isError"], true, "{arguments}: {answer}");
        }
        assert_eq!(setup.calls("echo"), sent);
    }
}

#[test]
fn a_relative_path_is_judged_from_the_folder_in_which_the_server_runs() {
    let setup = orchestra(&["--policy", "../roles.toml", "--role", "writer", "--root", ".."]);
    setup.project.write("roles.toml", POLICY);
    setup.project.write("docs/a.md", "");
    setup.project.write("inner/docs/a.md", "");
    let mut command = setup.command();
    // The server's `docs` is not the root's.
    command.current_dir(setup.project.join("inner"));
    let mut wire = Wire::connect(command, LEGACY);
    let refused = |wire: &mut Wire, path: &str| {
        let answer = wire.request("tools/call", json!({"name": "echo", "arguments": {"path": path}}));
        answer["result"]["isError"] == true
    };
    assert!(refused(&mut wire, "docs/a.md"));
    assert!(!refused(&mut wire, "../docs/a.md"));
}

#[test]
fn a_rule_for_the_paths_of_a_tool_whose_paths_are_not_known_refuses_every_call() {
    let setup = setup(&["--policy", "roles.toml", "--role", "writer"]);
    let setup = setup.offering(&json!([tool("echo"), tool("write_file")]));
    setup.project.write("roles.toml", POLICY);
    let mut wire = setup.connect(LEGACY);
    for path in ["docs/a.md", "src/a.rs"] {
        let answer = wire.request("tools/call", json!({"name": "write_file", "arguments": {"path": path}}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("`arguments`, with `within`"), "{text}");
    }
    assert_eq!(setup.calls("write_file"), 0);
}

#[test]
fn the_limits_of_a_role_hold_for_another_servers_tools() {
    let limited = |limits: &str| {
        let setup = orchestra(&["--policy", "roles.toml", "--role", "dev"]);
        setup.project.write(
            "roles.toml",
            &format!(
                "version = 1\nexternal_tools = [\"echo\"]\n[roles.dev]\nallow = [\"*\"]\n[roles.dev.limits]\n{limits}\n"
            ),
        );
        setup
    };
    let words = |answer: &Value| answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();

    let setup = limited("calls_per_minute = 3");
    let mut wire = setup.connect(LEGACY);
    for _ in 0..3 {
        wire.text("echo", json!({}));
    }
    let answer = wire.request("tools/call", json!({"name": "echo"}));
    assert!(words(&answer).contains("3 calls in a minute"), "{answer}");
    assert_eq!(setup.calls("echo"), 3);

    let setup = limited("concurrent_calls = 1");
    let mut wire = setup.connect(LEGACY);
    wire.text("echo", json!({}));
    let first = call(&mut wire, "sleep", json!({"seconds": 1}));
    let second = call(&mut wire, "echo", json!({}));
    let answer = wire.answer(second);
    assert!(words(&answer).contains("1 calls at once"), "{answer}");
    assert_eq!(words(&wire.answer(first)), "slept");
    wire.text("echo", json!({}));

    let setup = limited("max_argument_bytes = 20");
    let mut wire = setup.connect(LEGACY);
    wire.text("echo", json!({"path": "short"}));
    let answer = wire.request("tools/call", json!({"name": "echo", "arguments": {"path": "x".repeat(30)}}));
    assert!(words(&answer).contains("this role may send 20"), "{answer}");

    let setup = limited("max_seconds = 1");
    let mut wire = setup.connect(LEGACY);
    let answer = wire.request("tools/call", json!({"name": "sleep", "arguments": {"seconds": 60}}));
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("no answer within 1 s"), "{answer}");
}

#[test]
fn a_role_that_loses_a_tool_has_only_the_areas_that_its_policy_names() {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let file = "version = 1\nexternal_tools = [\"secret\", \"mcp/prompts\"]\n\
        [roles.dev]\nallow = [\"*\", \"mcp/prompts\"]\ndeny = [\"secret\"]\n[roles.orchestrator]\nallow = [\"*\"]\n";
    for (flags, prompts, rest) in [
        (&["--role", "worker"][..], false, false),
        (&["--policy", "roles.toml", "--role", "dev"], true, false),
        (&["--policy", "roles.toml", "--role", "orchestrator"], true, true),
        (&["--role", "orchestrator"], true, true),
    ] {
        for (era, method, params) in
            [(LEGACY, "initialize", &hello), (Era::Modern, "server/discover", &json!({}))]
        {
            let setup = setup(flags);
            setup.project.write("roles.toml", file);
            let mut wire = Wire::start(setup.command());
            let mut params = params.clone();
            era.fill(&mut params);
            let result = wire.request(method, params)["result"].clone();
            let declared = |area: &str| result["capabilities"].get(area).is_some();
            assert_eq!((declared("prompts"), declared("resources")), (prompts, rest), "{flags:?}");
            assert_eq!(result.get("instructions").is_some(), rest, "{flags:?}: {result}");
            for (method, has) in [("prompts/list", prompts), ("resources/list", rest)] {
                let mut params = json!({});
                era.fill(&mut params);
                let answer = wire.request(method, params);
                assert_eq!(answer.get("result").is_some(), has, "{flags:?} {method}: {answer}");
                assert_eq!(setup.asked().contains(&method.to_owned()), has);
            }
        }
    }
}

#[test]
fn a_role_that_has_none_of_the_tools_is_told_once_with_the_lines_that_would_change_it() {
    let setup = setup(&["--role", "readonly"]).offering(&json!([tool("read_file"), tool("echo")]));
    let log = setup.project.join("log");
    let command = setup.command();
    let mut logged = std::process::Command::new("/bin/sh");
    logged.args(["-c", r#"log=$1; shift; exec "$@" 2>"$log""#, "sh"]).arg(&log);
    logged.arg(command.get_program()).args(command.get_args()).current_dir(setup.project.path());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => logged.env(name, value),
            None => logged.env_remove(name),
        };
    }
    let mut wire = Wire::connect(logged, Era::Modern);
    for _ in 0..3 {
        assert_eq!(names(&mut wire), [""; 0]);
    }
    let told = setup.project.read("log");
    let line = "`allow = [\"read_file\", \"echo\"]` under `[roles.readonly]`";
    assert_eq!(told.matches(line).count(), 1, "{told}");
}
