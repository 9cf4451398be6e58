//! The supervisor's own log, with an extract of it for each caller of a shared server.

use crate::directory::SupervisorStateFolder;
use crate::log::{RotatingSessionLog, SessionLogLevel, SessionLogLimits};
use redaction::Redactor;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// The file name of the log, in the state directory and in the folder of each caller.
pub(crate) const JOURNAL_NAME: &str = "supervisor.log";

/// The log in which a supervisor records what it does.
#[derive(Debug)]
pub(crate) struct SupervisorJournal {
    logs: Mutex<SupervisorJournalLogs>,
    limits: SessionLogLimits,
    redactor: Redactor,
    /// Counts the lines, so that a reader who follows the log is woken.
    line_count: watch::Sender<u64>,
}

#[derive(Debug)]
struct SupervisorJournalLogs {
    /// The log of everything.
    all: RotatingSessionLog,
    /// The lines about the sessions of each caller.
    by_caller: HashMap<String, RotatingSessionLog>,
}

impl SupervisorJournal {
    pub(crate) fn open(
        folder: &SupervisorStateFolder,
        limits: SessionLogLimits,
        redactor: Redactor,
    ) -> io::Result<Self> {
        let all = RotatingSessionLog::open(folder.path(), JOURNAL_NAME, limits)?;
        Ok(Self {
            logs: Mutex::new(SupervisorJournalLogs { all, by_caller: HashMap::new() }),
            limits,
            redactor,
            line_count: watch::Sender::new(0),
        })
    }

    /// Writes a line, also to the extract of `principal`. Returns the error that lasts, if lines are being lost.
    pub(crate) fn write(
        &self,
        folder: &SupervisorStateFolder,
        principal: Option<&str>,
        level: SessionLogLevel,
        text: &str,
    ) -> Option<String> {
        // Reasons quote what agents printed, so that a line may hold a secret.
        let text = self.redactor.redact(text);
        let last_error = {
            let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
            // The extract is for the caller's convenience. If it cannot be written, the line still stands in the log.
            if let Some(principal) = principal
                && let Ok(log) = self.extract_for(&mut logs.by_caller, folder, principal)
            {
                log.write(Some(level), &text);
            }
            logs.all.write(Some(level), &text);
            logs.all.last_error()
        };
        self.line_count.send_modify(|lines| *lines += 1);
        last_error
    }

    fn extract_for<'a>(
        &self,
        extracts: &'a mut HashMap<String, RotatingSessionLog>,
        folder: &SupervisorStateFolder,
        principal: &str,
    ) -> io::Result<&'a mut RotatingSessionLog> {
        if !extracts.contains_key(principal) {
            let log = RotatingSessionLog::open(&folder.caller(principal)?, JOURNAL_NAME, self.limits)?;
            extracts.insert(principal.to_owned(), log);
        }
        extracts.get_mut(principal).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the folder in which the log, or the extract of a caller, lies.
    pub(crate) fn folder(folder: &SupervisorStateFolder, principal: Option<&str>) -> io::Result<PathBuf> {
        match principal {
            None => Ok(folder.path().to_owned()),
            Some(principal) => folder.caller(principal),
        }
    }

    /// Returns a receiver that changes with each line.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.line_count.subscribe()
    }
}
