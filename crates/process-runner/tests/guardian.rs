//! Scenario 49: what a run has started dies with us, even if we are killed.
//!
//! A guardian is this very program, started again, so its `main` must be its own: this is a test without
//! the usual harness, which speaks as much of its command line as `cargo test` and nextest need.
#![cfg_attr(not(target_os = "linux"), allow(unused, reason = "looks into /proc"))]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test looks, and fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "that is how a test is listed")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command as StdCommand, Stdio};
use std::time::{Duration, Instant};

use process_runner::guardian::{self, Guardian};
use process_runner::{Command, Runner};

const NAME: &str = "s49_with_a_guardian_the_programs_die_with_us";

fn main() {
    guardian::run_if_requested();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [victim, token] = &arguments[..]
        && victim == "--victim"
    {
        return be_killed(token);
    }
    let ignored = arguments.iter().any(|argument| argument == "--ignored");
    if arguments.iter().any(|argument| argument == "--list") {
        if !ignored {
            println!("{NAME}: test");
        }
        return;
    }
    let wanted =
        arguments.iter().filter(|argument| !argument.starts_with('-')).all(|filter| NAME.contains(&**filter));
    if cfg!(target_os = "linux") && wanted && !ignored {
        programs_die_with_us();
        println!("test {NAME} ... ok");
    }
}

/// Runs programs that would live for minutes, says so, and waits.
fn be_killed(token: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let runner = Runner::builder().guardian(Guardian::current_exe().expect("a path")).build();
        let script =
            "trap '' TERM; setsid sleep 300 & (set -m; sleep 300 & wait) & sleep 300 & echo up; sleep 300";
        let mut runs = Vec::new();
        for _ in 0..3 {
            let command = Command::new("bash", "/").args(["-c", script]).env("SCENARIO", token);
            runs.push(runner.start(command).await.expect("starts"));
        }
        // A finished run has left a quiet daemon, which is to stay.
        let daemon = "setsid sleep 301 </dev/null >/dev/null 2>&1 & exit 0";
        let command = Command::new("bash", "/").args(["-c", daemon]).env("SCENARIO", token);
        assert!(runner.run(command).await.expect("starts").success());
        println!("up");
        for run in &mut runs {
            let _ = run.wait().await;
        }
    });
}

fn programs_die_with_us() {
    let token = format!("s49-{}", std::process::id());
    let own = std::env::current_exe().expect("a path");
    let mut victim = StdCommand::new(own)
        .args(["--victim", &token])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it is this program");
    let mut up = String::new();
    BufReader::new(victim.stdout.take().expect("piped")).read_line(&mut up).expect("it says so");
    assert_eq!(up, "up\n");
    // Three shells with four sleepers each (and the subshells between), and the daemon.
    let begun = Instant::now();
    while sleepers(&token).len() < 13 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", sleepers(&token));
        std::thread::sleep(Duration::from_millis(5));
    }
    victim.kill().expect("it is our child");
    let killed = Instant::now();
    victim.wait().expect("it is our child");
    while sleepers(&token).iter().any(|(_, arguments)| arguments.contains("sleep 300")) {
        // 100 ms on an idle machine.
        assert!(killed.elapsed() < Duration::from_secs(8), "alive: {:?}", sleepers(&token));
        std::thread::sleep(Duration::from_millis(2));
    }
    eprintln!("everything was dead {:?} after the kill", killed.elapsed());
    let left = sleepers(&token);
    assert_eq!(left.len(), 1, "only the daemon stays: {left:?}");
    StdCommand::new("kill").arg(&left[0].0).status().expect("this test needs kill");
}

/// The `sleep` processes with this token in their environment: pid and arguments.
fn sleepers(token: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir("/proc").expect("this test needs /proc");
    let each = |path: &Path| {
        let pid = path.file_name()?.to_str()?.parse::<u32>().ok()?;
        let environment = std::fs::read(path.join("environ")).ok()?;
        let arguments =
            String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        let found = String::from_utf8_lossy(&environment).contains(&format!("SCENARIO={token}"));
        (found && arguments.starts_with("sleep ")).then(|| (pid.to_string(), arguments))
    };
    entries.filter_map(|entry| each(&entry.ok()?.path())).collect()
}
