//! The watcher of session files: Markdown with YAML front matter, written by agents that were not started here.

use crate::clock;
use crate::front_matter::SessionFrontMatter;
use crate::protocol::WatchedSession;
use crate::record::SessionRecord;
use crate::session_file;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The age in milliseconds up to which a file is read again although its time is the same: file systems tell times as
/// coarsely as two seconds (FAT).
const RECENT_CHANGE_MS: u64 = 3_000;
/// The tolerance in milliseconds between the clocks of the file system and of this process.
const CLOCK_TOLERANCE_MS: u64 = 1_000;

/// The watcher of the session files in some folders.
#[derive(Debug)]
pub(crate) struct SessionFileWatcher {
    folders: Vec<PathBuf>,
    files: Mutex<BTreeMap<PathBuf, WatchedSessionFile>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WatchedSessionFile {
    /// The time of the last change, in milliseconds since 1970.
    changed: u64,
    front: SessionFrontMatter,
}

impl SessionFileWatcher {
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, files: Mutex::default() }
    }

    /// Tells whether there is a folder to watch.
    pub(crate) fn is_active(&self) -> bool {
        !self.folders.is_empty()
    }

    /// Returns the sessions in the watched folders, the last changed one at the end.
    pub(crate) fn sessions(&self) -> Vec<WatchedSession> {
        let files = self.files();
        let mut sessions: Vec<_> = files.iter().collect();
        sessions.sort_by_key(|(_, file)| file.changed);
        let session = |(path, file): (&PathBuf, &WatchedSessionFile)| WatchedSession {
            path: path.display().to_string(),
            status: file.front.status.clone(),
            steps_completed: file.front.steps_completed.len(),
            last_step: file.front.last_step,
            complete: file.front.is_complete(),
            changed_at: clock::rfc3339(file.changed),
        };
        sessions.into_iter().map(session).collect()
    }

    /// Returns the session file of a session that was started here: of the files that were changed while it ran, the
    /// one that was changed last.
    pub(crate) fn file_of(&self, record: &SessionRecord) -> Option<PathBuf> {
        self.scan();
        let files = self.files();
        let changed_while_it_ran =
            files.iter().filter(|(_, file)| file.changed + CLOCK_TOLERANCE_MS >= record.started);
        changed_while_it_ran.max_by_key(|(_, file)| file.changed).map(|(path, _)| path.clone())
    }

    /// Reads the folders. Returns a line for each change since the last scan.
    pub(crate) fn scan(&self) -> Vec<String> {
        let now = clock::now_ms();
        let mut found = BTreeMap::new();
        for folder in &self.folders {
            // A folder that is missing may be created later.
            let Ok(files) = session_file::list(folder) else { continue };
            for (path, changed) in files {
                let previous = self.files().get(&path).cloned();
                let is_settled = changed + RECENT_CHANGE_MS < now;
                if let Some(previous) = previous.filter(|previous| previous.changed == changed && is_settled)
                {
                    found.insert(path, previous);
                } else if let Some(front) =
                    session_file::read_text(&path).ok().and_then(|text| SessionFrontMatter::parse(&text))
                {
                    found.insert(path, WatchedSessionFile { changed, front });
                }
            }
        }
        // Locked only now: reading many files takes a while, and the status must not wait for it.
        let mut known = self.files();
        let mut changes = Vec::new();
        for (path, file) in &found {
            if known.get(path).is_none_or(|previous| previous.front != file.front) {
                changes.push(format!("watched session {}: {}", path.display(), progress(&file.front)));
            }
        }
        for path in known.keys().filter(|path| !found.contains_key(*path)) {
            changes.push(format!("watched session {}: gone", path.display()));
        }
        *known = found;
        changes
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, WatchedSessionFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes how far a session is, such as `1 of 2 steps, in-progress`.
fn progress(front: &SessionFrontMatter) -> String {
    let steps = front.steps_completed.len();
    let last = front.last_step.map(|last| format!(" of {last}")).unwrap_or_default();
    let status = front.status.as_deref().map(|status| format!(", {status}")).unwrap_or_default();
    let complete = if front.is_complete() { ", complete" } else { "" };
    format!("{steps}{last} steps{status}{complete}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]
    use super::*;
    use std::fs;

    #[test]
    fn a_watched_folder_tells_what_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let watcher =
            SessionFileWatcher::new(vec![folder.path().join("not-there"), folder.path().to_owned()]);
        assert!(watcher.scan().is_empty() && watcher.sessions().is_empty());
        let file = folder.path().join("a.md");
        fs::write(&file, "---\nstepsCompleted: [1]\nlastStep: 2\n---\n").unwrap();
        fs::write(folder.path().join("a-backup-20251121-223700.md"), "---\nstatus: x\n---\n").unwrap();
        fs::write(folder.path().join("notes.md"), "none").unwrap();
        assert!(watcher.scan()[0].ends_with("a.md: 1 of 2 steps"));
        assert!(watcher.scan().is_empty(), "nothing has changed");
        fs::write(&file, "---\nstepsCompleted: [1, 2]\nlastStep: 2\nstatus: complete\n---\n").unwrap();
        assert!(watcher.scan()[0].ends_with("a.md: 2 of 2 steps, complete, complete"));
        assert_eq!(watcher.sessions().len(), 1);
        fs::remove_file(&file).unwrap();
        assert!(watcher.scan()[0].ends_with("gone"));
    }
}
