//! Scenarios 52 to 59: many runs at once, and a system that refuses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use process_runner::{EnvPolicy, Error, ExitStatus, Limits, Runner, SpawnErrorKind, Stdin, Termination};
use rustix::process::{Resource as Limited, Rlimit, Signal, WaitOptions, getrlimit, setrlimit};
use tokio::task::JoinSet;

use crate::harness::{
    LONG, SLOW, ScenarioCase, assert_exited, children, descriptors, memory, outcome, own_cpu, signal, until,
    until_or,
};
use crate::time::{AS_NOBODY, prepare_for_nobody};
use crate::{harness, pipes, time};

/// This is none of the 86, but several of them rely on it: every start is a `posix_spawn`.
#[test]
fn a_start_costs_the_same_with_a_gibibyte_in_use() {
    async fn start(case: ScenarioCase) {
        const RUNS: u32 = 40;
        for command in [
            case.program("true", &[]),
            // Where the standard library falls back to a fork: a bare name and another environment.
            case.program("true", &[]).env_policy(EnvPolicy::Clear).env("PATH", "/usr/bin:/bin"),
            case.program("true", &[]).stdin(Stdin::bytes("x")).merge_stderr(),
        ] {
            let cpu = own_cpu();
            for _ in 0..RUNS {
                assert_exited(&outcome(command.clone()).await, 0);
            }
            let each = (own_cpu() - cpu) / RUNS;
            // A fork copies the page tables: 10 to 30 ms for a gibibyte.
            assert!(each < Duration::from_millis(5), "{each:?} of our own for each start");
        }
    }
    harness::big_parent("scale::a_start_costs_the_same_with_a_gibibyte_in_use", start);
}

pub(crate) async fn s52_thousands_of_short_runs_leave_nothing_behind(case: ScenarioCase) {
    // 10,000 with both runtimes in the target `stress`.
    const RUNS: u32 = crate::rounds(1000, 5000);
    let command = case.program("true", &[]);
    let (fds, cpu) = (descriptors().len(), own_cpu());
    let mut runs = JoinSet::new();
    let mut resident = 0;
    for n in 0..RUNS {
        if runs.len() >= 16 {
            assert_exited(&runs.join_next().await.expect("16 run").expect("no panic"), 0);
        }
        if n == 500 {
            resident = memory().0; // the allocator and the runtime have what they need
        }
        runs.spawn(outcome(command.clone()));
    }
    while let Some(run) = runs.join_next().await {
        assert_exited(&run.expect("no panic"), 0);
    }
    let cpu = (own_cpu() - cpu) / RUNS;
    assert!(children().is_empty(), "{:?}", children());
    assert!(descriptors().len() <= fds);
    assert!(memory().0 <= resident + 4096, "{} KiB after {resident}", memory().0);
    // 90 us is the target of an optimised build: see the benchmark.
    assert!(cpu < Duration::from_millis(2), "{cpu:?} of our own for each");
}

pub(crate) async fn s53_500_programs_that_end_one_by_one_are_all_seen(case: ScenarioCase) {
    const RUNS: usize = 500;
    let old = getrlimit(Limited::Nofile);
    let wanted = old.maximum.unwrap_or(8192).min(8192);
    setrlimit(Limited::Nofile, Rlimit { current: Some(wanted), maximum: old.maximum })
        .expect("up to the hard limit");
    let runner = Runner::builder().max_concurrent(RUNS).build();
    let mut pids = Vec::new();
    let mut runs = JoinSet::new();
    for _ in 0..RUNS {
        let mut running = runner.start(case.program("sleep", &[LONG])).await.expect("starts");
        pids.push(running.pid().expect("it has started"));
        runs.spawn(async move { running.wait().await.expect("an outcome") });
    }
    let cpu = own_cpu();
    for pid in pids {
        signal(pid.cast_signed(), Signal::KILL);
        let output = runs.join_next().await.expect("one has ended").expect("no panic");
        assert_eq!(
            (output.termination, output.pid),
            (Termination::Signaled { signal: 9, core: false }, Some(pid))
        );
    }
    let each = (own_cpu() - cpu) / u32::try_from(RUNS).expect("a small number");
    assert!(each < Duration::from_millis(2), "{each:?} of our own for each");
    drop(runs);
    setrlimit(Limited::Nofile, old).expect("as it was");
}

pub(crate) async fn s54_a_bound_on_runs_holds_and_is_first_come_first_served(case: ScenarioCase) {
    let runner = Runner::builder().max_concurrent(4).build();
    let mut runs = JoinSet::new();
    let most_at_once = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let (queue, most_at_once) = (runner.clone(), Arc::clone(&most_at_once));
        let command = case.program("sleep", &["0.02"]);
        runs.spawn(async move {
            let mut running = queue.start(command).await.expect("starts");
            most_at_once.fetch_max(queue.running(), Ordering::Relaxed);
            running.wait().await.expect("an outcome")
        });
    }
    while let Some(run) = runs.join_next().await {
        assert_exited(&run.expect("no panic"), 0);
        assert!(runner.running() <= 4);
    }
    assert!(most_at_once.load(Ordering::Relaxed) <= 4, "{most_at_once:?} at once");

    // The order, where only one runs at once: each notes its number before it lets the next one begin. Of several at once
    // the scheduler decides which goes on first.
    let runner = Runner::builder().max_concurrent(1).build();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut runs = JoinSet::new();
    let first = runner.start(case.program("sleep", &[LONG])).await.expect("starts");
    for n in 0..30 {
        let (queue, order, command) = (runner.clone(), Arc::clone(&order), case.program("true", &[]));
        let mut run = Box::pin(async move {
            let mut running = queue.start(command).await.expect("starts");
            order.lock().expect("no panic").push(n);
            running.wait().await.expect("an outcome")
        });
        // Asked for one after the other, whichever thread goes on with it.
        let first_poll = std::future::poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await;
        assert!(first_poll.is_pending());
        runs.spawn(run);
    }
    drop(first);
    while let Some(run) = runs.join_next().await {
        assert_exited(&run.expect("no panic"), 0);
    }
    assert_eq!(*order.lock().expect("no panic"), (0..30).collect::<Vec<_>>());

    // Waiting does not count against the timeout, and has its own limit.
    let runner = Runner::builder().max_concurrent(1).queue_timeout(Duration::from_secs(60)).build();
    let first = runner.start(case.program("sleep", &["1.5"])).await.expect("starts");
    let waiting = runner.run(case.sh("exit 2").limits(Limits::default().timeout(Duration::from_secs(1))));
    let (first, second) = tokio::join!(async move { { first }.wait().await }, waiting);
    assert_exited(&first.expect("an outcome"), 0);
    let second = second.expect("an outcome");
    // On a machine so loaded that `sh` takes a second this would be a timeout, rightly.
    assert_exited(&second, 2);
    assert!(second.queued >= Duration::from_secs(1), "{:?}", second.queued);

    let short = Duration::from_millis(100);
    let runner = Runner::builder().max_concurrent(1).queue_timeout(short).build();
    let first = runner.start(case.program("sleep", &[LONG])).await.expect("starts");
    match runner.run(case.sh("touch started").label("second")).await {
        Err(Error::QueueTimedOut { label, after }) => assert_eq!((&*label, after), ("second", short)),
        other => panic!("{other:?}"),
    }
    drop(first);
    assert!(!case.dir().join("started").exists());
}

pub(crate) async fn s55_without_descriptors_nothing_starts_and_nothing_leaks(case: ScenarioCase) {
    let old = getrlimit(Limited::Nofile);
    let before = descriptors().len();
    setrlimit(Limited::Nofile, Rlimit { current: Some(300), maximum: old.maximum }).expect("lower");
    let mut refused = 0;
    for free in 0..12 {
        let mut taken = Vec::new();
        while let Ok(null) = std::fs::File::open("/dev/null") {
            taken.push(null);
        }
        taken.truncate(taken.len() - free);
        let result = case.sh("echo out").run().await;
        drop(taken);
        match result {
            Err(Error::Spawn(error)) => {
                let which = process_runner::SystemResource::Descriptors;
                assert_eq!(
                    error.kind,
                    SpawnErrorKind::ResourceLimit { which },
                    "with {free} free: {error:?}"
                );
                refused += 1;
            }
            Ok(output) => assert_eq!(output.stdout.text(), "out\n"),
            Err(other) => panic!("with {free} free: {other:?}"),
        }
        until("nothing is left", || children().is_empty() && descriptors().len() <= before).await;
    }
    assert!((1..12).contains(&refused), "{refused} refused");
    setrlimit(Limited::Nofile, old).expect("as it was");
}

pub(crate) async fn s56_without_processes_the_start_is_tried_again_and_then_refused(case: ScenarioCase) {
    // The limit does not bind root.
    if std::env::var_os("SCENARIO_ELSEWHERE").is_none() && rustix::process::getuid().is_root() {
        let folder = std::path::Path::new("/tmp").join(format!("process-runner-{}", std::process::id()));
        let program = prepare_for_nobody(&folder);
        let done = case.elsewhere_as(&AS_NOBODY, &program);
        std::fs::remove_dir_all(&folder).expect("it is ours");
        assert!(done);
        return;
    }
    let old = getrlimit(Limited::Nproc);
    let none = Rlimit { current: Some(0), maximum: old.maximum };
    // Threads count too: the one that starts programs is there after this.
    outcome(case.program("true", &[])).await;
    setrlimit(Limited::Nproc, none).expect("lower");
    let start_time = Instant::now();
    let error = case.program("true", &[]).run().await.expect_err("no process is allowed");
    setrlimit(Limited::Nproc, old).expect("as it was");
    let Error::Spawn(error) = error else { panic!("{error:?}") };
    assert_eq!(
        error.kind,
        SpawnErrorKind::ResourceLimit { which: process_runner::SystemResource::Processes }
    );
    assert!(start_time.elapsed() >= Duration::from_millis(5 + 25 + 125), "{:?}", start_time.elapsed());

    setrlimit(Limited::Nproc, none).expect("lower");
    let (run, ()) = tokio::join!(case.program("true", &[]).run(), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        setrlimit(Limited::Nproc, old).expect("as it was");
    });
    assert_exited(&run.expect("the third or fourth attempt succeeds"), 0);
}

pub(crate) async fn s57_a_status_that_another_part_takes_is_unknown_and_hangs_nobody(case: ScenarioCase) {
    let ignoring = ["perl", "-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV or die"];
    if !case.elsewhere(&ignoring) {
        // In the other process the kernel reaps for us.
        let output = outcome(case.sh("echo out; exit 3")).await;
        assert_eq!(
            (output.termination.clone(), output.status),
            (Termination::Unknown, Some(ExitStatus::Unknown))
        );
        assert_eq!(output.stdout.text(), "out\n");
        let limits = Limits::default().timeout(Duration::from_secs(1));
        let output = outcome(case.program("sleep", &[LONG]).limits(limits)).await;
        assert!(matches!(output.termination, Termination::TimedOut { .. }), "{output:?}");
        return;
    }

    // Another part that waits for any child.
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let thief = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut stolen = 0;
            while !stop.load(Ordering::Relaxed) {
                match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => stolen += 1,
                    _ => std::thread::yield_now(),
                }
            }
            stolen
        }
    });
    let mut unknown = 0;
    for _ in 0..200 {
        let output = outcome(case.sh("echo out; exit 3")).await;
        assert_eq!(output.stdout.text(), "out\n");
        match output.termination {
            Termination::Exited { code: 3 } => {}
            Termination::Unknown => unknown += 1,
            other => panic!("{other:?}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    let stolen = thief.join().expect("no panic");
    assert_eq!(unknown, stolen, "a status is known unless it was taken");
}

pub(crate) async fn s58_without_pidfd_everything_holds(case: ScenarioCase) {
    // A seccomp filter that refuses pidfd_open, which has number 434 everywhere (seccomp(2), prctl(2)).
    let filter = r#"
        my $prctl = { x86_64 => 157, aarch64 => 167 }->{`uname -m` =~ s/\s//r} or die "not known here";
        my $program = pack("SCCL" x 4, 0x20, 0, 0, 0, 0x15, 0, 1, 434, 0x06, 0, 0, 0x00050001, 0x06, 0, 0, 0x7fff0000);
        my $filter = pack("S x6 P", 4, $program);
        syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
        syscall($prctl, 22, 2, $filter) == 0 or die "seccomp: $!";
        exec @ARGV or die"#;
    if case.elsewhere(&["perl", "-e", filter]) {
        return;
    }
    let own = rustix::process::getpid();
    assert!(
        rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty()).is_err(),
        "the filter is not on"
    );
    let output = outcome(case.sh("echo out; exit 3")).await;
    assert_exited(&output, 3);
    pipes::s04_a_stream_closed_early_ends_nothing_and_costs_nothing(case.clone()).await;
    pipes::s05_both_streams_closed_are_no_exit(case.clone()).await;
    pipes::s06_a_silent_holder_of_a_pipe_is_ended_after_the_idle_clock(case.clone()).await;
    time::s29_a_timeout_ends_a_program_politely(case.clone()).await;
    time::s30_a_program_that_ignores_sigterm_is_killed(case.clone()).await;
    time::s32_a_stopped_program_is_ended(case.clone()).await;
    time::s33_a_stop_is_not_an_exit(case.clone()).await;
    time::s35_a_quiet_daemon_lives_after_an_exit_and_dies_at_a_timeout(case.clone()).await;
    time::s36_a_job_in_its_own_group_dies_at_the_timeout(case.clone()).await;
    time::s45_a_dropped_future_ends_the_tree_without_blocking(case.clone()).await;
    time::s47_a_shutdown_ends_all_runs_at_once(case.clone()).await;
    let mut runs = JoinSet::new();
    for _ in 0..100 {
        runs.spawn(outcome(case.program("true", &[])));
    }
    while let Some(run) = runs.join_next().await {
        assert_exited(&run.expect("no panic"), 0);
    }
}

pub(crate) async fn s59_the_zombies_of_others_are_left_alone(case: ScenarioCase) {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("Linux has it");
    // An orphan of ours, and one of a run, both adopted by us.
    let output = std::process::Command::new("sh")
        .args(["-c", "sleep 0.1 >/dev/null & echo $!"])
        .output()
        .expect("this test needs sh");
    let text = String::from_utf8(output.stdout).expect("a number");
    let stranger: i32 = text.trim().parse().expect("a number");
    let zombie = |pid: i32| children().into_iter().any(|child| child.pid == pid && child.state == 'Z');
    until("the stranger has ended", || zombie(stranger)).await;
    for _ in 0..20 {
        assert_exited(&outcome(case.sh("exit 7")).await, 7);
    }
    assert!(zombie(stranger), "it was not ours to reap");
    let pid = rustix::process::Pid::from_raw(stranger).expect("not 0");
    rustix::process::waitpid(Some(pid), WaitOptions::empty()).expect("it is a zombie");

    let limits = Limits::default().timeout(Duration::from_secs(1));
    outcome(case.sh(&format!("setsid sleep {LONG} & sleep {LONG}")).limits(limits)).await;
    assert!(case.survivors().is_empty());
    rustix::process::set_child_subreaper(None).expect("Linux has it");
    // What the run left was adopted by this process, whose business it is now.
    until_or("only zombies are left", SLOW, || {
        let left: Vec<_> = children().into_iter().filter(|child| child.state != 'Z').collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
}
