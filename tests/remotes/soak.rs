//! A server of many callers, each with a remote of its own, whose far ends are killed at random moments all the while: what a
//! caller gets is an answer or an error that says what happened, nothing grows, and nothing is left.

use crate::random::Random;
use integration_tests::{
    Era, Http, HttpServer, Project, alive, server, unique_seconds, wait_until, wait_until_gone,
};
use rustix::process::{Pid, Signal};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The variable with the time of the soak in seconds.
const SECONDS: &str = "CORETOOLS_SOAK_S";

/// The callers at a time.
const CALLERS: usize = 6;

/// The texts of errors after a far end was killed.
const TOLD: [&str; 5] = [
    "may have run, and is not sent again",
    "background commands and sessions are gone",
    "no server answered there",
    "the connection has ended",
    "cancelled",
];

/// The time of the soak: 20 minutes in the third tier, unless the variable says something else.
fn span() -> Duration {
    let given = std::env::var(SECONDS).ok().map(|seconds| seconds.parse().expect("seconds"));
    Duration::from_secs(given.unwrap_or(if cfg!(feature = "stress") { 1200 } else { 8 }))
}

/// Kills a far end of the server at a random moment, again and again, and returns how many.
fn kill_far_ends(random: &mut Random, made: &Path, is_over: &AtomicBool) -> usize {
    let mut killed = 0;
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100 + random.below(900)));
        // Those of this test alone: each works in the folder that was made for it.
        let is_here = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder.starts_with(made))
        };
        let far: Vec<u32> = alive("remote-server").into_iter().filter(is_here).collect();
        if far.is_empty() {
            continue;
        }
        let pid = i32::try_from(random.choose(&far)).ok().and_then(Pid::from_raw);
        let signal = random.choose(&[Signal::KILL, Signal::KILL, Signal::TERM]);
        // It may have ended meanwhile.
        killed += usize::from(pid.is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok()));
    }
    killed
}

/// Makes one call after the other, and counts those that were made and those that failed.
fn call(
    client: &mut Http,
    sleep: &str,
    is_over: &AtomicBool,
    (calls, failures): (&AtomicUsize, &AtomicUsize),
) {
    for round in 0_usize.. {
        let work = [
            ("write_file", json!({"path": "a.txt", "content": "line\n".repeat(200)})),
            ("read_file", json!({"path": "a.txt"})),
            ("list_directory", json!({"path": "."})),
            ("run_command", json!({"command": "head -c 300000 /dev/zero | tr '\\0' x", "shell": true})),
            ("start_command", json!({"command": ["sleep", sleep]})),
            ("list_commands", json!({})),
        ];
        let (tool, arguments) = &work[round % work.len()];
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let answer = client.call(tool, arguments.clone());
        calls.fetch_add(1, Ordering::Relaxed);
        if answer["isError"] == true {
            failures.fetch_add(1, Ordering::Relaxed);
            let text = answer.to_string();
            // A file of a remote that was killed and made again is not there, and a role may start so many commands.
            let is_told = TOLD.iter().any(|words| text.contains(words))
                || text.contains("a.txt")
                || text.contains("background commands");
            assert!(is_told, "{tool}: {text}");
        }
    }
}

#[test]
fn remotes_that_are_killed_at_random_grow_nothing_and_leave_nothing() {
    let mut random = Random::seeded("soak of remotes");
    let (front, there) = (Project::empty(), Project::empty());
    let sleep = unique_seconds();
    let made = there.path();
    let text = format!(
        "[remotes.box]\nconnect = ['sh', '-c', 'cd \"$0\" && exec {} remote-server', '{1}/{{lease}}']\n\
         create = ['mkdir', '{1}/{{lease}}']\ndestroy = ['rm', '-rf', '{1}/{{lease}}']\nlist = ['ls', '{1}']\n\
         warm = 2\nidle_s = 5\nlife_s = 60\n",
        server().display(),
        made.display(),
    );
    front.write("remotes.toml", &text);
    let config = front.join("remotes.toml").display().to_string();
    let served = front.join("served");
    std::fs::create_dir_all(&served).unwrap();
    let mut http = HttpServer::start(&front, &["--config", &config, "--root", &served.display().to_string()]);
    let tokens: Vec<String> = (0..CALLERS)
        .map(|number| {
            http.token(&format!("caller{number}"), "orchestrator", &["--config", &config, "--remote", "box"])
        })
        .collect();
    let (is_over, calls, failures) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let (began, span) = (Instant::now(), span());
    let mut memory = Vec::new();
    let killed = std::thread::scope(|scope| {
        let callers: Vec<_> = tokens
            .iter()
            .map(|token| {
                let mut client = http.connect(token, Era::Modern);
                let (is_over, counts, sleep) = (&is_over, (&calls, &failures), &sleep);
                scope.spawn(move || call(&mut client, sleep, is_over, counts))
            })
            .collect();
        let killer = scope.spawn(|| kill_far_ends(&mut random, made, &is_over));
        while began.elapsed() < span && !callers.iter().any(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(500));
            memory.push(resident_kib(http.pid()));
        }
        is_over.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.join().expect("a caller got an answer that it should not get");
        }
        killer.join().unwrap()
    });
    let calls = calls.into_inner();
    #[allow(clippy::print_stderr, reason = "the result of a soak")]
    {
        eprintln!(
            "{calls} calls in {:?}, {} of them failed, {killed} far ends killed, {:?} KiB at the end",
            began.elapsed(),
            failures.into_inner(),
            memory.last()
        );
    }
    assert!(calls > 20 && killed > 2, "{calls} calls, {killed} killed");
    // The second quarter has warmed up what the last one has; a leak goes on.
    let quarter = memory.len() / 4;
    let mean = |part: &[u64]| part.iter().sum::<u64>() / part.len().max(1) as u64;
    let (early, late) = (mean(&memory[quarter..quarter * 2]), mean(&memory[memory.len() - quarter..]));
    assert!(late < early + early / 4 + 16 * 1024, "memory grows from {early} to {late} KiB");
    http.signal(Signal::TERM);
    http.wait(Duration::from_secs(30));
    wait_until_gone(&sleep, Duration::from_secs(20));
    let leases = front.state().join("coretools/remotes");
    wait_until(Duration::from_secs(10), "nothing is left", || count(made) == 0 && count(&leases) == 0);
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Returns the resident memory of a process.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or_default()
}
