//! What nobody can guess: names, credentials, and the jitter of waits.

use sha2::{Digest, Sha256};

/// A UUID of version 4 (RFC 9562), which agents take as the name of a session of their own too.
pub(super) fn new_id() -> std::io::Result<String> {
    let mut bytes: [u8; 16] = random()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = super::directory::hex(&bytes);
    Ok([&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

/// A credential, and what is kept of it.
pub(super) fn new_credential() -> std::io::Result<(String, String)> {
    let credential = format!("cts_{}", super::directory::hex(&random::<32>()?));
    let hash = hash(&credential);
    Ok((credential, hash))
}

/// What is kept of a credential.
pub(super) fn hash(credential: &str) -> String {
    super::directory::hex(&Sha256::digest(credential.as_bytes()))
}

#[allow(
    clippy::disallowed_methods,
    reason = "the system's generator (random(4)), which is no file of anybody's"
)]
fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    use std::io::Read;
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// From 0 to 1, for the jitter.
pub(super) fn chance() -> f64 {
    f64::from(u32::from_ne_bytes(random().unwrap_or_default())) / f64::from(u32::MAX)
}
