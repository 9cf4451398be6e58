//! The exit code or the signal of a process.

use process_runner::{ExitStatus, Output, signal_name};

/// The exit code of a process, or the signal that ended it. Both are absent where the system does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExitDetails {
    pub(super) code: Option<u32>,
    /// The name, such as `SIGKILL`, or `signal 64`.
    pub(super) signal: Option<String>,
}

impl From<&Output> for ExitDetails {
    fn from(output: &Output) -> Self {
        match output.status {
            Some(ExitStatus::Exited { code }) => Self { code: Some(code), signal: None },
            Some(ExitStatus::Signaled { signal, .. }) => {
                let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
                Self { code: None, signal: Some(name) }
            }
            _ => Self::default(),
        }
    }
}
