//! Tools for coding agents, usable without any protocol.
