//! Reads the logs of the application: the last entries of a level, and new ones as they are written.
//!
//! The format of each line is detected separately, so that a file may mix the lines of several loggers: JSON objects,
//! logfmt, and text with a time or a level in front. Each family of formats is one file: `json`, `logfmt`, `klog`,
//! `web_server`, `syslog`, `journal`, `frameworks`, and `container` for what runtimes wrap around lines. Lines
//! that continue an entry, such as a stack trace, belong to it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use introspection::logs::{EntryLevel, GetLogs, Logs};
//! use workspace::Workspace;
//! use std::sync::Arc;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate("app.log")?.write(
//!     b"{\"level\":30,\"time\":1795168800000,\"msg\":\"up\"}\n{\"level\":50,\"time\":1795168801000,\"msg\":\"down\"}\n",
//! )?;
//!
//! let logs = Logs::new(Arc::new(workspace));
//! let page = logs.read(&GetLogs::default().level(EntryLevel::Error), &Default::default())?;
//! assert_eq!(page.entries[0].message, "down");
//! assert_eq!(page.entries[0].timestamp.as_deref(), Some("2026-11-20T10:00:01.000Z"));
//! # Ok(())
//! # }
//! ```
//!
//! # Bounds
//!
//! A file is read from its end in chunks of 2 MiB, and no file is held in memory. At most 1 MiB of a line is read;
//! an entry has at most 8 KiB of message and 8 KiB of fields, and a page at most about 36 KB of entries. The page
//! notes what was left out, and a cursor leads to the rest.
//!
//! # What it leaves out
//!
//! Times without an offset count as UTC, and a time without a year is the last one before the file changed. What a
//! query leaves out because its time or its level is not understood is counted in [`LogPage::not_understood`]. With
//! `since`, reading ends at entries that are more than five seconds older where the rest of the file, read or looked at
//! in places, has no newer ones.

mod backward;
mod container;
mod cursor;
mod discovery;
mod entry;
mod error;
mod exact_numbers;
mod files;
mod fold;
mod follow;
mod followers;
mod forward;
mod frameworks;
mod groups;
mod head;
mod iis_haproxy;
mod interleaved;
mod journal;
mod json;
mod klog;
mod level;
mod level_words;
mod line;
mod line_bytes;
mod line_classifier;
#[cfg(all(test, unix))]
mod log_corpus;
mod log_group;
mod log_time;
mod logfmt;
mod merge;
mod message;
mod open_entry;
mod page;
mod plain;
mod preceding;
mod preceding_lines;
mod prefetch;
mod query;
mod read_at;
mod reader;
mod recency;
mod request_lines;
mod skipped;
mod stack_trace;
mod syslog;
mod tail;
#[cfg(all(test, unix))]
mod tests;
mod utf16;
mod w3c;
mod web_server;

pub use entry::LogEntry;
pub use error::Error;
pub use level::EntryLevel;
pub use log_group::{LogGroup, MessageCount};
pub use page::LogPage;
pub use query::GetLogs;
pub use reader::Logs;
pub use skipped::{NotUnderstood, UnknownPart};
