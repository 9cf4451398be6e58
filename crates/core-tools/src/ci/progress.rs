//! The latest line of a running command, reported until it ends.

use super::command::Commands;
use super::error::CommandError;
use process_runner::{Output, Running, Stream, clean};
use std::time::Duration;
use tokio::time::Instant;

/// The time between two looks at a running command's output.
const INTERVAL: Duration = Duration::from_millis(500);

impl Commands {
    /// Waits for the end of a program. `on_progress` gets its latest line from time to time, masked.
    pub(super) async fn wait_with_progress(
        &self,
        mut running: Running,
        on_progress: impl Fn(&str),
    ) -> Result<Output, CommandError> {
        // A look at intervals costs the same whatever is printed; a call for each line would not.
        let mut ticks = tokio::time::interval_at(Instant::now() + INTERVAL, INTERVAL);
        loop {
            tokio::select! {
                () = running.finished() => break,
                _ = ticks.tick() => {
                    if let Some(line) = latest_line(&running) {
                        on_progress(&self.redactor.redact(&line));
                    }
                }
            }
        }
        Ok(running.wait().await?)
    }
}

/// Returns the latest complete line that is not blank. One long word is nothing to read, and may be a piece of a
/// key, so it is no line.
fn latest_line(running: &Running) -> Option<String> {
    const TAIL_BYTES: u64 = 400;
    const MAX_WORD_BYTES: usize = 40;
    [Stream::Stdout, Stream::Stderr].into_iter().find_map(|stream| {
        let end = running.snapshot(stream, u64::MAX, 0).next_cursor;
        // The program may print between the two snapshots: twice the tail leaves room for that.
        let tail = running.snapshot(stream, end.saturating_sub(TAIL_BYTES), 2 * 400).bytes;
        let text = String::from_utf8_lossy(&tail);
        // What follows the last line end may go on, and the first piece may be the end of a longer line.
        let complete = text.rsplit_once('\n')?.0;
        let lines: Vec<_> = complete.split('\n').skip(usize::from(end > TAIL_BYTES)).collect();
        let line =
            lines.iter().rev().map(|line| clean(line).trim().to_owned()).find(|line| !line.is_empty())?;
        (line.len() < MAX_WORD_BYTES || line.contains(' ')).then_some(line)
    })
}
