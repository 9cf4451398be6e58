//! Scenarios 72 to 78: what a child inherits.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use process_runner::{EnvPolicy, Limits, Runner};
use rustix::process::Signal;

use crate::harness::{LONG, SLOW, ScenarioCase, assert_exited, described, outcome};

pub(crate) async fn s72_a_child_has_three_descriptors(case: ScenarioCase) {
    // As a library opens them that knows nothing of O_CLOEXEC.
    let leaky: Vec<OwnedFd> = (0..200)
        .map(|n| {
            let file = std::fs::File::open("/dev/null").expect("opens");
            if n % 2 == 0 {
                rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).expect("it is open");
            }
            file.into()
        })
        .collect();
    let output = outcome(case.sh("ls /proc/$$/fd")).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "0\n1\n2\n");
    drop(leaky);
}

pub(crate) async fn s73_a_child_has_an_empty_signal_mask(case: ScenarioCase) {
    let blocking = "use POSIX; POSIX::sigprocmask(SIG_BLOCK, POSIX::SigSet->new(1 .. 15)); exec @ARGV or die";
    if case.elsewhere(&["perl", "-e", blocking]) {
        return;
    }
    let own = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
    assert!(!own.contains("SigBlk:\t0000000000000000"), "nothing is blocked here");
    let output = outcome(case.program("grep", &["SigBlk", "/proc/self/status"])).await;
    assert_eq!(output.stdout.text(), "SigBlk:\t0000000000000000\n");
}

pub(crate) async fn s74_a_child_ignores_no_signal(case: ScenarioCase) {
    let ignoring = "$SIG{$_} = 'IGNORE' for qw(PIPE INT HUP QUIT TERM USR1); exec @ARGV or die";
    if case.elsewhere(&["perl", "-e", ignoring]) {
        return;
    }
    let own = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    assert!(!own.contains("SigIgn:\t0000000000000000"), "nothing is ignored here");
    let output = outcome(case.program("grep", &["SigIgn", "/proc/self/status"])).await;
    let text = output.stdout.text().into_owned();
    let ignored = text.trim().strip_prefix("SigIgn:\t").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    // Not 32 and 33: glibc keeps those for itself, lets nobody set them, and ignores them in what it starts.
    assert_eq!(ignored.map(|ignored| ignored & !0x1_8000_0000), Some(0), "{text}");
}

pub(crate) async fn s75_a_child_leads_a_session_without_a_terminal(case: ScenarioCase) {
    let script = "echo $$; cut -d' ' -f1,5,6,7 /proc/$$/stat; echo x > /dev/tty";
    let output = outcome(case.sh(script)).await;
    let text = output.stdout.text().into_owned();
    let (pid, stat) = text.trim_end().split_once('\n').expect("two lines");
    assert_eq!(stat, format!("{pid} {pid} {pid} 0"), "pid, group, session, terminal");
    // ENXIO
    assert!(output.stderr.text().contains("No such device or address"), "{}", described(&output));
}

pub(crate) async fn s76_an_interrupt_at_the_terminal_is_ours_alone(case: ScenarioCase) {
    // A group of its own, as a shell makes it, in which the interrupt of a terminal goes to everyone.
    let group = "use POSIX; setpgrp(0, 0); $SIG{INT} = 'IGNORE'; exec @ARGV or die";
    if case.elsewhere(&["perl", "-e", group]) {
        return;
    }
    let command = case.sh(&format!("trap 'echo interrupted; exit 9' INT; echo > up; sleep {LONG} & wait"));
    let mut running = Runner::new().start(command).await.expect("starts");
    case.wait_for_file("up").await;
    rustix::process::kill_current_process_group(Signal::INT).expect("we are in it");
    assert!(
        tokio::time::timeout(Duration::from_millis(500), running.wait()).await.is_err(),
        "it was interrupted"
    );
    running.terminate();
    let output = running.wait().await.expect("an outcome");
    assert!(output.stdout.is_empty(), "{}", described(&output));
}

pub(crate) async fn s77_the_environment_is_what_was_asked_and_the_rest_is_inherited(case: ScenarioCase) {
    // On Linux each thread has its niceness, so it must be set before the threads are made.
    if case.elsewhere(&["nice", "-n", "3"]) {
        return;
    }
    let variables = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let command = || {
        case.program("/usr/bin/env", &[]).env_policy(EnvPolicy::Clear).env("A", "b c").env_remove("SCENARIO")
    };
    let output = outcome(command()).await;
    let found = variables(&output.stdout.text());
    assert_eq!((found.len(), &*found[0]), (2, "A=b c"), "{found:?}");
    assert!(found[1].starts_with("PROCESS_RUNNER_RUN_") && found[1].ends_with("=1"), "{found:?}");
    let output = outcome(command().marker(false)).await;
    assert_eq!(output.stdout.text(), "A=b c\n");
    let output = outcome(command().env_policy(EnvPolicy::Allow(vec!["PATH".into()])).marker(false)).await;
    let found = variables(&output.stdout.text());
    assert!(found.len() == 2 && found.iter().any(|one| one.starts_with("PATH=")), "{found:?}");

    let old = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
    let nice = rustix::process::nice(0).expect("it changes nothing");
    let own = std::fs::read_to_string("/proc/self/limits").expect("Linux has it");
    let output = outcome(case.sh("umask; nice; pwd -P; cat /proc/$$/limits")).await;
    rustix::process::umask(old);
    let folder = case.dir().canonicalize().expect("it is there");
    assert_eq!(output.stdout.text(), format!("0027\n{nice}\n{}\n{own}", folder.display()));
}

pub(crate) async fn s78_git_fails_instead_of_asking(case: ScenarioCase) {
    // A server that wants a password.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            let mut request = [0; 4096];
            if matches!(connection.read(&mut request), Ok(length) if request[..length].starts_with(b"STOP")) {
                return;
            }
            let _ = connection.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    let url = format!("http://{address}/private.git");
    let command = case.program("git", &["-c", "credential.helper=", "-c", "http.proxy=", "ls-remote", &url]);
    let limits = Limits::default().timeout(Duration::from_secs(60));
    let output = outcome(command.noninteractive().env("NO_PROXY", "*").limits(limits)).await;
    TcpStream::connect(address).and_then(|mut server| server.write_all(b"STOP")).expect("it listens");
    server.join().expect("no panic");
    assert_eq!(output.code(), Some(128), "{}", described(&output));
    assert!(output.stderr.text().contains("terminal prompts disabled"), "{}", described(&output));
    assert!(output.elapsed < SLOW, "{:?}", output.elapsed);
}
