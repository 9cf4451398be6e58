//! The rate at which refused peers are recorded in the audit.

use crate::refusal_reason::RefusalReason;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The records for each reason in a second.
const RECORDS_PER_SECOND: u32 = 10;

/// Keeps peers that are not authenticated from filling the audit: for each reason ten records a second, and the number of
/// those that were left out.
#[derive(Debug, Default)]
pub(crate) struct UnauthenticatedPeers(Mutex<HashMap<RefusalReason, RefusalRecordWindow>>);

/// The records of one reason in this second.
#[derive(Debug)]
struct RefusalRecordWindow {
    second_began: Instant,
    records: u32,
    left_out: u64,
}

impl UnauthenticatedPeers {
    /// Decides about the record of one refusal. Returns `None` to leave it out, or else the number of those that were left
    /// out before it.
    pub(crate) fn admit_record(&self, reason: RefusalReason) -> Option<u64> {
        let mut reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = reasons.entry(reason).or_insert_with(|| RefusalRecordWindow {
            second_began: Instant::now(),
            records: 0,
            left_out: 0,
        });
        if recorded.second_began.elapsed() >= Duration::from_secs(1) {
            (recorded.second_began, recorded.records) = (Instant::now(), 0);
        }
        if recorded.records >= RECORDS_PER_SECOND {
            recorded.left_out += 1;
            return None;
        }
        recorded.records += 1;
        Some(std::mem::take(&mut recorded.left_out))
    }
}
