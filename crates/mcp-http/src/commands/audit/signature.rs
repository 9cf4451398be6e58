//! Signatures of checkpoints: Ed25519, with keys as `openssl genpkey -algorithm ed25519` makes them.

use audit_log::Checkpoint;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The start of what is signed, so that no other text of the key's owner can pass for a checkpoint.
const CONTEXT: &[u8] = b"coretools audit checkpoint 1\n";
/// The start of a public key of Ed25519 in a certificate's form (RFC 8410 §4); the 32 bytes of the key follow.
const ED25519_PUBLIC_KEY: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The error of a checkpoint that cannot be signed, or whose signature does not hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignatureError {
    #[error("cannot read the key {}: it is no PEM of a key", .path.display())]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{} is no key of Ed25519; `openssl genpkey -algorithm ed25519` makes one", .path.display())]
    Key { path: PathBuf },
    #[error(
        "the checkpoint has no signature: it was saved without --sign-key, or its signature was taken away"
    )]
    Unsigned,
    #[error(
        "the signature of the checkpoint does not hold: the checkpoint was changed, or another key signed it"
    )]
    Wrong,
    #[error("cannot write a checkpoint as JSON")]
    Json(#[from] serde_json::Error),
}

/// A checkpoint in its file, which may have a signature. A program that knows no signatures reads it as well.
#[derive(Debug, Serialize)]
struct SignedCheckpoint<'a> {
    #[serde(flatten)]
    checkpoint: &'a Checkpoint,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// The signature in the file of a checkpoint.
#[derive(Debug, Deserialize)]
struct SignatureField {
    signature: Option<String>,
}

/// Returns the text of the file of `checkpoint`, signed with the private key in the file `key` if there is one.
pub(super) fn write(checkpoint: &Checkpoint, key: Option<&Path>) -> Result<String, SignatureError> {
    let signature = match key {
        None => None,
        Some(path) => {
            let der = PrivatePkcs8KeyDer::from_pem_file(path)
                .map_err(|source| SignatureError::Pem { path: path.to_owned(), source })?;
            // The key of OpenSSL does not contain the public key, with which ring would compare it.
            let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
                .map_err(|_| SignatureError::Key { path: path.to_owned() })?;
            Some(STANDARD.encode(key.sign(&signed_bytes(checkpoint)?)))
        }
    };
    Ok(serde_json::to_string_pretty(&SignedCheckpoint { checkpoint, signature })?)
}

/// Checks that the private key of the public key in the file `key` has signed `checkpoint`, which was read from `text`.
pub(super) fn verify(checkpoint: &Checkpoint, text: &str, key: &Path) -> Result<(), SignatureError> {
    let der = SubjectPublicKeyInfoDer::from_pem_file(key)
        .map_err(|source| SignatureError::Pem { path: key.to_owned(), source })?;
    let public = der.strip_prefix(&ED25519_PUBLIC_KEY).filter(|key| key.len() == 32);
    let public = public.ok_or_else(|| SignatureError::Key { path: key.to_owned() })?;
    let SignatureField { signature } = serde_json::from_str(text)?;
    let signature = signature.ok_or(SignatureError::Unsigned)?;
    let signature = STANDARD.decode(signature).map_err(|_| SignatureError::Wrong)?;
    UnparsedPublicKey::new(&ED25519, public)
        .verify(&signed_bytes(checkpoint)?, &signature)
        .map_err(|_| SignatureError::Wrong)
}

/// Returns what is signed. The members of a checkpoint are written in one order, however they stand in a file.
fn signed_bytes(checkpoint: &Checkpoint) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = CONTEXT.to_vec();
    serde_json::to_writer(&mut bytes, checkpoint)?;
    Ok(bytes)
}
