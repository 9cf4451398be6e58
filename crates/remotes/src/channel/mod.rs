//! A channel: the standard streams of a command that connects, as requests and their answers.
//!
//! The server at the other end is not believed. A line that is no message, or longer than a message may be, ends the
//! channel; an answer to nothing that is open, a request and an unknown notification are dropped. What is open when the
//! channel ends fails once, and nothing is sent again.

mod open;
mod pending;
mod reader;
mod supervisor;
mod tool_channel;
mod writer;

pub(crate) use open::{ChannelOptions, StartedConnect, open, random_hex, start_connect};
pub use pending::OnProgress;
pub(crate) use tool_channel::Channel;
