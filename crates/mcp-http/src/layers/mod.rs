//! The layers of the router, in the order in which a request meets them; `router` puts them together.

pub(crate) mod admission;
pub(crate) mod call_metrics;
pub(crate) mod call_permits;
pub(crate) mod compression;
pub(crate) mod host_check;
pub(crate) mod identification;
pub(crate) mod lifetime;
pub(crate) mod rpc_body;
pub(crate) mod session;
pub(crate) mod tracing;
pub(crate) mod workspace;
