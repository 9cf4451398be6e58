//! What both servers are made of before they serve: flags, environment and configuration in, a guarded host out.
//!
//! The libraries read no environment; this does it for the binaries, once. A [`Program`] says what a server has of its
//! own, tools and roles; `mcp_stdio::main` and `mcp_http::main` serve it. Each toolset is a feature, all of them by
//! default: what is not linked does not exist. [`settings`] are read, [`setup`] builds the host of [`toolsets`],
//! [`sessions`] leads to the agents, [`identity`] finds the policy and the caller's role, [`confinement`] says what
//! programs may reach, [`log`] writes to standard error with secrets masked, and [`manual`] prints the manual and
//! completion scripts.

pub mod confinement;
pub mod identity;
#[cfg(target_os = "linux")]
pub mod init;
pub mod log;
pub mod manual;
mod program;
pub mod sessions;
pub mod settings;
pub mod setup;
pub mod toolsets;

pub use program::{Program, Resources};
