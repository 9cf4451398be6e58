//! Tests of the core mechanism, one fact each. The complete table of hostile cases is `scenarios`.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out files and may panic, in their helpers too"
)]

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use process_runner::{
    CancellationToken, Command, Containment, EnvPolicy, Error, EventGranularity, EventOptions, ExitStatus,
    LagPolicy, LeftoverPolicy, Limits, OutputLimitAction, RunEvent, Runner, SpawnErrorKind, Stdin, Stream,
    SystemResource, Termination,
};

fn sh(script: &str) -> Command {
    Command::new("/bin/sh", "/").args(["-c", script]).limits(limits())
}

fn limits() -> Limits {
    Limits::default().timeout(Duration::from_secs(30))
}

/// Returns true once there is no process of that id, not even a zombie.
fn gone(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits until `check` is true, which may take a while on a busy machine.
fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let start_time = Instant::now();
    while !check() {
        assert!(start_time.elapsed() < Duration::from_secs(20), "never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn spawn_error(error: Error) -> SpawnErrorKind {
    match error {
        Error::Spawn(error) => error.kind,
        other => panic!("not a start error: {other:?}"),
    }
}

#[tokio::test]
async fn both_streams_and_the_code_come_back() {
    let output = sh("echo out; echo err >&2; exit 3").run().await.unwrap();
    assert_eq!(output.termination, Termination::Exited { code: 3 });
    assert_eq!((output.stdout_text().as_ref(), output.stderr_text().as_ref()), ("out\n", "err\n"));
    assert!(output.stdout.complete && output.stderr.complete);
    assert!(output.leftovers.is_empty());
    assert_eq!(output.containment, Containment::SessionAndMarker);
    assert!(output.usage.is_some() && output.to_exit.is_some());
    assert!(gone(output.pid.unwrap()), "a zombie was left");
}

#[tokio::test]
async fn an_exit_code_of_137_is_not_taken_for_a_signal_and_a_signal_is_not_taken_for_a_code() {
    let output = sh("exit 137").run().await.unwrap();
    assert_eq!(output.termination, Termination::Exited { code: 137 });
    let output = sh("kill -9 $$").run().await.unwrap();
    assert_eq!(output.termination, Termination::Signaled { signal: 9, core: false });
    assert_eq!(output.code(), None);
}

#[tokio::test]
async fn a_program_past_its_limit_is_ended_and_what_it_printed_is_kept() {
    let command = sh("echo before; sleep 60").limits(limits().timeout(Duration::from_millis(300)));
    let output = command.run().await.unwrap();
    let after = Duration::from_millis(300);
    assert_eq!(output.termination, Termination::TimedOut { after, escalated: false });
    assert_eq!(output.status, Some(ExitStatus::Signaled { signal: 15, core: false }));
    assert_eq!(output.stdout_text(), "before\n");
    assert!(output.elapsed >= after && output.elapsed < Duration::from_secs(20), "{:?}", output.elapsed);
    assert!(gone(output.pid.unwrap()));
}

#[tokio::test]
async fn a_program_that_ignores_the_polite_signal_is_killed_after_the_grace_time() {
    let mut limits = limits().timeout(Duration::from_millis(200)).term_grace(Duration::from_millis(300));
    limits.drain_idle = Duration::from_millis(100);
    let output =
        sh("trap '' TERM; echo up; while :; do sleep 0.05; done").limits(limits).run().await.unwrap();
    let after = Duration::from_millis(200);
    assert_eq!(output.termination, Termination::TimedOut { after, escalated: true });
    assert_eq!(output.status, Some(ExitStatus::Signaled { signal: 9, core: false }));
    assert!(output.elapsed >= Duration::from_millis(500));
}

#[tokio::test]
async fn a_stopped_program_is_ended_too() {
    let command = sh("kill -STOP $$; echo never").limits(limits().timeout(Duration::from_millis(300)));
    let output = command.run().await.unwrap();
    assert!(matches!(output.termination, Termination::TimedOut { escalated: false, .. }), "{output:?}");
}

#[tokio::test]
async fn someone_who_keeps_the_pipe_does_not_keep_the_run_and_is_ended() {
    let output = sh("echo before; sleep 50 & echo $!").run().await.unwrap();
    assert_eq!(output.termination, Termination::Exited { code: 0 });
    let text = output.stdout_text();
    let (before, pid) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(before, "before");
    let pid: u32 = pid.parse().unwrap();
    assert_eq!(output.leftovers.len(), 1, "{:?}", output.leftovers);
    let leftover = &output.leftovers[0];
    assert_eq!((leftover.pid, leftover.name.as_str()), (pid, "sleep"));
    assert!(leftover.held_pipe && leftover.killed);
    assert!(output.elapsed < Duration::from_secs(20), "{:?}", output.elapsed);
    eventually("the holder is gone", || gone(pid) || is_zombie(pid));
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

#[tokio::test]
async fn a_daemon_that_has_closed_the_pipes_is_spared_after_an_exit_and_ended_if_asked() {
    let script = "setsid sh -c 'sleep 50 & echo $!' </dev/null 2>&1 | cat; exit 0";
    let script = script.replace("sleep 50 &", "sleep 50 >/dev/null 2>&1 &");
    let spared = sh(&script).run().await.unwrap();
    let pid: u32 = spared.stdout_text().trim().parse().unwrap();
    assert!(!gone(pid) && !is_zombie(pid), "it was not spared");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();

    let ended = sh(&script).limits(limits().leftovers(LeftoverPolicy::KillAll)).run().await.unwrap();
    let pid: u32 = ended.stdout_text().trim().parse().unwrap();
    assert_eq!(ended.termination, Termination::Exited { code: 0 });
    assert!(
        ended.leftovers.iter().any(|leftover| leftover.pid == pid && leftover.killed),
        "{:?}",
        ended.leftovers
    );
    eventually("the daemon is gone", || gone(pid) || is_zombie(pid));
}

#[tokio::test]
async fn jobs_in_groups_and_sessions_of_their_own_end_with_a_timed_out_run() {
    let script =
        "set -m; sleep 50 & echo $!; setsid sleep 51 & (setsid sh -c 'sleep 52 & echo $!' &) ; sleep 53";
    let command = Command::new("bash", "/").args(["-c", script]);
    let output = command.limits(limits().timeout(Duration::from_millis(500))).run().await.unwrap();
    assert!(matches!(output.termination, Termination::TimedOut { .. }));
    let pids: Vec<u32> = output.stdout_text().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2, "{output:?}");
    for pid in pids {
        eventually("an escaped job is gone", || gone(pid) || is_zombie(pid));
    }
}

#[tokio::test]
async fn a_dropped_future_ends_the_tree_without_blocking() {
    let runner = Runner::new();
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let running = runner.start(sh("trap '' TERM; sleep 50 & sleep 50")).await.unwrap();
        let pid = running.pid().unwrap();
        let begun = Instant::now();
        drop(running);
        quickest = quickest.min(begun.elapsed());
        // No await: the runtime does not turn.
        eventually("the leader is reaped", || gone(pid));
    }
    // The quickest of some: any one of them may meet a busy machine.
    assert!(quickest < Duration::from_millis(50), "{quickest:?}");
}

#[test]
fn a_dropped_runtime_ends_its_runs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let runner = Runner::new();
    let running: Vec<_> = runtime.block_on(async {
        let mut running = Vec::new();
        for _ in 0..10 {
            running.push(runner.start(sh("sleep 50")).await.unwrap());
        }
        running
    });
    let pids: Vec<u32> = running.iter().map(|running| running.pid().unwrap()).collect();
    drop(runtime);
    for pid in pids {
        eventually("the leader is reaped", || gone(pid));
    }
    let mut first = running.into_iter().next().unwrap();
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = other.block_on(first.wait());
    assert!(matches!(answer, Err(Error::Io { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_cancelled_token_ends_the_run_and_one_cancelled_before_starts_nothing() {
    let token = CancellationToken::new();
    let runner = Runner::new();
    let mut running = runner.start(sh("echo up; sleep 50").cancel(token.clone())).await.unwrap();
    while running.snapshot(Stream::Stdout, 0, 100).bytes.is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    token.cancel();
    let output = running.wait().await.unwrap();
    assert_eq!(output.termination, Termination::Cancelled { escalated: false });
    assert_eq!(output.stdout_text(), "up\n");
    assert_eq!(running.wait().await.unwrap(), output, "a second wait gives the same");

    let output = sh("echo never").cancel(token).run().await.unwrap();
    assert_eq!((output.termination, output.pid), (Termination::Cancelled { escalated: false }, None));
    let output = sh("echo never").limits(limits().timeout(Duration::ZERO)).run().await.unwrap();
    assert_eq!(output.pid, None);
}

#[tokio::test]
async fn the_output_is_taken_from_a_handle_without_a_copy_and_the_same_as_a_waits() {
    let runner = Runner::new();
    let mut running = runner.start(sh("echo out; exit 3")).await.unwrap();
    let copy = running.wait().await.unwrap();
    let shared = running.output().unwrap();
    assert_eq!(*shared, copy);
    let kept = shared.stdout.bytes().as_ptr();
    drop(shared);
    let taken = running.wait_with_output().await.unwrap();
    assert_eq!(taken, copy);
    assert_eq!(taken.stdout.bytes().as_ptr(), kept, "the bytes were copied");

    let never_started = runner.start(sh("true").limits(limits().timeout(Duration::ZERO))).await.unwrap();
    assert_eq!(never_started.wait_with_output().await.unwrap().pid, None);
}

#[tokio::test]
async fn sixty_four_megabytes_go_in_and_out_without_a_deadlock() {
    let bytes = 64 << 20;
    let command = Command::new("cat", "/").stdin(Stdin::bytes(vec![b'x'; bytes])).limits(limits());
    let output = command.run().await.unwrap();
    assert_eq!(output.stdout.total_bytes, bytes as u64);
    assert_eq!(output.stdout.bytes().len(), 256 * 1024);
    assert_eq!((output.stdin.written, output.stdin.broken_pipe), (bytes as u64, false));
}

#[tokio::test]
async fn input_that_is_not_read_is_reported_and_is_no_error() {
    let command = sh("exit 0").stdin(Stdin::bytes(vec![b'x'; 1 << 20]));
    let output = command.run().await.unwrap();
    assert!(output.success());
    assert!(output.stdin.broken_pipe && output.stdin.written < 1 << 20, "{:?}", output.stdin);
}

#[tokio::test]
async fn standard_input_is_empty_unless_given() {
    let output = sh("cat; readlink /proc/self/fd/0").run().await.unwrap();
    assert_eq!(output.stdout_text(), "/dev/null\n");
}

#[tokio::test]
async fn standard_input_can_be_a_reader_a_file_or_written_by_hand() {
    let (mut writer, reader) = tokio::io::duplex(16);
    let copy = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut writer, &[b'r'; 100_000]).await.unwrap();
    });
    let command = Command::new("wc", "/").arg("-c").stdin(Stdin::reader(reader)).limits(limits());
    assert_eq!(command.clone().run().await.unwrap().stdout_text().trim(), "100000");
    copy.await.unwrap();
    let again = spawn_error(command.run().await.unwrap_err());
    assert!(matches!(again, SpawnErrorKind::InvalidInput { .. }), "{again:?}");

    let file = std::fs::File::open("/proc/self/status").unwrap();
    let command = Command::new("head", "/").args(["-c", "5"]).stdin(Stdin::File(file.into()));
    assert_eq!(command.run().await.unwrap().stdout_text(), "Name:");

    let runner = Runner::new();
    let mut running =
        runner.start(Command::new("cat", "/").stdin(Stdin::Piped).limits(limits())).await.unwrap();
    running.write_stdin(b"by ").await.unwrap();
    running.write_stdin(b"hand").await.unwrap();
    // `wait` closes it.
    let output = running.wait().await.unwrap();
    assert_eq!((output.stdout_text().as_ref(), output.stdin.written), ("by hand", 7));
    assert!(running.write_stdin(b"late").await.is_err());
}

#[tokio::test]
async fn merged_streams_keep_the_order_of_the_writes() {
    let output = sh("for i in 1 2 3 4 5; do echo $i; echo e$i >&2; done").merge_stderr().run().await.unwrap();
    assert_eq!(output.stdout_text(), "1\ne1\n2\ne2\n3\ne3\n4\ne4\n5\ne5\n");
    assert!(output.stderr.is_empty() && output.stderr.complete);
}

#[tokio::test]
async fn a_program_that_prints_too_much_is_killed_and_the_kept_bytes_are_exact() {
    let limits = limits().max_output(1_000_000, OutputLimitAction::Kill).capture(1000);
    let output = sh("yes").limits(limits).run().await.unwrap();
    assert_eq!(output.termination, Termination::OutputLimit { stream: Stream::Stdout });
    assert_eq!((output.stdout.total_bytes, output.stdout.bytes().len()), (1_000_000, 1000));
}

#[tokio::test]
async fn silence_past_the_idle_limit_ends_the_run_and_output_puts_it_off() {
    let idle = Duration::from_millis(800);
    let limits = limits().idle_timeout(idle);
    let script = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.25; done; sleep 50";
    let output = sh(script).limits(limits).run().await.unwrap();
    assert_eq!(output.termination, Termination::IdleTimedOut { after: idle, escalated: false });
    assert_eq!(output.stdout.total_lines, 6);
    assert!(output.elapsed > Duration::from_millis(1250) + idle, "{:?}", output.elapsed);
}

#[tokio::test]
async fn lines_come_as_events_in_order_and_the_last_event_is_the_end() {
    let runner = Runner::new();
    let command = sh("echo a; echo b; printf c").events(EventOptions::default().lag(LagPolicy::Block));
    let mut running = runner.start(command).await.unwrap();
    let mut events = running.events().unwrap();
    let mut lines = Vec::new();
    let mut last = None;
    while let Some(event) = events.recv().await {
        if let RunEvent::Line { text, .. } = &event {
            lines.push(text.clone());
        }
        last = Some(event);
    }
    assert_eq!(lines, ["a", "b", "c"]);
    assert_eq!(last, Some(RunEvent::Finished));
    assert!(running.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_slow_receiver_blocks_its_own_stream_only_and_nothing_is_lost() {
    let runner = Runner::new();
    let options = EventOptions::default()
        .granularity(EventGranularity::Chunk)
        .lag(LagPolicy::Block)
        .max_buffered_bytes(64 * 1024);
    // Standard output is full long before the word on standard error, which must come through.
    let command = sh("(yes | head -c 3000000) & echo word >&2; wait").events(options);
    let mut running = runner.start(command).await.unwrap();
    let mut events = running.events().unwrap();
    let start_time = Instant::now();
    while running.snapshot(Stream::Stderr, 0, 100).bytes.is_empty() {
        assert!(start_time.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!running.is_finished(), "the program was not held back");
    let mut bytes = 0;
    while let Some(event) = events.recv().await {
        match event {
            RunEvent::Chunk { stream: Stream::Stdout, bytes: chunk, .. } => bytes += chunk.len(),
            RunEvent::Lagged { .. } => panic!("lost in block mode"),
            _ => {}
        }
    }
    assert_eq!(bytes, 3_000_000);
    assert_eq!(running.wait().await.unwrap().stdout.total_bytes, 3_000_000);
}

#[tokio::test]
async fn a_slow_receiver_in_drop_mode_is_told_how_much_it_missed() {
    let runner = Runner::new();
    let options = EventOptions::default()
        .granularity(EventGranularity::Chunk)
        .lag(LagPolicy::Drop)
        .max_buffered_bytes(64 * 1024);
    let mut running = runner.start(sh("yes | head -c 3000000").events(options)).await.unwrap();
    let mut events = running.events().unwrap();
    assert_eq!(running.wait().await.unwrap().stdout.total_bytes, 3_000_000);
    let (mut seen, mut missed) = (0, 0);
    while let Some(event) = events.recv().await {
        match event {
            RunEvent::Chunk { bytes, .. } => seen += bytes.len() as u64,
            RunEvent::Lagged { bytes, .. } => missed += bytes,
            _ => {}
        }
    }
    assert_eq!(seen + missed, 3_000_000);
    assert!(missed > 2_000_000);
}

#[tokio::test]
async fn a_panic_in_a_line_callback_reaches_the_caller_and_the_program_is_killed() {
    let pid = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let seen = pid.clone();
    let command = sh("echo $$; sleep 50").on_line(move |_, line| {
        *seen.lock().unwrap() = line.text().into_owned();
        panic!("a bug in the callback");
    });
    let panicked = tokio::spawn(command.run()).await.unwrap_err();
    assert!(panicked.is_panic());
    let pid = pid.lock().unwrap().parse().unwrap();
    eventually("the program is gone", || gone(pid));
}

#[tokio::test]
async fn no_more_run_at_once_than_the_bound_allows() {
    let runner = Runner::builder().max_concurrent(2).build();
    let runs: Vec<_> = (0..8)
        .map(|_| {
            let runner = runner.clone();
            tokio::spawn(async move { runner.run(sh("sleep 0.1")).await.unwrap() })
        })
        .collect();
    let mut most_at_once = 0;
    while runs.iter().any(|run| !run.is_finished()) {
        most_at_once = most_at_once.max(runner.running());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(most_at_once, 2);
    let impatient = Runner::builder().max_concurrent(1).queue_timeout(Duration::from_millis(50)).build();
    let first = impatient.start(sh("sleep 50")).await.unwrap();
    assert!(matches!(impatient.run(sh("true")).await, Err(Error::QueueTimedOut { .. })));
    drop(first);
}

#[tokio::test]
async fn a_shut_down_runner_has_ended_all_its_runs_and_takes_no_more() {
    let runner = Runner::new();
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(runner.start(sh("sleep 50")).await.unwrap());
    }
    let begun = Instant::now();
    runner.shutdown(Duration::from_secs(45)).await;
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    for mut run in runs {
        assert!(run.is_finished());
        assert!(matches!(run.wait().await.unwrap().termination, Termination::Cancelled { escalated: false }));
    }
    assert!(matches!(runner.run(sh("true")).await, Err(Error::ShutDown)));
}

#[tokio::test]
async fn the_child_gets_three_descriptors_default_signals_and_a_session_of_its_own() {
    // Without O_CLOEXEC, as other code in a server may open one.
    let leaky = std::fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&leaky, rustix::io::FdFlags::empty()).unwrap();
    let output = Command::new("ls", "/").arg("/proc/self/fd").run().await.unwrap();
    drop(leaky);
    // The fourth is the one by which `ls` reads the folder.
    assert_eq!(output.stdout_text().split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);

    let output = Command::new("cat", "/").arg("/proc/self/status").run().await.unwrap();
    let text = output.stdout_text();
    for field in ["SigBlk:", "SigIgn:"] {
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        let signals = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        // 32 and 33 are glibc's own, which its posix_spawn leaves ignored in the child.
        assert_eq!(signals & !0x1_8000_0000, 0, "{line}");
    }
    let output = sh("cut -d' ' -f6 /proc/$$/stat; : </dev/tty").run().await.unwrap();
    assert_eq!(output.stdout_text().trim(), output.pid.unwrap().to_string());
    assert!(!output.success(), "there is a terminal");
}

#[tokio::test]
async fn the_environment_is_as_asked_and_one_marker() {
    let env = |command: Command| async {
        let output = command.run().await.unwrap();
        let mut lines: Vec<String> = output.stdout_text().lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("PROCESS_RUNNER_RUN_"));
        (lines, output.stdout.total_lines)
    };
    let command = Command::new("/usr/bin/env", "/").env_policy(EnvPolicy::Clear).env("A", "1").env("B", "2");
    assert_eq!(env(command.clone().env_remove("B")).await, (vec!["A=1".into()], 2));
    assert_eq!(env(command.marker(false)).await, (vec!["A=1".into(), "B=2".into()], 2));
    let command = Command::new("/usr/bin/env", "/").env_policy(EnvPolicy::Allow(vec!["PATH".into()]));
    let (lines, _) = env(command).await;
    assert!(lines.len() == 1 && lines[0].starts_with("PATH="), "{lines:?}");
}

#[tokio::test]
async fn a_folder_given_by_handle_is_used_wherever_its_name_leads_by_now() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::write(one.join("run.sh"), "#!/bin/sh\npwd\n").unwrap();
    make_executable(&one.join("run.sh"));
    let handle: OwnedFd = std::fs::File::open(&one).unwrap().into();
    std::fs::rename(&one, &two).unwrap();
    let command = Command::new("pwd", &one).folder_handle(handle);
    let output = command.clone().run().await.unwrap();
    assert_eq!(output.stdout_text().trim(), two.canonicalize().unwrap().to_str().unwrap());
    // A relative program is below the handle too.
    let mut relative = Command::new("./run.sh", &one);
    relative = relative.folder_handle(OwnedFd::from(std::fs::File::open(&two).unwrap()));
    let output = relative.run().await.unwrap();
    assert_eq!(output.stdout_text().trim(), two.canonicalize().unwrap().to_str().unwrap());
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_start_that_fails_says_exactly_why() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let file = |name: &str, text: &str, executable: bool| {
        std::fs::write(dir.join(name), text).unwrap();
        if executable {
            make_executable(&dir.join(name));
        }
        dir.join(name)
    };
    let plain = file("plain", "#!/bin/sh\n", false);
    let bad = file("bad", "#!/no/such/interpreter -x\n", true);
    let text = file("text", "just text\n", true);
    let empty = file("empty", "", true);
    std::fs::create_dir(dir.join("folder")).unwrap();
    let fail = |command: Command| async {
        let validated = command.validate().map_err(|error| error.kind);
        let kind = spawn_error(command.run().await.unwrap_err());
        if !matches!(kind, SpawnErrorKind::NotRunnable | SpawnErrorKind::ArgsTooLong { .. }) {
            assert_eq!(validated, Err(kind.clone()));
        }
        kind
    };
    let missing = fail(Command::new("./missing", dir)).await;
    assert_eq!(missing, SpawnErrorKind::NotFound { searched: vec![], did_you_mean: None });
    let missing = fail(Command::new("bahs", dir).env("PATH", "/bin:relative::/usr/bin")).await;
    let SpawnErrorKind::NotFound { searched, did_you_mean } = &missing else { panic!("{missing:?}") };
    assert_eq!(searched, &["/bin", "/usr/bin"].map(std::path::PathBuf::from));
    assert_eq!(did_you_mean.as_deref(), Some("bash"));
    // A program of that name in the folder is not found without a `/`.
    assert!(matches!(fail(Command::new("bad", dir).env("PATH", "")).await, SpawnErrorKind::NotFound { .. }));
    assert_eq!(fail(Command::new(&plain, dir)).await, SpawnErrorKind::NotExecutable { path: plain.clone() });
    let folder = dir.join("folder");
    assert_eq!(fail(Command::new(&folder, dir)).await, SpawnErrorKind::IsDirectory { path: folder.clone() });
    let interpreter = "/no/such/interpreter".into();
    assert_eq!(fail(Command::new(&bad, dir)).await, SpawnErrorKind::BadInterpreter { path: interpreter });
    assert_eq!(fail(Command::new(&text, dir)).await, SpawnErrorKind::NotRunnable);
    assert_eq!(fail(Command::new(&empty, dir)).await, SpawnErrorKind::NotRunnable);
    assert_eq!(fail(Command::new("true", dir.join("none"))).await, SpawnErrorKind::CwdNotFound);
    assert_eq!(fail(Command::new("true", &plain)).await, SpawnErrorKind::CwdNotDirectory);
    let nul = fail(Command::new("true", dir).arg("ok").arg("a\0b")).await;
    assert!(matches!(&nul, SpawnErrorKind::InvalidInput { part, .. } if part == "argument 2"), "{nul:?}");
    let bad_key = fail(Command::new("true", dir).env("A=B", "c")).await;
    assert_eq!(bad_key, SpawnErrorKind::InvalidEnv { key: "A=B".into() });
    assert!(Command::new("true", dir).arg("x".repeat(131_071)).run().await.unwrap().success());
    let long = fail(Command::new("true", dir).arg("x").arg("x".repeat(131_072))).await;
    assert_eq!(long, SpawnErrorKind::ArgTooLong { index: 2, length: 131_072, limit: 131_071 });
    let much = fail(Command::new("true", dir).args(vec!["x".repeat(100_000); 90])).await;
    assert!(matches!(much, SpawnErrorKind::ArgsTooLong { length } if length > 9_000_000), "{much:?}");
}

#[tokio::test]
async fn a_file_that_is_being_written_is_tried_again_and_then_reported() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let writer = std::fs::OpenOptions::new().append(true).open(&program).unwrap();
    let short = limits().busy_retry(Duration::from_millis(100));
    let error = Command::new(&program, "/").limits(short).run().await.unwrap_err();
    assert_eq!(spawn_error(error), SpawnErrorKind::Busy);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(writer);
    });
    assert!(Command::new(&program, "/").limits(limits()).run().await.unwrap().success());
    later.join().unwrap();
}

#[tokio::test]
async fn a_failed_run_as_an_error_shows_the_end_of_what_it_said() {
    let output =
        sh("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i >&2; done; exit 7").label("the build").run();
    let error = output.await.unwrap().ensure_success().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("`the build` exited with code 7; the end of stderr:\n  line 3\n"), "{text}");
    assert!(text.ends_with("line 12"), "{text}");
}

#[tokio::test]
async fn debug_text_shows_no_environment_value_and_no_secret_argument() {
    let command = sh("true").env("TOKEN", "value-of-it").arg("open").secret_arg("closed");
    let text = format!("{command:?}");
    assert!(text.contains("TOKEN") && text.contains("open"), "{text}");
    assert!(!text.contains("value-of-it") && !text.contains("closed"), "{text}");
}

/// It runs in a process of its own, since it uses up the descriptors of the whole process.
#[test]
fn out_of_descriptors_is_said_and_nothing_is_left() {
    const ALONE: &str = "PROCESS_RUNNER_TEST_DESCRIPTORS";
    if std::env::var_os(ALONE).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "out_of_descriptors_is_said_and_nothing_is_left", "--nocapture"])
            .env(ALONE, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let open = || std::fs::read_dir("/proc/self/fd").map(Iterator::count);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert!(Command::new("/bin/true", "/").run().await.unwrap().success());
        let before = open().unwrap();
        for free in 0..10 {
            let limit = rustix::process::Rlimit { current: Some((before + 40) as u64), maximum: None };
            let old = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            let limit = rustix::process::Rlimit { maximum: old.maximum, ..limit };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
            let mut taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
            taken.truncate(taken.len().saturating_sub(free));
            let result = Command::new("/bin/true", "/").run().await;
            drop(taken);
            rustix::process::setrlimit(rustix::process::Resource::Nofile, old).unwrap();
            match result {
                Ok(output) => assert!(output.success(), "{output:?}"),
                Err(error) => {
                    let kind = spawn_error(error);
                    assert_eq!(
                        kind,
                        SpawnErrorKind::ResourceLimit { which: SystemResource::Descriptors },
                        "{free} free"
                    );
                    assert!(free < 8, "{free} free are enough");
                }
            }
            assert_eq!(open().unwrap(), before, "with {free} free");
        }
        assert!(Command::new("/bin/true", "/").run().await.unwrap().success());
    });
}

#[cfg(unix)]
#[tokio::test]
async fn both_ends_of_a_conversation_can_be_the_callers_own_pipes() {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    let (child_reads, ours) = std::io::pipe().unwrap();
    let (theirs, child_writes) = std::io::pipe().unwrap();
    let file = |fd: OwnedFd| File::from(fd);
    let command = Command::new("cat", "/")
        .stdin(Stdin::File(std::sync::Arc::new(file(child_reads.into()))))
        .stdout(file(child_writes.into()));
    let mut running = Runner::new().start(command).await.unwrap();
    let echoed = tokio::task::spawn_blocking(move || {
        let (mut ours, mut theirs, mut text) = (ours, theirs, String::new());
        ours.write_all(b"hello").unwrap();
        drop(ours);
        // Ends only where nobody but the program has held the other end.
        theirs.read_to_string(&mut text).unwrap();
        text
    });
    let output = running.wait().await.unwrap();
    assert_eq!(output.status, Some(ExitStatus::Exited { code: 0 }));
    assert_eq!(echoed.await.unwrap(), "hello");
    assert!(output.stdout.is_empty() && output.stdout.complete);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_terminal_given_as_standard_input_controls_the_session() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::os::unix::ffi::OsStringExt;
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = std::path::PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes()));
    let found = sh("tty; (: < /dev/tty) && echo it controls").stdin(Stdin::Terminal(path.clone()));
    let output = found.run().await.unwrap();
    assert_eq!(output.stdout_text(), format!("{}\nit controls\n", path.display()));
    // Another program has none.
    let output = sh("tty; (: < /dev/tty) && echo it controls").run().await.unwrap();
    assert_eq!(output.stdout_text(), "not a tty\n");
}
