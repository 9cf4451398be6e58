//! The reasons that connections cannot be intercepted.

/// The reason that the proxy cannot put credentials into requests.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterceptionError {
    /// A certificate or a key cannot be made.
    #[error("a certificate of the proxy cannot be made")]
    Certificate(#[from] rcgen::Error),
    /// TLS cannot be set up.
    #[error("TLS of the proxy cannot be set up")]
    Tls(#[from] rustls::Error),
    /// A file of certificates cannot be read as PEM.
    #[error("{0} are no certificates in the form of PEM")]
    InvalidRoots(String),
    /// No authority is known that could sign for the hosts.
    #[error("no certificates of authorities are known: {0} are empty")]
    NoRoots(String),
    /// Two credentials are for one host.
    #[error("two credentials are for {0}; a host and port may have one")]
    TwoForOneHost(String),
}
