//! Prints one line about the tests that this run skipped. Under `cargo nextest` it lists no test, and so is not run.
#![allow(clippy::print_stdout, reason = "its output is the summary")]

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    if let Some(summary) = skipped_tests::take_summary() {
        println!("\n{summary}");
    }
}
