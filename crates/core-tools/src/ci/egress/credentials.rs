//! The credentials of a gateway: their secrets, and the authorities that programs must trust.

use super::error::{CredentialError, EgressError};
use super::gateway_means::GatewayMeans;
use egress_proxy::{CredentialRule, EgressProxy, HostCredential, Interception, SecretSource};
use process_runner::Runner;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files in which systems keep the certificates of the authorities that they trust.
const SYSTEM_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The variable that names another file than the system's.
const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";

/// The most bytes of a secret's file.
const MAX_SECRET_FILE: u64 = 64 << 10;

/// The most bytes of a file with certificates.
const MAX_CERTIFICATES: u64 = 16 << 20;

/// Lets `proxy` put the credentials of `rules` into requests. Returns it with the certificates that programs must trust, if
/// there are credentials.
pub(super) fn add_credentials(
    proxy: EgressProxy,
    rules: &[Arc<CredentialRule>],
    means: &GatewayMeans<'_>,
) -> Result<(EgressProxy, Option<String>), EgressError> {
    if rules.is_empty() {
        return Ok((proxy, None));
    }
    let mut credentials = Vec::new();
    for rule in rules {
        let failed = |problem| EgressError::Credential { rule: rule.to_string(), problem };
        let mut credential = credential(rule, means).map_err(failed)?;
        if let Some(file) = &rule.ca_file {
            credential = credential.further_roots(certificates(file).map_err(failed)?);
        }
        credential.check().map_err(|error| failed(error.into()))?;
        credentials.push(credential);
    }
    let failed = |problem| EgressError::Credential { rule: "the proxy's own authority".to_owned(), problem };
    let system = system_roots(means.runner).map_err(failed)?;
    let interception =
        Interception::new(credentials, system.as_bytes()).map_err(|error| failed(error.into()))?;
    let authorities = format!("{system}\n{}", interception.certificate_pem());
    Ok((proxy.interception(interception), Some(authorities)))
}

/// Returns a credential, of which each request reads the secret again.
fn credential(rule: &CredentialRule, means: &GatewayMeans<'_>) -> Result<HostCredential, CredentialError> {
    match &rule.secret {
        SecretSource::Variable(name) => {
            let value = means.runner.environment_value(name).map(OsString::from);
            let value = value.ok_or_else(|| CredentialError::NoVariable(name.clone()))?;
            let value = value.into_string().map_err(|_| CredentialError::NoVariable(name.clone()))?;
            Ok(HostCredential::new(rule.clone(), move || Ok(value.clone())))
        }
        SecretSource::File(path) => {
            // By where it leads: a program of this or of another caller would read it there.
            if means.readable.may_read(&real_path(path)) {
                return Err(CredentialError::SecretReadable);
            }
            let path = path.clone();
            Ok(HostCredential::new(rule.clone(), move || {
                let read = trusted_file::read_private(&path, MAX_SECRET_FILE);
                if let Err(error) = &read {
                    tracing::warn!("cannot use the secret in {}: {error}", path.display());
                }
                read.map_err(io::Error::from)
            }))
        }
        _ => Err(CredentialError::UnknownSource),
    }
}

fn real_path(path: &Path) -> PathBuf {
    // A file that does not exist has no other path. Reading it fails later with the reason.
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// Reads certificates, which others may read and not write.
fn certificates(path: &Path) -> Result<String, CredentialError> {
    trusted_file::read(path, MAX_CERTIFICATES)
        .map_err(|error| CredentialError::Certificates { path: path.to_path_buf(), error: error.into() })
}

/// Returns the certificates of the authorities that this system trusts. Empty where it has none.
fn system_roots(runner: &Runner) -> Result<String, CredentialError> {
    if let Some(named) = runner.environment_value(BUNDLE_VARIABLE).filter(|value| !value.is_empty()) {
        // Programs behind the proxy would trust this file too, so that both sides agree.
        return certificates(Path::new(named));
    }
    for path in SYSTEM_BUNDLES.map(Path::new) {
        match certificates(path) {
            Err(CredentialError::Certificates { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            // Another error than a missing file is reported, because a system with two bundles may trust different
            // authorities in them.
            found => return found,
        }
    }
    Ok(String::new())
}
