//! The certificate authority whose certificates the proxy shows in place of those of chosen hosts.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CidrSubnet, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::error::InterceptionError;
use super::provider::provider;
use crate::host::NetworkHost;

/// A certificate authority that can sign for a fixed list of hosts, and whose key is in the memory of this process alone.
pub(super) struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl CertificateAuthority {
    /// Makes an authority. Its certificate limits it to `hosts`, also for whoever would get its key.
    pub(super) fn new<'a>(
        hosts: impl IntoIterator<Item = &'a NetworkHost>,
    ) -> Result<Self, InterceptionError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "CoreTools egress proxy");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        set_validity(&mut params);
        let permitted_subtrees = hosts
            .into_iter()
            .map(|host| match host {
                NetworkHost::Name(name) => GeneralSubtree::DnsName(name.clone()),
                NetworkHost::Address(address) => {
                    let bits = if address.is_ipv4() { 32 } else { 128 };
                    GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(*address, bits))
                }
            })
            .collect();
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer })
    }

    /// Returns the certificate of the authority, as PEM.
    pub(super) fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// Returns what a TLS server needs that stands in for `host`.
    pub(super) fn server_config(&self, host: &NetworkHost) -> Result<Arc<ServerConfig>, InterceptionError> {
        let name = match host {
            NetworkHost::Name(name) => name.clone(),
            NetworkHost::Address(address) => address.to_string(),
        };
        let mut params = CertificateParams::new(vec![name])?;
        params.distinguished_name.push(DnType::CommonName, "CoreTools egress proxy, for one host");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Sets a validity that no clock of a machine is outside of. The authority ends with the process.
fn set_validity(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2049, 12, 31);
}
