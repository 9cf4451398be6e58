//! MCP over standard input and output: one JSON message a line.
//!
//! rmcp's own line transport drops what it cannot read. [`StdioTransport`] answers it: not JSON is -32700, a message
//! of the wrong shape is -32600, parameters of the wrong shape are -32602, an array is accepted where the
//! protocol has arrays (2025-03-26) and refused elsewhere, a line past the limit is refused. The id is
//! looked for even in what is not JSON or was not kept. Nothing that asks for an answer goes without one,
//! nothing else is answered, and no id is answered twice.
//!
//! A line goes from the [reader](line) through [`decode`] to the [ledger] of open requests and to rmcp; an answer goes
//! through the ledger to the [writer].

mod decode;
mod ledger;
mod line;
mod stdio;
mod streams;
mod writer;

#[cfg(all(feature = "remotes", unix))]
pub(crate) use stdio::CloseLine;
pub(crate) use stdio::StdioTransport;
