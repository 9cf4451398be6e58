//! `search_files`: finds the lines of files that match.
//!
//! Each thread of the walk has a worker that searches files and collects their matches; in the end the
//! collections are merged, sorted by path and rendered as far as the answer's limits allow.

mod collector;
mod matches;
mod query;
mod request;
mod run;
mod shorten;
mod sink;
mod symbols;
#[cfg(test)]
mod tests;
mod worker;

pub(super) use query::with_any_line_end;
pub use request::{CaseMode, SearchFiles, SearchMode, SearchResult};
pub(super) use run::files_with_matches;
pub use run::{search_files, search_files_with_secrets};
