//! The hooks of coding agents: what an agent's native tool is about to do, judged by a policy.
//!
//! A client such as Claude Code asks a program before it runs one of its own tools. [`HookEvent::parse`] reads the
//! client's question, [`ToolUse`] says what the tool would do in terms of our tools, [`HookJudge::judge`] asks the
//! policy, and [`HookAnswer`] is the answer in the form that the client reads. Command lines are read as bash reads
//! them ([`shell`]).
//!
//! Nothing here starts a program, opens a file or reads the environment.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod answer;
mod client;
mod error;
mod event;
mod installation;
mod judge;
mod line;
mod loaded_paths;
mod protected_words;
pub mod shell;
mod tool_use;
mod tools;
mod web_hosts;
mod word_pattern;

pub use answer::HookAnswer;
pub use client::HookClient;
pub use error::EventError;
pub use event::HookEvent;
pub use installation::{HookInstallation, HookPlacement};
pub use judge::{HookDecision, HookJudge, HookVerdict};
pub use tool_use::{FileUse, ToolUse};
