//! Draws the screens of programs on other threads than those of the protocol.
//!
//! To emulate a terminal costs far more than to read what a program prints: eight bytes can repeat a character 65,535 times.
//! A program that prints without pause would keep the threads busy that answer other callers. Here it is drawn piece by
//! piece on threads for blocking work, a few pieces at a time in the whole process, and no program has more than a share
//! of each second. The program waits meanwhile, as it would for a slow terminal.

use super::terminal_screen::{ScreenText, TerminalScreen};
use process_runner::TerminalSize;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The bytes that are drawn at a time.
const PIECE_BYTES: usize = 1024;
/// The same for a program whose last piece took longer than [`LONG_PIECE`]: others wait until a piece is drawn.
const SHORT_PIECE_BYTES: usize = 64;
const LONG_PIECE: Duration = Duration::from_millis(20);
/// The time in which the work for one program is counted.
const WINDOW: Duration = Duration::from_secs(1);
/// The work for one program in that time.
const MAX_WORK: Duration = Duration::from_millis(250);

/// The pieces that are drawn at once, for all programs together: half of the processors.
static DRAWING: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Semaphore::new((processors / 2).max(1))
});

/// The screen of one program, which is drawn elsewhere.
#[derive(Debug)]
pub(super) struct ScreenEmulation {
    size: TerminalSize,
    /// Absent while a piece is drawn.
    screen: Option<TerminalScreen>,
    budget: WorkBudget,
    piece_bytes: usize,
}

/// The changes by one piece of output.
#[derive(Debug)]
pub(super) struct DrawnPiece {
    /// The text that left the screen at its top.
    pub(super) scrolled: String,
    /// The answers to the program's questions to its terminal.
    pub(super) replies: Vec<u8>,
    /// The text on the screen now.
    pub(super) screen: ScreenText,
}

impl ScreenEmulation {
    pub(super) fn new(size: TerminalSize) -> Self {
        Self { size, screen: None, budget: WorkBudget::new(Instant::now()), piece_bytes: PIECE_BYTES }
    }

    /// Takes the piece that is drawn next from the start of `rest`; `None` if nothing is left.
    pub(super) fn next_piece<'a>(&self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (piece, behind) = rest.split_at(self.piece_bytes.min(rest.len()));
        *rest = behind;
        (!piece.is_empty()).then_some(piece)
    }

    /// Returns true if the next piece has to wait, because this program has had its share of the second.
    pub(super) fn has_had_its_share(&self) -> bool {
        self.budget.exhausted_until(Instant::now()).is_some()
    }

    /// Draws a piece of output, when its turn comes.
    pub(super) async fn draw(&mut self, piece: &[u8]) -> DrawnPiece {
        if let Some(end) = self.budget.exhausted_until(Instant::now()) {
            tokio::time::sleep_until(end).await;
        }
        // Never closed, so that there is always a permit in the end.
        let permit = DRAWING.acquire().await.ok();
        let size = self.size;
        let mut screen = self.screen.take().unwrap_or_else(|| TerminalScreen::new(size));
        let piece = piece.to_vec();
        let began = Instant::now();
        let drawn = tokio::task::spawn_blocking(move || {
            let events = screen.draw(&piece);
            let text = screen.text();
            (screen, events, text)
        });
        let drawn = drawn.await;
        drop(permit);
        let work = began.elapsed();
        self.budget.spend(began, work);
        self.piece_bytes = if work > LONG_PIECE { SHORT_PIECE_BYTES } else { PIECE_BYTES };
        match drawn {
            Ok((screen, events, text)) => {
                self.screen = Some(screen);
                DrawnPiece { scrolled: events.scrolled, replies: events.replies, screen: text }
            }
            // The runtime ends, or reading the screen panicked: it begins anew.
            Err(_) => DrawnPiece {
                scrolled: String::new(),
                replies: Vec::new(),
                screen: TerminalScreen::new(size).text(),
            },
        }
    }
}

/// The work for one program in the current window.
#[derive(Clone, Copy, Debug)]
struct WorkBudget {
    window_start: Instant,
    spent: Duration,
}

impl WorkBudget {
    fn new(now: Instant) -> Self {
        Self { window_start: now, spent: Duration::ZERO }
    }

    /// Returns the time until which there is to be no more work, if there was enough.
    fn exhausted_until(&self, now: Instant) -> Option<Instant> {
        // Work that took longer than its share of one window is made up for in the next ones.
        let windows = self.spent.as_secs_f64() / MAX_WORK.as_secs_f64();
        let end = self.window_start + WINDOW.mul_f64(windows.floor());
        (windows >= 1.0 && end > now).then_some(end)
    }

    fn spend(&mut self, now: Instant, work: Duration) {
        let windows = self.spent.as_secs_f64() / MAX_WORK.as_secs_f64();
        if now >= self.window_start + WINDOW.mul_f64(windows.floor().max(1.0)) {
            *self = Self::new(now);
        }
        self.spent += work;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_of_output_are_one_screen() {
        let mut emulation = ScreenEmulation::new(TerminalSize { columns: 20, rows: 3 });
        let text = "line 1\r\nline 2\r\nline 3\r\nline 4";
        let mut scrolled = String::new();
        let mut last = None;
        for piece in text.as_bytes().chunks(5) {
            let drawn = emulation.draw(piece).await;
            scrolled += &drawn.scrolled;
            last = Some(drawn.screen.text);
        }
        assert_eq!((scrolled.as_str(), last.as_deref()), ("line 1\n", Some("line 2\nline 3\nline 4")));
        assert_eq!(emulation.draw(b"\x1b[5n").await.replies, b"\x1b[0n");
    }

    #[test]
    fn a_program_has_its_share_of_each_second_and_no_more() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut budget = WorkBudget::new(start);
        budget.spend(at(0), Duration::from_millis(100));
        assert_eq!(budget.exhausted_until(at(100)), None);
        budget.spend(at(100), Duration::from_millis(150));
        assert_eq!(budget.exhausted_until(at(250)), Some(at(1000)));
        assert_eq!(budget.exhausted_until(at(1000)), None);
        // A new window begins.
        budget.spend(at(1000), Duration::from_millis(100));
        assert_eq!(budget.exhausted_until(at(1100)), None);
        // One long piece costs several.
        budget.spend(at(1100), Duration::from_secs(1));
        assert_eq!(budget.exhausted_until(at(2100)), Some(at(5000)));
    }
}
