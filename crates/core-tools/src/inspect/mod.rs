//! The state of the application.
#![allow(dead_code, missing_docs, unused_imports, unreachable_pub, reason = "under construction")]
pub(crate) mod cdp;
pub(crate) mod http;
#[cfg(unix)]
pub(crate) mod jvm;
mod path;
pub(crate) mod proc;
pub(crate) mod target;
pub use path::{InvalidPath, StatePath};
