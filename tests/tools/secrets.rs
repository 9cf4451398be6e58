//! Secrets are masked in everything that leaves, and a mask is never written over what it stands for.

use crate::serve;
use integration_tests::{Era, Project, Wire};
use serde_json::json;

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn env_file() -> String {
    format!("# settings\nGITHUB_TOKEN={TOKEN}\nDATABASE=postgres://me:correct-horse@db/app\nPORT=8080\n")
}

#[test]
fn a_file_is_read_with_its_secrets_masked_whichever_tool_reads_it() {
    let content = env_file();
    let (_project, mut wire) = serve([("app.env", content.as_str())]);
    for (tool, arguments) in [
        ("read_file", json!({"path": "app.env"})),
        ("read_file", json!({"path": "app.env", "offset": 2, "limit": 2})),
        ("read_multiple_files", json!({"paths": ["app.env"]})),
        ("search_files", json!({"pattern": "TOKEN|DATABASE"})),
        ("run_command", json!({"command": ["cat", "app.env"]})),
        ("run_command", json!({"command": ["sh", "-c", "cat app.env >&2"]})),
    ] {
        let result = wire.call(tool, arguments);
        let text = result.to_string();
        assert!(text.contains("[redacted:"), "{tool}: {text}");
        assert!(!text.contains(TOKEN) && !text.contains("correct-horse"), "{tool}: {text}");
    }
}

#[test]
fn a_page_from_the_middle_of_a_private_key_is_masked_whichever_tool_reads_it() {
    // 48 different bytes a line, and no two lines alike.
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".repeat(2);
    let body: Vec<_> = (0..20).map(|line| &alphabet[line * 3..line * 3 + 64]).collect();
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\nAQAB\n-----END PRIVATE KEY-----\n", body.join("\n"));
    let (_project, mut wire) = serve([("server.pem", key.as_str())]);
    for (tool, arguments) in [
        ("read_file", json!({"path": "server.pem", "offset": 5, "limit": 6})),
        ("run_command", json!({"command": ["sed", "-n", "5,10p", "server.pem"]})),
    ] {
        let text = wire.call(tool, arguments).to_string();
        assert!(text.contains("[redacted:private-key]"), "{tool}: {text}");
        assert!(!body.iter().any(|line| text.contains(line)), "{tool}: {text}");
    }
}

/// A line of a key is masked without the lines around it, by each tool that shows lines of a file, as it is in the whole
/// file; what looks like one and is none stays.
#[test]
fn a_line_of_a_private_key_is_masked_alone_whichever_tool_shows_it() {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".repeat(2);
    let body: Vec<_> = (0..20).map(|line| &alphabet[line * 3..line * 3 + 64]).collect();
    let armour = |label: &str, end: &str| {
        format!("-----BEGIN {label}-----\n{}\nAQ{end}=\n-----END {label}-----\n", body.join("\n"))
    };
    let key = format!("{}{}{}", "a\n".repeat(300), armour("PRIVATE KEY", "AB"), "z\n".repeat(300));
    let certificate = armour("CERTIFICATE", "AC");
    let files = [
        ("server.pem", key.as_str()),
        ("public.crt", certificate.as_str()),
        ("a.txt", "a\n"),
        ("b.txt", "b\n"),
    ];
    let (project, mut wire) = serve(files);
    project.git(&["init", "-q"]);
    project.git(&["add", "."]);
    project.git(&["config", "user.name", "Ada"]);
    project.git(&["config", "user.email", "ada@example.org"]);
    project.git(&["commit", "-qm", "keys"]);
    let (line, in_file) = (body[9], 311);
    for (tool, arguments) in [
        ("read_file", json!({"path": "server.pem", "offset": in_file, "limit": 1})),
        ("read_file", json!({"path": "server.pem", "offset": in_file - 1, "limit": 2})),
        ("read_file", json!({"path": "server.pem", "offset": 322, "limit": 1})),
        ("read_file", json!({"path": "server.pem", "offset": in_file, "limit": 1, "line_numbers": true})),
        ("read_multiple_files", json!({"paths": [{"path": "server.pem", "offset": in_file, "limit": 1}]})),
        // The glob stands for two files before the page of the key.
        (
            "read_multiple_files",
            json!({"paths": ["?.txt", {"path": "server.pem", "offset": in_file, "limit": 1}]}),
        ),
        ("search_files", json!({"pattern": line, "literal": true, "include": "*.pem"})),
        ("search_files", json!({"pattern": line, "literal": true, "path": "server.pem", "context": 1})),
        ("git_blame", json!({"path": "server.pem", "start_line": in_file, "end_line": in_file})),
        (
            "git_blame",
            json!({"path": "server.pem", "start_line": in_file, "end_line": in_file, "revision": "HEAD"}),
        ),
    ] {
        let text = wire.call(tool, arguments.clone()).to_string();
        assert!(text.contains("[redacted:private-key]"), "{tool} {arguments}: {text}");
        assert!(
            !body.iter().any(|line| text.contains(line)) && !text.contains("AQAB="),
            "{tool} {arguments}: {text}"
        );
    }
    // A public key has the same look.
    for (tool, arguments) in [
        ("read_file", json!({"path": "public.crt", "offset": 11, "limit": 1})),
        ("search_files", json!({"pattern": line, "literal": true, "include": "*.crt"})),
        ("git_blame", json!({"path": "public.crt", "start_line": 11, "end_line": 11})),
    ] {
        let text = wire.call(tool, arguments).to_string();
        assert!(text.contains(line), "{tool}: {text}");
    }
    // A change in the middle of a key, whose ends are in no hunk.
    let changed: String = line.chars().rev().collect();
    project.write("server.pem", &key.replace(line, &changed));
    let diff = wire.text("git_diff", json!({"paths": ["server.pem"]}));
    assert!(diff.contains("[redacted:private-key]") && !diff.contains(&changed), "{diff}");
    assert!(!body.iter().any(|line| diff.contains(line)), "{diff}");
    project.git(&["commit", "-qam", "another key"]);
    let shown = wire.call("git_show", json!({})).to_string();
    assert!(shown.contains("[redacted:private-key]") && !shown.contains(&changed), "{shown}");
    assert!(!body.iter().any(|line| shown.contains(line)), "{shown}");
}

#[test]
fn no_cut_of_a_long_output_leaves_a_part_of_a_secret() {
    let (_project, mut wire) = serve([]);
    // Secrets without an end, so that each cut goes through one; of text, so that little of it is masked.
    for (line, rest) in
        [(TOKEN.to_owned(), "HIJ012345"), (format!("{}{TOKEN}", "word ".repeat(12)), "HIJ012345")]
    {
        for max in [20_000, 60_011, 100_023, 300_037] {
            let count = 4 * max / line.len();
            let script = format!("i=0; while [ $i -lt {count} ]; do echo '{line}'; i=$((i + 1)); done");
            let arguments = json!({"command": ["sh", "-c", script], "max_output_bytes": max});
            let text = wire.call("run_command", arguments).to_string();
            assert!(text.contains("bytes left out") && text.contains("[redacted:"), "{max}");
            let shown = text.find(rest).map(|at| &text[at.saturating_sub(60)..at + rest.len()]);
            assert_eq!(shown, None, "{max}");
        }
    }
}

#[test]
fn a_masked_file_can_be_edited_beside_its_secrets_and_they_stay() {
    let content = env_file();
    let (project, mut wire) = serve([("app.env", content.as_str())]);
    let edits = json!([{"old_string": "PORT=8080", "new_string": "PORT=9090"}]);
    let diff = wire.text("edit_file", json!({"path": "app.env", "edits": edits}));
    assert!(diff.contains("+PORT=9090") && !diff.contains(TOKEN), "{diff}");
    assert_eq!(project.read("app.env"), content.replace("8080", "9090"));
}

#[test]
fn a_mask_is_not_written_back_and_the_refusal_says_why() {
    let content = env_file();
    let (project, mut wire) = serve([("app.env", content.as_str())]);
    let shown = wire.text("read_file", json!({"path": "app.env"}));
    let line = shown.lines().find(|line| line.starts_with("GITHUB_TOKEN")).unwrap();
    for (tool, arguments) in [
        ("write_file", json!({"path": "app.env", "content": shown})),
        (
            "edit_file",
            json!({"path": "app.env", "edits": [{"old_string": line, "new_string": "GITHUB_TOKEN=x"}]}),
        ),
        ("edit_file", json!({"path": "app.env", "edits": [{"old_string": "PORT=8080", "new_string": line}]})),
    ] {
        let text = wire.failure(tool, arguments);
        assert!(text.contains("mask") && text.contains("secret"), "{tool}: {text}");
        assert_eq!(project.read("app.env"), content, "{tool}");
    }
    // Added to a file it destroys nothing, and the answer says what was written.
    let text = wire.text("write_file", json!({"path": "app.env", "content": line, "mode": "append"}));
    assert!(text.contains("mask"), "{text}");
    assert!(project.read("app.env").starts_with(&content));
}

#[test]
fn a_value_of_the_servers_environment_that_is_named_like_a_secret_is_masked_wherever_it_turns_up() {
    let project = Project::with([("notes.txt", "they gave us zeppelin-quartz-77 to use\n")]);
    let mut command = project.server();
    command.env("MY_API_KEY", "zeppelin-quartz-77");
    let mut wire = Wire::connect(command, Era::Modern);
    let text = wire.text("read_file", json!({"path": "notes.txt"}));
    assert!(!text.contains("zeppelin") && text.contains("they gave us"), "{text}");
    let result = wire.call("run_command", json!({"command": ["sh", "-c", "echo $MY_API_KEY; env"]}));
    assert!(!result.to_string().contains("zeppelin"), "{result}");
    // In base64 and in a URL it is the same secret.
    let result =
        wire.call("run_command", json!({"command": ["sh", "-c", "printf %s \"$MY_API_KEY\" | base64"]}));
    assert!(!result.to_string().contains("emVwcGVsaW4tcXVhcnR6"), "{result}");
}

#[test]
fn secrets_are_masked_in_errors_and_background_output() {
    let (_project, mut wire) = serve([]);
    let text = wire.failure("read_file", json!({"path": format!("{TOKEN}.txt")}));
    assert!(!text.contains(TOKEN), "{text}");
    let result =
        wire.call("start_command", json!({"command": ["sh", "-c", format!("echo token {TOKEN}; sleep 60")]}));
    let id = result["structuredContent"]["id"].clone();
    let result = wire.call("read_command_output", json!({"id": id, "wait_ms": 5000}));
    assert!(
        result.to_string().contains("token [redacted:") && !result.to_string().contains(TOKEN),
        "{result}"
    );
    let result = wire.call("list_commands", json!({}));
    assert!(!result.to_string().contains(TOKEN), "{result}");
}

#[test]
fn the_log_has_no_secrets() {
    let project = Project::with([("requests", "")]);
    let mut requests = String::new();
    for (id, arguments) in
        [json!({"path": format!("{TOKEN}.txt")}), json!({"path": "x", TOKEN: 1})].iter().enumerate()
    {
        let mut params = json!({"name": "read_file", "arguments": arguments});
        Era::Modern.fill(&mut params);
        requests +=
            &format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    project.write("requests", &requests);
    let input = std::fs::File::open(project.join("requests")).unwrap();
    let output = project.server().args(["--log", "trace"]).stdin(input).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("[redacted:"), "{log}");
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
fn a_secret_that_arrives_in_pieces_is_masked_whole() {
    let (_project, mut wire) = serve([]);
    let (first, second) = TOKEN.split_at(20);
    let script = format!("printf 'token {first}'; sleep 0.3; printf '{second} end'; sleep 0.3; echo");
    let result = wire.call("run_command", json!({"command": ["sh", "-c", script]}));
    assert!(
        result["structuredContent"]["stdout"].as_str().unwrap().starts_with("token [redacted:"),
        "{result}"
    );
    assert!(!result["structuredContent"].to_string().contains(first), "{result}");
}

#[test]
fn secrets_at_the_edge_of_what_is_kept_are_not_cut_into_pieces_that_escape() {
    let (_project, mut wire) = serve([]);
    // Every distance of the token from the cut at 500 bytes, once from each side.
    for shift in (0..60).step_by(3) {
        let script = format!(
            "printf '%0{}d' 0; echo ' {TOKEN}'; printf '%05000d' 0; echo ' {TOKEN}'; printf '%0{}d' 0",
            440 + shift,
            440 + shift
        );
        let result =
            wire.call("run_command", json!({"command": ["sh", "-c", script], "max_output_bytes": 1000}));
        let text = result["structuredContent"]["stdout"].as_str().unwrap();
        for part in [&TOKEN[..12], &TOKEN[28..]] {
            assert!(!text.contains(part), "{shift}: {text}");
        }
    }
}
