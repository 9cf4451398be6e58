//! The form of bearer tokens, and the hash that is kept of one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

/// The start of every token, by which scanners for secrets find it.
const PREFIX: &str = "ctk_";

/// The public part of a token, by which it is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenId(pub(crate) String);

/// The SHA-256 of a token. The secret has 256 random bits, so that a plain hash is enough: there is nothing to guess.
#[derive(Clone, Copy)]
pub(crate) struct TokenHash([u8; 32]);

impl TokenId {
    const LENGTH: usize = 12;

    /// Returns true if the id has the form of one that [`generate`] makes.
    pub(crate) fn is_wellformed(&self) -> bool {
        self.0.len() == Self::LENGTH
            && self.0.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    }
}

/// A new token.
pub(crate) struct NewToken {
    /// The text that its bearer sends.
    pub(crate) token: String,
    pub(crate) id: TokenId,
    pub(crate) hash: TokenHash,
}

/// Makes a token.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn generate() -> Result<NewToken, getrandom::Error> {
    // 6 bytes for the public id and 32 for the secret.
    let mut random = [0_u8; 38];
    getrandom::fill(&mut random)?;
    let (id, secret) = random.split_at(6);
    let id = TokenId(id.iter().map(|byte| format!("{byte:02x}")).collect());
    let token = with_checksum(&format!("{PREFIX}{}_{}", id.0, URL_SAFE_NO_PAD.encode(secret)));
    let hash = TokenHash::of(&token);
    Ok(NewToken { token, id, hash })
}

/// The digits of a checksum.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends the CRC-32 of `text` in six digits, the highest first. A scanner for leaked tokens checks it, so that text which only
/// looks like a token is no false alarm. The server compares the hash of the whole.
fn with_checksum(text: &str) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(text.as_bytes());
    let mut rest = crc.sum();
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62.get((rest % 62) as usize).copied().unwrap_or(b'0');
        rest /= 62;
    }
    digits.iter().fold(text.to_owned(), |token, digit| token + &char::from(*digit).to_string())
}

/// Returns the id in a token, if it has the form of one that [`generate`] makes.
pub(crate) fn token_id(token: &str) -> Option<TokenId> {
    let rest = token.strip_prefix(PREFIX)?;
    // A bearer is text of the client, and an index into it could lie within a character.
    let (id, secret) = rest.split_at_checked(TokenId::LENGTH)?;
    let id = TokenId(id.to_owned());
    (id.is_wellformed() && secret.starts_with('_')).then_some(id)
}

impl TokenHash {
    /// Hashes a token.
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Parses `sha256:` and 64 hexadecimal digits.
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

    /// Returns true if both are the same, in a time that does not depend on where they differ.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        // The comparison takes the same time for every hash, so that its duration tells no attacker how much was right.
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_id_and_verified_by_its_hash() {
        let NewToken { token, id, hash } = generate().unwrap();
        assert_eq!(token_id(&token), Some(id));
        let kept = TokenHash::parse(&hash.to_string()).unwrap();
        assert!(
            kept.matches(&TokenHash::of(&token)) && !kept.matches(&TokenHash::of(&token[..token.len() - 1]))
        );
        assert_eq!(token.len(), 66);
        assert_eq!(with_checksum(&token[..60]), token);
        // 3421780262, the CRC-32 of these digits in every table of check values.
        assert_eq!(with_checksum("123456789"), "1234567893jZRME");
        assert_ne!(generate().unwrap().token, token);
    }

    #[test]
    fn other_text_is_neither_a_token_nor_a_hash() {
        for text in
            ["", "ctk_", "ctk_0123456789ab", "CTK_0123456789ab_x", "ctk_0123456789AB_x", "ctk_äääääääää_x"]
        {
            assert_eq!(token_id(text), None, "{text}");
        }
        for text in [
            "",
            "sha256:",
            "sha256:00",
            &format!("sha256:{}", "é".repeat(32)),
            &format!("sha256:{}", "g".repeat(64)),
        ] {
            assert!(TokenHash::parse(text).is_none(), "{text}");
        }
    }
}
