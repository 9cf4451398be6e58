//! The messages from the server to its guardian.

use std::fmt;

use rustix::process::Pid;

use crate::tree::{ProcessStamp, RunToken};

/// The name of the guardian's process, by which it is recognised among others and recognises itself.
pub(super) const PROCESS_NAME: &str = "process-runner-guardian";
/// The environment variable that a guardian has.
pub(super) const GUARDIAN_VARIABLE: &str = "PROCESS_RUNNER_GUARDIAN";

/// A message about one run, by its number. It is one line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardianMessage {
    /// `+RUN TOKEN`: the run with this marker is about to start.
    Announced { run: u64, token: RunToken },
    /// `=RUN SESSION`: the run has started, and leads this session.
    Started { run: u64, session: Pid },
    /// `*RUN PID START`: this process is an orphan of the run, and nothing about it shows that.
    Adopted { run: u64, process: ProcessStamp },
    /// `-RUN`: the run is over.
    Ended { run: u64 },
}

impl GuardianMessage {
    /// Parses a line without its end. Returns `None` for anything else.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_at_checked(1)?;
        match kind {
            "+" => {
                let (run, token) = rest.split_once(' ')?;
                Some(Self::Announced { run: run.parse().ok()?, token: RunToken::parse(token.as_bytes())? })
            }
            "=" => {
                let (run, session) = rest.split_once(' ')?;
                Some(Self::Started { run: run.parse().ok()?, session: Pid::from_raw(session.parse().ok()?)? })
            }
            "*" => {
                let mut words = rest.split(' ');
                let (run, pid, start) = (words.next()?, words.next()?, words.next()?);
                let process = ProcessStamp { pid: pid.parse().ok()?, start_ticks: start.parse().ok()? };
                Some(Self::Adopted { run: run.parse().ok()?, process })
            }
            "-" => Some(Self::Ended { run: rest.parse().ok()? }),
            _ => None,
        }
    }
}

impl fmt::Display for GuardianMessage {
    /// Writes the line with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announced { run, token } => writeln!(f, "+{run} {}", token.hex()),
            Self::Started { run, session } => writeln!(f, "={run} {}", session.as_raw_nonzero()),
            Self::Adopted { run, process } => writeln!(f, "*{run} {} {}", process.pid, process.start_ticks),
            Self::Ended { run } => writeln!(f, "-{run}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::RunId;

    #[test]
    fn every_message_is_read_as_it_was_written() {
        let session = Pid::from_raw(42).expect("not 0");
        for message in [
            GuardianMessage::Announced { run: 1, token: RunId::next().expect("random bytes").token },
            GuardianMessage::Started { run: u64::MAX, session },
            GuardianMessage::Adopted { run: 7, process: ProcessStamp { pid: 42, start_ticks: u64::MAX } },
            GuardianMessage::Ended { run: 0 },
        ] {
            let line = message.to_string();
            assert_eq!(GuardianMessage::parse(line.trim_end()), Some(message), "{line}");
        }
    }

    #[test]
    fn anything_else_is_no_message() {
        for line in ["", "+", "+x", "+1", "+1 7", "=1", "=1 0", "=1 x", "*1", "*1 2", "*1 2 x", "é1"] {
            assert_eq!(GuardianMessage::parse(line), None, "{line}");
        }
    }
}
