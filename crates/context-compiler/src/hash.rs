//! The hash by which contents are known.

use sha2::{Digest, Sha256};

/// The SHA-256 of a content.
pub type ContentHash = [u8; 32];

/// Returns the SHA-256 of `content`.
pub(crate) fn hash_content(content: &[u8]) -> ContentHash {
    Sha256::digest(content).into()
}
