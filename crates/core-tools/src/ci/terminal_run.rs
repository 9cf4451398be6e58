//! A command with a terminal, run to its end.

use super::command::Commands;
use super::error::CommandError;
use super::recorded_output::MaskedCommandOutput;
use super::screen_emulation::ScreenEmulation;
use super::terminal::typed;
use process_runner::{
    Command, EventGranularity, EventOptions, LagPolicy, Output, RunEvent, Running, Stdin, TerminalSize,
    Termination,
};
use std::time::Duration;
use tokio::time::Instant;

/// The time that a program has to read what is typed.
const TYPE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

impl Commands {
    /// Runs a command that has a terminal to its end. Returns its end and the text that it printed: the lines that left
    /// its screen, and the screen at the end.
    pub(super) async fn run_in_terminal(
        &self,
        command: Command,
        size: TerminalSize,
        input: Option<&str>,
        on_progress: impl Fn(&str),
    ) -> Result<(Output, String), CommandError> {
        let options = EventOptions::default().granularity(EventGranularity::Chunk).lag(LagPolicy::Block);
        let mut running = self.runner.start(command.stdin(Stdin::Piped).events(options)).await?;
        let events = running.events();
        let mut output = MaskedCommandOutput::new(&self.redactor, Some(size));
        let mut emulation = ScreenEmulation::new(size);
        let follow = async {
            let mut events = events;
            let mut reported = Instant::now();
            while let Some(event) = match &mut events {
                Some(events) => events.recv().await,
                None => None,
            } {
                let RunEvent::Chunk { bytes, .. } = event else { continue };
                let mut rest = bytes.as_slice();
                while let Some(piece) = emulation.next_piece(&mut rest) {
                    // A flood that waits to be drawn would delay the answer by minutes, long after the program was ended.
                    // What a program printed before it exited is drawn to its end.
                    if was_ended(&running) && emulation.has_had_its_share() {
                        break;
                    }
                    let mut drawn = emulation.draw(piece).await;
                    let replies = std::mem::take(&mut drawn.replies);
                    output.show(drawn);
                    type_into(&running, &replies).await;
                }
                if reported.elapsed() >= PROGRESS_INTERVAL {
                    reported = Instant::now();
                    let text = output.screen().map(|screen| screen.text).unwrap_or_default();
                    if let Some(line) = text.lines().last().filter(|line| !line.trim().is_empty()) {
                        on_progress(line);
                    }
                }
            }
        };
        let typed = typed(input.unwrap_or_default());
        // The program may print more than a terminal holds before it reads.
        tokio::join!(follow, type_into(&running, typed.as_bytes()));
        output.finish();
        let ended = running.wait_with_output().await?;
        Ok((ended, output.whole()))
    }
}

/// Returns true if the run is over, and the program did not exit by itself.
fn was_ended(running: &Running) -> bool {
    running.output().is_some_and(|output| !matches!(output.termination, Termination::Exited { .. }))
}

/// Types what a program can read of it. What it does not read is no failure: it may have ended.
async fn type_into(running: &Running, bytes: &[u8]) {
    const PIECE_BYTES: usize = 1024;
    for piece in bytes.chunks(PIECE_BYTES) {
        if !matches!(tokio::time::timeout(TYPE_TIMEOUT, running.write_stdin(piece)).await, Ok(Ok(()))) {
            return;
        }
    }
}
