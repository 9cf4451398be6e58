//! `mcp-http` with many callers, each of whom has a container: they see nothing of each other, and nothing is left.

use crate::fixtures::containers::Engine;
use integration_tests::{Era, Http, HttpServer, Project, alive, unique_seconds, wait_until, wait_until_gone};
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The callers, each of whom has a container: forty in the third tier.
const CALLERS: usize = if cfg!(feature = "stress") { 40 } else { 8 };

/// The callers that call at the same moment.
const AT_ONCE: usize = 8;

/// A caller of the server, and what only its container has.
struct Caller {
    client: Http,
    /// Its name, which is the content of its file.
    name: String,
    /// The command line of its process holds this number, and no other process does.
    mark: String,
    /// The name that its container has for itself.
    host: String,
}

/// Lets all callers work, some of them at the same moment.
fn each(callers: &mut [Caller], work: impl Fn(&mut Caller) + Sync) {
    let share = callers.len().div_ceil(AT_ONCE);
    std::thread::scope(|scope| {
        for part in callers.chunks_mut(share) {
            scope.spawn(|| part.iter_mut().for_each(&work));
        }
    });
}

/// The first calls of a caller, for which its container is made.
fn begin(caller: &mut Caller) {
    caller.client.text("write_file", json!({"path": "own.txt", "content": caller.name}));
    let started = caller.client.call("start_command", json!({"command": ["sleep", caller.mark]}));
    assert_eq!(started["isError"], false, "{started}");
    caller.host = caller.client.text("run_command", json!({"command": "uname -n"}));
}

/// Looks for the files and processes of all callers.
fn sees_its_own_only(caller: &mut Caller, marks: &[String]) {
    assert_eq!(caller.client.text("read_file", json!({"path": "own.txt"})), caller.name);
    let listed = caller.client.text("list_directory", json!({"path": "."}));
    assert_eq!(listed.matches(".txt").count(), 1, "{listed}");
    let processes = json!({"command": "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", "shell": true});
    let processes = caller.client.text("run_command", processes);
    let seen: Vec<&String> = marks.iter().filter(|mark| processes.contains(mark.as_str())).collect();
    assert_eq!(seen, [&caller.mark], "{processes}");
    let commands = caller.client.text("list_commands", json!({}));
    let listed: Vec<&String> = marks.iter().filter(|mark| commands.contains(mark.as_str())).collect();
    assert!(listed.iter().all(|mark| **mark == caller.mark), "{commands}");
}

/// Uses more memory and more processes than the container may have, and calls on.
fn is_limited(caller: &mut Caller) {
    let much = json!({"command": ["dd", "if=/dev/zero", "of=/dev/null", "bs=400M", "count=1"]});
    let answer = caller.client.call("run_command", much);
    // The kernel ends the greatest process of the container.
    assert_eq!(answer["structuredContent"]["signal"], "SIGKILL", "{answer}");
    assert!(!alive(&caller.mark).is_empty(), "its command has ended with the greatest");
    let many = "for i in $(seq 200); do sleep 20 & done 2>&1; kill $(jobs -p)";
    let answer = caller.client.call("run_command", json!({"command": ["sh", "-c", many]})).to_string();
    assert!(answer.contains("fork") || answer.contains("temporarily unavailable"), "{answer}");
    assert_eq!(caller.client.text("read_file", json!({"path": "own.txt"})), caller.name);
    assert!(!alive(&caller.mark).is_empty(), "its command has ended with the others");
}

#[test]
fn forty_callers_have_forty_containers() {
    let Some(engine) = Engine::podman() else { return };
    let front = Project::empty();
    let text = engine.container_for_each_caller("memory = '128m', pids = '100'");
    front.write("remotes.toml", &format!("[remotes.box]\n{text}"));
    let config = front.join("remotes.toml").display().to_string();
    let served = front.join("served");
    std::fs::create_dir_all(&served).unwrap();
    let variables = engine.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let arguments = ["--config", &config, "--root", &served.display().to_string()];
    let mut http = HttpServer::start_in(&front, &arguments, &variables);
    let mut callers: Vec<Caller> = (0..CALLERS)
        .map(|number| {
            let name = format!("caller{number}");
            let token = http.token(&name, "orchestrator", &["--config", &config, "--remote", "box"]);
            let (client, mark) = (http.connect(&token, Era::Modern), unique_seconds());
            Caller { client, name, mark, host: String::new() }
        })
        .collect();
    let marks: Vec<String> = callers.iter().map(|caller| caller.mark.clone()).collect();
    let began = Instant::now();
    each(&mut callers, begin);
    told(&format!("{CALLERS} callers have containers"), began);
    assert_eq!(engine.listed().len(), CALLERS);
    let hosts: BTreeSet<&String> = callers.iter().map(|caller| &caller.host).collect();
    assert_eq!(hosts.len(), CALLERS, "{hosts:?}");
    each(&mut callers, |caller| sees_its_own_only(caller, &marks));
    told("they see their own only", began);
    // Each container has the same limits.
    each(&mut callers[..AT_ONCE], is_limited);
    told("they are limited", began);
    // The container of one caller ends with its token, and the others go on.
    assert!(http.tokens(&["revoke", "caller0"]).status.success());
    wait_until_gone(&marks[0], Duration::from_secs(20));
    wait_until(Duration::from_secs(20), "the container is removed", || engine.listed().len() == CALLERS - 1);
    each(&mut callers[1..], |caller| {
        let commands = caller.client.text("list_commands", json!({}));
        assert!(!alive(&caller.mark).is_empty(), "{}: {commands}", caller.name);
    });
    http.signal(Signal::TERM);
    http.wait(Duration::from_secs(60));
    told("the server has ended", began);
    assert_eq!(engine.listed(), [""; 0]);
    let leases = std::fs::read_dir(front.state().join("coretools/remotes")).map_or(0, Iterator::count);
    assert_eq!(leases, 0);
    for mark in &marks {
        wait_until_gone(mark, Duration::from_secs(20));
    }
}

#[allow(clippy::print_stderr, reason = "a failed test shows it")]
fn told(what: &str, began: Instant) {
    eprintln!("{what} after {:?}", began.elapsed());
}
