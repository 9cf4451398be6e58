//! The code and the words of each error.

use crate::connect;
use integration_tests::Era;
use serde_json::{Value, json};

#[test]
fn an_unknown_method_is_32601() {
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        for method in ["no/such", "tools/lists", "", "Ping"] {
            let error = wire.request(method, json!({}))["error"].clone();
            assert_eq!(error["code"], -32601, "{era:?} {method:?}: {error}");
        }
    }
}

#[test]
fn what_is_not_offered_is_not_there() {
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        for (method, params) in [
            ("prompts/get", json!({"name": "x"})),
            ("resources/read", json!({"uri": "file:///etc/passwd"})),
            ("resources/subscribe", json!({"uri": "file:///etc/passwd"})),
            ("resources/read", json!({"uri": "coretools://context/dev/more"})),
            ("logging/setLevel", json!({"level": "loud"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
            ),
        ] {
            let answer = wire.request(method, params);
            assert!(
                answer["error"]["code"].is_i64() && answer["error"]["code"] != -32603,
                "{era:?} {method}: {answer}"
            );
        }
    }
}

#[test]
fn an_unknown_tool_is_the_same_words_under_the_code_of_its_era() {
    let mut words = Vec::new();
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        let answer = wire.request("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
        let code = if era == Era::Modern { -32602 } else { -32601 };
        assert_eq!(answer["error"]["code"], code, "{era:?}: {answer}");
        assert!(answer.get("result").is_none());
        words.push(answer["error"]["message"].clone());
    }
    words.dedup();
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].as_str().unwrap().contains("no_such_tool"), "{words:?}");
}

#[test]
fn a_misspelt_tool_is_told_the_nearest_and_a_long_name_is_not_sent_back_whole() {
    let (_project, mut wire) = connect(Era::Modern);
    let message = |answer: &Value| answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    let misspelt = wire.request("tools/call", json!({"name": "read_fil", "arguments": {}}));
    assert!(message(&misspelt).contains("`read_file`"), "{misspelt}");
    let long = wire.request("tools/call", json!({"name": "x".repeat(1_000_000), "arguments": {}}));
    assert!(message(&long).len() < 300, "{} bytes", message(&long).len());
}

#[test]
fn malformed_parameters_of_a_call_are_32602() {
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        for params in [
            json!({}),
            json!({"name": 5}),
            json!({"name": null, "arguments": {}}),
            json!({"arguments": {"path": "a"}}),
            json!({"name": "read_file", "arguments": [1]}),
            json!({"name": "read_file", "arguments": "path"}),
        ] {
            let answer = wire.request("tools/call", params.clone());
            assert_eq!(answer["error"]["code"], -32602, "{era:?} {params}: {answer}");
        }
    }
}

#[test]
fn arguments_may_be_left_out_or_null() {
    for era in Era::BOTH {
        let (_project, mut wire) = connect(era);
        for params in
            [json!({"name": "list_directory"}), json!({"name": "list_directory", "arguments": null})]
        {
            let answer = wire.request("tools/call", params.clone());
            assert_eq!(answer["result"]["isError"], false, "{era:?} {params}: {answer}");
        }
    }
}

#[test]
fn a_cursor_that_nobody_gave_out_is_32602() {
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        let answer = wire.request("tools/list", json!({"cursor": "next"}));
        assert_eq!(answer["error"]["code"], -32602, "{era:?}: {answer}");
        let answer = wire.request("tools/list", json!({"cursor": null}));
        assert!(answer["result"]["tools"].is_array(), "{era:?}: {answer}");
    }
}

#[test]
fn only_clients_that_know_structured_content_get_it_and_the_others_get_it_all_as_text() {
    let script = "for i in $(seq 3000); do echo line $i; done; echo last >&2; exit 3";
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        let arguments = json!({"command": ["sh", "-c", script], "max_output_bytes": 100_000});
        let result = wire.call("run_command", arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        let knows = era.version() >= "2025-06-18";
        assert_eq!(result.get("structuredContent").is_some(), knows, "{era:?}");
        assert_eq!(result["isError"], true);
        if knows {
            assert_eq!(result["structuredContent"]["exit_code"], 3);
            assert!(result["structuredContent"]["stdout"].as_str().unwrap().contains("line 1500\n"));
            assert!(text.len() <= 4096, "the big text is sent once: {} bytes", text.len());
        } else {
            assert!(text.contains("exit code 3"), "{era:?}");
            assert!(
                text.contains("line 1\n") && text.contains("line 1500\n") && text.contains("line 3000\n")
            );
            assert!(text.ends_with("last"), "{era:?}");
        }
    }
}

#[test]
fn old_clients_are_not_told_of_structured_content_in_the_list() {
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        let answer = wire.request("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == "object"), "{era:?}");
        assert!(tools.iter().any(|tool| tool["annotations"]["readOnlyHint"] == true), "{era:?}");
    }
}
