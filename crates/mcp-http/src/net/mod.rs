//! The network: from a listening socket to HTTP requests.

pub(crate) mod activity;
pub(crate) mod address;
pub(crate) mod connection;
pub(crate) mod connection_limit;
pub(crate) mod listener;
mod strict_lines;
pub(crate) mod tls;
mod write_timeout;
