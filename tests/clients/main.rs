//! The coding agents that people use, as they are installed from npm: each connects with the configuration that
//! `mcp-stdio print-config` prints for it, applied as its user would, in an empty home, without an account, and with
//! nothing but loopback to be reached. And the official TypeScript client, in both eras.

mod claude;
mod codex;
mod editors;
mod gemini;
mod home;
mod model;
mod opencode;
mod typescript;
