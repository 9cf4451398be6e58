//! The documents and code that a role needs in a phase: one document, under a budget of tokens, byte-stable.
//!
//! ```
//! # #[cfg(unix)] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use context_compiler::cache::{Cache, DEFAULT_LIMIT};
//! use context_compiler::{Compiler, Request, count::Estimate, source::Folder};
//! # let project = tempfile::tempdir()?;
//! # std::fs::create_dir(project.path().join("docs"))?;
//! # std::fs::write(project.path().join("docs/CONVENTIONS.md"), "# Conventions\n\nTabs.\n")?;
//!
//! let tree = Folder::open(project.path())?;
//! let request = Request { phase: Some(3), budget: Some(20_000), ..Request::new("dev") };
//! let cache = Cache::new(std::sync::Arc::new(Estimate), DEFAULT_LIMIT);
//! let compiled = Compiler::new(&tree, &cache).compile(&request)?;
//!
//! assert!(compiled.prefix.contains("## docs/CONVENTIONS.md\n```markdown\n# Conventions"));
//! assert!(compiled.tail.starts_with("# Role: dev\n# Phase: 3\n"));
//! assert!(compiled.manifest.tokens <= 20_000);
//! # Ok(()) }
//! # #[cfg(not(unix))] fn main() {}
//! ```
//!
//! # The two halves
//!
//! The **stable prefix** has the documents of the role, those that change least first; the **volatile tail** says
//! who reads, and has the plans of the phase, what changed and what failed. A provider's cache serves a prompt as
//! long as it begins as one before: so nothing that changes often, and nothing that differs between readers of the
//! same documents, stands in the prefix, and its size depends on nothing in the tail.
//!
//! # What is promised
//!
//! - The same request over the same files gives the same bytes, on any machine.
//! - The document never has more tokens than its [budget](Request::budget), as the counter that
//!   [`Manifest::counter`] names counts the finished text.
//! - A larger budget never loses anything that a smaller one kept.
//! - Whatever is in a file, it cannot end its own section: see [`Format`].
//! - Everything that is not there is named, in its place or in [`Manifest::left_out`].
//!
//! # Features
//!
//! | feature | what it gives |
//! |---|---|
//! | `tokens` (default) | exact token counts, [`count::O200k`]; without it budgets are estimates, and the result says so |
//! | `outline` | signatures and doc lines of code by tree-sitter |
//! | `git` | what changed, asked of git: [`git`](mod@git); brings process-runner and tokio |
//!
//! # What it leaves out
//!
//! It opens no file but through a [`source::Tree`], calls no network, and starts no process unless the feature `git`
//! is asked to: what changed in a repository is [handed in](Request::changes).

mod budget;
pub mod cache;
pub mod catalogue;
pub mod changes;
pub mod code;
mod compile;
pub mod count;
mod error;
mod form;
#[cfg(feature = "git")]
pub mod git;
mod load;
mod manifest;
mod phase;
mod pieces;
mod prefix;
mod request;
mod section;
pub mod source;
mod sources;
mod tail;
mod text;

pub use budget::MAX_BUDGET;
pub use compile::Compiler;
pub use error::Error;
pub use manifest::{Cacheable, Compiled, GitEntry, Kind, LeftOut, Manifest, SectionEntry};
pub use request::{Code, DEFAULT_BUDGET, Format, Redact, Request};
