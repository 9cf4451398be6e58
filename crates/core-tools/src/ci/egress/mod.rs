//! The way of commands to the network where a role names hosts: a network namespace whose only way out is a proxy.

mod error;
mod gateway;
mod log;
mod scope;
mod self_test;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub use error::EgressError;
pub use log::EgressLog;
pub(in crate::ci) use scope::EgressScope;
