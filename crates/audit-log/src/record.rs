//! A record as it was found, for the verification.

use crate::chain::ChainHash;

/// A record as it was found: what it says of itself, and what its content really hashes to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredRecord {
    /// A link of the chain.
    Linked {
        /// Its number.
        number: u64,
        /// The hash that it has of the record before it.
        previous: Option<ChainHash>,
        /// The hash that it has of itself.
        stated: ChainHash,
        /// The hash of its content.
        computed: ChainHash,
        /// Records before it that the writer lost, which had numbers.
        lost_before: u64,
        /// The writer ended with it.
        is_end: bool,
    },
    /// A record without a number and a hash, as version 0.1.0 wrote them.
    Unlinked,
    /// A text that is no record, such as half a line.
    Damaged,
}
