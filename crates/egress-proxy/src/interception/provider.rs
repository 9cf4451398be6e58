//! [`provider`]: the cryptography of the proxy's TLS.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// Returns what TLS signs and encrypts with.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
