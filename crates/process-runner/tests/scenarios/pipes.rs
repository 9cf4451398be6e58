//! Scenarios 1 to 18: pipes, and the processes that hold them.

use std::io::Read;
use std::process::{Command as StdCommand, Stdio};
use std::time::Duration;

use process_runner::{
    EventOptions, LeftoverPolicy, Limits, OutputLimitAction, Runner, Stdin, Stream, Termination,
};
use tokio::io::AsyncWriteExt;

use crate::harness::{
    LONG, SLOW, ScenarioCase, assert_exited, assert_took, described, memory, outcome, own_cpu, reset_peak,
};

const GIB: u64 = 1 << 30;
const IDLE: Duration = Duration::from_millis(200);
const DRAIN: Duration = Duration::from_secs(2);

pub(crate) async fn s01_a_flood_on_one_stream_costs_no_memory(case: ScenarioCase) {
    let before = reset_peak();
    let output = outcome(case.sh("head -c 1073741824 /dev/zero >&2")).await;
    let (_, peak) = memory();
    assert_exited(&output, 0);
    assert_eq!(output.stderr.total_bytes, GIB);
    assert_eq!(output.stderr.bytes().len(), 256 * 1024);
    assert!(output.stdout.is_empty() && output.stdout.complete && output.stderr.complete);
    assert!(peak - before <= 8 * 1024 + 256, "{} KiB", peak - before);
}

pub(crate) async fn s02_both_streams_in_turn_are_complete(case: ScenarioCase) {
    let script = r#"for (1..2048) { syswrite STDOUT, "o" x 4096; syswrite STDERR, "e" x 4096 }"#;
    let output = outcome(case.perl(script)).await;
    assert_exited(&output, 0);
    assert_eq!((output.stdout.total_bytes, output.stderr.total_bytes), (8 << 20, 8 << 20));
    assert!(output.stdout.complete && output.stderr.complete);
    assert!(output.stdout.bytes().iter().all(|byte| *byte == b'o'));
    assert!(output.stderr.bytes().iter().all(|byte| *byte == b'e'));
}

pub(crate) async fn s03_merged_streams_keep_the_order_of_writes(case: ScenarioCase) {
    let script = r#"for (1..5000) { syswrite STDOUT, "out $_\n"; syswrite STDERR, "err $_\n" }"#;
    let output = outcome(case.perl(script).merge_stderr()).await;
    assert_exited(&output, 0);
    let expected: String = (1..=5000).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!(output.stdout.text(), expected);
    assert!(output.stderr.is_empty());
}

pub(crate) async fn s04_a_stream_closed_early_ends_nothing_and_costs_nothing(case: ScenarioCase) {
    let cpu = own_cpu();
    let output = outcome(case.sh("exec >&-; sleep 0.5; echo late >&2; exit 3")).await;
    let cpu = own_cpu() - cpu;
    assert_exited(&output, 3);
    assert!(output.to_exit >= Some(Duration::from_millis(500)));
    assert!(output.stdout.is_empty() && output.stdout.complete);
    assert_eq!(output.stderr.text(), "late\n");
    // A loop that spins on the closed stream would use all of the half second.
    assert!(cpu < Duration::from_millis(100), "{cpu:?}");
}

pub(crate) async fn s05_both_streams_closed_are_no_exit(case: ScenarioCase) {
    let output = outcome(case.sh("exec >&- 2>&-; sleep 0.5; exit 4")).await;
    assert_exited(&output, 4);
    assert!(output.to_exit >= Some(Duration::from_millis(500)));

    let second = Duration::from_secs(1);
    let script = format!("exec >&- 2>&-; sleep {LONG} & sleep {LONG}");
    let output = outcome(case.sh(&script).limits(Limits::default().timeout(second))).await;
    assert_eq!(output.termination, Termination::TimedOut { after: second, escalated: false });
    assert_took(output.elapsed, second);
    assert!(case.survivors().is_empty());
}

pub(crate) async fn s06_a_silent_holder_of_a_pipe_is_ended_after_the_idle_clock(case: ScenarioCase) {
    let output = outcome(case.sh(&format!("echo before; sleep {LONG} & exit 0"))).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "before\n");
    assert_took(output.elapsed - output.to_exit.expect("it exited"), IDLE);
    let [leftover] = &output.leftovers[..] else { panic!("{}", described(&output)) };
    assert_eq!((&*leftover.name, leftover.held_pipe, leftover.killed), ("sleep", true, true));
    assert!(case.survivors().is_empty());
}

pub(crate) async fn s07_a_trickling_holder_is_ended_after_the_absolute_clock(case: ScenarioCase) {
    // The idle clock is longer than the absolute one: in a pause of a loaded machine it would end the holder first. That
    // output starts it again is for scenario 8.
    let limits = Limits::default().drain(2 * DRAIN, DRAIN);
    let output = outcome(case.sh("(while :; do echo x; sleep 0.05; done) & exit 0").limits(limits)).await;
    assert_exited(&output, 0);
    assert_took(output.elapsed - output.to_exit.expect("it exited"), DRAIN);
    assert!(!output.stdout.complete, "nobody saw its end before it was killed");
    assert!(output.stdout.total_lines >= 5, "{}", described(&output));
}

pub(crate) async fn s08_output_after_the_exit_is_kept_to_its_end(case: ScenarioCase) {
    // The idle clock is longer than by default so that a loaded machine does not run it out in a pause;
    // the whole is longer than it all the same.
    let limits =
        Limits::default().drain(Duration::from_millis(700), Duration::from_secs(60)).capture(512 * 1024);
    let script =
        r#"exit 0 if fork; for (1..10) { select undef, undef, undef, 0.1; syswrite STDOUT, "x" x 30000 }"#;
    let output = outcome(case.perl(script).limits(limits)).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.bytes(), "x".repeat(300_000).as_bytes());
    assert!(output.stdout.complete);
    assert!(output.leftovers.is_empty(), "{}", described(&output));
    let after_exit = output.elapsed - output.to_exit.expect("it exited");
    assert!(
        after_exit > Duration::from_millis(800) && after_exit < Duration::from_secs(1) + SLOW,
        "{after_exit:?}"
    );
}

pub(crate) async fn s09_a_holder_is_left_alone_if_asked(case: ScenarioCase) {
    let command = case.sh(&format!("echo before; sleep {LONG} & exit 0"));
    let output = outcome(command.limits(Limits::default().leftovers(LeftoverPolicy::Leave))).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "before\n");
    assert!(!output.stdout.complete);
    assert_took(output.elapsed - output.to_exit.expect("it exited"), IDLE);
    let left = case.survivors();
    assert_eq!(left.len(), 1, "{left:?}");
    left[0].kill();
}

pub(crate) async fn s10_process_substitution_gives_all_its_output(case: ScenarioCase) {
    let output = outcome(case.bash("exec > >(tee copy) 2>&1; echo x")).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "x\n");
    assert_eq!(std::fs::read_to_string(case.dir().join("copy")).expect("tee wrote it"), "x\n");
}

pub(crate) async fn s11_a_stranger_that_holds_the_pipe_delays_no_longer_than_the_clocks(case: ScenarioCase) {
    let running = Runner::new().start(case.sh("echo out; read line; exit 0").stdin(Stdin::Piped)).await;
    let mut running = running.expect("starts");
    let pipe = format!("/proc/{}/fd/1", running.pid().expect("it has started"));
    // It opens the pipe by its own means, as a child of other code does that inherits it.
    let script = r#"open(my $pipe, ">", $ARGV[0]) or die; $| = 1; print "held\n"; sleep 300"#;
    let mut stranger = StdCommand::new("perl")
        .args(["-e", script, &pipe])
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs perl");
    let mut held = [0; 5];
    stranger.stdout.take().expect("piped").read_exact(&mut held).expect("it says so");

    let output = running.wait().await.expect("an outcome");
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "out\n");
    assert!(!output.stdout.complete);
    assert_took(output.elapsed - output.to_exit.expect("it exited"), IDLE);
    assert!(stranger.try_wait().expect("it is our child").is_none(), "a process of others was killed");
    stranger.kill().expect("it is our child");
    stranger.wait().expect("it is our child");
}

pub(crate) async fn s12_input_and_output_of_64_mib_do_not_deadlock(case: ScenarioCase) {
    let command = case.program("cat", &[]).stdin(Stdin::bytes(vec![b'x'; 64 << 20]));
    let output = outcome(command.limits(Limits::default().capture(1 << 20))).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.total_bytes, 64 << 20);
    assert_eq!(
        (output.stdin.written, output.stdin.total, output.stdin.broken_pipe),
        (64 << 20, Some(64 << 20), false)
    );
}

pub(crate) async fn s13_input_that_nobody_reads_is_reported_at_the_timeout(case: ScenarioCase) {
    let second = Duration::from_secs(1);
    let command = case.program("sleep", &[LONG]).stdin(Stdin::bytes(vec![b'x'; 64 << 20]));
    let output = outcome(command.limits(Limits::default().timeout(second))).await;
    assert_eq!(output.termination, Termination::TimedOut { after: second, escalated: false });
    assert_took(output.elapsed, second);
    // What a pipe takes (pipe(7)).
    assert_eq!((output.stdin.written, output.stdin.total), (65_536, Some(64 << 20)));
}

pub(crate) async fn s14_input_that_is_refused_is_no_error(case: ScenarioCase) {
    let output = outcome(case.program("true", &[]).stdin(Stdin::bytes(vec![b'x'; 64 << 20]))).await;
    assert_exited(&output, 0);
    assert!(output.stdin.broken_pipe && output.stdin.written < 64 << 20, "{:?}", output.stdin);
}

pub(crate) async fn s15_input_is_dev_null_by_default(case: ScenarioCase) {
    let output = outcome(case.sh("cat; readlink /proc/self/fd/0")).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "/dev/null\n");
}

pub(crate) async fn s16_waiting_closes_the_input(case: ScenarioCase) {
    let mut running =
        Runner::new().start(case.program("cat", &[]).stdin(Stdin::Piped)).await.expect("starts");
    running.write_stdin(b"some").await.expect("cat reads");
    let output = running.wait().await.expect("an outcome");
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "some");
}

pub(crate) async fn s17_a_reader_that_never_yields_does_not_hold_the_run(case: ScenarioCase) {
    let (mut source, reader) = tokio::io::duplex(64);
    source.write_all(b"first\n").await.expect("there is room");
    let output = outcome(case.sh("read line; echo $line").stdin(Stdin::reader(reader))).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.text(), "first\n");
    assert!(output.elapsed < SLOW);
    drop(source);
}

pub(crate) async fn s18_a_consumer_that_goes_away_kills_nobody(case: ScenarioCase) {
    let command = case.sh("seq 1 200000; echo done >&2; exit 5").events(EventOptions::default());
    let mut running = Runner::new().start(command).await.expect("starts");
    let mut events = running.events().expect("asked for");
    events.recv().await.expect("at least one");
    drop(events);
    let output = running.wait().await.expect("an outcome");
    assert_exited(&output, 5);
    assert_eq!((output.stdout.total_lines, &*output.stderr.text()), (200_000, "done\n"));

    // Only who asks for it closes the stream.
    let limits = Limits::default().max_output(1 << 20, OutputLimitAction::Close);
    let output = outcome(case.program("yes", &[]).limits(limits)).await;
    let Termination::Signaled { signal, .. } = output.termination else { panic!("{}", described(&output)) };
    assert_eq!(process_runner::signal_name(signal), Some("SIGPIPE"));
    assert!(output.stdout.total_bytes >= 1 << 20 && output.stdout.total_bytes < 4 << 20);
    let running = Runner::new().start(case.program("true", &[])).await.expect("starts");
    assert_eq!(running.snapshot(Stream::Stdout, 0, 10).lost_bytes, 0);
}
