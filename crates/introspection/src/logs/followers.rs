//! [`SourceFollowers`]: follows every log of a source, and waits for those that do not exist yet.

use super::cursor::{Cursor, CursorDirection, FilePosition, fnv1a};
use super::entry::LogEntry;
use super::error::Error;
use super::files::LogSource;
use super::follow::LogFollower;
use super::log_time::LogTime;
use super::page::LogPage;
use super::query::{LogEntryFilter, OmittedCounts};
use std::time::{Duration, SystemTime};

/// The followers of the logs of a source: one for a file, several for a glob.
#[derive(Debug)]
pub(super) struct SourceFollowers {
    source: LogSource,
    filter: LogEntryFilter,
    followers: Vec<(String, LogFollower)>,
    /// The names of the logs that were there at the beginning or are followed.
    known: Vec<String>,
    /// The size and the number of the entries returned so far.
    used: (usize, usize),
    /// The reason why nothing is followed yet.
    missing: Option<String>,
}

/// The new entries of all logs, in the order of their times.
#[derive(Debug, Default)]
pub(super) struct MergedFollowBatch {
    pub(super) entries: Vec<LogEntry>,
    /// True if the answer has no room for more entries.
    pub(super) full: bool,
}

impl SourceFollowers {
    /// Creates followers that go on from `cursor`, or from the end of what is written.
    ///
    /// # Errors
    /// The files cannot be read. One that does not exist is waited for.
    pub(super) fn new(
        source: LogSource,
        filter: LogEntryFilter,
        cursor: Option<&Cursor>,
    ) -> Result<Self, Error> {
        let mut followers =
            Self { source, filter, followers: Vec::new(), known: Vec::new(), used: (0, 0), missing: None };
        for member in followers.members()? {
            let name = member.name.clone();
            let opened = match cursor {
                None => LogFollower::at_end(member, followers.filter.clone()),
                Some(cursor) => followers.resume(member, cursor),
            };
            followers.add(name, opened)?;
        }
        Ok(followers)
    }

    /// Returns the logs that there are.
    fn members(&mut self) -> Result<Vec<LogSource>, Error> {
        match self.source.members() {
            // The folder of a glob may be made later, as a file may.
            Err(Error::Path { source, .. }) if source.is_not_found() => {
                self.missing = Some(format!("{}: {source}", self.source.name));
                Ok(Vec::new())
            }
            // Nothing is added to a compressed file.
            Ok(members) if self.source.is_glob() => {
                Ok(members.into_iter().filter(|member| !member.name.ends_with(".gz")).collect())
            }
            other => other,
        }
    }

    /// Goes on in the log `member` from the position of `cursor` that lies in it.
    fn resume(&self, member: LogSource, cursor: &Cursor) -> Result<LogFollower, Error> {
        let issued = SystemTime::UNIX_EPOCH + Duration::from_millis(cursor.issued_ms);
        let filter = self.filter.clone();
        if !self.source.is_glob()
            && let Some(position) = cursor.positions.first()
        {
            return LogFollower::from(member, filter, position, cursor.positions.get(1), issued);
        }
        let files = member.files()?.files;
        let known = cursor.positions.iter().find(|position| position.find_in(&files).is_some());
        match known {
            Some(position) => LogFollower::from(member, filter, position, None, issued),
            None => LogFollower::at_start(member, filter),
        }
    }

    fn add(&mut self, name: String, opened: Result<LogFollower, Error>) -> Result<(), Error> {
        match opened {
            Ok(follower) => {
                self.missing = None;
                self.known.push(name.clone());
                self.followers.push((name, follower));
                Ok(())
            }
            Err(Error::NotFound { path, hint }) => {
                self.missing = Some(format!("{path} does not exist yet{hint}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the entries written since the last poll, merged by their times. With `last`, when no other poll follows,
    /// it also returns entries that may still get more lines.
    pub(super) fn poll(&mut self, last: bool) -> Result<MergedFollowBatch, Error> {
        for member in self.members()? {
            if !self.known.contains(&member.name) {
                let name = member.name.clone();
                // It appeared while others were followed, so all of it is new.
                let opened = LogFollower::at_start(member, self.filter.clone());
                self.add(name, opened)?;
            }
        }
        let mut merged = MergedFollowBatch::default();
        let mut timed: Vec<(Option<LogTime>, LogEntry)> = Vec::new();
        let names_files = self.source.is_glob();
        for (_, follower) in &mut self.followers {
            follower.set_used(self.used);
            let batch = match follower.poll(last) {
                Err(Error::NotFound { .. }) if names_files => continue,
                batch => batch?,
            };
            self.used = follower.used();
            merged.full |= batch.full;
            // An entry without a time stays behind the one before it.
            let mut key = None;
            for (mut entry, time) in batch.entries {
                key = key.max(time);
                if names_files && entry.file.is_none() {
                    entry.file = follower.files.last().cloned();
                }
                timed.push((key, entry));
            }
            if merged.full {
                break;
            }
        }
        timed.sort_by_key(|(key, _)| *key);
        merged.entries = timed.into_iter().map(|(_, entry)| entry).collect();
        Ok(merged)
    }

    /// Builds the page for the entries that were returned.
    pub(super) fn page(&self, entries: Vec<LogEntry>, full: bool) -> LogPage {
        let mut page = LogPage { entries, ..LogPage::default() };
        let mut omissions = OmittedCounts::default();
        for (_, follower) in &self.followers {
            for (all, own) in [(&mut page.files, &follower.files), (&mut page.notes, &follower.notes)] {
                all.extend(own.iter().filter(|text| !all.contains(text)).cloned().collect::<Vec<_>>());
            }
            page.scanned_bytes += follower.scanned;
            omissions.malformed += follower.omissions.malformed;
            omissions.skipped.merge(follower.omissions.skipped.clone());
        }
        page.notes.extend(self.missing.clone());
        if self.followers.is_empty() && self.missing.is_none() {
            page.notes.push(format!("no file matches {} yet", self.source.name));
        }
        if full {
            page.notes.push("there may be more; go on with newer_cursor".to_owned());
        }
        page.add_omissions(&omissions, &self.filter);
        page.newer_cursor = Some(self.cursor().to_string());
        page
    }

    /// Returns the cursor for everything after the entries returned so far.
    pub(super) fn cursor(&self) -> Cursor {
        let mut positions: Vec<FilePosition> =
            self.followers.iter().map(|(_, follower)| follower.position()).collect();
        if let ([(_, follower)], false) = (self.followers.as_slice(), self.source.is_glob()) {
            positions.extend(follower.older_target());
        }
        newer_cursor(&self.source, positions)
    }

    /// Returns the notes of the followers.
    #[cfg(test)]
    pub(super) fn notes(&self) -> Vec<String> {
        self.followers.iter().flat_map(|(_, follower)| follower.notes.clone()).collect()
    }
}

/// Creates the cursor that leads from `positions` to newer entries.
pub(super) fn newer_cursor(source: &LogSource, positions: Vec<FilePosition>) -> Cursor {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let issued_ms = u64::try_from(now.as_millis()).unwrap_or_default();
    Cursor { direction: CursorDirection::Newer, source: fnv1a(source.name.as_bytes()), positions, issued_ms }
}
