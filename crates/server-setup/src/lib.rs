//! The startup that both servers share: flags, environment and configuration in, a guarded host out.
//!
//! The libraries read no environment; this crate does it for the binaries, once. A [`Program`] says what a server has
//! of its own, tools and roles; `mcp_stdio::main` and `mcp_http::main` serve it. Each toolset is a feature, all of them
//! by default: what is not linked does not exist. [`read_settings`] reads the [`settings`], [`setup`] builds the host
//! of [`toolsets`], [`sessions`] leads to the agents, [`policy`] and [`identity`] find the policy and the caller's
//! role, [`confinement`] says what programs may reach and [`environment`] which variables they get, [`log`] writes to standard error with secrets masked, and
//! [`manual`] prints the manual and completion scripts.

pub mod approvals;
pub mod audit;
mod broad_root;
pub mod client_settings;
#[cfg(all(feature = "hooks", unix))]
pub mod codex_executor;
pub mod config;
pub mod confinement;
#[cfg(target_os = "linux")]
pub mod container_init;
pub mod environment;
mod error;
pub mod file_stamp;
pub mod finding;
pub mod help;
pub mod identity;
pub mod instructions;
pub mod log;
pub mod manual;
mod narrowing;
#[cfg(feature = "hooks")]
pub mod native_tools;
#[cfg(unix)]
pub mod open_file_limit;
pub mod policy;
mod program;
pub mod protected_files;
pub mod read_settings;
mod real_paths;
#[cfg(all(feature = "remotes", unix))]
pub mod remote;
pub mod resources;
pub mod served_paths;
#[cfg(all(feature = "sessions", unix))]
mod session_identity;
pub mod sessions;
pub mod settings;
#[cfg(feature = "hooks")]
pub mod settings_snapshot;
pub mod setup;
pub mod toolsets;
pub mod trusted_text;

pub use broad_root::BroadRoot;
#[cfg(feature = "context")]
pub use error::CatalogueFileError;
pub use error::Error;
pub use program::{Program, Resources};
