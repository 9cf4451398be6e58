//! The processes that a caller's command leaves running are on the page, and end with the caller's token and with the server.

use crate::SOON;
use integration_tests::{
    Era, Escape, Http, HttpServer, Project, alive, unique_seconds, wait_until, wait_until_gone,
    wait_until_left,
};
use rustix::process::Signal;
use serde_json::json;
use skipped_tests::require;
use std::collections::BTreeSet;

/// The escapes that leave a session or a variable by which the command is known.
const KNOWN: [Escape; 3] = [Escape::Job, Escape::Nohup, Escape::Session];
/// Those that leave neither.
const HIDDEN: [Escape; 3] = [Escape::SessionAndEnvironment, Escape::DoubleFork, Escape::Daemon];

/// Lets each of the escapes happen with a token.
// Confinement keeps tmux from opening a terminal.
fn escaped(server: &HttpServer, token: &str, escapes: &[Escape]) -> Vec<String> {
    let mut client = server.connect(token, Era::Modern);
    let mut marks = Vec::new();
    for escape in escapes {
        let seconds = unique_seconds();
        let Some(command) = escape.command(&seconds) else { continue };
        let text = client.text("run_command", command);
        // The program that starts the mark may still be what runs when the answer is made.
        assert!(text.contains("left running"), "{escape:?}: {text}");
        wait_until_left(&seconds);
        marks.push(seconds);
    }
    marks
}

#[test]
fn it_ends_with_the_token_of_its_caller_and_what_is_another_callers_goes_on() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (first, second) = (server.token("gone", "dev", &[]), server.token("kept", "dev", &[]));
    let gone = escaped(&server, &first, &[KNOWN, HIDDEN].concat());
    let kept = escaped(&server, &second, &KNOWN);
    assert!(server.tokens(&["revoke", "gone"]).status.success());
    server.signal(Signal::HUP);
    for seconds in &gone {
        wait_until_gone(seconds, SOON);
    }
    for seconds in &kept {
        assert!(!alive(seconds).is_empty(), "{seconds}");
    }
}

/// The first processes of the PID namespaces that a server has made.
fn namespaces_of(server: &HttpServer) -> BTreeSet<String> {
    let children = format!("/proc/{}/task", server.pid());
    let threads = std::fs::read_dir(children).unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<String> =
        lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let is_first = |pid: &String| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.starts_with(b"process-runner-init"))
    };
    pids.into_iter().filter(is_first).collect()
}

#[test]
fn the_namespaces_of_a_caller_end_with_its_token_and_with_them_its_files_in_memory() {
    let level = process_runner::Confinement::new().status().level;
    let has_namespaces = level >= process_runner::ConfinementLevel::Namespaces;
    if require(has_namespaces.then_some(()), "no namespaces").is_none() {
        return;
    }
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (first, second) = (server.token("gone", "worker", &[]), server.token("kept", "worker", &[]));
    let text = |token: &str, command: &str| {
        server.connect(token, Era::Modern).text("run_command", json!({"command": command, "shell": true}))
    };
    let said = text(&first, "head -c 1M /dev/zero > /tmp/mine && ls /tmp");
    assert!(said.contains("mine"), "{said}");
    let gone = namespaces_of(&server);
    assert_eq!(gone.len(), 1, "{gone:?}");
    let said = text(&second, "ls -a /tmp; echo x > /tmp/theirs");
    assert!(!said.contains("mine"), "another caller of the same roots sees the file: {said}");
    let kept: BTreeSet<String> = namespaces_of(&server).difference(&gone).cloned().collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(server.tokens(&["revoke", "gone"]).status.success());
    server.signal(Signal::HUP);
    wait_until(SOON, "the namespaces of the caller end", || namespaces_of(&server).is_disjoint(&gone));
    assert!(namespaces_of(&server).is_superset(&kept));
    let said = text(&second, "cat /tmp/theirs");
    assert!(said.contains('x'), "{said}");
}

#[test]
fn it_ends_with_the_server_however_that_ends() {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL, Signal::ABORT] {
        let project = Project::empty();
        let mut server = HttpServer::start(&project, &[]);
        let token = server.token("ada", "dev", &[]);
        let marks = escaped(&server, &token, &[KNOWN, HIDDEN].concat());
        server.signal(signal);
        server.wait(SOON);
        for seconds in &marks {
            wait_until_gone(seconds, SOON);
        }
    }
}

#[test]
fn it_is_on_the_page_and_in_the_list_of_its_caller_alone() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (token, other) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let marks = escaped(&server, &token, &[KNOWN, HIDDEN].concat());
    let page = server.get("/ui/calls", Some(&token)).body;
    let list = server.connect(&other, Era::Modern).text("list_commands", json!({}));
    for seconds in &marks {
        assert!(page.contains(seconds.as_str()), "{page}");
        assert!(!list.contains(seconds.as_str()), "{list}");
    }
}

#[test]
fn an_orphan_that_may_be_of_several_callers_is_ended_or_is_the_callers_own() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (first, second) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let of_others = escaped(&server, &first, &KNOWN);
    let mut client = server.connect(&second, Era::Modern);
    let mut other = server.connect(&first, Era::Modern);
    for escape in HIDDEN {
        let seconds = unique_seconds();
        let Some(command) = escape.command(&seconds) else { continue };
        let listed =
            |client: &mut Http| client.text("list_commands", json!({})).matches("left running by").count();
        let before = listed(&mut client);
        // It is known if the server has seen it before it hid.
        let is_known = client.text("run_command", command).contains("left running");
        assert_eq!(listed(&mut client) - before, usize::from(is_known), "{escape:?}");
        assert!(!other.text("list_commands", json!({})).contains(&seconds), "{escape:?}");
        if !is_known {
            wait_until_gone(&seconds, SOON);
        }
    }
    assert!(of_others.iter().all(|seconds| !alive(seconds).is_empty()));
}

/// Returns the arguments of `run_command` that leave `sleep SECONDS` running with each of these variables alone.
fn marked(seconds: &str, variables: &[String]) -> serde_json::Value {
    let starts: String = variables
        .iter()
        .map(|name| format!("env -i {name}=1 setsid sleep {seconds} < /dev/null > /dev/null 2>&1 &\n"))
        .collect();
    json!({"command": ["sh", "-c", starts]})
}

/// Returns the name of the variable by which the programs of one command of `client` are known.
fn marker(client: &mut Http) -> String {
    let told = client.text("run_command", json!({"command": ["env"]}));
    assert!(told.contains("[redacted:command-name]"), "{told}");
    // The name is masked in answers, and not if each of its characters stands in a line of its own.
    let script = "env | grep ^PROCESS_RUNNER_RUN_ | cut -d= -f1 | fold -w1";
    let told = client.text("run_command", json!({"command": ["sh", "-c", script]}));
    let marker: String = told.lines().filter(|line| line.len() == 1).collect();
    assert!(marker.starts_with("PROCESS_RUNNER_RUN_"), "{told}");
    marker
}

#[test]
fn a_forged_marker_makes_no_process_another_callers() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (first, second) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let (mut ada, mut bob) = (server.connect(&first, Era::Modern), server.connect(&second, Era::Modern));
    let (of_ada, of_bob) = (unique_seconds(), unique_seconds());
    let started = ada.text("start_command", json!({"command": ["sleep", of_ada]}));
    assert!(started.contains("running"), "{started}");
    wait_until_left(&of_ada);
    // Bob knows the form of the names from his own commands, in which those of Ada differ only in the end.
    let own = marker(&mut bob);
    let stem = own.trim_end_matches(|end: char| end.is_ascii_hexdigit());
    let forged: Vec<_> = (0..40).map(|number| format!("{stem}{number}")).collect();
    bob.text("run_command", marked(&of_bob, &forged));
    assert!(!ada.text("list_commands", json!({})).contains(&of_bob));
    assert!(server.tokens(&["revoke", "bob"]).status.success());
    server.signal(Signal::HUP);
    wait_until_gone(&of_bob, SOON);
    assert!(!alive(&of_ada).is_empty());
}

#[test]
fn the_marker_of_an_own_earlier_command_hides_no_process() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    let (seconds, of_ended) = (unique_seconds(), unique_seconds());
    // Of a command that runs, it makes the process a part of that command, which ends with it; unless it was seen before it
    // showed the marker: then it is known as left running.
    let script = "env > marker.txt; exec sleep 600";
    let started = client.call("start_command", json!({"command": ["sh", "-c", script]}));
    wait_until(SOON, "the command has told its marker", || {
        project.join("marker.txt").metadata().is_ok_and(|file| file.len() > 0)
    });
    let environment = std::fs::read_to_string(project.join("marker.txt")).unwrap();
    let running = environment.lines().find_map(|line| line.strip_suffix("=1")).unwrap().to_owned();
    client.text("run_command", marked(&seconds, &[running]));
    wait_until_left(&seconds);
    client.text("stop_command", json!({"id": started["structuredContent"]["id"]}));
    wait_until(SOON, "it is gone or listed", || {
        alive(&seconds).is_empty() || client.text("list_commands", json!({})).contains(&seconds)
    });
    // Of a command that has ended, it says nothing: the process is known by its parents.
    let ended = marker(&mut client);
    let text = client.text("run_command", marked(&of_ended, &[ended]));
    assert!(text.contains("left running") && text.contains(&of_ended), "{text}");
    assert!(client.text("list_commands", json!({})).contains(&of_ended));
    assert!(server.tokens(&["revoke", "ada"]).status.success());
    server.signal(Signal::HUP);
    wait_until_gone(&of_ended, SOON);
    wait_until_gone(&seconds, SOON);
}

/// Becomes a process whose first thread has ended while another one holds the lock on the file `lock`.
const HALF_ENDED: &str = r#"
import ctypes, fcntl, os, platform, threading, time
if os.fork():
    os._exit(0)
os.setsid()
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)
"#;

#[test]
fn a_process_whose_first_thread_has_ended_is_known_and_ends_with_the_token() {
    let project = Project::with([("half.py", HALF_ENDED)]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    let script = "env -i /usr/bin/python3 half.py > /dev/null 2>&1 < /dev/null";
    client.text("run_command", json!({"command": ["sh", "-c", script]}));
    let is_locked = || {
        std::fs::File::open(project.path().join("lock")).is_ok_and(|file| {
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err()
        })
    };
    wait_until(SOON, "it holds the lock", is_locked);
    wait_until(SOON, "it is listed", || client.text("list_commands", json!({})).contains("left running by"));
    assert!(server.tokens(&["revoke", "ada"]).status.success());
    server.signal(Signal::HUP);
    wait_until(SOON, "it has ended", || !is_locked());
}
