//! Keeps the head and the tail of a stream within a fixed memory, and counts the rest.

mod captured;
mod collector;
mod head_tail;
mod snapshot;
#[cfg(test)]
mod tests;

pub use captured::CapturedStream;
pub use collector::{CaptureLimits, OutputCapture};
pub use snapshot::OutputSnapshot;
