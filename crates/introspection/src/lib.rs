//! Looks into a running application: its state, logs, profiles and databases.
//!
//! | module | feature | source |
//! |---|---|---|
//! | [`inspect`] | `inspect` | the state of the application: published files, HTTP endpoints, inspectors, `/proc`, attach sockets |
//! | [`logs`] | `logs` | its log files, backward in constant memory, and followed |
//! | [`trace`] | `trace` | profiles: CPU time, memory, network |
//! | [`db`] | `sqlite`, `postgres`, `mysql` | its database: tables, queries, seeds |
//!
//! Files are opened beneath the roots of a [`Workspace`](workspace::Workspace). The library reads no environment
//! variables and knows no protocol.
#![cfg_attr(
    not(all(feature = "logs", feature = "trace", feature = "inspect", feature = "sqlite")),
    allow(rustdoc::broken_intra_doc_links, reason = "the table names modules that are off")
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub mod db;
#[cfg(any(feature = "logs", feature = "sqlite"))]
mod env_file;
#[cfg(feature = "inspect")]
pub mod inspect;
#[cfg(feature = "logs")]
pub mod logs;
#[cfg(feature = "trace")]
pub mod trace;
