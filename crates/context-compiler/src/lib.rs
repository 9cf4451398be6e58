//! Compile the documents and the code that a role needs in a phase into one document under a token budget.
//!
//! ```
//! # #[cfg(unix)] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use context_compiler::source::FolderTree;
//! use context_compiler::{Compiler, ContextRequest};
//! # let project = tempfile::tempdir()?;
//! # std::fs::create_dir(project.path().join("docs"))?;
//! # std::fs::write(project.path().join("docs/CONVENTIONS.md"), "# Conventions\n\nTabs.\n")?;
//!
//! let tree = FolderTree::open(project.path())?;
//! let request = ContextRequest::new("dev").phase(3).budget_tokens(20_000);
//! let compiled = Compiler::new(&tree).compile(&request)?;
//!
//! assert!(compiled.prefix.contains("## docs/CONVENTIONS.md\n```markdown\n# Conventions"));
//! assert!(compiled.tail.starts_with("# Role: dev\n# Phase: 3\n"));
//! assert!(compiled.manifest.tokens <= 20_000);
//! # Ok(()) }
//! # #[cfg(not(unix))] fn main() {}
//! ```
//!
//! # The two segments
//!
//! The **stable prefix** contains the planning documents of the role, those that change least first. The **volatile tail**
//! names role and phase, and contains the plans of the phase, source files, changes and failures of tests. A provider's
//! prompt cache serves a prompt as long as it begins like an earlier one. So nothing that changes often, and nothing that
//! differs between readers of the same documents, is in the prefix, and its size depends on nothing in the tail.
//!
//! # Guarantees
//!
//! - The same request over the same files gives the same bytes, on any machine.
//! - The document never has more tokens than its [budget](ContextRequest::budget_tokens), as the counter that
//!   [`Manifest::counter`] names counts the finished text.
//! - A larger budget never loses anything that a smaller one kept.
//! - No content of a file can end its own section: see [`Format`].
//! - Everything that is left out is named, in its place or in [`Manifest::left_out`].
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `tokens` (default) | exact token counts, [`tokens::O200kCounter`]; without it budgets are estimated, and the manifest says so |
//! | `outline` | signatures and documentation of code by tree-sitter: [`outline`](mod@outline) |
//! | `git` | the changes of a repository: [`git`](mod@git); adds process-runner and tokio |
//!
//! # What it leaves out
//!
//! It opens no file except through a [`source::SourceTree`], makes no network connection, and starts no process except in
//! [`git`](mod@git). The caller passes the changes of a repository [in the request](ContextRequest::changes).

mod budget;
pub mod cache;
pub mod catalogue;
mod change_section;
pub mod changes;
mod clock;
pub mod code;
mod compile;
mod detail_level;
mod documents;
mod error;
mod format;
#[cfg(feature = "git")]
pub mod git;
mod hash;
mod ignore;
mod load;
mod manifest;
pub mod outline;
mod parallel;
mod pieces;
mod plans;
mod request;
mod section;
mod segment;
mod sensitive_name;
pub mod source;
mod source_files;
mod test_failures;
mod text;
pub mod tokens;
mod trim;
mod writer;

pub use budget::MAX_BUDGET_TOKENS;
pub use compile::Compiler;
pub use detail_level::DetailLevel;
pub use error::{Error, RequestField};
pub use format::Format;
pub use hash::ContentHash;
pub use manifest::{
    CacheThresholds, CompiledContext, GitSummary, Manifest, Omission, SectionEntry, SectionKind, Segment,
};
pub use request::{CodeDetail, ContextRequest, DEFAULT_BUDGET_TOKENS, Redact};
pub use text::TextEncoding;

/// The example of the README, which a crate outside the workspace can compile as it is.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../README.md")]
struct Readme;
