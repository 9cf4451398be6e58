//! `edit_file`: replaces exact pieces of a text file, inserts lines, or replaces the matches of a pattern in several files, all
//! or none, and returns the difference.

mod apply;
mod by_pattern;
mod diff;
mod insert;
mod line_numbers;
mod nearest;
mod problem;
mod replace;
mod replacement;
mod request;
mod secrets;
#[cfg(test)]
mod tests;

pub use apply::{edit_file, edit_file_with_secrets};
pub(super) use diff::{MAX_BYTES, truncate_diff, unified_diff};
pub(super) use insert::line_end_of;
pub(super) use nearest::{MAX_SHOWN_LINES, most_similar_line, shorten, without_blanks};
pub use problem::EditProblem;
pub use request::{EditFile, EditResult, TextReplacement};
