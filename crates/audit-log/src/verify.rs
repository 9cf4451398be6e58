//! The verification of chains: it finds records that were changed, removed, inserted or moved.

use crate::chain::ChainHead;
use crate::record::StoredRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The ends of all chains at one time, to be kept where nobody who can write to the audit can change the ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The version of this form.
    version: u32,
    /// The ends, by the chain.
    pub chains: BTreeMap<String, ChainHead>,
}

/// The version of [`Checkpoint`] that is written.
const CHECKPOINT_VERSION: u32 = 1;

/// The error of a text that is no checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The text is not JSON of this form.
    #[error("it is no checkpoint of an audit")]
    Json(#[from] serde_json::Error),
    /// A newer program wrote it.
    #[error(
        "it has version {0}, and this program reads {CHECKPOINT_VERSION}; use the newer program that wrote it"
    )]
    Version(u32),
}

impl Checkpoint {
    /// Creates a checkpoint of these ends.
    pub fn new(chains: BTreeMap<String, ChainHead>) -> Self {
        Self { version: CHECKPOINT_VERSION, chains }
    }

    /// Parses the text of a checkpoint.
    ///
    /// # Errors
    /// It is none, or a newer program wrote it.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        // The version first: a newer form may have other members.
        #[derive(Deserialize)]
        struct CheckpointVersion {
            version: u32,
        }
        let CheckpointVersion { version } = serde_json::from_str(text)?;
        if version != CHECKPOINT_VERSION {
            return Err(CheckpointError::Version(version));
        }
        Ok(serde_json::from_str(text)?)
    }
}

/// A fault of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFault {
    /// The chain.
    pub chain: String,
    /// The place: a line of a file, or a row.
    pub position: String,
    /// The fault.
    pub kind: ChainFaultKind,
}

/// The kind of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainFaultKind {
    /// The content of the record does not have its hash: it was changed.
    Changed,
    /// Records are missing before this one: these numbers.
    Missing {
        /// The first number that is missing.
        from: u64,
        /// The last.
        to: u64,
    },
    /// Its number is not greater than that of the record before it: it was moved, or is there twice.
    OutOfOrder,
    /// It does not follow the record before it, which was changed or replaced together with its hash.
    NotFollowing,
    /// It has no hash, and the records before it have: it was inserted, or an older program wrote it.
    Unlinked,
    /// It follows the entry with which the writer had ended.
    AfterEnd,
    /// The checkpoint has a later record: the end of the chain is missing.
    EndMissing {
        /// The last number that is there.
        last: u64,
        /// The number in the checkpoint.
        expected: u64,
    },
    /// The record of the checkpoint has another hash: it and what follows it were computed anew.
    Rewritten,
    /// The record of the checkpoint is older than the oldest one: it was deleted, which rotation and clean-up do too.
    CheckpointDeleted,
    /// The checkpoint has this chain, and it is not there.
    ChainMissing,
    /// Nothing that was found is a record: this and all others were overwritten, or it is no audit.
    NoRecord,
}

impl fmt::Display for ChainFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("was changed: its content does not have its hash"),
            Self::Missing { from, to } if from == to => write!(f, "follows a gap: record {from} is missing"),
            Self::Missing { from, to } => write!(f, "follows a gap: records {from} to {to} are missing"),
            Self::OutOfOrder => f.write_str("was moved, or is there twice"),
            Self::NotFollowing => {
                f.write_str("does not follow the record before it, which was replaced together with its hash")
            }
            Self::Unlinked => {
                f.write_str("has no hash after records that have one: it was inserted, or a program of version 0.1.0 wrote it")
            }
            Self::AfterEnd => f.write_str("follows the record with which its writer had ended"),
            Self::EndMissing { last, expected } => {
                write!(f, "ends at record {last}, and the checkpoint has {expected}: the end is missing")
            }
            Self::Rewritten => {
                f.write_str("has another hash than in the checkpoint: it was computed anew from there on or before")
            }
            Self::CheckpointDeleted => {
                f.write_str("begins after the record of the checkpoint, which was rotated away or deleted")
            }
            Self::ChainMissing => f.write_str("is in the checkpoint and is not there"),
            Self::NoRecord => {
                f.write_str("is no record, and nothing else is one: it was overwritten, or it is no audit")
            }
        }
    }
}

/// One chain, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSummary {
    /// The number of its first record. Greater than 1 where older records were rotated away or deleted.
    pub first: u64,
    /// Its last record.
    pub head: ChainHead,
    /// The number of its records.
    pub records: u64,
    /// Records that its writer reported as lost.
    pub lost: u64,
    /// The writer has ended, so that no record can be missing after the last.
    pub is_ended: bool,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The chains, by name.
    pub chains: BTreeMap<String, ChainSummary>,
    /// The faults, as far as they are listed.
    pub faults: Vec<ChainFault>,
    /// The faults that are not listed, since there are too many.
    pub further_faults: u64,
    /// Records without hashes before the first record with a hash. Version 0.1.0 wrote no hashes.
    pub unlinked: u64,
    /// Texts that are no records. An unfinished write leaves such a text, and no gap in the chain.
    pub damaged: Vec<String>,
    /// The texts that are no records and not listed.
    pub further_damaged: u64,
}

impl Verification {
    /// Returns true if no fault was found.
    pub fn is_intact(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns the ends of the chains.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint::new(self.chains.iter().map(|(name, chain)| (name.clone(), chain.head.clone())).collect())
    }
}

/// The faults that are listed.
const MAX_LISTED: usize = 100;

/// Verifies chains, one record after the other, each chain in the order of its records.
#[derive(Clone, Debug, Default)]
pub struct ChainVerifier {
    found: Verification,
    checkpoint: Checkpoint,
}

impl ChainVerifier {
    /// Compares the chains with a checkpoint, too.
    pub fn with_checkpoint(checkpoint: Checkpoint) -> Self {
        Self { found: Verification::default(), checkpoint }
    }

    /// Verifies the next record of `chain`, which was found at `position`.
    pub fn check(&mut self, position: &str, chain: &str, record: &StoredRecord) {
        let StoredRecord::Linked { number, previous, stated, computed, lost_before, is_end } = record else {
            let is_linked = self.found.chains.contains_key(chain);
            match record {
                StoredRecord::Damaged if self.found.damaged.len() < MAX_LISTED => {
                    self.found.damaged.push(position.to_owned());
                }
                StoredRecord::Damaged => self.found.further_damaged += 1,
                _ if is_linked => self.fault(chain, position, ChainFaultKind::Unlinked),
                _ => self.found.unlinked += 1,
            }
            return;
        };
        if stated != computed {
            self.fault(chain, position, ChainFaultKind::Changed);
        }
        if let Some(known) = self.checkpoint.chains.get(chain)
            && known.number == *number
            && known.hash != *computed
        {
            self.fault(chain, position, ChainFaultKind::Rewritten);
        }
        let head = ChainHead { number: *number, hash: stated.clone() };
        let Some(before) = self.found.chains.get(chain).cloned() else {
            let summary =
                ChainSummary { first: *number, head, records: 1, lost: *lost_before, is_ended: *is_end };
            self.found.chains.insert(chain.to_owned(), summary);
            return;
        };
        if before.is_ended {
            self.fault(chain, position, ChainFaultKind::AfterEnd);
        }
        let expected = before.head.number.saturating_add(1).saturating_add(*lost_before);
        if *number <= before.head.number {
            self.fault(chain, position, ChainFaultKind::OutOfOrder);
        } else if *number > expected {
            let (from, to) = (before.head.number + 1, number - 1);
            self.fault(chain, position, ChainFaultKind::Missing { from, to });
        } else if previous.as_ref() != Some(&before.head.hash) {
            self.fault(chain, position, ChainFaultKind::NotFollowing);
        }
        if let Some(summary) = self.found.chains.get_mut(chain) {
            summary.head = head;
            summary.records += 1;
            summary.lost += lost_before;
            summary.is_ended = *is_end;
        }
    }

    /// Returns the result, once each record was checked.
    pub fn finish(mut self) -> Verification {
        for (chain, known) in std::mem::take(&mut self.checkpoint.chains) {
            let position = format!("record {}", known.number);
            let kind = match self.found.chains.get(&chain) {
                None => ChainFaultKind::ChainMissing,
                Some(found) if found.head.number < known.number => {
                    ChainFaultKind::EndMissing { last: found.head.number, expected: known.number }
                }
                Some(found) if found.first > known.number => ChainFaultKind::CheckpointDeleted,
                Some(_) => continue,
            };
            self.fault(&chain, &position, kind);
        }
        let has_records = !self.found.chains.is_empty() || self.found.unlinked > 0;
        let is_unexplained = !has_records && self.found.faults.is_empty();
        if let Some(position) = self.found.damaged.first().filter(|_| is_unexplained).cloned() {
            self.fault("", &position, ChainFaultKind::NoRecord);
        }
        self.found
    }

    fn fault(&mut self, chain: &str, position: &str, kind: ChainFaultKind) {
        if self.found.faults.len() >= MAX_LISTED {
            self.found.further_faults += 1;
            return;
        }
        let (chain, position) = (chain.to_owned(), position.to_owned());
        self.found.faults.push(ChainFault { chain, position, kind });
    }
}

/// Returns the hash of the record in a row that has no hash, which can only differ.
#[cfg(feature = "database")]
pub(crate) fn hash_or_none(text: Option<&str>) -> Option<crate::chain::ChainHash> {
    text.and_then(crate::chain::ChainHash::parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainHash;
    use crate::entry::{AuditEntry, AuditEvent};
    use crate::file::AuditFile;
    use crate::file_reader::read_files;
    use std::path::Path;
    use std::time::SystemTime;

    fn verify(path: &Path, checkpoint: Checkpoint) -> Verification {
        let mut verifier = ChainVerifier::with_checkpoint(checkpoint);
        read_files(path, |line| verifier.check(&line.position(), "file", &line.record())).unwrap();
        verifier.finish()
    }

    /// Writes ten entries, gives their lines to `change`, and returns the faults that are found then.
    fn faults_after(change: impl FnOnce(&mut Vec<String>), keep_checkpoint: bool) -> Vec<ChainFaultKind> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut file = AuditFile::open(&path).unwrap();
        for number in 0..10 {
            let mut entry = AuditEntry::new(AuditEvent::Call, SystemTime::now());
            entry.tool = format!("tool{number}");
            file.append(&mut entry).unwrap();
        }
        let whole = verify(&path, Checkpoint::default());
        assert!(whole.is_intact() && whole.chains["file"].records == 10);
        let mut lines: Vec<String> =
            std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        change(&mut lines);
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let checkpoint = if keep_checkpoint { whole.checkpoint() } else { Checkpoint::default() };
        // As it is read back from its file.
        let checkpoint = match keep_checkpoint {
            true => Checkpoint::parse(&serde_json::to_string(&checkpoint).unwrap()).unwrap(),
            false => checkpoint,
        };
        verify(&path, checkpoint).faults.into_iter().map(|fault| fault.kind).collect()
    }

    /// Computes the chain anew from the `from`th line on, as somebody would who knows its form.
    fn rehash(lines: &mut [String], from: usize) {
        let mut previous: Option<ChainHash> = None;
        for (index, line) in lines.iter_mut().enumerate() {
            let (body, mut hash) = crate::chain::split_line(line).unwrap();
            if index >= from {
                let mut entry: AuditEntry = serde_json::from_str(&body).unwrap();
                entry.previous = previous.clone();
                let body = entry.body().unwrap();
                hash = ChainHash::of(&body);
                *line = crate::chain::line(&body, &hash).trim_end().to_owned();
            }
            previous = Some(hash);
        }
    }

    #[test]
    fn a_record_that_was_changed_removed_inserted_or_moved_is_found() {
        use ChainFaultKind::{Changed, Missing, NotFollowing, OutOfOrder, Unlinked};
        assert_eq!(faults_after(|_| (), true), []);
        let changed = faults_after(|lines| lines[4] = lines[4].replace("tool4", "tool7"), false);
        assert_eq!(changed, [Changed]);
        // With its own hash computed anew, the next one no longer follows it.
        let rehashed = faults_after(
            |lines| {
                let (body, _) = crate::chain::split_line(&lines[4].replace("tool4", "tool7")).unwrap();
                lines[4] = crate::chain::line(&body, &ChainHash::of(&body)).trim_end().to_owned();
            },
            false,
        );
        assert_eq!(rehashed, [NotFollowing]);
        assert_eq!(faults_after(|lines| drop(lines.remove(4)), false), [Missing { from: 5, to: 5 }]);
        assert_eq!(faults_after(|lines| drop(lines.drain(4..7)), false), [Missing { from: 5, to: 7 }]);
        assert_eq!(faults_after(|lines| lines.insert(4, lines[2].clone()), false)[0], OutOfOrder);
        let swapped = faults_after(|lines| lines.swap(4, 5), false);
        assert!(swapped.contains(&OutOfOrder), "{swapped:?}");
        let inserted = faults_after(
            |lines| {
                lines.insert(4, r#"{"time":"2026-01-01T00:00:00Z","event":"call","tool":"x"}"#.to_owned());
            },
            false,
        );
        assert_eq!(inserted, [Unlinked]);
        // A line that is made unreadable is a gap, and one that lost its hash is no line of an older program.
        assert_eq!(faults_after(|lines| lines[4] = "{".to_owned(), false), [Missing { from: 5, to: 5 }]);
        let bare = faults_after(|lines| lines[4] = crate::chain::split_line(&lines[4]).unwrap().0, false);
        assert_eq!(bare, [Missing { from: 5, to: 5 }]);
    }

    #[test]
    fn only_a_checkpoint_shows_an_end_that_was_cut_off_or_a_chain_that_was_computed_anew() {
        let cut = |lines: &mut Vec<String>| lines.truncate(7);
        assert_eq!(faults_after(cut, false), []);
        assert_eq!(faults_after(cut, true), [ChainFaultKind::EndMissing { last: 7, expected: 10 }]);
        let rewritten = |lines: &mut Vec<String>| {
            lines[4] = lines[4].replace("tool4", "tool7");
            rehash(lines, 4);
        };
        assert_eq!(faults_after(rewritten, false), []);
        assert_eq!(faults_after(rewritten, true), [ChainFaultKind::Rewritten]);
        assert_eq!(faults_after(Vec::clear, true), [ChainFaultKind::ChainMissing]);
    }

    #[test]
    fn a_checkpoint_of_a_newer_program_is_refused() {
        let error = Checkpoint::parse(r#"{"version": 2, "heads": []}"#).unwrap_err();
        assert!(error.to_string().contains("version 2"), "{error}");
        assert!(Checkpoint::parse("[]").is_err());
    }

    #[test]
    fn a_file_without_a_record_is_not_intact_and_an_empty_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for (text, faults) in [("", vec![]), ("nonsense\n{}\n", vec![ChainFaultKind::NoRecord])] {
            std::fs::write(&path, text).unwrap();
            let found = verify(&path, Checkpoint::default());
            assert_eq!(
                found.faults.into_iter().map(|fault| fault.kind).collect::<Vec<_>>(),
                faults,
                "{text}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_does_not_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let error = read_files(path, |_| panic!("it is read")).unwrap_err();
            assert!(std::error::Error::source(&error).unwrap().to_string().contains("regular"), "{error}");
        }
    }
}
