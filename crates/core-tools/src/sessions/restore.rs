//! What an earlier supervisor left: adopted where it runs, reported as lost where it does not.

use super::classify::{Reason, Stop};
use super::log::LogLevel;
use super::process;
use super::recorder::{Source, receiver};
use super::state::{Action, Event, State};
use super::store::Record;
use super::supervisor::{Live, Supervisor};
use std::time::Duration;

impl Supervisor {
    /// Takes up a session that was written down.
    pub(super) async fn restore(&self, record: Record, same_boot: bool) {
        let id = record.id.clone();
        let folder = self.0.lock.folder().existing(&id);
        let mut entry = match self.entry(record.clone()) {
            Ok(entry) => entry,
            Err(error) => {
                // Its folder is gone, and with it its log; what is left of it is ended.
                let _ = self.0.lock.folder().session(&id);
                match self.entry(record.clone()) {
                    Ok(entry) => entry,
                    Err(_) => {
                        self.say(LogLevel::Error, &format!("session {id} cannot be taken up: {error}"));
                        return;
                    }
                }
            }
        };
        let adopted = record.state.process().filter(|process| same_boot && process::is_alive(*process));
        entry.live = adopted.map(Live::Adopted);
        self.table().sessions.insert(id.clone(), entry);
        match (&record.state, adopted) {
            (State::Running { .. }, Some(process)) => {
                self.say_of(&id, LogLevel::Info, &format!("process {} runs, and was adopted", process.pid));
                if let Some(receiver) = folder.ok().and_then(|folder| receiver(&folder).ok()) {
                    let recorder = self.record_output(&id, &record, Source::Pipe(receiver), None);
                    if let Some(entry) = self.table().sessions.get_mut(&id) {
                        entry.recorder = Some(recorder);
                    }
                }
            }
            (State::Running { process }, None) => {
                self.end_orphans(&id).await;
                let why = format!("process {} was gone when the supervisor came back", process.pid);
                self.decide(&id, record.clone(), Stop::plain(Reason::Lost, why)).await;
            }
            (State::Starting, _) => {
                self.end_orphans(&id).await;
                let why = "the supervisor ended before its process was known to run".to_owned();
                let _ = self.apply(&id, Event::NotStarted { why: why.clone(), next: None }, &why);
                self.revoke(&id);
                self.write(&id).await;
            }
            (State::Resuming { next }, _) => {
                self.end_orphans(&id).await;
                let why = "the supervisor ended before its process was known to run".to_owned();
                let next = (next.action != Action::Message).then(|| next.clone());
                let _ = self.apply(&id, Event::NotStarted { why: why.clone(), next }, &why);
                self.write(&id).await;
                self.pause_if_paused(&id).await;
            }
            (State::Waiting { .. }, _) => self.pause_if_paused(&id).await,
            (State::Paused { .. }, _) if !self.is_paused(&record) => {
                let _ = self.apply(&id, Event::Unpause, "nothing is paused any more");
                self.write(&id).await;
            }
            _ => {}
        }
        self.drive(&id);
    }

    /// Ends what carries the id of a session that has no process any more.
    async fn end_orphans(&self, id: &str) {
        let orphans = process::tree(None, id).len();
        if orphans > 0 {
            self.say_of(id, LogLevel::Warn, &format!("{orphans} processes without an owner were ended"));
            process::end_tree(None, id, Duration::from_millis(500)).await;
        }
    }
}
