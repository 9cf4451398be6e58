//! Scenarios 19 to 28: bounds of memory, output and descriptors.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use process_runner::{
    EventOptions, LagPolicy, Limits, OutputLimitAction, RunEvent, Runner, SpillOptions, Stream, Termination,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::{
    LONG, SLOW, ScenarioCase, assert_exited, descriptors, memory, outcome, reset_peak, until,
};

pub(crate) async fn s19_a_gibibyte_without_a_line_end_costs_no_memory(case: ScenarioCase) {
    let before = reset_peak();
    let output = outcome(case.program("head", &["-c", "1073741824", "/dev/zero"])).await;
    let (_, peak) = memory();
    assert_exited(&output, 0);
    assert_eq!((output.stdout.total_bytes, output.stdout.total_lines), (1 << 30, 1));
    assert!(output.stdout.binary && output.stdout.complete);
    assert!(peak - before <= 8 * 1024 + 256, "{} KiB", peak - before);
}

pub(crate) async fn s20_a_line_of_100_mib_is_one_cut_line_and_the_next_is_intact(case: ScenarioCase) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let before = reset_peak();
    let script = "head -c 104857600 /dev/zero | tr '\\0' x; echo; echo next";
    let command = case.sh(script).events(EventOptions::default()).on_line(move |stream, line| {
        assert_eq!(stream, Stream::Stdout);
        sink.lock().expect("no panic").push((line.bytes.len(), line.dropped, line.bytes.last().copied()));
    });
    let mut running = Runner::new().start(command).await.expect("starts");
    let mut events = running.events().expect("asked for");
    let mut lines = Vec::new();
    while let Some(event) = events.recv().await {
        if let RunEvent::Line { text, truncated, .. } = event {
            lines.push((text.len(), truncated));
        }
    }
    let output = running.wait().await.expect("an outcome");
    let (_, peak) = memory();
    assert_exited(&output, 0);
    assert_eq!(
        *seen.lock().expect("no panic"),
        [(65_536, 104_857_600 - 65_536, Some(b'x')), (4, 0, Some(b't'))]
    );
    assert_eq!(lines, [(65_536, true), (4, false)]);
    assert_eq!(output.stdout.total_bytes, 104_857_600 + 6);
    assert!(peak - before <= 8 * 1024, "{} KiB", peak - before);
}

pub(crate) async fn s21_four_million_lines_come_in_order(case: ScenarioCase) {
    let expected = Arc::new(Mutex::new(0_u64));
    let count = Arc::clone(&expected);
    let script = r#"printf "%079d\n", $_ for 1..4000000"#;
    let output = outcome(case.perl(script).on_line(move |_, line| {
        let mut count = count.lock().expect("no panic");
        *count += 1;
        let number = line.bytes.iter().fold(0, |number, digit| number * 10 + u64::from(*digit - b'0'));
        assert!(line.bytes.len() == 79 && number == *count, "line {count} is {number}");
    }))
    .await;
    assert_exited(&output, 0);
    assert_eq!((*expected.lock().expect("no panic"), output.stdout.total_lines), (4_000_000, 4_000_000));
}

pub(crate) async fn s22_a_consumer_that_stalls_loses_events_or_holds_the_program_and_never_the_capture(
    case: ScenarioCase,
) {
    let total: u64 = (1..=400_000_u64).map(|n| n.to_string().len() as u64 + 1).sum();
    for lag in [LagPolicy::Drop, LagPolicy::Block] {
        let options = EventOptions::default().lag(lag);
        let command = case.sh("echo first >&2; seq 1 400000; echo last >&2").events(options);
        let mut running = Runner::new().start(command).await.expect("starts");
        let mut events = running.events().expect("asked for");
        match lag {
            // It ends although nobody listens.
            LagPolicy::Drop => until("it has ended", || running.is_finished()).await,
            _ => {
                tokio::time::sleep(Duration::from_millis(1500)).await;
                assert!(!running.is_finished(), "it was not held back");
            }
        }
        let (mut next, mut seen, mut lagged) = (1, 0, 0);
        while let Some(event) = events.recv().await {
            match event {
                RunEvent::Line { stream: Stream::Stdout, text, .. } => {
                    let number: u64 = text.parse().expect("a number");
                    assert!(
                        number == next || lag == LagPolicy::Drop && number > next,
                        "{number} after {next}"
                    );
                    next = number + 1;
                    seen += text.len() as u64 + 1;
                }
                RunEvent::Lagged { stream: Stream::Stdout, bytes } => lagged += bytes,
                _ => {}
            }
        }
        let output = running.wait().await.expect("an outcome");
        assert_exited(&output, 0);
        assert_eq!((output.stdout.total_bytes, output.stdout.total_lines), (total, 400_000));
        assert_eq!(output.stderr.text(), "first\nlast\n");
        match lag {
            LagPolicy::Drop => {
                assert!(lagged > 0 && seen + lagged >= total - 400_000, "{seen} seen, {lagged} lagged");
            }
            _ => assert_eq!((seen, lagged), (total, 0)),
        }
    }
}

pub(crate) async fn s23_an_output_limit_kills_the_tree(case: ScenarioCase) {
    let limits = Limits::default().max_output(10 << 20, OutputLimitAction::Kill);
    let output = outcome(case.sh(&format!("sleep {LONG} & yes 0123456")).limits(limits)).await;
    assert_eq!(output.termination, Termination::OutputLimit { stream: Stream::Stdout });
    assert!(output.elapsed < SLOW, "{:?}", output.elapsed);
    assert!(case.survivors().is_empty());
    assert_eq!(output.stdout.total_bytes, 10 << 20);
    assert!(output.stdout.head().starts_with(b"0123456\n") && output.stdout.head().len() == 64 * 1024);
    assert!(output.stdout.tail().ends_with(b"0123456\n") && output.stdout.tail().len() == 192 * 1024);
}

pub(crate) async fn s24_a_spill_holds_what_its_limit_allows_and_harms_nobody(case: ScenarioCase) {
    let spill = SpillOptions::new(case.dir()).max_bytes(20_000_000);
    let script = r#"print "line of a long report, number $_\n" for 1..1400000"#;
    let output = outcome(case.perl(script).limits(Limits::default().spill(spill))).await;
    assert_exited(&output, 0);
    assert!(output.stdout.total_bytes > 45_000_000);
    assert_eq!(output.stdout.spill_error, None);
    let path = output.stdout.spill.clone().expect("a file");
    let metadata = std::fs::symlink_metadata(&path).expect("it is there");
    assert!(metadata.is_file());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let expected: Vec<u8> = (1..=1_400_000)
        .flat_map(|n| format!("line of a long report, number {n}\n").into_bytes())
        .take(20_000_000)
        .collect();
    let written = std::fs::read(&path).expect("reads");
    assert!(written.starts_with(&expected));
    let marker = String::from_utf8_lossy(&written[expected.len()..]);
    assert!(marker.contains("left out: this file is limited to 20.0 MB"), "{marker}");
    assert!(output.stdout.text().contains(&format!("full output: {}", path.display())));
    assert_eq!(output.stderr.spill, None);

    // No file can be made: the run is none the worse.
    let limits = Limits::default().spill(SpillOptions::new(case.dir().join("missing")));
    let output = outcome(case.sh("seq 1 100000; exit 3").limits(limits)).await;
    assert_exited(&output, 3);
    assert_eq!((output.stdout.total_lines, output.stdout.spill.is_none()), (100_000, true));
    assert!(output.stdout.spill_error.is_some());
}

pub(crate) async fn s25_bytes_that_are_no_text_are_exact(case: ScenarioCase) {
    let output = outcome(case.sh(r"printf 'a\377\376b\000c\342\202'")).await;
    assert_exited(&output, 0);
    assert_eq!(output.stdout.bytes(), b"a\xFF\xFEb\0c\xE2\x82");
    assert_eq!(output.stdout.text(), "a\u{fffd}\u{fffd}b\0c\u{fffd}");
    assert_eq!((output.stdout.invalid_sequences, output.stdout.binary), (3, true));
}

pub(crate) async fn s26_no_character_is_split(case: ScenarioCase) {
    let lines = Arc::new(Mutex::new(0));
    let bad = Arc::clone(&lines);
    // After one byte every edge of a chunk lies within a character.
    let script = r#"print "a"; for (1..200) { print "\xF0\x9F\x98\x80" x 5000; print "\n" }"#;
    for capture in [1000, 1001, 1002, 1003, 256 * 1024] {
        let bad = Arc::clone(&bad);
        let limits = Limits::default().capture(capture).max_line(10_001);
        let output = outcome(case.perl(script).limits(limits).on_line(move |_, line| {
            *bad.lock().expect("no panic") += line.text().matches('\u{fffd}').count();
        }))
        .await;
        assert_exited(&output, 0);
        assert_eq!((output.stdout.total_bytes, output.stdout.invalid_sequences), (1 + 200 * 20_001, 0));
        assert!(output.stdout.truncated() && !output.stdout.text().contains('\u{fffd}'));
    }
    assert_eq!(*lines.lock().expect("no panic"), 0);
}

pub(crate) async fn s27_control_characters_are_kept_as_bytes_and_cleaned_as_text(case: ScenarioCase) {
    let script = r"printf 'a\r\n 5%%\r100%%\n\033[?25l\033[1;31mred\033[0m\033]0;t\007\033Pq\033\\.\n'";
    let output = outcome(case.sh(script)).await;
    assert_exited(&output, 0);
    assert_eq!(
        output.stdout.bytes(),
        b"a\r\n 5%\r100%\n\x1b[?25l\x1b[1;31mred\x1b[0m\x1b]0;t\x07\x1bPq\x1b\\.\n"
    );
    assert_eq!(output.stdout.clean(), "a\n100%\nred.\n");
}

pub(crate) async fn s28_500_runs_at_once_stay_within_their_memory_and_descriptors(case: ScenarioCase) {
    const RUNS: usize = 500;
    let old = getrlimit(Resource::Nofile);
    let wanted = old.maximum.unwrap_or(8192).min(8192);
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: old.maximum })
        .expect("up to the hard limit");

    let runner = Runner::builder().max_concurrent(RUNS).build();
    let (descriptors_before, memory_before) = (descriptors().len(), reset_peak());
    // Every one waits for its input, so that all live at once.
    let mut runs = tokio::task::JoinSet::new();
    let (go, _) = tokio::sync::watch::channel(false);
    for _ in 0..RUNS {
        let (runner, mut go) = (runner.clone(), go.subscribe());
        let command = case.sh("read go; exec head -c 1048576 /dev/zero").stdin(process_runner::Stdin::Piped);
        runs.spawn(async move {
            let mut running = runner.start(command).await.expect("starts");
            go.wait_for(|go| *go).await.expect("it comes");
            running.write_stdin(b"go\n").await.expect("it reads");
            running.wait().await.expect("an outcome")
        });
    }
    until("all run", || runner.running() == RUNS).await;
    let each = (descriptors().len() - descriptors_before) as f64 / RUNS as f64;
    assert!(each <= 4.1, "{each} descriptors a run");
    go.send_replace(true);
    while let Some(output) = runs.join_next().await {
        let output = output.expect("no panic");
        assert_exited(&output, 0);
        assert_eq!((output.stdout.total_bytes, output.stdout.bytes().len()), (1 << 20, 256 * 1024));
    }
    let (_, peak) = memory();
    let grown = (peak - memory_before) / 1024;
    assert!(grown <= (RUNS as u64 * 256) / 1024 + 32, "{grown} MiB");
    setrlimit(Resource::Nofile, old).expect("as it was");
}
