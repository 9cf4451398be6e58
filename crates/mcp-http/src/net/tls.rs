//! TLS with a certificate that is read again when its file changes.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;
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

/// Returns the end of the first certificate in a file, if it can be read.
pub(crate) fn certificate_end(path: &Path) -> Option<SystemTime> {
    let certificate = CertificateDer::pem_file_iter(path).ok()?.next()?.ok()?;
    // RFC 5280 §4.1: a certificate is a sequence, whose first member has an optional version, the serial number, the
    // algorithm, the issuer and then the validity: a begin and an end.
    let (_, certificate) = DerReader::first(&certificate)?;
    let (_, mut fields) = DerReader::first(certificate)?;
    let (tag, after_version) = DerReader::skip(fields)?;
    if tag == 0xa0 {
        fields = after_version;
    }
    for _ in 0..3 {
        (_, fields) = DerReader::skip(fields)?;
    }
    let (_, validity) = DerReader::first(fields)?;
    let (_, after_begin) = DerReader::skip(validity)?;
    let (tag, end) = DerReader::first(after_begin)?;
    let text = std::str::from_utf8(end).ok()?;
    // A year of two digits is between 1950 and 2049 (RFC 5280 §4.1.2.5.1).
    let text = match tag {
        0x17 => format!("{}{text}", if *text.as_bytes().first()? < b'5' { "20" } else { "19" }),
        0x18 => text.to_owned(),
        _ => return None,
    };
    let part = |range: std::ops::Range<usize>| text.get(range);
    let time = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0..4)?,
        part(4..6)?,
        part(6..8)?,
        part(8..10)?,
        part(10..12)?,
        part(12..14)?
    );
    audit_log::instant(&time)
}

/// Reads elements of DER.
struct DerReader;

impl DerReader {
    /// Returns the tag and the content of the first element.
    fn first(bytes: &[u8]) -> Option<(u8, &[u8])> {
        let (tag, begin, length) = Self::head(bytes)?;
        Some((tag, bytes.get(begin..begin.checked_add(length)?)?))
    }

    /// Returns the tag of the first element, and what follows it.
    fn skip(bytes: &[u8]) -> Option<(u8, &[u8])> {
        let (tag, begin, length) = Self::head(bytes)?;
        Some((tag, bytes.get(begin.checked_add(length)?..)?))
    }

    /// Returns the tag, where the content begins, and its length.
    fn head(bytes: &[u8]) -> Option<(u8, usize, usize)> {
        let (tag, length) = (*bytes.first()?, *bytes.get(1)?);
        if length < 0x80 {
            return Some((tag, 2, usize::from(length)));
        }
        let count = usize::from(length & 0x7f);
        let digits = bytes.get(2..2 + count).filter(|_| (1..=4).contains(&count))?;
        let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        Some((tag, 2 + count, length))
    }
}
