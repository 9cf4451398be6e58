//! The life of the server: it starts, reads files again that change, and ends with everything that it has started.

#[cfg(feature = "sessions")]
mod adopted_agents;
pub(crate) mod audit_database;
pub(crate) mod exposure;
mod reload;
pub(crate) mod revocation;
pub(crate) mod run;
mod service_manager;
mod startup;
