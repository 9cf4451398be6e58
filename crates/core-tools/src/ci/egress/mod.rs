//! The way of commands to the network where a role names hosts: a network namespace whose only way out is a proxy.

#[cfg(feature = "credentials")]
mod credentials;
#[cfg(not(feature = "credentials"))]
#[path = "no_credentials.rs"]
mod credentials;
mod error;
mod files;
mod gateway;
mod log;
mod scope;
mod self_test;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub use error::{CredentialError, EgressError};
pub use log::EgressLog;
pub(in crate::ci) use scope::EgressScope;
