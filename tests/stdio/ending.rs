//! The server's end takes everything with it that the server has started.

use crate::{connect, start};
use integration_tests::{
    Era, Project, Wire, alive, children, command_line, contained, is_alive, unique_seconds, wait_until,
    wait_until_gone, zombies_of,
};
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One second is the promise; the rest is for a loaded machine.
const PROMPT: Duration = Duration::from_secs(5);

/// Starts one command in the foreground and one in the background. Each has a child in another session, and
/// all of them are deaf to what asks politely.
fn start_trees(wire: &mut Wire, seconds: &str) {
    let script = format!("trap '' TERM INT HUP; setsid sleep {seconds} & sleep {seconds}; wait");
    let command = json!({"command": ["sh", "-c", script]});
    wire.ask("tools/call", json!({"name": "run_command", "arguments": command}));
    wire.call("start_command", command);
    wait_until(Duration::from_secs(10), "both trees grow", || alive(seconds).len() >= 6);
}

/// The process that ends what the server cannot.
fn guardian(server: u32) -> u32 {
    let is_guardian = |pid: &u32| command_line(*pid).starts_with("process-runner-guardian");
    children(server).into_iter().find(is_guardian).expect("a server that runs commands has a guardian")
}

fn ends_with_everything(end: impl Fn(&mut Wire)) {
    for era in Era::BOTH {
        let (_project, mut wire) = connect(era);
        let seconds = unique_seconds();
        start_trees(&mut wire, &seconds);
        let guardian = guardian(wire.pid());
        end(&mut wire);
        let (status, time) = wire.wait(Duration::from_secs(10));
        assert!(time < PROMPT, "{era:?}: it took {time:?}");
        assert!(status.success(), "{era:?}: {status}");
        // What a loaded machine did not let the server end in time, the guardian has ended.
        wait_until(PROMPT, "the guardian ends", || !is_alive(guardian));
        let left = alive(&seconds);
        assert!(left.is_empty(), "{era:?}: {left:?} outlived the server");
    }
}

#[test]
fn the_end_of_input_ends_it() {
    ends_with_everything(Wire::close_input);
}

#[test]
fn sigterm_ends_it() {
    ends_with_everything(|wire| wire.signal(Signal::TERM));
}

#[test]
fn sigint_ends_it() {
    ends_with_everything(|wire| wire.signal(Signal::INT));
}

#[test]
fn sighup_ends_it() {
    ends_with_everything(|wire| wire.signal(Signal::HUP));
}

#[test]
fn several_signals_at_once_end_it_just_as_well() {
    ends_with_everything(|wire| {
        for signal in [Signal::HUP, Signal::TERM, Signal::INT, Signal::TERM] {
            wire.signal(signal);
        }
        wire.close_input();
    });
}

#[test]
fn what_it_ran_does_not_outlive_its_sigkill_and_nor_does_the_guardian() {
    let (_project, mut wire) = connect(Era::Modern);
    let seconds = unique_seconds();
    start_trees(&mut wire, &seconds);
    let guardian = guardian(wire.pid());
    wire.signal(Signal::KILL);
    wait_until_gone(&seconds, PROMPT);
    wait_until(PROMPT, "the guardian ends", || !is_alive(guardian));
}

#[test]
fn an_idle_server_ends_at_once_and_successfully() {
    for era in Era::BOTH {
        for signal in [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::HUP)] {
            let (_project, mut wire) = connect(era);
            wire.request("tools/list", json!({}));
            match signal {
                Some(signal) => wire.signal(signal),
                None => wire.close_input(),
            }
            let (status, time) = wire.wait(Duration::from_secs(10));
            assert!(status.success() && time < PROMPT, "{era:?} {signal:?}: {status} after {time:?}");
        }
    }
}

#[test]
fn a_client_that_never_says_anything_may_leave() {
    let (_project, mut wire) = start();
    wire.close_input();
    let (status, time) = wire.wait(Duration::from_secs(10));
    assert!(status.success() && time < PROMPT, "{status} after {time:?}");
}

#[test]
fn it_ends_when_nobody_reads_its_output_any_more() {
    let project = Project::empty();
    let seconds = unique_seconds();
    let mut server = project.server().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut ask = |id: u32, method: &str, mut params: serde_json::Value| {
        Era::Modern.fill(&mut params);
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    ask(1, "tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}}))
        .unwrap();
    wait_until(Duration::from_secs(10), "the command runs", || !alive(&seconds).is_empty());
    drop(server.stdout.take());
    // It learns that at an answer. For a moment another process may hold the pipe: one that another test starts, until it
    // executes its program. So there is more than one answer.
    let mut id = 1;
    wait_until(Duration::from_secs(10), "the server ends", || {
        id += 1;
        // It fails once the server is gone.
        let _ = ask(id, "ping", json!({}));
        server.try_wait().unwrap().is_some()
    });
    wait_until_gone(&seconds, Duration::from_secs(10));
}

#[test]
fn a_client_that_does_not_read_does_not_keep_it_from_ending() {
    let project = Project::empty();
    project.write("a.txt", &"0123456789\n".repeat(3_000));
    let mut server = project.server().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    for id in 0..200 {
        let mut params = json!({"name": "read_file", "arguments": {"path": "a.txt"}});
        Era::Modern.fill(&mut params);
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .unwrap();
    }
    let pid = rustix::process::Pid::from_child(&server);
    std::thread::sleep(Duration::from_millis(300));
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let started = Instant::now();
    wait_until(Duration::from_secs(10), "the server ends", || server.try_wait().unwrap().is_some());
    assert!(started.elapsed() < PROMPT, "after {:?}", started.elapsed());
}

/// Returns the server's answers to `input`, given to it as a shell's pipe would.
fn piped(project: &Project, input: &str) -> Vec<serde_json::Value> {
    let mut server = project.server().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    server.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let mut output = String::new();
    server.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(server.wait().unwrap().success());
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let project = Project::with([("a.txt", "hello\n")]);
    let request = |id: u32, method: &str, mut params: serde_json::Value| {
        Era::Modern.fill(&mut params);
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let list = request(1, "tools/list", json!({}));
    let read = request(2, "tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    let run =
        request(3, "tools/call", json!({"name": "run_command", "arguments": {"command": ["echo", "hi"]}}));
    // The last line has no end.
    let mut answers = piped(&project, &format!("{list}\n{read}\n{run}"));
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(answers[0]["result"]["tools"].is_array());
    assert_eq!(answers[1]["result"]["content"][0]["text"], "hello\n");
    assert_eq!(answers[2]["result"]["structuredContent"]["stdout"], "hi\n");
}

#[test]
fn a_large_answer_is_written_whole_after_the_end_of_input() {
    let project = Project::empty();
    // Several times what a pipe holds.
    let arguments = json!({"command": ["seq", "40000"], "max_output_bytes": 1_000_000});
    let mut params = json!({"name": "run_command", "arguments": arguments});
    Era::Modern.fill(&mut params);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut server = project.server().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{request}").unwrap();
    let mut output = server.stdout.take().unwrap();
    // The answer has begun, and the pipe is full of it.
    let mut answer = vec![0; 1024];
    output.read_exact(&mut answer).unwrap();
    drop(input);
    // A client that reads slowly, and takes longer than the time in which one must have read something.
    loop {
        let mut piece = vec![0; 16 * 1024];
        match output.read(&mut piece).unwrap() {
            0 => break,
            count => answer.extend_from_slice(&piece[..count]),
        }
        // Not to wait for anything: this is how slow the client is.
        std::thread::sleep(Duration::from_millis(60));
    }
    assert!(server.wait().unwrap().success());
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let stdout = answer["result"]["structuredContent"]["stdout"].as_str().unwrap();
    assert!(stdout.ends_with("\n40000\n") && stdout.lines().count() == 40_000, "{} bytes", stdout.len());
}

#[test]
fn ended_commands_leave_no_zombies() {
    let (_project, mut wire) = connect(Era::Modern);
    for _ in 0..10 {
        wire.call("run_command", json!({"command": ["sh", "-c", "true & setsid true & exit 1"]}));
    }
    let pid = wire.pid();
    wait_until(Duration::from_secs(10), "zombies are reaped", || zombies_of(pid).is_empty());
}

#[test]
fn a_call_from_the_shell_leaves_nothing_running() {
    let project = Project::empty();
    let seconds = unique_seconds();
    let mut command = project.server();
    let arguments = json!({"command": ["sh", "-c", format!("setsid sleep {seconds} & sleep {seconds}")]});
    let mut call =
        command.args(["call", "run_command", &arguments.to_string()]).stdout(Stdio::null()).spawn().unwrap();
    wait_until(Duration::from_secs(10), "the command runs", || alive(&seconds).len() >= 3);
    let pid = rustix::process::Pid::from_child(&call);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    wait_until(Duration::from_secs(5), "the call ends", || call.try_wait().unwrap().is_some());
    wait_until_gone(&seconds, Duration::from_secs(10));
}

#[test]
fn a_start_from_the_shell_does_not_leave_a_background_command_behind() {
    let project = Project::empty();
    let seconds = unique_seconds();
    let mut command: Command = project.server();
    let arguments = json!({"command": ["sleep", seconds]}).to_string();
    let output = command.args(["call", "start_command", &arguments]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    wait_until_gone(&seconds, PROMPT);
}

#[test]
fn as_the_first_process_of_a_container_it_waits_for_what_has_lost_its_parent() {
    let project = Project::empty();
    let Some(command) = contained(&project.server(), &[]) else { return };
    let mut wire = Wire::connect(command, Era::Modern);
    let seconds = unique_seconds();
    let orphans = format!("(setsid sleep {seconds} &); (setsid true &); (env -i setsid sleep 0.1 &)");
    wire.call("run_command", json!({"command": ["sh", "-c", orphans]}));
    wait_until_gone(&seconds, Duration::from_secs(10));
    wait_until_gone("sleep 0.1", Duration::from_secs(10));
    let [first] = children(wire.pid())[..] else { panic!("unshare has one child") };
    let [server] = children(first)[..] else { panic!("the first process has one child: the server") };
    wait_until(Duration::from_secs(10), "all are waited for", || {
        zombies_of(first).is_empty() && zombies_of(server).is_empty()
    });
    wire.close_input();
    let (status, _) = wire.wait(Duration::from_secs(10));
    assert!(status.success(), "{status}");
}
