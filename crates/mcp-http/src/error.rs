//! The errors that keep the program from starting, or a command from being done. The exit code is 2.

use crate::allowed_hosts::AllowedHostHeadersError;
use crate::audit_store::AuditStoreError;
use crate::auth::authenticator::PeerRuleError;
use crate::auth::jwt::JwtError;
use crate::auth::token_file::TokenFileError;
use crate::auth::token_usage::TokenUsageError;
use crate::commands::audit::AuditCommandError;
use crate::commands::health::HealthError;
use crate::commands::init::InitError;
use crate::commands::token::TokenError;
use crate::console_output::OutputError;
use crate::lease_store::LeaseStoreError;
use crate::net::address::AddressError;
use crate::net::listener::BindError;
use crate::net::tls::TlsError;
use crate::oauth::PublicUrlError;
use crate::server::audit_database::UnsetVariableError;
use crate::server::exposure::ExposureError;
use crate::telemetry::TelemetryError;
use crate::workspaces::WorkspacesError;
use std::io;

/// The reason why the program ends with the exit code 2. A message does not repeat its causes;
/// [`error_causes::chain`] adds them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The configuration, the roots, the policy or the log cannot be used.
    #[error(transparent)]
    Setup(#[from] server_setup::Error),
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    AuditCommand(#[from] AuditCommandError),
    #[error(transparent)]
    Init(#[from] InitError),
    #[error(transparent)]
    Health(#[from] HealthError),
    /// The configuration lets in somebody who should not be.
    #[error(transparent)]
    Exposure(#[from] ExposureError),
    #[error(transparent)]
    AuditDatabase(#[from] UnsetVariableError),
    #[error(transparent)]
    AuditStore(#[from] AuditStoreError),
    #[error(transparent)]
    Leases(#[from] LeaseStoreError),
    /// An entry of a list of addresses is none.
    #[error("{key}")]
    AddressList { key: &'static str, source: AddressError },
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("http.listen names no address; expected such as 127.0.0.1:8717 or unix:/run/coretools/socket")]
    NoAddress,
    #[error("TLS needs both, http.tls_certificate and http.tls_key")]
    HalfTls,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Jwt(#[from] JwtError),
    #[error(transparent)]
    PeerRule(#[from] PeerRuleError),
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    #[error(transparent)]
    TokenUsage(#[from] TokenUsageError),
    #[error(transparent)]
    PublicUrl(#[from] PublicUrlError),
    #[error(transparent)]
    AllowedHosts(#[from] AllowedHostHeadersError),
    #[error(transparent)]
    Workspaces(#[from] WorkspacesError),
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system does not say which address a socket was bound to.
    #[error(transparent)]
    BoundAddress(io::Error),
}
