//! The way of commands to the network where a role names hosts: a network namespace whose only way out is a proxy.

#[cfg(feature = "credentials")]
mod credentials;
#[cfg(not(feature = "credentials"))]
#[path = "no_credentials.rs"]
mod credentials;
mod egress_log;
mod error;
mod gateway;
mod gateway_files;
mod gateway_means;
mod network_scope;
mod self_test;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub use egress_log::EgressLog;
pub use error::{CredentialError, EgressError};
pub(in crate::ci) use network_scope::EgressScope;
