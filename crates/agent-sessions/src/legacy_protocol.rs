//! The one-word commands of the daemon that came before, which its clients still send: one line, one line as the
//! answer, and the connection ends. The words and the answers stay as they were.

use crate::error::{Error, ErrorCode};
use crate::protocol::SupervisorRequest;
use crate::requester::SessionCaller;
use crate::supervisor::Supervisor;
use serde_json::json;

/// A command of the daemon that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LegacySupervisorCommand {
    Status,
    Pause,
    Resume,
    NewSession,
    Reload,
}

impl LegacySupervisorCommand {
    /// Reads a command, in upper or lower case.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        Some(match line.trim().to_ascii_uppercase().as_str() {
            "STATUS" => Self::Status,
            "PAUSE" => Self::Pause,
            "RESUME" => Self::Resume,
            "NEW_SESSION" | "NEW-SESSION" => Self::NewSession,
            "RELOAD" => Self::Reload,
            _ => return None,
        })
    }
}

impl Supervisor {
    /// Handles a command. The answer is `OK`, `ERR: ` and the reason, or the status as JSON.
    pub(crate) async fn handle_legacy(
        &self,
        command: LegacySupervisorCommand,
        requester: &SessionCaller,
    ) -> String {
        let result = match command {
            LegacySupervisorCommand::Status => {
                return self.legacy_status(requester).unwrap_or_else(|error| error_line(&error));
            }
            LegacySupervisorCommand::Pause => {
                self.legacy_pause(true, "Daemon already paused", requester).await
            }
            LegacySupervisorCommand::Resume => {
                self.legacy_pause(false, "Daemon is not paused", requester).await
            }
            LegacySupervisorCommand::NewSession => self.replace_current(requester).await,
            LegacySupervisorCommand::Reload => requester.authorize_steering().and_then(|()| self.reload()),
        };
        result.map_or_else(|error| error_line(&error), |()| "OK".to_owned())
    }

    fn legacy_status(&self, requester: &SessionCaller) -> Result<String, Error> {
        requester.authorize(&SupervisorRequest::Status {})?;
        let status = self.status_for(requester.principal.as_deref());
        let answer = json!({
            "state": status.state,
            "uptime_secs": status.uptime_seconds,
            "current_session": status.current_session,
            "saves_count": status.stats.saves_count,
            "total_resumes": status.stats.total_resumes,
            "time_saved_seconds": status.stats.time_saved_seconds,
            "time_saved_human": human_duration(status.stats.time_saved_seconds),
        });
        Ok(answer.to_string())
    }

    /// Pauses or resumes. In the earlier daemon it was an error if that changed nothing.
    async fn legacy_pause(
        &self,
        paused: bool,
        unchanged_message: &str,
        requester: &SessionCaller,
    ) -> Result<(), Error> {
        requester.authorize_steering()?;
        match self.set_paused(requester.principal.as_deref(), paused).await.changed {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::State, unchanged_message)),
        }
    }

    /// Has another session continue the work of the current one.
    async fn replace_current(&self, requester: &SessionCaller) -> Result<(), Error> {
        requester.authorize_steering()?;
        let status = self.status_for(requester.principal.as_deref());
        let current = status.current_session.unwrap_or_default();
        match self.0.registry.get(&current) {
            Ok(session) if !session.record().state.is_over() => session.replace().await,
            _ => Err(Error::new(ErrorCode::NoSession, "No active session to replace")),
        }
    }
}

fn error_line(error: &Error) -> String {
    // The answer is one line, and a message may have several.
    format!("ERR: {}", error.message.replace(['\n', '\r'], " "))
}

/// Formats seconds as `1h 2m 3s`.
fn human_duration(seconds: u64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m {rest}s"),
        _ => format!("{hours}h {minutes}m {rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_of_five_words_in_either_case() {
        let parse = LegacySupervisorCommand::parse;
        assert_eq!(parse("status"), Some(LegacySupervisorCommand::Status));
        assert_eq!(parse("New-Session\r"), Some(LegacySupervisorCommand::NewSession));
        assert_eq!((parse("STATUS now"), parse("{}"), parse("")), (None, None, None));
        assert_eq!(
            [human_duration(9), human_duration(69), human_duration(3_725)],
            ["9s", "1m 9s", "1h 2m 5s"]
        );
    }
}
