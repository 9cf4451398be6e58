//! The latest lines of a running command, reported until it ends.

use super::command::Commands;
use super::error::CommandError;
use process_runner::{Output, Running, Stream, clean};
use std::time::Duration;
use tokio::time::Instant;

/// The time between two looks at a running command's output.
const INTERVAL: Duration = Duration::from_millis(500);

impl Commands {
    /// Waits for the end of a program. `on_progress` gets its latest lines from time to time, each masked, the newest
    /// last. What a program prints faster than anybody reads is skipped.
    pub(super) async fn wait_with_progress(
        &self,
        mut running: Running,
        on_progress: impl Fn(&str),
    ) -> Result<Output, CommandError> {
        // A look at intervals costs the same whatever is printed; a call for each line would not.
        let mut ticks = tokio::time::interval_at(Instant::now() + INTERVAL, INTERVAL);
        let mut cursors = StreamCursors::default();
        loop {
            tokio::select! {
                () = running.finished() => break,
                _ = ticks.tick() => {
                    for line in cursors.new_lines(&running) {
                        on_progress(&self.redactor.redact(&line));
                    }
                }
            }
        }
        Ok(running.wait().await?)
    }
}

/// The positions in both streams up to which lines were reported.
#[derive(Default)]
struct StreamCursors {
    stdout: u64,
    stderr: u64,
}

impl StreamCursors {
    /// Returns the complete lines since the last call that are not blank, as far as they lie in the last
    /// [`TAIL_BYTES`] of their stream; standard output's last.
    fn new_lines(&mut self, running: &Running) -> Vec<String> {
        let mut lines = new_lines(running, Stream::Stderr, &mut self.stderr);
        lines.append(&mut new_lines(running, Stream::Stdout, &mut self.stdout));
        lines
    }
}

/// The number of bytes of a stream in which lines are looked for each time.
const TAIL_BYTES: u64 = 4096;

/// Returns the complete lines of a stream from `cursor` on, and moves it behind them. One long word is nothing to read,
/// and may be a piece of a key, so it is no line.
fn new_lines(running: &Running, stream: Stream, cursor: &mut u64) -> Vec<String> {
    const MAX_WORD_BYTES: usize = 40;
    let end = running.snapshot(stream, u64::MAX, 0).next_cursor;
    let start = (*cursor).max(end.saturating_sub(TAIL_BYTES));
    let Ok(length) = usize::try_from(end - start) else { return Vec::new() };
    let snapshot = running.snapshot(stream, start, length);
    let tail = snapshot.bytes;
    // What follows the last line end may go on.
    let Some(complete) = tail.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
    // Of a stream that is cut in the middle, less may be left than was asked for.
    let start = snapshot.next_cursor.saturating_sub(tail.len() as u64);
    // Behind a gap the first piece may be the end of a longer line.
    let skipped = usize::from(start > *cursor);
    *cursor = start + complete as u64 + 1;
    let text = String::from_utf8_lossy(&tail[..complete]);
    let lines = text.split('\n').skip(skipped).map(|line| clean(line).trim().to_owned());
    lines.filter(|line| !line.is_empty() && (line.len() < MAX_WORD_BYTES || line.contains(' '))).collect()
}
