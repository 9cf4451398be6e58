//! The providers that are built in, each in the file of its name.

pub(super) mod expvar;
pub(super) mod file;
pub(super) mod http;
#[cfg(unix)]
pub(super) mod jvm;
pub(super) mod node;
pub(super) mod proc;
pub(super) mod python;
pub(super) mod server_env;
