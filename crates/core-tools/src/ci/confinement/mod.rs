//! The confinement of commands: to the workspace's roots, the toolchains, and a temporary folder of the
//! server's own.
//!
//! ```no_run
//! use core_tools::ci::{Commands, ConfinementPolicy, NetworkAccess, PrivateTempDir, ToolchainPaths};
//! use core_tools::redact::Redactor;
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//!
//! # fn example(home: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Arc::new(Workspace::new(["/home/me/project"])?);
//! let toolchains = ToolchainPaths::discover(home, |name| std::env::var_os(name));
//! let temp = PrivateTempDir::new_in("/run/user/1000")?;
//! let policy = ConfinementPolicy::new(&workspace, &toolchains, temp).network(&NetworkAccess::None);
//! println!("{policy}"); // level `namespaces`: files, truncation, devices, TCP, signals, … (Landlock ABI 7), …
//! let commands = Commands::new(process_runner::Runner::new(), workspace, Redactor::new(Default::default())?)
//!     .confined(policy);
//! # Ok(())
//! # }
//! ```

mod policy;
mod private_temp;
mod scope;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
mod toolchain_paths;

pub use policy::{ConfinementPolicy, DeferredConfinement};
pub use private_temp::PrivateTempDir;
pub use scope::CommandScope;
pub use toolchain_paths::ToolchainPaths;
