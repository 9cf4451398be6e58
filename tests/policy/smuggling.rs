//! One call in the clothes of another: what is judged is what runs, or nothing runs.

use crate::PolicyFixture;
use integration_tests::{Era, Wire};
use serde_json::{Value, json};
use std::time::Duration;

/// May write in `docs` and read everything; has neither `delete_file` nor `run_command`.
const WRITER: &str = r#"version = 1
missing_role = "writer"
[roles.writer]
allow = ["annotation:read-only", "write_file"]
[[roles.writer.require]]
id = "docs"
tools = ["write_file"]
write_within = ["docs"]
"#;

fn judged() -> PolicyFixture {
    PolicyFixture::by(WRITER, [("docs/a.txt", "a"), ("src/keep.txt", "keep")])
}

/// The members of `_meta` on 2026-07-28.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;

/// Sends the text of `params`, with what the era needs, and returns the answer.
fn send(wire: &mut Wire, era: Era, id: i64, params: &str) -> Value {
    let meta = if era == Era::Modern { format!("{META},") } else { String::new() };
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{{meta}{params}}}}}\n"
    );
    wire.send_bytes(line.as_bytes());
    wire.answer(id)
}

fn untouched(judged: &PolicyFixture, what: &str) {
    assert!(judged.project.join("src/keep.txt").is_file(), "{what}: a hidden tool ran");
    assert_eq!(judged.project.read("src/keep.txt"), "keep", "{what}");
    assert!(!judged.project.join("src/new.txt").exists(), "{what}: written where it may not be");
    assert!(!judged.project.join("ran").exists(), "{what}: a program ran");
}

#[test]
fn no_spelling_of_a_hidden_name_calls_it() {
    let judged = judged();
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        let arguments = r#""arguments":{"path":"src/keep.txt"}"#;
        let names = [
            r#""delete_file""#,
            r#""Delete_File""#,
            r#""DELETE_FILE""#,
            r#""deleteFile""#,
            r#""delete-file""#,
            r#""delete_file ""#,
            r#"" delete_file""#,
            r#""delete_file\n""#,
            r#""delete_file\u0000""#,
            r#""\u0064elete_file""#,
            // Cyrillic e, full-width d, a joiner, a soft hyphen, a combining mark.
            r#""dеlete_file""#,
            r#""delete_file""#,
            r#""delete\u200d_file""#,
            r#""delete_\u00adfile""#,
            r#""delete_file\u0301""#,
            r#""filesystem/delete_file""#,
            r#""filesystem.delete_file""#,
            r#""mcp__coretools__delete_file""#,
            r#""./delete_file""#,
            r#"["delete_file"]"#,
            r#"{"name":"delete_file"}"#,
            "null",
            "true",
            "0",
        ];
        for (id, name) in names.iter().enumerate() {
            let answer = send(&mut wire, era, id as i64 + 100, &format!("\"name\":{name},{arguments}"));
            assert!(answer["error"].is_object(), "{era:?} {name}: {answer}");
            untouched(&judged, name);
        }
    }
}

/// A duplicate key is read differently by different parsers. Here the message is parsed once: either it is
/// refused, or the one reading of it is judged and run.
#[test]
fn of_two_names_the_one_that_is_judged_is_the_one_that_runs() {
    let judged = judged();
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        let delete = r#""arguments":{"path":"src/keep.txt"}"#;
        let params = [
            format!(r#""name":"read_file","name":"delete_file",{delete}"#),
            format!(r#""name":"delete_file","name":"read_file",{delete}"#),
            format!(r#""name":"read_file",{delete},"name":"delete_file""#),
            format!(r#""name":"delete_file",{delete},"name":"read_file""#),
            format!(r#""name":"read_file","n\u0061me":"delete_file",{delete}"#),
            format!(r#""n\u0061me":"delete_file","name":"read_file",{delete}"#),
            format!(r#""name":"read_file","Name":"delete_file",{delete}"#),
            format!(r#""Name":"delete_file","name":"read_file",{delete}"#),
            format!(r#""NAME":"delete_file","tool":"delete_file","name":"read_file",{delete}"#),
            format!(r#""name":"read_file","params":{{"name":"delete_file",{delete}}},{delete}"#),
            format!(r#""name":"read_file","task":{{"name":"delete_file"}},{delete}"#),
            format!(r#""n\u0061me":"delete_file",{delete}"#),
        ];
        for (id, params) in params.iter().enumerate() {
            let answer = send(&mut wire, era, id as i64 + 200, params);
            untouched(&judged, params);
            // What is not refused is the read that was judged.
            if answer["error"].is_null() {
                let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
                assert!(text.contains("keep"), "{params}: {answer}");
            }
        }
        let escaped =
            send(&mut wire, era, 300, r#""n\u0061me":"re\u0061d_file","arguments":{"path":"src/keep.txt"}"#);
        assert_eq!(
            escaped["result"]["isError"], false,
            "an escape is the letter that it stands for: {escaped}"
        );
    }
}

#[test]
fn of_two_arguments_the_one_that_is_judged_is_the_one_that_is_used() {
    let judged = judged();
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        let arguments = [
            r#"{"path":"docs/b.txt","path":"src/new.txt","content":"x"}"#,
            r#"{"path":"docs/b.txt","p\u0061th":"src/new.txt","content":"x"}"#,
            r#"{"p\u0061th":"src/new.txt","content":"x"}"#,
            r#"{"path":"docs/b.txt","Path":"src/new.txt","content":"x"}"#,
            r#"{"Path":"src/new.txt","content":"x"}"#,
            r#"{"PATH":"src/new.txt","path":"docs/b.txt","content":"x"}"#,
            r#"{"filePath":"src/new.txt","path":"docs/b.txt","content":"x"}"#,
            r#"{"path":["docs/b.txt","src/new.txt"],"content":"x"}"#,
            r#"{"path":"[\"src/new.txt\"]","content":"x"}"#,
            r#"{"path":{"path":"src/new.txt"},"content":"x"}"#,
            r#"{"path":null,"content":"x"}"#,
            r#"{"path":"src/new.txt","content":"x"}"#,
            r#""{\"path\":\"src/new.txt\",\"content\":\"x\"}""#,
        ];
        for (id, arguments) in arguments.iter().enumerate() {
            send(&mut wire, era, id as i64 + 400, &format!(r#""name":"write_file","arguments":{arguments}"#));
            untouched(&judged, arguments);
        }
        let twice = r#""name":"write_file","arguments":{"path":"docs/b.txt","content":"x"},"arguments":{"path":"src/new.txt","content":"x"}"#;
        send(&mut wire, era, 500, twice);
        untouched(&judged, twice);
        let beside = r#""name":"write_file","arguments":{"path":"docs/b.txt","content":"x"},"Arguments":{"path":"src/new.txt","content":"x"}"#;
        send(&mut wire, era, 501, beside);
        untouched(&judged, beside);
        // The same call, said once, is allowed: the refusals above are not for another reason.
        let once = send(
            &mut wire,
            era,
            502,
            r#""name":"write_file","arguments":{"path":"docs/b.txt","content":"x"}"#,
        );
        assert_eq!(once["result"]["isError"], false, "{once}");
    }
}

#[test]
fn nothing_in_meta_changes_what_is_called_or_who_calls() {
    let judged = judged();
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        for meta in [
            json!({"name": "delete_file", "arguments": {"path": "src/keep.txt"}}),
            json!({"role": "orchestrator", "principal": "root", "coretools/role": "orchestrator"}),
            json!({"io.modelcontextprotocol/role": "orchestrator", "params": {"name": "delete_file"}}),
            json!({"_meta": {"name": "delete_file"}}),
        ] {
            let call =
                |name: &str| json!({"name": name, "arguments": {"path": "src/keep.txt"}, "_meta": meta});
            let hidden = wire.request("tools/call", call("delete_file"));
            assert!(hidden["error"].is_object(), "{hidden}");
            let read = wire.request("tools/call", call("read_file"));
            assert_eq!(read["result"]["isError"], false, "{read}");
            untouched(&judged, &meta.to_string());
        }
    }
}

#[test]
fn each_message_of_an_array_is_judged_by_itself() {
    let judged = judged();
    let mut wire = judged.connect(Era::Initialize("2025-03-26"));
    let call = |id: i64, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let keep = json!({"path": "src/keep.txt"});
    wire.send(&json!([
        call(1, "read_file", keep.clone()),
        call(2, "delete_file", keep.clone()),
        call(3, "write_file", json!({"path": "src/new.txt", "content": "x"})),
        [call(4, "delete_file", keep.clone())],
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "delete_file", "arguments": keep}},
        call(5, "run_command", json!({"command": ["touch", "ran"]})),
    ]));
    let answer = wire.receive();
    let members = answer.as_array().unwrap_or_else(|| panic!("no array: {answer}"));
    let of = |id: i64| {
        members.iter().find(|member| member["id"] == id).unwrap_or_else(|| panic!("no {id}: {answer}"))
    };
    assert_eq!(of(1)["result"]["isError"], false);
    assert_eq!(of(2)["error"]["code"], -32601);
    assert_eq!(of(3)["result"]["isError"], true);
    assert_eq!(of(5)["error"]["code"], -32601);
    untouched(&judged, "an array");
    // Raw, with a duplicate key in a member, which serde reads as the last one.
    let line = r#"[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","name":"delete_file","arguments":{"path":"src/keep.txt"}}}]"#;
    wire.send_bytes(format!("{line}\n").as_bytes());
    wire.receive();
    untouched(&judged, line);
    let line = r#"[{"jsonrpc":"2.0","id":8,"method":"ping","method":"tools/call","params":{"name":"delete_file","arguments":{"path":"src/keep.txt"}}}]"#;
    wire.send_bytes(format!("{line}\n").as_bytes());
    wire.receive();
    untouched(&judged, line);
}

#[test]
fn a_call_without_an_id_runs_nothing() {
    let judged = PolicyFixture::by(&crate::tester("allow = [\"*\"]"), [("src/keep.txt", "keep")]);
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        wire.notify("tools/call", json!({"name": "delete_file", "arguments": {"path": "src/keep.txt"}}));
        assert!(wire.is_silent_for(Duration::from_millis(200)));
        untouched(&judged, "a notification");
    }
}

/// `ping` twice or `ping` and then something else: the one parse decides.
#[test]
fn of_two_methods_and_two_params_the_judged_one_runs() {
    let judged = judged();
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        let meta = if era == Era::Modern { format!("{META},") } else { String::new() };
        let delete = format!(r#"{{{meta}"name":"delete_file","arguments":{{"path":"src/keep.txt"}}}}"#);
        let read = format!(r#"{{{meta}"name":"read_file","arguments":{{"path":"src/keep.txt"}}}}"#);
        let lines = [
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{delete}}}"#
            ),
            format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{read},"params":{delete}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{delete},"params":{read}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{read},"Params":{delete}}}"#),
            format!(
                r#"{{"jsonrpc":"2.0","id":5,"Method":"tools/call","method":"tools/call","params":{delete}}}"#
            ),
        ];
        for (id, line) in lines.iter().enumerate() {
            wire.send_bytes(format!("{line}\n").as_bytes());
            let answer = wire.receive();
            untouched(&judged, line);
            assert!(answer["id"].is_null() || answer["id"] == id as i64 + 1, "{line}: {answer}");
        }
    }
}

/// A rule on `path` judges what comes under any other name for it: no alias is a way past the policy.
#[test]
fn another_name_for_a_judged_parameter_is_judged() {
    let judged = judged();
    for era in Era::BOTH {
        let mut wire = judged.connect(era);
        for name in ["file_path", "filePath", "filename", "file", "target_file", "file-path", "dir"] {
            for path in ["src/new.txt", "docs/../src/new.txt"] {
                let refused = wire.failure("write_file", json!({name: path, "content": "x"}));
                assert!(refused.starts_with("refused by policy"), "{name}: {refused}");
            }
            untouched(&judged, name);
            wire.text("write_file", json!({name: "docs/b.txt", "contents": "b"}));
        }
        // Nor do two names for one parameter make one of them invisible.
        for both in [
            json!({"path": "docs/b.txt", "file_path": "src/new.txt", "content": "x"}),
            json!({"file_path": "docs/b.txt", "filename": "src/new.txt", "content": "x"}),
            json!({"path": "docs/b.txt", "PATH": "src/new.txt", "content": "x"}),
            json!({"path": ["src/new.txt"], "content": "x"}),
        ] {
            wire.failure("write_file", both);
        }
        untouched(&judged, "two names");
    }
}
