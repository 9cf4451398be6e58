//! Programs that start daemons which are not part of their run, as a container engine does.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the test looks at processes itself")]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::{Duration, Instant};

use process_runner::{CancellationToken, Command, LeftoverPolicy, Limits, Runner};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a daemon in a session of its own and without variables, writes its pid into the file, and waits.
const ENGINE: &str = "env -i setsid --fork sh -c 'echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 60' \"$0\" \
                      </dev/null >/dev/null 2>&1; exec sleep 60";

/// The pid of the daemon, once it is there.
async fn daemon(file: &Path) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(pid) = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()) {
            return pid;
        }
        assert!(Instant::now() < deadline, "no daemon");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn limits() -> Limits {
    Limits::default().timeout(Duration::from_secs(60)).leftovers(LeftoverPolicy::KillAll)
}

/// Runs an engine until its daemon is there, beside one that has started none, and then ends both. Returns the daemon.
async fn run(runner: &Runner, folder: &Path, name: &str, starts_daemons: bool) -> i32 {
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let command = Command::new("sleep", folder).arg("60").limits(limits()).cancel(first.clone());
    let other = runner.start(command.starts_daemons(starts_daemons)).await.unwrap();
    let file = folder.join(name);
    let command = Command::new("sh", folder).args(["-c", ENGINE]).arg(&file).limits(limits());
    let engine = runner.start(command.cancel(second.clone()).starts_daemons(starts_daemons)).await.unwrap();
    let pid = daemon(&file).await;
    for (run, cancel) in [(other, first), (engine, second)] {
        cancel.cancel();
        run.wait_with_output().await.unwrap();
    }
    pid
}

#[tokio::test]
async fn a_daemon_of_one_of_several_engines_ends_with_no_run_and_one_of_another_program_does() {
    let runner = Runner::builder().adopt_orphans().build();
    let folder = tempfile::tempdir().unwrap();
    let own = run(&runner, folder.path(), "own", false).await;
    assert!(!is_alive(own), "what another program leaves behind goes on");
    let daemon_of_one = run(&runner, folder.path(), "one of two", true).await;
    assert!(is_alive(daemon_of_one), "the daemon has ended with a run");
    // Nor with a run that comes later, of whatever kind.
    runner.run(Command::new("true", folder.path())).await.unwrap();
    assert!(is_alive(daemon_of_one), "the daemon has ended with a later run");
    kill_process(Pid::from_raw(daemon_of_one).unwrap(), Signal::KILL).unwrap();
    // An engine that is killed alone leaves nothing.
    let (file, cancel) = (folder.path().join("alone"), CancellationToken::new());
    let command = Command::new("sh", folder.path()).args(["-c", ENGINE]).arg(&file).limits(limits());
    let engine = runner.start(command.cancel(cancel.clone()).starts_daemons(true)).await.unwrap();
    let pid = daemon(&file).await;
    cancel.cancel();
    engine.wait_with_output().await.unwrap();
    assert!(!is_alive(pid), "what only one engine can have started goes on");
}
