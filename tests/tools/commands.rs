//! `run_command`: it always answers, with what happened, and leaves nothing running.

use crate::serve;
use integration_tests::{alive, peak_memory_kib, unique_seconds, wait_until_gone};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn run(arguments: Value) -> Value {
    let (_project, mut wire) = serve([]);
    wire.call("run_command", arguments)
}

fn sh(script: &str) -> Value {
    run(json!({"command": ["sh", "-c", script]}))
}

#[test]
fn a_report_tells_exit_code_and_both_streams() {
    let result = sh("echo out; echo err >&2; exit 3");
    assert_eq!(result["isError"], true);
    let report = &result["structuredContent"];
    assert_eq!((&report["outcome"], &report["exit_code"]), (&json!("exited"), &json!(3)));
    assert_eq!((&report["stdout"], &report["stderr"]), (&json!("out\n"), &json!("err\n")));
    assert_eq!(report["truncated"], false);
    assert!(report["duration_ms"].is_u64());
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("exit code 3") && text.contains("out") && text.contains("err"), "{text}");
}

#[test]
fn a_signal_is_named() {
    let result = sh("kill -SEGV $$");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["outcome"], "signaled");
    assert_eq!(result["structuredContent"]["signal"], "SIGSEGV");
    assert_eq!(result["structuredContent"].get("exit_code"), None);
}

#[test]
fn a_line_is_split_as_a_shell_splits_words_and_nothing_is_expanded() {
    let result =
        run(json!({"command": r#"printf '%s|' a "b c" 'd e' f\ g "" "it's" "say \"hi\"" '*' '$HOME'"#}));
    assert_eq!(result["structuredContent"]["stdout"], "a|b c|d e|f g||it's|say \"hi\"|*|$HOME|");
}

#[test]
fn an_array_is_taken_as_it_is() {
    let result =
        run(json!({"command": ["printf", "%s|", "a b", "", "$(id)", "`id`", "; rm", "> x", "\n", "ä"]}));
    assert_eq!(result["structuredContent"]["stdout"], "a b||$(id)|`id`|; rm|> x|\n|ä|");
}

#[test]
fn a_program_that_is_not_there_is_named_once() {
    let (_project, mut wire) = serve([]);
    let folders: Vec<_> = (0..500).map(|number| format!("/no/such/folder/{number}")).collect();
    for (path, count) in [(folders.join(":"), "500 folders"), ("/no/such/folder/0".to_owned(), "1 folder")] {
        let text =
            wire.failure("run_command", json!({"command": ["no-such-program-xyz"], "env": {"PATH": path}}));
        assert_eq!(text.matches("no-such-program-xyz").count(), 1, "{text}");
        assert!(text.contains(&format!("the {count} of PATH (/no/such/folder/0")), "{text}");
        assert!(text.len() < 300, "{text}");
    }
}

#[test]
fn a_program_that_is_misspelt_is_answered_with_the_nearest_name() {
    let (project, mut wire) = serve([("bin/frobnicate", "#!/bin/sh\n")]);
    let folder = project.path().canonicalize().unwrap().join("bin");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.join("frobnicate"), mode).unwrap();
    let text = wire.failure("run_command", json!({"command": ["frobnicat"], "env": {"PATH": folder}}));
    assert!(text.contains("did you mean `frobnicate`?"), "{text}");
}

#[test]
fn input_environment_and_folder_reach_the_program() {
    let (project, mut wire) = serve([("sub/x", "")]);
    let result = wire.call(
        "run_command",
        json!({"command": ["sh", "-c", "pwd; echo $A; cat"], "stdin": "input ä\n", "env": {"A": "b c"}, "working_directory": "sub"}),
    );
    let folder = project.path().canonicalize().unwrap().join("sub");
    assert_eq!(result["structuredContent"]["stdout"], format!("{}\nb c\ninput ä\n", folder.display()));
}

#[test]
fn a_program_that_asks_gets_no_answer_and_ends() {
    let started = Instant::now();
    let result = run(json!({"command": ["cat"]}));
    assert_eq!(result["structuredContent"]["exit_code"], 0);
    let result = sh("read answer < /dev/tty || echo no terminal");
    assert_eq!(result["structuredContent"]["stdout"], "no terminal\n", "{result}");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn much_input_to_a_program_that_does_not_read_is_no_hang() {
    let result = run(json!({"command": ["true"], "stdin": "x".repeat(1 << 20)}));
    assert_eq!(result["structuredContent"]["exit_code"], 0, "{result}");
    let result = run(json!({"command": ["wc", "-c"], "stdin": "x".repeat(1 << 20)}));
    assert_eq!(result["structuredContent"]["stdout"].as_str().unwrap().trim(), "1048576");
}

#[test]
fn a_time_limit_ends_the_whole_tree_and_keeps_what_was_printed() {
    let (_project, mut wire) = serve([]);
    let seconds = unique_seconds();
    let script = format!(
        "trap '' TERM; echo before; setsid sleep {seconds} & sleep {seconds} & sleep {seconds}; wait"
    );
    let started = Instant::now();
    let result = wire.call("run_command", json!({"command": ["sh", "-c", script], "timeout_ms": 500}));
    let took = started.elapsed();
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["outcome"], "timed_out");
    assert_eq!(result["structuredContent"]["stdout"], "before\n");
    assert!(result["structuredContent"]["notes"].to_string().contains("500 ms"), "{result}");
    let left = alive(&seconds);
    assert!(left.is_empty(), "{left:?} outlived the time limit");
    // It is deaf to SIGTERM, so the grace period passes too.
    assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn a_child_left_behind_that_holds_the_output_does_not_delay_the_answer() {
    let (_project, mut wire) = serve([]);
    let seconds = unique_seconds();
    let started = Instant::now();
    let script = format!("echo done; sleep {seconds} & exit 0");
    let result = wire.call("run_command", json!({"command": ["sh", "-c", script]}));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(result["structuredContent"]["stdout"], "done\n");
    assert_eq!(result["structuredContent"]["exit_code"], 0);
    wait_until_gone(&seconds, Duration::from_secs(2));
}

/// Unoptimised code reads a tenth as fast.
const FLOOD_BYTES: u64 = if cfg!(debug_assertions) { 128 << 20 } else { 1 << 30 };

#[test]
fn a_flood_of_output_is_answered_with_both_ends_in_bounded_memory() {
    let (_project, mut wire) = serve([]);
    wire.call("run_command", json!({"command": ["true"]}));
    let before = peak_memory_kib(wire.pid());
    let started = Instant::now();
    let script = format!("echo first; head -c {FLOOD_BYTES} /dev/zero | tr '\\0' 'x'; echo; echo last");
    let result = wire.call("run_command", json!({"command": ["sh", "-c", script]}));
    let took = started.elapsed();
    let grown = peak_memory_kib(wire.pid()) - before;
    let report = &result["structuredContent"];
    assert_eq!(report["exit_code"], 0, "{result}");
    assert_eq!(report["truncated"], true);
    let stdout = report["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("first\n") && stdout.ends_with("last\n"));
    assert!(stdout.len() < 25_000, "{} bytes", stdout.len());
    assert!(report["notes"].to_string().contains(&(FLOOD_BYTES + 12).to_string()), "{report}");
    assert!(grown < 10 * 1024, "{grown} KiB");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn the_most_that_may_be_kept_is_kept_and_one_stream_does_not_starve_the_other() {
    let (_project, mut wire) = serve([]);
    let script = "seq 1 20000; seq 1 20000 >&2";
    let result =
        wire.call("run_command", json!({"command": ["sh", "-c", script], "max_output_bytes": 1_000_000}));
    let report = &result["structuredContent"];
    assert_eq!(report["truncated"], false);
    assert!(
        report["stdout"] == report["stderr"] && report["stdout"].as_str().unwrap().ends_with("\n20000\n")
    );
}

#[test]
fn output_that_is_no_text_is_answered_and_marked() {
    let result = run(json!({"command": ["head", "-c", "1000", "/dev/urandom"]}));
    assert_eq!(result["isError"], false);
    assert!(result["structuredContent"]["notes"].to_string().contains("not text"), "{result}");
    let result = run(json!({"command": ["printf", "\\033[31mred\\033[0m \\303\\244\\n"]}));
    assert!(result["structuredContent"]["stdout"].as_str().unwrap().contains('ä'), "{result}");
}

#[test]
fn a_script_of_the_project_runs_and_one_that_may_not_says_so() {
    let (project, mut wire) =
        serve([("run.sh", "#!/bin/sh\necho ran\n"), ("bad.sh", "#!/no/such/interpreter\n")]);
    let text = wire.failure("run_command", json!({"command": ["./run.sh"]}));
    assert!(text.contains("run.sh") && text.contains("execut"), "{text}");
    for script in ["run.sh", "bad.sh"] {
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(project.join(script), executable).unwrap();
    }
    assert_eq!(
        wire.call("run_command", json!({"command": "./run.sh"}))["structuredContent"]["stdout"],
        "ran\n"
    );
    let text = wire.failure("run_command", json!({"command": "./bad.sh"}));
    assert!(text.contains("/no/such/interpreter"), "{text}");
}

#[test]
fn a_relative_program_is_found_in_the_folder_it_runs_in() {
    let (project, mut wire) = serve([("sub/run.sh", "#!/bin/sh\necho ran\n")]);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.join("sub/run.sh"), executable).unwrap();
    let result = wire.call("run_command", json!({"command": ["./run.sh"], "working_directory": "sub"}));
    assert_eq!(result["structuredContent"]["stdout"], "ran\n", "{result}");
}

#[test]
fn many_commands_at_once_keep_their_outputs_apart() {
    let (_project, mut wire) = serve([]);
    let ids: Vec<_> = (0..100)
        .map(|number| {
            let script =
                format!("for i in 1 2 3; do echo {number}; echo e{number} >&2; done; exit {}", number % 3);
            let arguments = json!({"command": ["sh", "-c", script]});
            wire.ask("tools/call", json!({"name": "run_command", "arguments": arguments}))
        })
        .collect();
    for (number, id) in ids.into_iter().enumerate() {
        let report = wire.answer(id)["result"]["structuredContent"].clone();
        assert_eq!(report["stdout"], format!("{number}\n").repeat(3));
        assert_eq!(report["stderr"], format!("e{number}\n").repeat(3));
        assert_eq!(report["exit_code"], number % 3);
    }
}

#[test]
fn git_does_not_ask_and_does_not_page() {
    let (_project, mut wire) = serve([("a.txt", "a\n")]);
    let script = "git init -q . && git add . && git -c user.name=t -c user.email=t@t commit -qm m && git log && git commit --allow-empty";
    let started = Instant::now();
    let result = wire.call("run_command", json!({"command": ["sh", "-c", script], "timeout_ms": 20_000}));
    assert_ne!(result["structuredContent"]["outcome"], "timed_out", "{result}");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn what_is_left_out_of_a_long_output_is_kept_and_read_on() {
    let (_project, mut wire) = serve([]);
    let script = "seq 1 20000; echo oops >&2; exit 1";
    let result = wire.call("run_command", json!({"command": ["sh", "-c", script]}));
    let report = &result["structuredContent"];
    let (head, tail) = report["stdout"].as_str().unwrap().split_once("[... about ").unwrap();
    let tail = tail.split_once("left out ...]\n").unwrap().1;
    assert!(head.starts_with("1\n2\n") && head.ends_with('\n') && tail.ends_with("\n20000\n"), "whole lines");
    let notes = report["notes"].to_string().replace('\\', "");
    let call = &notes[notes.find("read_command_output {").unwrap() + 20..];
    let mut call: Value = serde_json::from_str(&call[..=call.find('}').unwrap()]).unwrap();
    assert_eq!(call["cursor"], head.len());
    let mut rest = String::new();
    while !rest.contains("oops") {
        let text = wire.text("read_command_output", call.clone());
        let (first, output) = text.split_once('\n').unwrap();
        assert!(first.contains("exited, exit code 1"), "{first}");
        rest += output;
        call.as_object_mut().unwrap().remove("cursor");
    }
    let numbers = (1..=20_000).map(|number| format!("{number}\n")).collect::<String>();
    assert_eq!(format!("{head}{rest}"), format!("{numbers}\n--- stderr ---\noops\n"));
    assert_eq!(wire.call("list_commands", json!({}))["structuredContent"]["commands"], json!([]));
    for _ in 0..4 {
        wire.call("run_command", json!({"command": ["seq", "1", "20000"]}));
    }
    let text = wire.failure("read_command_output", json!({"id": 1}));
    assert!(text.contains("there are none"), "{text}");
}
