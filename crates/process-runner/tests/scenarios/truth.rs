//! Scenarios 79 to 86: the result is true.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use process_runner::{Error, Limits, Output, SecretValues, SpillOptions, Termination, signal_name};

use crate::harness::{LONG, ScenarioCase, assert_exited, described, memory, outcome, reset_peak};

pub(crate) async fn s79_signals_and_codes_are_not_mixed_up(case: ScenarioCase) {
    for (script, signal, name) in
        [("kill -SEGV $$", 11, "SIGSEGV"), ("kill -9 $$", 9, "SIGKILL"), ("kill -TERM $$", 15, "SIGTERM")]
    {
        let output = outcome(case.sh(&format!("ulimit -c 0; {script}; sleep {LONG}"))).await;
        assert_eq!(output.termination, Termination::Signaled { signal, core: false });
        assert_eq!((output.code(), signal_name(signal)), (None, Some(name)));
        assert!(output.summary().contains(name), "{}", output.summary());
    }
    for code in [1, 127, 128, 137, 139, 143, 255] {
        let output = outcome(case.sh(&format!("exit {code}"))).await;
        assert_exited(&output, code);
        assert_eq!(output.code(), Some(code));
    }
}

pub(crate) async fn s81_both_durations_are_given(case: ScenarioCase) {
    let half = Duration::from_millis(500);
    let output = outcome(case.sh(&format!("sleep 0.5; sleep {LONG} & exit 0"))).await;
    let to_exit = output.to_exit.expect("it exited");
    assert!(to_exit >= half, "{to_exit:?}");
    assert!(
        output.elapsed >= to_exit + Duration::from_millis(200),
        "{} after {to_exit:?}",
        described(&output)
    );
}

pub(crate) async fn s82_the_use_of_cpu_is_the_programs_and_its_memory_is_not_ours(case: ScenarioCase) {
    // A shell that waits for a child which works: its time counts.
    let output = outcome(case.sh("perl -e 'do { 1 for 1..100000 } while times < 0.3'")).await;
    let usage = output.usage.expect("Linux gives it");
    assert!(usage.user + usage.system >= Duration::from_millis(290), "{usage:?}");

    let big = outcome(case.perl("my $x = 'x' x 100_000_000; my $y = $x . 'y'")).await;
    let peak = big.usage.expect("Linux gives it").max_rss.expect("more than ours");
    assert!((150_000_000..2_000_000_000).contains(&peak), "{peak}");
    let ballast = vec![1_u8; 400 << 20];
    let small = outcome(case.program("true", &[])).await;
    assert_eq!(small.usage.expect("Linux gives it").max_rss, None, "that is our own peak");
    assert_eq!(std::hint::black_box(&ballast)[ballast.len() - 1], 1);
}

/// A secret of 40 bytes, of which no part occurs elsewhere by chance.
const SECRET: &str = "hK7/pQ+zR9=wX2\"vB5\\nM8 tL4%cJ6&dF3~gS1yU";

/// Returns a program that prints `SECRET` in every form, each in two writes, split at every position.
fn leak(case: &ScenarioCase, end: &str) -> process_runner::Command {
    let script = format!(
        r#"use MIME::Base64; my $secret = $ENV{{LEAK}};
        my $url = encode_base64($secret, ""); $url =~ tr|+/|-_|;
        my $percent = $secret; $percent =~ s/([^A-Za-z0-9._~-])/sprintf("%%%02X", ord $1)/ge;
        my $json = $secret; $json =~ s/(["\\])/\\$1/g;
        for my $form ($secret, encode_base64($secret, ""), encode_base64("user:$secret", ""), $url, $percent, $json) {{
            for my $at (1 .. length($form) - 1) {{
                syswrite STDOUT, "-" x ($at % 7) . substr($form, 0, $at);
                select undef, undef, undef, 0.0002;
                syswrite STDOUT, substr($form, $at) . "\n";
            }}
        }}
        syswrite STDERR, "failed with $secret\n"; {end}"#
    );
    case.perl(&script).env("LEAK", SECRET).secrets(SecretValues::new([SECRET]))
}

/// Asserts that `text` has no 8 bytes of the secret, and no 12 characters of an encoded form (9 bytes in base64).
fn assert_hidden(what: &str, text: &str) {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    for part in SECRET.as_bytes().windows(8) {
        let part = std::str::from_utf8(part).expect("ASCII");
        assert!(!text.contains(part), "{what} shows {part}");
    }
    for line in lines {
        // What is left around a hidden form: the dashes, `user:` in base64, a padding.
        let rest = line.replace("failed with ", "").replace("[redacted]", "").replace('-', "");
        assert!(
            line.contains("[redacted]") && rest.len() <= 8 || !line.contains("[redacted]"),
            "{what} shows {line}"
        );
    }
}

pub(crate) async fn s83_a_secret_is_never_seen(case: ScenarioCase) {
    // Whole, in lines, in the spill and over the cut between head and tail, wherever it falls.
    for capture in [1 << 20, 300, 301, 307, 350] {
        let lines = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&lines);
        let limits = Limits::default().capture(capture).spill(SpillOptions::new(case.dir()));
        let command = leak(&case, "exit 1").limits(limits).on_line(move |_, line| {
            let mut sink = sink.lock().expect("no panic");
            sink.push_str(&line.text());
            sink.push('\n');
        });
        let output = outcome(command).await;
        assert_exited(&output, 1);
        let forms = output.stdout.total_lines;
        assert!(forms >= 39 * 6, "{forms}");
        let lines = lines.lock().expect("no panic").clone();
        assert_eq!(lines.matches("[redacted]").count() as u64, forms + 1);
        assert_hidden("a line", &lines);
        assert_eq!(output.stderr.text(), "failed with [redacted]\n");
        if capture > 1000 {
            assert_hidden("the text", &output.stdout.text());
        } else {
            let path = output.stdout.spill.clone().expect("a file");
            assert_hidden("the spill", &std::fs::read_to_string(&path).expect("reads"));
            std::fs::remove_file(path).expect("it is ours");
        }
        for part in SECRET.as_bytes().windows(8) {
            let part = std::str::from_utf8(part).expect("ASCII");
            let json = serde_json::to_string(&output).expect("serializes");
            for shown in [&*output.stdout.text(), &*output.stdout.clean(), &format!("{output:?}"), &json] {
                assert!(!shown.contains(part), "{part} is seen with {capture} bytes kept");
            }
        }
        let error = output.ensure_success().expect_err("it exited with 1");
        for shown in [error.to_string(), format!("{error:?}")] {
            assert!(shown.contains("[redacted]") && !shown.contains(&SECRET[..8]), "{shown}");
        }
    }

    // A program that is killed within a secret.
    let limits = Limits::default().timeout(Duration::from_secs(2));
    let command = case.perl("syswrite STDOUT, substr($ENV{LEAK}, 0, 30); sleep 300").env("LEAK", SECRET);
    let output = outcome(command.secrets(SecretValues::new([SECRET])).limits(limits)).await;
    assert_eq!(output.stdout.text(), "[redacted]");
}

pub(crate) async fn s84_hiding_in_a_gibibyte_costs_no_memory(case: ScenarioCase) {
    let before = reset_peak();
    let secrets = SecretValues::new([SECRET, "another secret", "0000000000000001"]);
    let output = outcome(case.program("head", &["-c", "1073741824", "/dev/zero"]).secrets(secrets)).await;
    let (_, peak) = memory();
    assert_exited(&output, 0);
    assert_eq!(output.stdout.total_bytes, 1 << 30);
    assert!(peak - before <= 8 * 1024 + 256, "{} KiB", peak - before);
}

pub(crate) async fn s85_debug_and_error_texts_hold_no_values(case: ScenarioCase) {
    let command = || {
        case.program("./missing", &["plain"])
            .secret_arg("--token=of-the-argument")
            .env("TOKEN", "of-the-environment")
            .stdin(process_runner::Stdin::bytes("of-the-input"))
            .secrets(SecretValues::new(["of-the-secrets"]))
    };
    let error = command().run().await.expect_err("it is missing");
    let failed = Error::Spawn(command().validate().expect_err("it is missing"));
    for shown in [
        format!("{:?}", command()),
        error.to_string(),
        format!("{error:?}"),
        format!("{failed} {failed:?} {:?}", failed.hint()),
    ] {
        assert!(!shown.contains("of-the-"), "{shown}");
    }
    assert!(format!("{:?}", command()).contains("TOKEN") && format!("{:?}", command()).contains("plain"));
}

pub(crate) async fn s86_an_output_in_json_comes_back_the_same(case: ScenarioCase) {
    let short = Limits::default().timeout(Duration::from_millis(300)).capture(1000);
    for command in [
        case.sh("echo out; echo err >&2; exit 3"),
        case.sh(r"printf '\377\000\376'; kill -9 $$"),
        case.sh(&format!("seq 1 10000; sleep {LONG} & exit 0")).limits(Limits::default().capture(1000)),
        case.sh(&format!("yes; sleep {LONG}")).limits(short.clone().spill(SpillOptions::new(case.dir()))),
        case.program("cat", &[]).stdin(process_runner::Stdin::bytes(vec![b'x'; 100_000])),
        case.program("true", &[]).limits(Limits::default().timeout(Duration::ZERO)),
    ] {
        let output = outcome(command).await;
        let json = serde_json::to_string(&output).expect("serializes");
        let back: Output = serde_json::from_str(&json).expect("deserializes");
        assert_eq!(back, output, "{json}");
    }
}
