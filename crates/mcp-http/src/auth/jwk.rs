//! The keys of an issuer (RFC 7517), and the signatures that they verify (RFC 7518).

use super::role_rule::is_or_contains;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;

/// A signature algorithm that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignatureAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// The key itself. Its kind decides which algorithms fit; a token cannot choose others.
#[derive(Clone, Debug)]
enum SigningKeyMaterial {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A public key for signatures.
#[derive(Clone, Debug)]
pub(super) struct SigningKey {
    id: Option<String>,
    algorithm: Option<SignatureAlgorithm>,
    material: SigningKeyMaterial,
}

/// The error of a text that is no JWK set, or one without a key that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeySetError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("the set has no list `keys`")]
    NoList,
    #[error("none of its keys can be used; expected RSA, EC (P-256, P-384) or Ed25519 keys for signatures")]
    NoUsableKey,
}

/// Reads the keys of a JWK set that are for signatures; there is at least one.
pub(super) fn parse_keys(text: &str) -> Result<Vec<SigningKey>, KeySetError> {
    let set: Value = serde_json::from_str(text)?;
    let keys = set.get("keys").and_then(Value::as_array).ok_or(KeySetError::NoList)?;
    // RFC 7517 §5: keys of other kinds are to be ignored.
    let keys: Vec<SigningKey> = keys.iter().filter_map(SigningKey::parse).collect();
    if keys.is_empty() {
        return Err(KeySetError::NoUsableKey);
    }
    Ok(keys)
}

impl SigningKey {
    /// Reads one key. Returns `None` where it is of another kind, or for another use.
    fn parse(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        // RFC 7517 §4.2 and §4.3: a key for encryption must verify nothing.
        if key.get("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if key.get("key_ops").is_some_and(|uses| !is_or_contains(uses, "verify")) {
            return None;
        }
        // ring takes an uncompressed point (SEC 1, section 2.3.3): the byte 4, then both coordinates.
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4], x.as_slice(), y.as_slice()].concat())
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => SigningKeyMaterial::Rsa { n: bytes("n")?, e: bytes("e")? },
            ("EC", Some("P-256")) => SigningKeyMaterial::P256(point(32)?),
            ("EC", Some("P-384")) => SigningKeyMaterial::P384(point(48)?),
            ("OKP", Some("Ed25519")) => SigningKeyMaterial::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        let algorithm = match key.get("alg") {
            None => None,
            Some(name) => Some(SignatureAlgorithm::parse(name.as_str()?)?),
        };
        Some(Self { id: text("kid").map(str::to_owned), algorithm, material })
    }

    /// Returns true if a token that names this key and algorithm may be verified by this key.
    pub(super) fn fits(&self, id: Option<&str>, algorithm: SignatureAlgorithm) -> bool {
        use SignatureAlgorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        let kind_fits = matches!(
            (&self.material, algorithm),
            (SigningKeyMaterial::Rsa { .. }, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512)
                | (SigningKeyMaterial::P256(_), Es256)
                | (SigningKeyMaterial::P384(_), Es384)
                | (SigningKeyMaterial::Ed25519(_), EdDsa)
        );
        let is_named = match (id, &self.id) {
            (Some(id), Some(own)) => id == own,
            (Some(_), None) => false,
            (None, _) => true,
        };
        kind_fits && is_named && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Returns true if `signed` is the signature of `message`.
    pub(super) fn verifies(&self, algorithm: SignatureAlgorithm, message: &[u8], signed: &[u8]) -> bool {
        use SignatureAlgorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        // These parameters refuse RSA keys below 2048 bits, as RFC 7518 §3.3 requires.
        let rsa = match algorithm {
            Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Es256 | Es384 | EdDsa => {
                let (kind, key): (&'static dyn signature::VerificationAlgorithm, _) = match &self.material {
                    SigningKeyMaterial::P256(point) => (&signature::ECDSA_P256_SHA256_FIXED, point),
                    SigningKeyMaterial::P384(point) => (&signature::ECDSA_P384_SHA384_FIXED, point),
                    SigningKeyMaterial::Ed25519(point) => (&signature::ED25519, point),
                    SigningKeyMaterial::Rsa { .. } => return false,
                };
                return UnparsedPublicKey::new(kind, key).verify(message, signed).is_ok();
            }
        };
        match &self.material {
            SigningKeyMaterial::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(rsa, message, signed).is_ok()
            }
            _ => false,
        }
    }
}

impl SignatureAlgorithm {
    /// Parses the `alg` of a token. `none` and the symmetric algorithms are not accepted: with those, anybody who knows
    /// the public key could sign.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }
}
