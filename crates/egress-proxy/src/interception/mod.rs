//! Hosts whose requests get a credential that their clients never hold: the proxy ends their TLS connections itself.

mod authority;
mod error;
pub(crate) mod exchange;
mod intercepted_host;
mod mask;
mod provider;
mod upstream;

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use self::authority::CertificateAuthority;
use self::provider::provider;
use crate::host::NetworkHost;

pub use self::error::InterceptionError;
pub(crate) use self::intercepted_host::InterceptedHost;
pub use self::intercepted_host::{HostCredential, SecretError};

/// The hosts whose requests get a credential, and a certificate authority for them that is made with it.
///
/// The key of the authority is in the memory of this process alone. Clients of the proxy must trust
/// [`certificate_pem`](Self::certificate_pem); the certificate limits the authority to these hosts.
pub struct Interception {
    hosts: Vec<InterceptedHost>,
    certificate_pem: String,
}

impl Interception {
    /// Makes an authority for the hosts of `credentials`. `roots` are the certificates of the authorities that may sign for
    /// the hosts themselves, as PEM.
    ///
    /// # Errors
    /// Two credentials are for one host, certificates cannot be read, or no certificate is known.
    pub fn new(
        credentials: impl IntoIterator<Item = HostCredential>,
        roots: &[u8],
    ) -> Result<Self, InterceptionError> {
        let credentials: Vec<_> = credentials.into_iter().collect();
        let authority =
            CertificateAuthority::new(credentials.iter().map(|credential| &credential.rule.host))?;
        let mut common = RootCertStore::empty();
        add_roots(&mut common, roots, "the certificates of the system")?;
        let mut hosts: Vec<InterceptedHost> = Vec::new();
        for credential in credentials {
            let rule = &credential.rule;
            if hosts.iter().any(|other| other.is(&rule.host, rule.port)) {
                return Err(InterceptionError::TwoForOneHost(format!("{}:{}", rule.host, rule.port)));
            }
            let mut roots = common.clone();
            let whose = format!("the certificates of the authorities for `{}`", rule.host);
            add_roots(&mut roots, &credential.further_roots, &whose)?;
            if roots.is_empty() {
                return Err(InterceptionError::NoRoots(format!("those of the system, and {whose},")));
            }
            let mut client_config = ClientConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()?
                .with_root_certificates(roots)
                .with_no_client_auth();
            client_config.alpn_protocols = vec![b"http/1.1".to_vec()];
            let server_name = match &rule.host {
                NetworkHost::Name(name) => ServerName::try_from(name.clone())
                    .map_err(|_| rustls::Error::General(format!("`{name}` is no name of a TLS server")))?,
                NetworkHost::Address(address) => ServerName::from(*address),
            };
            hosts.push(InterceptedHost {
                server_config: authority.server_config(&rule.host)?,
                client_config: Arc::new(client_config),
                server_name,
                credential,
            });
        }
        Ok(Self { hosts, certificate_pem: authority.certificate_pem() })
    }

    /// Returns the certificate of the authority, as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub(crate) fn host(&self, host: &NetworkHost, port: u16) -> Option<&InterceptedHost> {
        self.hosts.iter().find(|known| known.is(host, port))
    }
}

impl fmt::Debug for Interception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hosts.iter().map(|host| &host.credential)).finish()
    }
}

/// Adds the certificates of `pem`. Those that the library cannot use are passed over, as lists of systems have some.
fn add_roots(store: &mut RootCertStore, pem: &[u8], whose: &str) -> Result<(), InterceptionError> {
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| InterceptionError::InvalidRoots(whose.to_owned()))?;
    let has_content = !pem.trim_ascii().is_empty();
    let (added, _) = store.add_parsable_certificates(certificates);
    if has_content && added == 0 { Err(InterceptionError::InvalidRoots(whose.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential_rule::{CredentialHeader, CredentialRule, SecretSource};
    use std::io;

    fn credential(host: &str, secret: &'static str) -> HostCredential {
        let source = SecretSource::Variable("TOKEN".to_owned());
        let rule = CredentialRule::new(host, CredentialHeader::default(), source).unwrap();
        HostCredential::new(rule, move || Ok(secret.to_owned()))
    }

    #[test]
    fn a_secret_that_no_header_can_hold_is_refused_without_being_shown() {
        assert!(credential("a.example", " s3cret-value\n").check().is_ok());
        for secret in ["", "short", "two\r\nlines-of-it", "schlüssel-des-hauses", "nul\0nul\0nul"] {
            let error = credential("a.example", secret).check().unwrap_err();
            assert!(secret.is_empty() || !format!("{error} {error:?}").contains(secret), "{error}");
        }
        let source = SecretSource::Variable("TOKEN".to_owned());
        let rule = CredentialRule::new("a.example", CredentialHeader::default(), source).unwrap();
        let missing = HostCredential::new(rule, || Err(io::ErrorKind::NotFound.into()));
        assert!(matches!(missing.check(), Err(SecretError::Unreadable(_))));
    }

    #[test]
    fn a_host_has_one_credential_and_authorities() {
        let root = CertificateAuthority::new([]).unwrap().certificate_pem();
        let make = |hosts: &[&str], roots: &str| {
            Interception::new(hosts.iter().map(|host| credential(host, "s3cret-value")), roots.as_bytes())
        };
        let made = make(&["a.example", "a.example:8443", "127.0.0.2"], &root).unwrap();
        assert!(made.host(&NetworkHost::parse("a.example").unwrap(), 8443).is_some());
        assert!(made.host(&NetworkHost::parse("a.example").unwrap(), 22).is_none());
        assert!(made.host(&NetworkHost::parse("b.example").unwrap(), 443).is_none());
        assert!(!format!("{made:?}").contains("s3cret-value"));
        assert!(matches!(
            make(&["a.example", "A.Example."], &root),
            Err(InterceptionError::TwoForOneHost(_))
        ));
        assert!(matches!(make(&["a.example"], ""), Err(InterceptionError::NoRoots(_))));
        assert!(matches!(make(&["a.example"], "no PEM"), Err(InterceptionError::InvalidRoots(_))));
    }
}
