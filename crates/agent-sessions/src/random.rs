//! Values that nobody can guess: session ids, credentials, and the jitter of waits.

use crate::directory::hex;
use sha2::{Digest, Sha256};

/// Creates a session id: a UUID of version 4 (RFC 9562), which agents accept as the id of their own session too.
pub(crate) fn new_session_id() -> Result<String, getrandom::Error> {
    // `Uuid::new_v4` panics where the system has no random numbers.
    Ok(uuid::Builder::from_random_bytes(random_bytes()?).into_uuid().to_string())
}

/// The secret by which the processes of a session prove that they belong to it.
pub(crate) struct SessionCredential {
    /// The secret itself, which only the session's process is given.
    pub(crate) secret: String,
    /// Its hash, which is stored.
    pub(crate) hash: String,
}

impl SessionCredential {
    /// Creates a credential of 256 random bits.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let secret = format!("cts_{}", hex(&random_bytes::<32>()?));
        let hash = hash_credential(&secret);
        Ok(Self { secret, hash })
    }
}

/// Returns the hash of a credential. No salt is needed: the credential has as many random bits as the hash.
pub(crate) fn hash_credential(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Returns a random number from 0 to 1. Without random numbers it is 0, as a wait without jitter is better than none.
pub(crate) fn random_fraction() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}

fn random_bytes<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
