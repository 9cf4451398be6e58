//! Tools for coding agents: files, search, commands. Usable without any protocol.
//!
//! Everything happens beneath the roots of a [`Workspace`](workspace::Workspace); a path that leads out of
//! them, by `..` or through a link, opens nothing.
//!
//! ```
//! # #[cfg(feature = "filesystem")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! use core_tools::filesystem::{self, WriteFile};
//! use core_tools::workspace::Workspace;
//!
//! let workspace = Workspace::new([project.path()])?;
//! filesystem::write_file(&workspace, &WriteFile::new("src/main.rs", "fn main() {}\n"))?;
//!
//! assert!(workspace.locate("src/main.rs")?.kind()?.is_some());
//! assert!(workspace.locate("../elsewhere")?.open_read().is_err());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "filesystem"))]
//! # fn main() {}
//! ```
//!
//! # Areas
//!
//! | module | feature | what it is for |
//! |---|---|---|
//! | [`workspace`] | | allowed roots, and the only way to a file beneath them |
//! | [`filesystem`] | `filesystem` | read, write, edit, list, find, search |
//! | [`git`] | `git` | status, history, differences, commits, branches, stashes |
//! | [`ci`] | `ci` | run commands, in the foreground and the background; diagnostics |
//! | [`testing`] | `testing` | find the test runner, run it, report each test |
//! | [`context`] | `context` | the documents and code a role needs, in one document under a token budget |
//! | [`logs`] | `logs` | the logs of the application: the last entries of a level, and new ones |
//! | [`trace`] | `trace` | profiles of the application: where time goes, what takes memory, whom it talks to |
//! | [`inspect`] | `inspect` | the state of the application: what it publishes, and what its runtime says |
//! | [`db`] | `sqlite`, `postgres`, `mysql` | the database of the application: its tables, queries, seeds |
//! | [`sessions`] | `sessions` | agents as supervised processes: start, wait, resume, end |
//! | [`redact`] | | masks secrets in text |
//! | [`mcp`] | `mcp` | the areas as tools of the Model Context Protocol, behind one guarded host |
//!
//! `filesystem`, `git`, `ci`, `testing` and `introspection` are on by default. Without `mcp` nothing here knows a protocol.
//!
//! # What it leaves out
//!
//! Libraries read no environment and have no current folder: the program that links this crate passes both. Commands
//! run unconfined unless [`ci::ConfinementPolicy`] says otherwise; `SECURITY.md` lists what confinement stops.
#![cfg_attr(
    not(all(
        feature = "filesystem",
        feature = "git",
        feature = "ci",
        feature = "testing",
        feature = "context",
        feature = "logs",
        feature = "trace",
        feature = "inspect",
        feature = "sessions",
        feature = "mcp"
    )),
    allow(rustdoc::broken_intra_doc_links, reason = "the table names areas that are off")
)]

#[cfg(feature = "ci")]
pub mod ci;
#[cfg(feature = "context")]
pub mod context;
#[cfg(feature = "filesystem")]
pub mod filesystem;
#[cfg(feature = "git")]
pub mod git;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(any(feature = "filesystem", feature = "git", feature = "mcp"))]
#[cfg(any(feature = "ci", feature = "mcp"))]
mod shell_quote;
#[cfg(feature = "testing")]
pub mod testing;
mod time;

#[cfg(all(feature = "sessions", unix))]
pub use agent_sessions as sessions;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub use introspection::db;
#[cfg(feature = "inspect")]
pub use introspection::inspect;
#[cfg(feature = "logs")]
pub use introspection::logs;
#[cfg(feature = "trace")]
pub use introspection::trace;
pub use redaction as redact;
pub use workspace;
