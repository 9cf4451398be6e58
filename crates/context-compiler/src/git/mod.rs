//! The changes of a repository, asked of the real git. Feature `git`.
//!
//! git is told to run nothing that the configuration of the repository names: no external diff, no text conversion, no
//! monitor, no filter, no hook. It writes nothing, not even its index.

mod client;
mod filters;
mod output;
mod query;

pub use client::command;
pub use query::{ChangesQuery, collect_changes};
