//! [`BackgroundProcess`]: a program that outlives the call that started it.

use std::time::Duration;

/// A program that outlives the call that started it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackgroundProcess {
    /// The principal whose call started it; empty for a caller without a name.
    pub principal: String,
    /// The number by which the tools know it.
    pub id: u32,
    /// The command.
    pub command: String,
    /// `running`, or how it ended.
    pub state: &'static str,
    /// The time that it has run, or ran.
    pub duration: Duration,
    /// True if it has not ended.
    pub(crate) running: bool,
}

impl BackgroundProcess {
    /// Returns true if it has not ended.
    pub fn is_running(&self) -> bool {
        self.running
    }
}
