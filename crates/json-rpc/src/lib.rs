//! Reads and writes JSON-RPC 2.0 messages strictly.
//!
//! [`json::Json`] keeps every member and every number as written and refuses what two parsers could read
//! differently. [`message::Message`] classifies a value as a request, notification or response. [`message_outline`]
//! finds the id of a line that cannot be parsed, so that its sender gets an answer. [`line_buffer`] cuts a stream
//! into lines in bounded memory.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod error_code;
mod id;
pub mod json;
pub mod line_buffer;
pub mod message;
pub mod message_outline;
