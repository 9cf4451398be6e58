//! Lines of a shell, with `shell` and without: what was meant runs, or is refused with the call that runs it.

use crate::serve;
use integration_tests::{Wire, alive, unique_seconds, wait_until_gone};
use serde_json::{Value, json};

fn stdout(wire: &mut Wire, arguments: Value) -> String {
    let result = wire.call("run_command", arguments.clone());
    assert_eq!(result["isError"], false, "{arguments}: {result}");
    result["structuredContent"]["stdout"].as_str().unwrap().to_owned()
}

#[test]
fn a_line_of_a_shell_runs_and_the_answer_names_the_shell() {
    let (project, mut wire) = serve([("a.rs", ""), ("b.rs", ""), ("sub/c", "")]);
    let line = "cd sub && ls && cd .. && for f in *.rs; do echo \"$f\"; done | wc -l > count; A=1; echo $((A + 1)) `cat count` $HOME";
    let result = wire.call("run_command", json!({"command": line, "shell": true, "env": {"HOME": "/h"}}));
    assert_eq!(result["structuredContent"]["stdout"], "c\n2 2 /h\n", "{result}");
    let shell = result["structuredContent"]["shell"].as_str().unwrap();
    assert!(["bash", "sh"].contains(&shell), "{shell}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains(&format!(" s in {shell}\n")), "{result}");
    assert!(project.join("count").exists());
    let result = wire.call("run_command", json!({"command": "false || exit 7", "shell": true}));
    assert_eq!((&result["isError"], &result["structuredContent"]["exit_code"]), (&json!(true), &json!(7)));
}

#[test]
fn a_line_of_a_shell_has_the_bounds_of_every_command() {
    let (_project, mut wire) = serve([]);
    let seconds = unique_seconds();
    let line = format!("echo before; sleep {seconds} & setsid sleep {seconds} & sleep {seconds}");
    let result = wire.call("run_command", json!({"command": line, "shell": true, "timeout_ms": 500}));
    let report = &result["structuredContent"];
    assert_eq!(
        (&report["outcome"], &report["stdout"]),
        (&json!("timed_out"), &json!("before\n")),
        "{result}"
    );
    wait_until_gone(&seconds, std::time::Duration::from_secs(2));
    assert!(alive(&seconds).is_empty());
    let started = wire
        .call("start_command", json!({"command": "echo $((6 * 7)) | cat", "shell": true, "wait_ms": 10_000}));
    assert_eq!(started["structuredContent"]["output"], "42\n", "{started}");
}

/// Follows the call that an error gives in place of the one that was made.
fn instead(text: &str) -> Value {
    let start = text.find("instead: ").map(|at| at + 9).unwrap_or_else(|| panic!("no call in {text}"));
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    values.next().unwrap().unwrap()
}

#[test]
fn what_only_a_shell_understands_is_refused_and_the_call_that_is_given_does_what_was_meant() {
    for (line, printed) in [
        ("echo $GREETING", "hello\n"),
        ("echo \"$GREETING\"", "hello\n"),
        ("echo `echo hi`", "hi\n"),
        ("echo $(echo hi)", "hi\n"),
        ("ls *.rs", "a.rs\nb.rs\n"),
        ("echo {x,y}", "x y\n"),
        ("cd sub && ls", "c\n"),
        ("cd sub; ls", "c\n"),
        ("A='1 2' printenv A", "1 2\n"),
        ("A=1 B=2 sh -c 'echo $A$B'", "12\n"),
        ("echo a && echo b", "a\nb\n"),
        ("false || echo b", "b\n"),
        ("echo a; echo b", "a\nb\n"),
        ("echo a | tr a b", "b\n"),
        ("echo a > out; cat out", "a\n"),
        ("cat < sub/c", ""),
        ("ls *.rs | wc -l | tr -d ' '", "2\n"),
        ("export A=1; echo $A", "1\n"),
        (". ./env.sh && echo $FROM_FILE", "file\n"),
        ("eval 'echo x'", "x\n"),
    ] {
        let (project, mut wire) =
            serve([("a.rs", ""), ("b.rs", ""), ("sub/c", ""), ("env.sh", "FROM_FILE=file\n")]);
        let env = json!({"GREETING": "hello"});
        let text = wire.failure("run_command", json!({"command": line, "env": env}));
        assert!(text.contains("nothing was run"), "{line}: {text}");
        assert!(!project.join("out").exists(), "{line}");
        wire.failure("start_command", json!({"command": line}));
        let mut call = instead(&text);
        if call.get("env").is_none() {
            call.as_object_mut().unwrap().insert("env".to_owned(), env);
        }
        if line.starts_with("ls *.rs | wc") || cfg!(target_os = "linux") {
            assert_eq!(stdout(&mut wire, call.clone()), printed, "{line}: {call}");
        }
    }
}

#[test]
fn what_changes_only_a_shell_is_refused_with_what_does_it_for_a_command() {
    let (_project, mut wire) = serve([("sub/c", "")]);
    for (line, advice) in [
        ("cd sub", r#"{"working_directory":"sub"}"#),
        ("export A=1", r#"{"env":{"A":"1"}}"#),
        ("source .env", r#""shell":true"#),
        (". .env", r#""shell":true"#),
        ("exit 0", "ends by itself"),
        ("alias ll='ls -l'", r#""shell":true"#),
    ] {
        let text = wire.failure("run_command", json!({"command": line}));
        assert!(text.contains(advice) && !text.contains("did you mean"), "{line}: {text}");
    }
    let text = wire.failure("run_command", json!({"command": ["cd", "sub"]}));
    assert!(text.contains("Shells have a command of this name") && !text.contains("Install"), "{text}");
}

#[test]
fn what_is_meant_as_it_stands_runs() {
    let (_project, mut wire) = serve([("a.txt", "a*b\ncost $5\n")]);
    for (command, printed) in [
        (json!("grep 'a*b' a.txt"), "a*b\n"),
        (json!("grep -F \"a*b\" a.txt"), "a*b\n"),
        (json!("printf %s requests[security]"), "requests[security]"),
        (json!("printf %s *.py"), "*.py"),
        (json!("printf %s HEAD~1"), "HEAD~1"),
        (
            json!(["printf", "%s|", "$HOME", "`id`", "&&", "*.txt", "~", "A=1", "> x"]),
            "$HOME|`id`|&&|*.txt|~|A=1|> x|",
        ),
        (json!(["grep", "cost $5", "a.txt"]), "cost $5\n"),
        // Not an array and not a line, and still plain.
        (json!(["printf %s x"]), "x"),
        (json!("[\"printf\", \"%s\", \"a b\"]"), "a b"),
    ] {
        assert_eq!(stdout(&mut wire, json!({"command": command})), printed, "{command}");
    }
}

#[test]
fn a_glob_that_nothing_matches_is_passed_on_and_named_if_the_program_fails() {
    let (_project, mut wire) = serve([]);
    let result = wire.call("run_command", json!({"command": "ls *.rs"}));
    assert_eq!(result["isError"], true);
    let notes = result["structuredContent"]["notes"].to_string();
    assert!(notes.contains("no file matched"), "{result}");
}

#[test]
fn words_for_a_shell_are_refused_with_the_line() {
    let (_project, mut wire) = serve([]);
    let text = wire.failure("run_command", json!({"command": ["echo", "a", "|", "cat"], "shell": true}));
    let call = instead(&text);
    assert_eq!(call, json!({"command": "echo a | cat", "shell": true}));
    assert_eq!(stdout(&mut wire, call), "a\n");
    for command in [json!(""), json!("  "), json!([""]), json!([])] {
        wire.failure("run_command", json!({"command": command, "shell": true}));
    }
}
