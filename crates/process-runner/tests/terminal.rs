//! Programs with a terminal of their own.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use process_runner::{Command, Limits, Runner, Stdin, Stream, TerminalSize, Termination};

fn shell(script: &str) -> Command {
    Command::new("sh", "/")
        .args(["-c", script])
        .terminal(TerminalSize { columns: 100, rows: 30 })
        .limits(Limits::default().timeout(Duration::from_secs(20)))
}

#[tokio::test]
async fn all_three_streams_are_a_terminal_of_the_size_that_controls_the_session() {
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size && echo err >&2 && echo tty > /dev/tty";
    let output = shell(script).run().await.expect("it starts");
    assert_eq!(output.termination, Termination::Exited { code: 0 }, "{}", output.stdout_text());
    assert_eq!(output.stdout_text(), "30 100\r\nerr\r\ntty\r\n");
}

#[tokio::test]
async fn more_than_a_terminal_holds_is_read_to_its_end() {
    let output = shell("seq 1 50000; printf end").run().await.expect("it starts");
    assert!(output.stdout_text().ends_with("50000\r\nend"));
    assert_eq!(
        output.stdout.total_bytes,
        (1..=50_000).map(|n: u32| n.to_string().len() as u64 + 2).sum::<u64>() + 3
    );
}

#[tokio::test]
async fn what_is_written_is_typed() {
    let runner = Runner::new();
    let command = shell("read name; echo \"hello $name\"; cat").stdin(Stdin::Piped);
    let mut running = runner.start(command).await.expect("it starts");
    running.write_stdin(b"Ada\rmore\r\x04").await.expect("it reads");
    let output = running.wait().await.expect("it ends");
    assert_eq!(output.termination, Termination::Exited { code: 0 });
    // The terminal echoes a line when it comes, before or after what the program prints.
    let text = output.stdout_text().into_owned();
    assert!(text.contains("hello Ada\r\n") && text.matches("more\r\n").count() == 2, "{text:?}");
    assert!(running.snapshot(Stream::Stderr, 0, 100).bytes.is_empty());
}

#[tokio::test]
async fn control_c_interrupts_and_the_time_limit_ends_what_ignores_it() {
    let runner = Runner::new();
    let running = runner.start(shell("echo up; sleep 60").stdin(Stdin::Piped)).await.expect("it starts");
    while running.snapshot(Stream::Stdout, 0, 100).bytes.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.write_stdin(b"\x03").await.expect("it reads");
    let output = running.wait_with_output().await.expect("it ends");
    assert!(output.elapsed < Duration::from_secs(15) && !output.success(), "{output:?}");

    let limits = Limits::default().timeout(Duration::from_millis(200)).term_grace(Duration::from_millis(100));
    let output =
        shell("trap '' HUP TERM INT; sleep 60 & wait").limits(limits).run().await.expect("it starts");
    assert!(matches!(output.termination, Termination::TimedOut { .. }), "{:?}", output.termination);
}
