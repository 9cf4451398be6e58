//! Servers in front and far ends that are killed at random moments: a call fails once, and nothing is left behind.

use crate::far_end::{FarEnd, run, tools_project};
use crate::fixtures::containers::Engine;
use crate::fixtures::slurm;
use crate::random::Random;
use integration_tests::{alive, command_line, unique_seconds, wait_until, wait_until_gone};
use rustix::process::Signal;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

/// The time from the start of a server in front to its end by SIGKILL, in milliseconds: before, during and after the making
/// of what it connects to.
const MOMENTS: [u64; 12] = [1, 20, 45, 70, 110, 170, 230, 300, 400, 550, 750, 1000];

/// The crashes at random moments, in all: 200 in the third tier.
const RANDOM_CRASHES: usize = if cfg!(feature = "stress") { 200 } else { 16 };

/// The crashes that are tried at the same time, each with an engine of its own.
const AT_ONCE: usize = 4;

/// A far end that is made by `engine.sh`, in the folder `made` of its project.
fn made_by_a_script() -> FarEnd {
    made_with("")
}

/// The same, with more keys of the remote.
fn made_with(keys: &str) -> FarEnd {
    let project = tools_project();
    let engine = concat!(env!("CARGO_MANIFEST_DIR"), "/remotes/engine.sh");
    let folder = project.path().parent().unwrap().join(format!("made-{}", unique_seconds()));
    let engine_command =
        |what: &str| format!("['sh', '{engine}', '{}', '{what}', '{{lease}}']", folder.display());
    let text = format!(
        "connect = ['mcp-stdio', 'remote-server']\nroots = ['{}']\ncreate = {}\ndestroy = {}\nlist = {}\ncreate_timeout_s = 2\n{keys}",
        project.path().display(),
        engine_command("create"),
        engine_command("destroy"),
        engine_command("list"),
    );
    let mut list = Command::new("sh");
    list.arg(engine).arg(&folder).arg("list");
    FarEnd::new("own:", project, None).configured(&text).listed_by(list)
}

/// Kills the server in front at each moment of its life, and looks for what is left.
fn kill_the_front(mut far_end: FarEnd, moments: &[u64]) {
    for moment in moments {
        let mark = unique_seconds();
        let mut wire = far_end.connect();
        let started = Instant::now();
        wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", mark]}}));
        // A moment, not a wait for something: it may be before, in or after everything that happens.
        std::thread::sleep(Duration::from_millis(*moment).saturating_sub(started.elapsed()));
        wire.signal(Signal::KILL);
        drop(wire);
        nothing_is_left(&mut far_end, &mark);
    }
}

/// Reaps until nothing is written down: what was being made when its owner died may be finished later.
fn nothing_is_left(far_end: &mut FarEnd, mark: &str) {
    wait_until(Duration::from_secs(25), "every lease is reaped", || {
        run(&mut far_end.reap());
        far_end.leases().is_empty()
    });
    wait_until(Duration::from_secs(10), "the engine has nothing left", || far_end.listed().is_empty());
    wait_until_gone(mark, Duration::from_secs(20));
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed_at_any_moment() {
    kill_the_front(made_by_a_script(), &MOMENTS);
}

/// The process that dies in a crash.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Front,
    FarEnd,
    Both,
}

/// One crash: of one or two processes, by a signal, at some moment of the life of a server in front.
fn crash(random: &mut Random, far_end: &mut FarEnd) {
    let victim = random.choose(&[Victim::Front, Victim::FarEnd, Victim::Both]);
    let signal = random.choose(&[Signal::KILL, Signal::KILL, Signal::TERM]);
    let moment = Duration::from_millis(random.below(1200));
    let mark = unique_seconds();
    let crash = format!("{victim:?} by {signal:?} after {moment:?}");
    let mut wire = far_end.connect();
    let started = Instant::now();
    let tool = random.choose(&["run_command", "start_command"]);
    wire.ask("tools/call", json!({"name": tool, "arguments": {"command": ["sleep", mark]}}));
    std::thread::sleep(moment.saturating_sub(started.elapsed()));
    let front = wire.pid();
    let far = far_servers(front);
    let victims = match victim {
        Victim::Front => vec![front],
        Victim::FarEnd => far,
        Victim::Both => far.into_iter().chain([front]).collect(),
    };
    for pid in victims {
        // It may have ended, or not have begun.
        if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
    if matches!(victim, Victim::FarEnd) {
        // The server in front lives on, and ends as it should.
        wire.close_input();
        wire.wait(Duration::from_secs(25));
    } else {
        drop(wire);
    }
    let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| nothing_is_left(far_end, &mark)));
    assert!(left.is_ok(), "something is left of a crash of {crash}");
}

#[test]
fn nothing_is_left_of_crashes_at_random_moments() {
    let mut random = Random::seeded("crashes");
    let threads: Vec<_> = (0..AT_ONCE)
        .map(|number| {
            let mut random = random.split();
            std::thread::spawn(move || {
                // One of them has remotes that are made ahead.
                let mut far_end = made_with(if number == 0 { "warm = 1\n" } else { "" });
                for _ in 0..RANDOM_CRASHES / AT_ONCE {
                    crash(&mut random, &mut far_end);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn no_container_of_podman_is_left_of_random_crashes() {
    let Some(engine) = Engine::podman() else { return };
    let mut random = Random::seeded("crashes with podman");
    let folder = engine.folder();
    let mut far_end = engine.with_image_only("create_timeout_s = 3\n");
    for _ in 0..if cfg!(feature = "stress") { 20 } else { 2 } {
        crash(&mut random, &mut far_end);
        // Podman lists no container that it was killed in the middle of making, but its monitor may be there.
        wait_until_gone(&folder, Duration::from_secs(20));
    }
}

#[test]
fn no_container_of_podman_is_left() {
    let Some(engine) = Engine::podman() else { return };
    let folder = engine.folder();
    kill_the_front(engine.with_image_only("create_timeout_s = 3\n"), &[150, 900]);
    wait_until_gone(&folder, Duration::from_secs(20));
}

#[test]
fn no_container_of_docker_is_left() {
    let Some(engine) = Engine::docker() else { return };
    kill_the_front(engine.with_image_only("create_timeout_s = 3\n"), &[150, 900]);
}

#[test]
fn no_allocation_of_slurm_is_left() {
    let Some(far_end) = slurm::far_end("create_timeout_s = 5\n") else { return };
    kill_the_front(far_end, &[60, 600]);
}

#[test]
fn a_far_end_that_is_killed_fails_the_call_once_and_leaves_nothing() {
    let mut far_end = made_by_a_script();
    let mut wire = far_end.connect();
    for signal in ["KILL", "TERM", "KILL"] {
        let mark = unique_seconds();
        let script = format!("echo {signal} >> started; exec sleep {mark}");
        let id = wire.ask(
            "tools/call",
            json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}}),
        );
        wait_until(Duration::from_secs(20), "it runs", || !alive(&mark).is_empty());
        let servers = far_servers(wire.pid());
        assert_eq!(servers.len(), 1, "{servers:?}");
        run(Command::new("kill").args(["-s", signal, &servers[0].to_string()]));
        let answer = wire.answer(id).to_string();
        // One that is asked to end says so before it does.
        let is_told = signal == "TERM" && answer.contains("cancelled (SIGTERM)");
        assert!(is_told || answer.contains("may have run, and is not sent again"), "{signal}: {answer}");
        wait_until_gone(&mark, Duration::from_secs(20));
        // One that was asked to end answers a little while before it does, and then would lose the next call as well.
        wait_until(Duration::from_secs(20), "its end", || !far_servers(wire.pid()).contains(&servers[0]));
        assert_eq!(wire.text("read_file", json!({"path": "notes.txt"})), "first\nsecond\nthird\n");
    }
    assert_eq!(far_end.project.read("started"), "KILL\nTERM\nKILL\n");
    wire.close_input();
    assert!(wire.wait(Duration::from_secs(20)).0.success());
    assert_eq!((far_end.leases(), far_end.listed()), (vec![], vec![]));
}

/// Returns the servers at the far end of a server in front on this machine.
fn far_servers(front: u32) -> Vec<u32> {
    let children = integration_tests::children(front);
    children.into_iter().filter(|pid| command_line(*pid).ends_with("mcp-stdio remote-server")).collect()
}
