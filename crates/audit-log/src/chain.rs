//! The hashes that link the entries of a chain.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// The SHA-256 of an entry: 64 hexadecimal digits. Each entry holds the SHA-256 of the entry before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainHash(String);

impl ChainHash {
    /// Hashes the text of an entry.
    pub(crate) fn of(body: &str) -> Self {
        Self(Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Parses 64 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The last entry of a chain: the next one follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    /// The number of the entry, counted from 1.
    pub number: u64,
    /// Its hash.
    pub hash: ChainHash,
}

/// The end of a line of the file: the hash of what stands before it.
const HASH_MEMBER: &str = ",\"hash\":\"";

/// Returns the line of a body: the same JSON object with its hash as the last member.
pub(crate) fn line(body: &str, hash: &ChainHash) -> String {
    let open = body.strip_suffix('}').unwrap_or(body);
    format!("{open}{HASH_MEMBER}{hash}\"}}\n")
}

/// Splits a line into its body and its hash, if it has one.
pub(crate) fn split_line(line: &str) -> Option<(String, ChainHash)> {
    let rest = line.strip_suffix("\"}")?;
    let (open, hash) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
    let open = open.strip_suffix(HASH_MEMBER)?;
    Some((format!("{open}}}"), ChainHash::parse(hash)?))
}
