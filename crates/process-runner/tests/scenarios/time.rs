//! Scenarios 29 to 51: timeouts, kills and cancels.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use process_runner::{
    Command, Containment, Error, ExitStatus, LeftoverPolicy, Limits, Output, Runner, Termination,
};
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use crate::harness::{
    LONG, SLOW, ScenarioCase, assert_exited, assert_took, children, described, outcome, outcome_if_started,
    signal, until, until_or,
};

const SECOND: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(500);
const TERM: Option<ExitStatus> = Some(ExitStatus::Signaled { signal: 15, core: false });
const KILL: Option<ExitStatus> = Some(ExitStatus::Signaled { signal: 9, core: false });

/// The limits of a program that must be killed.
fn a_second() -> Limits {
    Limits::default().timeout(SECOND).term_grace(GRACE)
}

/// The limits of a program that ends when it is asked to. On a loaded machine it may need a while for that.
fn a_second_and_a_long_grace() -> Limits {
    a_second().term_grace(Duration::from_secs(30))
}

#[track_caller]
fn assert_timed_out(output: &Output, escalated: bool) {
    assert_eq!(
        output.termination,
        Termination::TimedOut { after: SECOND, escalated },
        "{}",
        described(output)
    );
    assert_took(output.elapsed, if escalated { SECOND + GRACE } else { SECOND });
    // Not a moment after the answer: a leader that is waited for is reaped before it.
    assert!(children().iter().all(|child| Some(child.pid.cast_unsigned()) != output.pid), "it is a zombie");
}

pub(crate) async fn s29_a_timeout_ends_a_program_politely(case: ScenarioCase) {
    let output =
        outcome(case.sh(&format!("echo out; exec sleep {LONG}")).limits(a_second_and_a_long_grace())).await;
    assert_timed_out(&output, false);
    assert_eq!((output.status, &*output.stdout.text()), (TERM, "out\n"));
}

pub(crate) async fn s30_a_program_that_ignores_sigterm_is_killed(case: ScenarioCase) {
    let script = format!("trap '' TERM; echo out; sleep {LONG} & sleep {LONG}");
    let output = outcome(case.sh(&script).limits(a_second())).await;
    assert_timed_out(&output, true);
    assert_eq!((output.status, &*output.stdout.text()), (KILL, "out\n"));
    assert!(case.survivors().is_empty());
}

pub(crate) async fn s31_a_program_that_ends_in_time_has_still_timed_out(case: ScenarioCase) {
    let script = format!("trap 'echo bye; exit 0' TERM; sleep {LONG} & wait");
    let output = outcome(case.sh(&script).limits(a_second_and_a_long_grace())).await;
    assert_timed_out(&output, false);
    assert_eq!((output.code(), &*output.stdout.text()), (Some(0), "bye\n"));
}

pub(crate) async fn s32_a_stopped_program_is_ended(case: ScenarioCase) {
    let output = outcome(case.sh("kill -STOP $$; sleep 300").limits(a_second_and_a_long_grace())).await;
    assert_timed_out(&output, false);
    assert_eq!(output.status, TERM);

    // One that is deaf, too; once it is.
    let deaf = r#"$SIG{TERM} = 'IGNORE'; open(my $up, ">", "up"); print $up "
"; close $up;
        while (1) { kill STOP => $$ }"#;
    let limits = Limits::default().term_grace(GRACE);
    let mut running = Runner::new().start(case.perl(deaf).limits(limits)).await.expect("starts");
    case.wait_for_file("up").await;
    running.terminate();
    let output = running.wait().await.expect("an outcome");
    assert_eq!(output.termination, Termination::Cancelled { escalated: true }, "{}", described(&output));
    assert_eq!(output.status, KILL);
}

pub(crate) async fn s33_a_stop_is_not_an_exit(case: ScenarioCase) {
    let mut running =
        Runner::new().start(case.sh("echo $$ > pid; kill -STOP $$; exit 6")).await.expect("starts");
    let pid: i32 = case.wait_for_file("pid").await.trim().parse().expect("a number");
    until("it is stopped", || children().iter().any(|child| child.pid == pid && child.state == 'T')).await;
    assert!(tokio::time::timeout(GRACE, running.wait()).await.is_err(), "it has not ended");
    signal(pid, Signal::CONT);
    assert_exited(&running.wait().await.expect("an outcome"), 6);
}

/// Returns the script of a daemon: two forks, a session of its own, and the code of `closing`.
fn daemon(closing: &str) -> String {
    format!(
        r#"use POSIX; unless (fork) {{ POSIX::setsid(); exit 0 if fork; {closing}
        open(my $file, ">", "daemon"); print $file "$$\n"; close $file; sleep {LONG}; exit 0 }}
        wait; select undef, undef, undef, 0.01 until -s "daemon"; print "started\n"; $| = 1; "#
    )
}

const CLOSED: &str =
    r#"open STDIN, "<", "/dev/null"; open STDOUT, ">", "/dev/null"; open STDERR, ">", "/dev/null";"#;

pub(crate) async fn s34_a_daemon_that_holds_a_pipe_dies_at_the_timeout(case: ScenarioCase) {
    let script = daemon("") + "sleep 300";
    let output = outcome(case.perl(&script).limits(a_second().timeout(3 * SECOND))).await;
    assert_eq!(output.termination, Termination::TimedOut { after: 3 * SECOND, escalated: false });
    assert!(case.dir().join("daemon").exists(), "the daemon was not there in time");
    assert!(case.survivors().is_empty());

    // At an exit it is found out by the pipe, as any other.
    std::fs::remove_file(case.dir().join("daemon")).expect("it was there");
    let output = outcome(case.perl(&(daemon("") + "exit 0"))).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "started\n");
    assert!(case.survivors().is_empty());
    assert_eq!(
        output.leftovers.iter().filter(|leftover| leftover.held_pipe).count(),
        1,
        "{}",
        described(&output)
    );
}

pub(crate) async fn s35_a_quiet_daemon_lives_after_an_exit_and_dies_at_a_timeout(case: ScenarioCase) {
    let quiet = daemon(CLOSED);
    let output = outcome(case.perl(&(quiet.clone() + "exit 0"))).await;
    assert_exited(&output, 0);
    assert!(output.stdout.complete && output.leftovers.is_empty(), "{}", described(&output));
    let left = case.survivors();
    assert_eq!(left.len(), 1, "{left:?}");
    left[0].kill();
    until("the daemon is gone", || case.survivors().is_empty()).await;

    for (ending, limits) in [
        ("exit 0", Limits::default().leftovers(LeftoverPolicy::KillAll)),
        ("sleep 300", a_second().timeout(3 * SECOND)),
    ] {
        std::fs::remove_file(case.dir().join("daemon")).expect("it was there");
        let output = outcome(case.perl(&(quiet.clone() + ending)).limits(limits)).await;
        assert!(case.dir().join("daemon").exists(), "the daemon was not there in time");
        assert!(case.survivors().is_empty(), "{}", described(&output));
    }
}

pub(crate) async fn s36_a_job_in_its_own_group_dies_at_the_timeout(case: ScenarioCase) {
    let script = format!("set -m; sleep {LONG} & echo started; wait");
    let output = outcome(case.bash(&script).limits(a_second_and_a_long_grace())).await;
    assert_timed_out(&output, false);
    assert_eq!(output.stdout.text(), "started\n");
    assert!(case.survivors().is_empty());
}

pub(crate) async fn s37_a_bomb_that_respawns_on_sigterm_is_defused(case: ScenarioCase) {
    // 40 at first; each forks two more when it is told to end, twice: at most 280, in sessions of their own.
    let script = r#"
        use POSIX;
        my $generation = 0;
        $SIG{TERM} = sub { if ($generation++ < 2) { for (1..2) { fork or POSIX::setsid() } } };
        for (1..39) { unless (fork) { POSIX::setsid(); last } }
        while (1) { sleep 300 }"#;
    let output = outcome(case.perl(script).limits(a_second().timeout(4 * SECOND))).await;
    assert_eq!(output.termination, Termination::TimedOut { after: 4 * SECOND, escalated: true });
    assert!(case.survivors().is_empty());
    assert!(
        output.leftovers.iter().filter(|leftover| leftover.killed).count() >= 39,
        "{}",
        output.leftovers.len()
    );
}

pub(crate) async fn s38_an_escapee_without_environment_is_admitted_in_the_containment(case: ScenarioCase) {
    // `env -i` takes the marker away. The token in its arguments is for this test alone.
    let script = format!(
        r#"use POSIX; unless (fork) {{ POSIX::setsid(); exit 0 if fork; {CLOSED} %ENV = ();
        exec "/usr/bin/env", "-i", "/bin/sh", "-c", "echo \$\$ > daemon; sleep {LONG}; : $ARGV[0]" }}
        wait; select undef, undef, undef, 0.01 until -s "daemon"; sleep {LONG}"#
    );
    let command = case.perl(&script).arg(case.token());
    let output = outcome(command.limits(a_second().timeout(3 * SECOND))).await;
    assert_eq!(output.termination, Termination::TimedOut { after: 3 * SECOND, escalated: false });
    assert_eq!(output.containment, Containment::SessionAndMarker);
    // Its own child carries no token, so it is found as the child of the one that does.
    let left = case.survivors();
    assert_eq!(left.len(), 1, "if it were found now the containment could say more: {left:?}");
    for process in crate::harness::processes() {
        if process.parent == left[0].pid {
            process.kill();
        }
    }
    left[0].kill();
}

pub(crate) async fn s39_a_process_of_another_user_is_unkillable_and_hangs_nobody(case: ScenarioCase) {
    // Only root can set this up: a program that becomes root for good, and us as nobody.
    if !rustix::process::getuid().is_root() && std::env::var_os("SCENARIO_ELSEWHERE").is_none() {
        eprintln!("not run: only root can make a program that another user cannot kill");
        return;
    }
    let folder = Path::new("/tmp").join(format!("process-runner-{}", std::process::id()));
    if std::env::var_os("SCENARIO_ELSEWHERE").is_none() {
        let program = prepare_for_nobody(&folder);
        let done = case.elsewhere_as(&AS_NOBODY, &program);
        std::fs::remove_dir_all(&folder).expect("it is ours");
        assert!(done);
        return;
    }
    let suid = std::env::current_exe().expect("a path").with_file_name("suid-setpriv");
    // Real, effective and saved user become 0, as with sudo: kill(2) then gives EPERM.
    let script = "id -ru; trap '' TERM; exec sleep 8";
    let command = Command::new(suid, "/").args(["--reuid", "0", "sh", "-c", script]);
    let output = outcome(command.limits(a_second())).await;
    assert_eq!(output.stdout.text(), "0\n", "is /tmp mounted nosuid? {}", described(&output));
    let Termination::Unkillable { pids } = &output.termination else { panic!("{}", described(&output)) };
    assert_eq!(pids, &[output.pid.expect("it started")]);
    assert_eq!(output.status, None);
    assert!(
        output.elapsed >= SECOND + GRACE && output.elapsed < Duration::from_millis(7900),
        "{:?}",
        output.elapsed
    );
    // The background thread owns it now, and no zombie is left when it ends by itself.
    until("it has been reaped", || children().is_empty()).await;
}

/// A command line that becomes nobody, for good and without privileges, and goes on as another program.
pub(crate) const AS_NOBODY: [&str; 3] = [
    "perl",
    "-e",
    "$) = '65534 65534'; $( = 65534; ($<, $>) = (65534, 65534); chdir '/tmp'; exec @ARGV or die",
];

/// Copies this program and a set-user-id root `setpriv` to where the user nobody can start them.
pub(crate) fn prepare_for_nobody(folder: &Path) -> PathBuf {
    std::fs::create_dir(folder).expect("a new folder");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let program = folder.join("scenarios");
    std::fs::copy(std::env::current_exe().expect("a path"), &program).expect("copies");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let suid = folder.join("suid-setpriv");
    std::fs::copy("/usr/bin/setpriv", &suid).expect("this test needs /usr/bin/setpriv");
    std::fs::set_permissions(&suid, PermissionsExt::from_mode(0o4755)).expect("it is ours");
    program
}

pub(crate) async fn s42_what_is_over_before_it_begins_is_not_started(case: ScenarioCase) {
    let output = outcome(case.sh("touch started").limits(Limits::default().timeout(Duration::ZERO))).await;
    assert_eq!(output.termination, Termination::TimedOut { after: Duration::ZERO, escalated: false });
    assert_eq!((output.pid, output.status), (None, None));

    let token = CancellationToken::new();
    token.cancel();
    let output = outcome(case.sh("touch started").cancel(token)).await;
    assert_eq!(output.termination, Termination::Cancelled { escalated: false });
    assert_eq!((output.pid, output.status), (None, None));
    assert!(!case.dir().join("started").exists());
}

pub(crate) async fn s43_a_cancel_is_obeyed_in_every_phase(case: ScenarioCase) {
    let polite = Termination::Cancelled { escalated: false };

    // In the queue.
    let runner = Runner::builder().max_concurrent(1).build();
    let first = runner.start(case.program("sleep", &[LONG])).await.expect("starts");
    let token = CancellationToken::new();
    let queued = tokio::spawn({
        let (runner, command) = (runner.clone(), case.sh("touch started").cancel(token.clone()));
        async move { runner.run(command).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    token.cancel();
    let output = queued.await.expect("no panic").expect("an outcome");
    assert_eq!((output.termination, output.pid), (polite.clone(), None));
    drop(first);

    // At the start: at whatever moment it comes, it is a cancel, and nothing is left.
    for delay in 0..20 {
        let token = CancellationToken::new();
        let run = tokio::spawn(outcome(case.program("sleep", &[LONG]).cancel(token.clone())));
        tokio::time::sleep(Duration::from_micros(delay * 100)).await;
        token.cancel();
        assert_eq!(run.await.expect("no panic").termination, polite);
    }

    // While it runs: with what it has printed.
    let token = CancellationToken::new();
    let command = case.sh(&format!("echo out; touch ready; echo > up; exec sleep {LONG}"));
    let run = tokio::spawn(outcome(command.cancel(token.clone())));
    case.wait_for_file("up").await;
    token.cancel();
    let output = run.await.expect("no panic");
    assert_eq!((&output.termination, output.status, &*output.stdout.text()), (&polite, TERM, "out\n"));

    // During the grace time: again, and it is killed at once.
    let script =
        format!("trap 'echo > asked' TERM; echo out; echo > deaf; while :; do sleep {LONG} & wait; done");
    let limits = Limits::default().term_grace(Duration::from_secs(100));
    let mut running = Runner::new().start(case.sh(&script).limits(limits)).await.expect("starts");
    case.wait_for_file("deaf").await;
    running.terminate();
    case.wait_for_file("asked").await;
    assert!(!running.is_finished());
    running.kill();
    let output = running.wait().await.expect("an outcome");
    assert_eq!((&output.termination, output.status), (&Termination::Cancelled { escalated: true }, KILL));
    assert!(output.elapsed < 3 * SLOW, "{:?}", output.elapsed);

    // While the streams drain: the program has ended by itself, and all it printed is there.
    let token = CancellationToken::new();
    let long = Limits::default().drain(Duration::from_secs(100), Duration::from_secs(100));
    let command = case.sh(&format!("echo out; sleep {LONG} & echo > done; exit 0"));
    let run = tokio::spawn(outcome(command.limits(long).cancel(token.clone())));
    case.wait_for_file("done").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    token.cancel();
    let output = run.await.expect("no panic");
    assert_eq!(output.stdout.text(), "out\n", "{}", described(&output));
    assert!(output.elapsed < 3 * SLOW, "{:?}", output.elapsed);
    assert!(matches!(output.termination, Termination::Cancelled { .. } | Termination::Exited { code: 0 }));
    assert!(case.survivors().is_empty());
}

pub(crate) async fn s44_exit_and_timeout_at_once_give_one_of_them_with_all_output(case: ScenarioCase) {
    // As many on each of the two runtimes.
    const RUNS: u64 = crate::rounds(500, 10_000);
    // How long the program takes here and now: about a millisecond.
    let mut times = Vec::new();
    for _ in 0..20 {
        times.push(outcome(case.program("echo", &["out"])).await.to_exit.expect("it exited"));
    }
    times.sort();
    let usual = times[10];
    let (exited, timed_out) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut runs = tokio::task::JoinSet::new();
    for n in 0..RUNS {
        if runs.len() >= 8 {
            runs.join_next().await.expect("eight run").expect("no panic");
        }
        // From 1 ms less to 1 ms more, in steps of 20 microseconds.
        let timeout =
            usual.saturating_sub(Duration::from_millis(1)) + Duration::from_micros(1 + n % 101 * 20);
        let command = case.program("echo", &["out"]).limits(Limits::default().timeout(timeout));
        let (exited, timed_out) = (Arc::clone(&exited), Arc::clone(&timed_out));
        runs.spawn(async move {
            let Some(output) = outcome_if_started(command).await else {
                timed_out.fetch_add(1, Ordering::Relaxed);
                return;
            };
            match output.termination {
                Termination::Exited { code: 0 } => {
                    exited.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(output.stdout.text(), "out\n", "{}", described(&output));
                }
                Termination::TimedOut { after, escalated: false } => {
                    timed_out.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(after, timeout);
                    assert!(matches!(&*output.stdout.text(), "" | "out\n"));
                }
                other => panic!("{other:?}"),
            }
        });
    }
    while let Some(run) = runs.join_next().await {
        run.expect("no panic");
    }
    let (exited, timed_out) = (exited.load(Ordering::Relaxed), timed_out.load(Ordering::Relaxed));
    assert_eq!(u64::from(exited + timed_out), RUNS);
    assert!(exited > 0 && timed_out > 0, "{exited} exited, {timed_out} timed out: they never met");
}

pub(crate) async fn s45_a_dropped_future_ends_the_tree_without_blocking(case: ScenarioCase) {
    // The program and its child ignore what is polite.
    let script = format!("trap '' TERM HUP INT; sleep {LONG} & echo > up; sleep {LONG}");
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let mut run = Box::pin(case.sh(&script).run());
        tokio::select! {
            _ = &mut run => panic!("it does not end"),
            _ = case.wait_for_file("up") => {}
        }
        let start_time = Instant::now();
        drop(run);
        quickest = quickest.min(start_time.elapsed());
        std::fs::remove_file(case.dir().join("up")).expect("it was there");

        let running = Runner::new().start(case.sh(&script)).await.expect("starts");
        case.wait_for_file("up").await;
        let start_time = Instant::now();
        drop(running);
        quickest = quickest.min(start_time.elapsed());
        std::fs::remove_file(case.dir().join("up")).expect("it was there");
    }
    assert!(quickest < Duration::from_millis(1), "{quickest:?}");
    until("the trees are gone", || case.survivors().is_empty() && children().is_empty()).await;
}

pub(crate) async fn s46_a_dropped_runtime_ends_its_runs(case: ScenarioCase) {
    let inner = case.clone();
    let thread = std::thread::spawn(move || {
        for builder in
            [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()]
        {
            let mut builder = builder;
            let runtime = builder.enable_all().build().expect("a runtime");
            runtime.block_on(async {
                for _ in 0..25 {
                    let command = inner.sh(&format!("trap '' TERM; sleep {LONG} & sleep {LONG}"));
                    let mut running = Runner::new().start(command).await.expect("starts");
                    tokio::spawn(async move { running.wait().await });
                }
                inner.wait_for_survivors(25).await;
            });
            drop(runtime);
        }
    });
    // Here nothing turns that knows of those runs.
    tokio::task::spawn_blocking(|| thread.join()).await.expect("no panic").expect("no panic");
    until_or("the trees are gone", SLOW, || {
        let (alive, children) = (case.survivors(), children());
        if alive.is_empty() && children.is_empty() { Ok(()) } else { Err(format!("{alive:?}\n{children:?}")) }
    })
    .await;
}

pub(crate) async fn s47_a_shutdown_ends_all_runs_at_once(case: ScenarioCase) {
    let runner = Runner::builder().max_concurrent(50).build();
    let mut runs = tokio::task::JoinSet::new();
    for n in 0..52 {
        let (runner, case) = (runner.clone(), case.clone());
        runs.spawn(async move {
            // Every second one is deaf to SIGTERM; the last two wait in the queue.
            let trap = if n % 2 == 0 { "trap '' TERM; " } else { "" };
            runner.run(case.sh(&format!("{trap}echo out; sleep {LONG}"))).await
        });
    }
    case.wait_for_survivors(100).await;
    until("all run", || runner.running() == 50).await;
    let start_time = Instant::now();
    runner.shutdown(GRACE).await;
    assert_took(start_time.elapsed(), GRACE);
    assert!(case.survivors().is_empty());
    let mut ended = [0_u32; 3];
    while let Some(run) = runs.join_next().await {
        match run.expect("no panic") {
            Ok(output) => match output.termination {
                Termination::Cancelled { escalated } => {
                    assert_eq!(output.stdout.text(), "out\n");
                    ended[usize::from(escalated)] += 1;
                }
                other => panic!("{other:?}"),
            },
            Err(Error::ShutDown) => ended[2] += 1,
            Err(other) => panic!("{other}"),
        }
    }
    // Which two were in the queue is not known.
    assert!(ended[0] + ended[1] == 50 && ended[1].abs_diff(25) <= 2 && ended[2] == 2, "{ended:?}");
    assert!(matches!(runner.run(case.program("true", &[])).await, Err(Error::ShutDown)));

    // What was dropped or cancelled before is not left to live on: a process that shuts down ends right afterwards.
    let script = format!("trap '' TERM; setsid sleep {LONG} & echo > up; sleep {LONG}");
    for delay in 0..10 {
        let runner = Runner::new();
        let running = runner.start(case.sh(&script)).await.expect("starts");
        case.wait_for_file("up").await;
        drop(running);
        let token = CancellationToken::new();
        let limits = Limits::default().term_grace(Duration::from_millis(50));
        let starting = runner.run(case.sh(&script).limits(limits).cancel(token.clone()));
        tokio::join!(
            async {
                let output = starting.await.expect("an outcome");
                assert!(
                    matches!(output.termination, Termination::Cancelled { .. }),
                    "{}",
                    described(&output)
                );
            },
            async {
                tokio::time::sleep(Duration::from_micros(delay * 200)).await;
                token.cancel();
            }
        );
        runner.shutdown(GRACE).await;
        assert!(case.survivors().is_empty(), "{:?}", case.survivors());
        std::fs::remove_file(case.dir().join("up")).expect("it was there");
    }
}

pub(crate) async fn s48_a_panic_in_a_callback_ends_the_run_and_goes_on_at_the_caller(case: ScenarioCase) {
    let command =
        case.sh(&format!("sleep {LONG} & echo one; sleep {LONG}")).on_line(|_, _| panic!("in the callback"));
    let panic = tokio::spawn(command.run()).await.expect_err("it goes on here").into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"in the callback"));
    until("the tree is gone", || case.survivors().is_empty() && children().is_empty()).await;
}

pub(crate) async fn s50_the_idle_clock_starts_again_with_each_output(case: ScenarioCase) {
    let idle = Duration::from_millis(1500);
    let script = format!("for n in 1 2 3 4 5; do echo $n; sleep 0.5; done; echo end; exec sleep {LONG}");
    let output = outcome(case.sh(&script).limits(Limits::default().idle_timeout(idle))).await;
    assert_eq!(output.termination, Termination::IdleTimedOut { after: idle, escalated: false });
    assert!(output.stdout.text().ends_with("end\n"), "{}", described(&output));
    assert_took(output.elapsed, Duration::from_millis(2500) + idle);
}

pub(crate) async fn s51_only_the_monotonic_clock_is_read(_: ScenarioCase) {
    // Stepping the clock of a machine under test would disturb everything else on it; what cannot be read
    // cannot be stepped on.
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("reads").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("it is text");
            files += 1;
            for word in ["SystemTime", "UNIX_EPOCH", "ClockId::Realtime", "CLOCK_REALTIME"] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        }
    }
    assert!(files > 10);
}
