//! A hidden tool and one that does not exist are the same to a caller, and nothing else tells of it.

use crate::{PolicyFixture, listed, refused, server, tester};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Every tool that is built in, which all begin to be hidden once a role sees fewer.
fn hidden(project: &Project, role: &str) -> BTreeSet<String> {
    let all = listed(&mut Wire::connect(server(project, ["--role", "orchestrator"]), Era::Modern));
    let seen = listed(&mut Wire::connect(server(project, ["--role", role]), Era::Modern));
    all.difference(&seen).cloned().collect()
}

/// A name of several words is nowhere in the text. A name that is a word of the language, such as `build`, is
/// not there as a name: between backticks or quotes.
fn assert_names_none(text: &str, hidden: &BTreeSet<String>, what: &str) {
    for tool in hidden {
        let named = if tool.contains('_') {
            text.contains(tool.as_str())
        } else {
            ["`", "\"", "'"].iter().any(|quote| text.contains(&format!("{quote}{tool}{quote}")))
                || text.contains(&format!("\\\"{tool}\\\""))
        };
        assert!(!named, "{what} names the hidden tool {tool}: {text}");
    }
}

#[test]
fn what_the_server_says_of_itself_names_no_hidden_tool() {
    let project = Project::empty();
    for role in ["minimal", "readonly", "architect"] {
        let hidden = hidden(&project, role);
        assert!(hidden.contains("run_command"));
        let mut wire = Wire::start(server(&project, ["--role", role]));
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let answer = wire.request("initialize", hello);
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        assert_names_none(&answer.to_string(), &hidden, &format!("{role}: initialize"));
        let mut wire = Wire::connect(server(&project, ["--role", role]), Era::Modern);
        let answer = wire.request("server/discover", json!({}));
        assert!(answer["result"].is_object(), "{answer}");
        assert_names_none(&answer.to_string(), &hidden, &format!("{role}: server/discover"));
    }
}

#[test]
fn the_list_that_a_role_gets_names_no_tool_that_it_does_not_have() {
    let project = Project::empty();
    for role in ["minimal", "readonly", "architect"] {
        let hidden = hidden(&project, role);
        for era in Era::BOTH {
            let mut wire = Wire::connect(server(&project, ["--role", role]), era);
            let list = wire.request("tools/list", json!({}));
            assert_names_none(&list.to_string(), &hidden, &format!("{role}: tools/list"));
        }
    }
}

#[test]
fn every_other_method_is_not_there_and_says_nothing() {
    let project = Project::empty();
    let hidden = hidden(&project, "minimal");
    let reference = json!({"type": "ref/prompt", "name": "run_command"});
    // These are there, and have nothing for this role.
    let lists = [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ];
    let offers = [
        ("prompts/get", json!({"name": "work_as_minimal"})),
        ("prompts/get", json!({"name": "fix_test", "arguments": {"test": "x"}})),
        ("resources/read", json!({"uri": "coretools://context"})),
        ("resources/read", json!({"uri": "coretools://commands/1"})),
        ("resources/read", json!({"uri": "file:///etc/passwd"})),
        ("resources/subscribe", json!({"uri": "coretools://sessions"})),
        ("completion/complete", json!({"ref": reference, "argument": {"name": "name", "value": "run_"}})),
    ];
    let methods = [
        ("tasks/list", json!({})),
        ("tasks/result", json!({"taskId": "1"})),
        ("roots/list", json!({})),
        ("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
        (
            "elicitation/create",
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}}),
        ),
        ("tools/get", json!({"name": "get_diagnostics"})),
        ("tools/Call", json!({"name": "get_diagnostics"})),
        ("tools/call ", json!({"name": "get_diagnostics"})),
        ("tools", json!({})),
        ("run_command", json!({"command": "true"})),
        ("no/such", json!({})),
    ];
    for era in Era::BOTH {
        let mut wire = Wire::connect(server(&project, ["--role", "minimal"]), era);
        // These are there for a client that has tasks.
        for method in ["tasks/get", "tasks/cancel"] {
            let answer = wire.request(method, json!({"taskId": "1"}));
            assert_eq!(answer["error"]["code"], -32021, "{era:?}: {method} is answered {answer}");
            assert_names_none(&answer["error"].to_string(), &hidden, method);
        }
        for (method, list) in lists {
            let answer = wire.request(method, json!({}));
            assert_eq!(answer["result"][list], json!([]), "{era:?}: {method} is answered {answer}");
        }
        for (method, params) in &offers {
            let answer = wire.request(method, params.clone());
            assert!(answer["error"].is_object(), "{era:?}: {method} is answered {answer}");
            assert_names_none(&answer["error"].to_string().replace("run_command", ""), &hidden, method);
        }
        for (method, params) in &methods {
            let answer = wire.request(method, params.clone());
            assert_eq!(answer["error"]["code"], -32601, "{era:?}: {method} is answered {answer}");
            let said = answer["error"].to_string().replace(&format!("`{method}`"), "");
            assert_names_none(&said, &hidden, method);
        }
    }
}

#[test]
fn what_a_call_is_refused_with_suggests_only_what_the_caller_sees() {
    let project = Project::empty();
    let hidden = hidden(&project, "readonly");
    for era in Era::BOTH {
        let mut wire = Wire::connect(server(&project, ["--role", "readonly"]), era);
        for tool in &hidden {
            // One letter away from a hidden tool: the nearest there is, were it there.
            let near = format!("{tool}x");
            let error = refused(&mut wire, &near).to_string().replace(&near, "");
            assert_names_none(&error, &hidden, &near);
        }
        // That it does suggest shows that the above could fail.
        assert!(refused(&mut wire, "read_filex").to_string().contains("did you mean `read_file`"));
    }
}

#[test]
fn a_refused_argument_of_a_visible_tool_names_no_hidden_tool() {
    let project = Project::with([("image.png", "text"), ("long.txt", &"line\n".repeat(5000))]);
    let hidden = hidden(&project, "readonly");
    let mut wire = Wire::connect(server(&project, ["--role", "readonly"]), Era::Modern);
    for (tool, arguments) in [
        ("read_file", json!({"pth": "x"})),
        ("read_file", json!({"path": "missing"})),
        ("read_file", json!({"path": "."})),
        ("read_file", json!({"path": "long.txt"})),
        ("read_media_file", json!({"path": "image.png"})),
        ("search_files", json!({"pattern": "("})),
        ("search_files", json!({"pattern": ""})),
        ("list_directory", json!({"path": "image.png"})),
        ("read_command_output", json!({"id": 7})),
        ("list_commands", json!({})),
        ("get_diagnostics", json!({})),
    ] {
        let result = wire.call(tool, arguments.clone());
        assert_names_none(&result.to_string(), &hidden, &format!("{tool} {arguments}"));
    }
}

/// Medians, and generously: a difference that a prober could use would be one of kind, such as a file that
/// is looked at for hidden tools alone.
#[test]
fn the_time_of_an_answer_does_not_tell_hidden_from_unknown() {
    let judged = PolicyFixture::by(&tester("allow = [\"get_diagnostics\"]"), []);
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        let arguments = json!({"path": "a".repeat(1000), "command": ["true"]});
        let mut time = |tool: &str| {
            let started = Instant::now();
            let answer = wire.request("tools/call", json!({"name": tool, "arguments": arguments}));
            assert!(answer["error"].is_object());
            started.elapsed()
        };
        // In turn, so that other load on the machine meets both alike.
        let mut times: Vec<_> = (0..300).map(|_| (time("write_file"), time("wrzzz_fzzz"))).collect();
        times.drain(..50);
        let median = |mut times: Vec<Duration>| {
            times.sort();
            times[times.len() / 2]
        };
        let (hidden, unknown) = times.into_iter().unzip();
        let (hidden, unknown) = (median(hidden), median(unknown));
        assert!(hidden < unknown * 3 && unknown < hidden * 3, "{era:?}: {hidden:?} and {unknown:?}");
    }
}

#[test]
fn the_code_is_the_one_of_the_era_for_hidden_and_unknown_alike() {
    let project = Project::empty();
    for (era, code) in Era::INITIALIZE.into_iter().map(|era| (era, -32601)).chain([(Era::Modern, -32602)]) {
        let mut wire = Wire::connect(server(&project, ["--role", "minimal"]), era);
        let (hidden, unknown) = (refused(&mut wire, "delete_file"), refused(&mut wire, "dzzzzz_fzzz"));
        assert_eq!((&hidden["code"], &unknown["code"]), (&Value::from(code), &Value::from(code)), "{era:?}");
        assert_eq!(hidden.to_string(), unknown.to_string().replace("dzzzzz_fzzz", "delete_file"));
    }
}
