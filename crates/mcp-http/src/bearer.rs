//! The tokens that callers bear: what they look like, and what is kept of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

/// How a token begins, so that scanners for secrets find it.
const PREFIX: &str = "ctk_";

/// What a token is found by: no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(pub(crate) String);

/// What is kept of a token. The secret has 256 bits from the system, so that a plain hash is enough.
#[derive(Clone, Copy)]
pub(crate) struct Hash([u8; 32]);

impl Id {
    const LENGTH: usize = 12;

    pub(crate) fn is_wellformed(&self) -> bool {
        self.0.len() == Self::LENGTH
            && self.0.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    }
}

/// A new token, with its id and its hash.
pub(crate) fn new() -> Result<(String, Id, Hash), String> {
    let mut random = [0_u8; 38];
    getrandom::fill(&mut random).map_err(|error| format!("the system has no random numbers: {error}"))?;
    let (id, secret) = random.split_at(6);
    let id = Id(id.iter().map(|byte| format!("{byte:02x}")).collect());
    let token = format!("{PREFIX}{}_{}", id.0, URL_SAFE_NO_PAD.encode(secret));
    let hash = Hash::of(&token);
    Ok((token, id, hash))
}

/// The id in a token, if it looks like one of ours.
pub(crate) fn id(token: &str) -> Option<Id> {
    let rest = token.strip_prefix(PREFIX)?;
    let (id, secret) = rest.split_at_checked(Id::LENGTH)?;
    let id = Id(id.to_owned());
    (id.is_wellformed() && secret.starts_with('_')).then_some(id)
}

impl Hash {
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sha256:")?;
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// In the same time whatever differs.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_id_and_known_by_its_hash() {
        let (token, found, hash) = new().unwrap();
        assert_eq!(id(&token), Some(found));
        let kept = Hash::parse(&hash.to_string()).unwrap();
        assert!(kept.is(&Hash::of(&token)) && !kept.is(&Hash::of(&token[..token.len() - 1])));
        assert_eq!(token.len(), 60);
        assert_ne!(new().unwrap().0, token);
    }

    #[test]
    fn nothing_else_is_taken_for_a_token_or_a_hash() {
        for text in
            ["", "ctk_", "ctk_0123456789ab", "CTK_0123456789ab_x", "ctk_0123456789AB_x", "ctk_äääääääää_x"]
        {
            assert_eq!(id(text), None, "{text}");
        }
        for text in [
            "",
            "sha256:",
            "sha256:00",
            &format!("sha256:{}", "é".repeat(32)),
            &format!("sha256:{}", "g".repeat(64)),
        ] {
            assert!(Hash::parse(text).is_none(), "{text}");
        }
    }
}
