//! The executor that Codex can be given in place of its own.
//!
//! Codex runs the commands of its agent, and reads and writes its files, through an *executor*: itself, or a program that
//! `environments.toml` names. [`serve`] speaks the protocol between the two on a pair of streams. Before anything happens,
//! it asks an [`ExecutorPolicy`], which returns a command that is ready to start, or a path that is ready to be opened, or
//! the reason why neither may be.
//!
//! The protocol is experimental and has no version of its own: [`CODEX_VERSION`] names the release of Codex that this crate
//! was built against.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod connection;
mod environment;
mod error;
mod file_uri;
mod files;
mod masking;
mod open_files;
mod policy;
mod process;
mod processes;
pub mod protocol;
mod refusal;
mod rpc_error;
mod sandbox;

pub use connection::{ExecutorOptions, serve};
pub use error::Error;
pub use file_uri::{FileUriError, path_of_uri, uri_of_path};
pub use policy::{CodexCommand, ExecutorPolicy, FileOperation, FileRequest};
pub use protocol::CODEX_VERSION;
pub use refusal::ExecutorRefusal;
pub use sandbox::SandboxLimits;
