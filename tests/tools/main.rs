//! The tools, through the protocol.
