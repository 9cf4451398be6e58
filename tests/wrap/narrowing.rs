//! A hidden tool does not exist, in every way in which a client can ask.

use crate::{LEGACY, WrapSetup, names, setup};
use integration_tests::{Era, Project, Wire, server};
use serde_json::{Value, json};

#[test]
fn a_hidden_tool_and_one_that_does_not_exist_are_answered_alike_without_asking_the_server() {
    for era in Era::all() {
        let setup = setup(&["--hide", "secret"]);
        let mut wire = setup.connect(era);
        // Also as the very first request, before any list was read.
        let answers: Vec<Value> = ["secret", "nothing"]
            .into_iter()
            .map(|name| {
                let mut answer = wire.request("tools/call", json!({"name": name, "arguments": {"a": 1}}));
                answer["id"] = json!(0);
                serde_json::from_str(&answer.to_string().replace(name, "NAME")).unwrap()
            })
            .collect();
        assert_eq!(answers[0], answers[1]);
        let code = if era == Era::Modern { -32602 } else { -32601 };
        assert_eq!(answers[0]["error"]["code"], code, "{era:?}");
        let offered = names(&mut wire);
        assert!(
            offered.contains(&"echo".to_owned()) && !offered.contains(&"secret".to_owned()),
            "{offered:?}"
        );
        assert_eq!(setup.calls("secret") + setup.calls("nothing"), 0);
    }
}

#[test]
fn only_the_named_tools_are_left() {
    let setup = setup(&["--only", "echo,sleep,no_such_tool", "--hide", "sleep"]);
    let mut wire = setup.connect(LEGACY);
    assert_eq!(names(&mut wire), ["echo"]);
}

#[test]
fn a_hidden_tool_of_our_own_server_is_not_called_through_another_tool() {
    let project = Project::empty();
    let mut command = project.server();
    command.args(["wrap", "--hide", "run_command", "--"]).arg(server()).arg("--root").arg(project.path());
    let mut wire = Wire::connect(command, LEGACY);
    let offered = names(&mut wire);
    assert!(offered.contains(&"read_file".to_owned()), "{offered:?}");
    assert!(!offered.contains(&"call_tools".to_owned()), "{offered:?}");
    let call = json!({"tool": "run_command", "arguments": {"command": ["touch", "made"]}});
    let answer = wire.request("tools/call", json!({"name": "call_tools", "arguments": {"calls": [call]}}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert!(!project.join("made").exists());
}

#[test]
fn who_does_not_see_every_tool_has_no_prompts_resources_completions_or_tasks() {
    for era in Era::BOTH {
        let setup = setup(&["--hide", "secret"]);
        let mut wire = setup.connect(era);
        for method in [
            "prompts/list",
            "prompts/get",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/subscribe",
            "completion/complete",
            "tasks/get",
            "tasks/list",
            "skills/list",
        ] {
            let answer = wire.request(method, json!({"uri": "x://y"}));
            assert_eq!(answer["error"]["code"], -32601, "{method}");
            assert_eq!(answer["error"]["message"], format!("no method is called `{method}`"));
            assert!(!setup.asked().contains(&method.to_owned()));
        }
    }
}

#[test]
fn a_description_of_the_server_says_nothing_of_what_is_hidden() {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for (flags, restricted) in [(&["--hide", "secret"][..], true), (&[][..], false)] {
        for (era, method, params) in
            [(LEGACY, "initialize", &hello), (Era::Modern, "server/discover", &json!({}))]
        {
            let setup = setup(flags);
            let mut wire = Wire::start(setup.command());
            let mut params = params.clone();
            era.fill(&mut params);
            let result = wire.request(method, params)["result"].clone();
            assert_eq!(result["serverInfo"]["name"], "server.py");
            assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}));
            for area in ["prompts", "resources", "completions"] {
                assert_eq!(result["capabilities"].get(area).is_none(), restricted, "{method}: {area}");
            }
            assert_eq!(result.get("instructions").is_none(), restricted, "{method}");
            if era == Era::Modern {
                assert_eq!(result["cacheScope"], "private");
            }
        }
    }
}

/// The areas by which a server asks its client: of a client's model, its user and its folders.
const ASKED_BY: [(&str, &str); 3] =
    [("sampling/createMessage", "sampling"), ("elicitation/create", "elicitation"), ("roots/list", "roots")];

#[test]
fn a_server_asks_the_client_only_where_its_role_has_the_area() {
    for allowed in [&["sampling", "elicitation", "roots"][..], &["roots"], &[]] {
        let setup = setup(&["--policy", "roles.toml", "--role", "r"]);
        let areas: String = allowed.iter().map(|area| format!(", \"mcp/{area}\"")).collect();
        let names: String = allowed.iter().map(|area| format!(", \"mcp/{area}\"")).collect();
        setup.project.write(
            "roles.toml",
            &format!("version = 1\nexternal_tools = [\"ask\"{names}]\n[roles.r]\nallow = [\"ask\"{areas}]\n"),
        );
        for era in Era::BOTH {
            let mut wire = setup.connect(era);
            for (method, area) in ASKED_BY {
                let has_area = allowed.contains(&area);
                let answer = wire.request(
                    "tools/call",
                    json!({"name": "ask", "arguments": {"method": method, "in_result": true}}),
                );
                assert_eq!(answer["result"]["inputRequests"].is_object(), has_area, "{allowed:?}: {answer}");
                assert!(has_area || answer.to_string().contains(method), "{answer}");
                if era != Era::Modern {
                    let id = crate::call(&mut wire, "ask", json!({"method": method}));
                    if has_area {
                        let asked = wire.receive();
                        assert_eq!(asked["method"], method);
                        wire.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"answer": 1}}));
                    }
                    // The client hears of nothing: the server is answered by the wrapper.
                    let answer = wire.answer(id);
                    assert!(answer["result"]["content"].is_array(), "{answer}");
                    assert!(wire.others().is_empty(), "{allowed:?} {method}");
                }
            }
        }
    }
}

/// Asks the policy about a call of a wrapped server's tool; returns the exit code and what was printed.
fn asked(setup: &WrapSetup, flags: &[&str], server: &[&str]) -> (Option<i32>, String) {
    let mut command = setup.project.server();
    command.args(["policy", "explain", "--role", "worker"]).args(flags).args(server);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_policy_is_asked_about_the_tools_of_a_server_that_is_started_or_was_recorded() {
    let setup = setup(&[]);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("wrap/server.py");
    let policy = "version = 1\nexternal_tools = [\"read\"]\n[roles.worker]\nallow = [\"ec*\", \"read\"]\n\
                  [[roles.worker.require]]\nid = \"short\"\ntools = [\"read\"]\narguments = { path = { max_length = 3 } }\n";
    setup.project.write("roles.toml", policy);
    let started = ["--", "python3", script.to_str().unwrap()];
    let (code, text) = asked(&setup, &["--policy", "roles.toml", "--tool", "echo"], &started);
    assert!(code == Some(0) && text.contains("allowed: "), "{code:?}: {text}");
    let (code, text) = asked(&setup, &["--policy", "roles.toml", "--tool", "secret"], &started);
    assert!(code == Some(3) && text.contains("hidden: "), "{code:?}: {text}");
    let (code, text) = asked(&setup, &["--policy", "roles.toml", "--tool", "ekho"], &started);
    assert!(code == Some(2) && text.contains("did you mean `echo`?"), "{code:?}: {text}");
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let list = json!({"tools": [{"name": "read", "inputSchema": schema}]});
    setup.project.write("tools.json", &list.to_string());
    let recorded = ["--server-tools", "tools.json"];
    for (arguments, expected, said) in [
        (r#"{"path": "abc"}"#, 0, "allowed: "),
        (r#"{"path": "abcd"}"#, 3, "refused: "),
        (r#"{"path": "abc", "more": 1}"#, 3, "refused: "),
        (r#"{"path": "abc", "PATH": "abcd"}"#, 2, "one name to some parsers"),
    ] {
        let flags = ["--policy", "roles.toml", "--tool", "read", "--args", arguments];
        let (code, text) = asked(&setup, &flags, &recorded);
        assert!(code == Some(expected) && text.contains(said), "{arguments}: {code:?}: {text}");
    }
    let (code, text) =
        asked(&setup, &["--policy", "roles.toml", "--tool", "read"], &["--", "/nonexistent/server"]);
    assert!(code == Some(2) || code == Some(1), "{code:?}: {text}");
}
