//! TLS with a certificate that is read again when its file changes.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;

/// A certificate chain and its key, as last read from their files.
#[derive(Debug)]
pub(crate) struct ReloadableTls {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

/// The error of a certificate or a key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}", .path.display())]
pub(crate) struct TlsError {
    path: PathBuf,
    source: TlsProblem,
}

#[derive(Debug, thiserror::Error)]
enum TlsProblem {
    #[error(transparent)]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("the file holds no certificate")]
    NoCertificate,
    /// The key does not fit the certificate, or is of a kind that is not supported.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

impl ReloadableTls {
    /// Reads the certificate chain and its key, both in PEM.
    pub(crate) fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let config = RwLock::new(read(&certificate, &key)?);
        Ok(Self { certificate, key, config })
    }

    /// Reads the files again. On an error the certificate from before stays in use.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let config = read(&self.certificate, &self.key)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Returns an acceptor for one handshake, with the certificate of this moment.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let failed = |path: &Path, source| TlsError { path: path.to_owned(), source };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| failed(certificate, error.into()))?;
    if chain.is_empty() {
        return Err(failed(certificate, TlsProblem::NoCertificate));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error.into()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(certificate, error.into()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| failed(certificate, error.into()))?;
    // The order is the preference of the server.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
