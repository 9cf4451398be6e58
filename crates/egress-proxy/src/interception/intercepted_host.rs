//! [`HostCredential`]: a credential and the way to its secret; [`InterceptedHost`]: what TLS with its host needs.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

use super::mask::SecretForms;
use crate::credential_rule::CredentialRule;
use crate::host::NetworkHost;

/// The fewest bytes of a secret. A shorter one would be found, and masked, in texts that have nothing to do with it.
const MIN_SECRET_BYTES: usize = 8;

/// The most bytes of a secret.
const MAX_SECRET_BYTES: usize = 16 << 10;

type ReadSecret = Arc<dyn Fn() -> io::Result<String> + Send + Sync>;

/// A credential for one host, and the way to its secret.
#[derive(Clone)]
pub struct HostCredential {
    pub(super) rule: CredentialRule,
    read_secret: ReadSecret,
    pub(super) further_roots: Vec<u8>,
}

/// The reason that a secret cannot be put into a request. The reason never has any part of the secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The variable or the file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The secret is too short or too long.
    #[error("it has {0} bytes; a secret has from {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}")]
    Length(usize),
    /// The secret has characters that no header may have.
    #[error("it has characters other than printable ASCII")]
    Characters,
}

impl HostCredential {
    /// Returns the credential of `rule`. `read_secret` is called for each request, so that a secret can change; it must
    /// return soon. White space at the ends of what it returns is left out.
    pub fn new(
        rule: CredentialRule,
        read_secret: impl Fn() -> io::Result<String> + Send + Sync + 'static,
    ) -> Self {
        Self { rule, read_secret: Arc::new(read_secret), further_roots: Vec::new() }
    }

    /// Sets certificates of further authorities that may sign for the host, as PEM.
    #[must_use]
    pub fn further_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.further_roots = pem.into();
        self
    }

    /// Checks that the secret can be put into a request now.
    ///
    /// # Errors
    /// It cannot be read, or no header can hold it.
    pub fn check(&self) -> Result<(), SecretError> {
        self.header().map(|_| ())
    }

    /// Returns the value of the header, and the forms in which its secret is masked.
    pub(super) fn header(&self) -> Result<(String, SecretForms), SecretError> {
        let text = (self.read_secret)().map_err(SecretError::Unreadable)?;
        let secret = text.trim();
        if !(MIN_SECRET_BYTES..=MAX_SECRET_BYTES).contains(&secret.len()) {
            return Err(SecretError::Length(secret.len()));
        }
        if !secret.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(SecretError::Characters);
        }
        let value = self.rule.header.value(secret);
        let forms = SecretForms::new(secret, &value);
        Ok((value, forms))
    }
}

impl fmt::Debug for HostCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCredential").field("rule", &self.rule).finish_non_exhaustive()
    }
}

/// A host whose requests get a credential.
pub(crate) struct InterceptedHost {
    pub(super) credential: HostCredential,
    /// The proxy as the server of its clients.
    pub(super) server_config: Arc<ServerConfig>,
    /// The proxy as a client of the host.
    pub(super) client_config: Arc<ClientConfig>,
    pub(super) server_name: ServerName<'static>,
}

impl InterceptedHost {
    pub(super) fn is(&self, host: &NetworkHost, port: u16) -> bool {
        self.credential.rule.host == *host && self.credential.rule.port == port
    }
}
