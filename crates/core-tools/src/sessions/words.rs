//! The words of the daemon that came before, which its clients still send: one line, one line as the answer, the end.

use super::access::Asker;
use super::error::{Code, Error};
use super::protocol::Request;
use super::supervisor::Supervisor;
use serde_json::json;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Status,
    Pause,
    Resume,
    NewSession,
    Reload,
}

impl Word {
    /// What a line says, in letters of either case.
    pub(super) fn of(line: &str) -> Option<Self> {
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
    /// Does it, and answers `OK`, `ERR: ` and why not, or the status as JSON.
    pub(super) async fn obey(&self, word: Word, asker: &Asker) -> String {
        let done = match word {
            Word::Status => return self.short_status(asker).await.unwrap_or_else(|error| refusal(&error)),
            Word::Pause => self.switched(Request::Pause {}, "Daemon already paused", asker).await,
            Word::Resume => self.switched(Request::Resume {}, "Daemon is not paused", asker).await,
            Word::NewSession => self.replace_current(asker).await,
            Word::Reload => self.may_steer(asker).and_then(|()| self.reload()),
        };
        done.map_or_else(|error| refusal(&error), |()| "OK".to_owned())
    }

    async fn short_status(&self, asker: &Asker) -> Result<String, Error> {
        let status = self.answer(Request::Status {}, asker).await?;
        let stats = &status["stats"];
        let saved = stats["time_saved_seconds"].as_u64().unwrap_or_default();
        let short = json!({
            "state": status["state"],
            "uptime_secs": status["uptime_seconds"],
            "current_session": status["current_session"],
            "saves_count": stats["saves_count"],
            "total_resumes": stats["total_resumes"],
            "time_saved_seconds": saved,
            "time_saved_human": human(saved),
        });
        Ok(short.to_string())
    }

    /// What is so already was an error there.
    async fn switched(&self, request: Request, already: &str, asker: &Asker) -> Result<(), Error> {
        let answer = self.answer(request, asker).await?;
        match answer["changed"] == true {
            true => Ok(()),
            false => Err(Error::new(Code::State, already)),
        }
    }

    async fn replace_current(&self, asker: &Asker) -> Result<(), Error> {
        self.may_steer(asker)?;
        let status = self.answer(Request::Status {}, asker).await?;
        let current = status["current_session"].as_str().unwrap_or_default();
        match self.record_of(current) {
            Ok(record) if !record.state.is_over() => self.replace(current).await,
            _ => Err(Error::new(Code::NoSession, "No active session to replace")),
        }
    }
}

fn refusal(error: &Error) -> String {
    format!("ERR: {}", error.message.replace(['\n', '\r'], " "))
}

/// `1h 2m 3s`.
fn human(seconds: u64) -> String {
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
    fn a_word_is_one_of_five_in_either_case() {
        assert_eq!(Word::of("status"), Some(Word::Status));
        assert_eq!(Word::of("New-Session\r"), Some(Word::NewSession));
        assert_eq!((Word::of("STATUS now"), Word::of("{}"), Word::of("")), (None, None, None));
        assert_eq!([human(9), human(69), human(3_725)], ["9s", "1m 9s", "1h 2m 5s"]);
    }
}
