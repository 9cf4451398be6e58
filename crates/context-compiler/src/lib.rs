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
//! names role and phase, and contains the plans of the phase, source files, failures of tests and changes. A provider's
//! prompt cache serves a prompt as long as it begins like an earlier one. So nothing that changes often, and nothing that
//! differs between readers of the same documents, is in the prefix, and its size depends on nothing in the tail.
//!
//! # Source files
//!
//! Without globs in the request or the role, the files of the project compete for the budget: first those that
//! [changed](ContextRequest::changes), whole; then those that the [failures](ContextRequest::test_failures) name and those
//! that define what either uses; then those that match the [task](ContextRequest::task) or are connected with the others
//! in the graph of definitions and references, in outline; then the names of the others. With globs, every matching file
//! is wanted whole, in the same order. No file loses detail when the budget grows.
//!
//! # Guarantees
//!
//! - The same request over the same files gives the same bytes, on any machine.
//! - The document never has more tokens than its [budget](ContextRequest::budget_tokens), as the counter that
//!   [`Manifest::counter`] names counts the finished text.
//! - A larger budget never loses anything that a smaller one kept.
//! - No content of a file can end its own section: see [`DocumentFormat`].
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
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `request` | what a caller asks for: [`ContextRequest`] |
//! | `compile` | from a request to a document: [`Compiler`] |
//! | [`catalogue`] | roles and the layout of planning documents, as data |
//! | `documents`, `plans`, `test_failures` | the sections from planning documents, plans, and the output of tests |
//! | `source_files` | the section of the source files: `collect` (which), `measure` (what each costs), `task_words`, `mentions` and `ranking` (their order), `index` (lines and outlines), `steps` (who gets more detail first), `partial` and `outline_head` (a part of the first that does not fit, and of a long outline), `files` (writing) |
//! | `change_section` | the section of the changes: `patch`, `untracked`, `private_key` |
//! | `section`, `pieces`, `trim` | a text to quote, its division, and what is kept of it |
//! | `segment`, `budget` | the two segments, and the division of the budget |
//! | `writer`, `format` | writing sections in one of the formats |
//! | `manifest`, `detail_level` | what a document contains, and in which detail |
//! | [`changes`], `git` | what changed, and asking git for it |
//! | [`code`] | selecting files (`select`, `glob`, `walk`), measuring them (`survey`), what they export (`map`), who refers to whom (`reference_graph`) |
//! | [`outline`](mod@outline) | signatures and identifiers of code |
//! | `ignore`, `sensitive_name` | which files are left out |
//! | `load`, `text`, `hash` | reading a file as text that can be quoted |
//! | [`cache`], [`tokens`], `parallel`, `clock` | facts by content, counting, threads, the time of a look |
//! | [`source`] | access to files |
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
mod decoded_text;
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
mod plans;
mod request;
mod section;
mod segment;
mod sensitive_name;
pub mod source;
mod source_files;
mod test_failures;
mod text_pieces;
pub mod tokens;
mod trim;
mod writer;

pub use budget::MAX_BUDGET_TOKENS;
pub use compile::Compiler;
pub use decoded_text::TextEncoding;
pub use detail_level::SectionDetailLevel;
pub use error::{ContextRequestField, Error};
pub use format::DocumentFormat;
pub use hash::ContentHash;
pub use manifest::{
    CacheThresholds, CompiledContext, DocumentSegment, GitSummary, Manifest, ManifestSectionEntry,
    OmittedContent, SectionKind, UnusedBudget,
};
pub use request::{CodeDetail, ContextRequest, DEFAULT_BUDGET_TOKENS, Redact};

/// The example of the README, which a crate outside the workspace can compile as it is.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
