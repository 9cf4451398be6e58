//! Runs programs within bounds: one that fails, one that does not end, one that prints a lot.
//!
//! `cargo run -p process-runner --example bounded`
#![allow(clippy::print_stdout, reason = "an example shows its results")]

#[cfg(unix)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), process_runner::Error> {
    use process_runner::{Command, Limits, Termination};
    use std::time::Duration;

    // No shell: each argument reaches the program as it stands. An error here is a program that never started.
    let failed = Command::new("git", "/").args(["rev-parse", "--verify", "no such thing"]).run().await?;
    println!("{}", failed.summary());
    assert_eq!(failed.code(), Some(128));

    // Everything that a program started ends with it at the time limit, here a process in the background.
    let limits = Limits::default().timeout(Duration::from_millis(300));
    let endless = Command::new("sh", "/").args(["-c", "sleep 600 & sleep 600"]).limits(limits).run().await?;
    println!("{}", endless.summary());
    assert!(matches!(endless.termination, Termination::TimedOut { .. }));

    // The beginning and the end of the output are kept, and the rest is counted.
    let limits = Limits::default().capture(4096);
    let long = Command::new("seq", "/").arg("1000000").limits(limits).run().await?;
    let text = long.stdout_text();
    println!("{} bytes of output are kept as {}", long.stdout.total_bytes, text.len());
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n1000000\n") && text.len() < 8192);
    Ok(())
}

#[cfg(not(unix))]
fn main() {}

#[test]
#[cfg(unix)]
fn it_runs() {
    main().unwrap();
}
