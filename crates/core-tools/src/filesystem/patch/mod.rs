//! `apply_patch`: changes several files by one patch, all or none.
//!
//! A patch is parsed into changes of files (`codex`, `unified`), each hunk is fitted into its file (`fit`), the results
//! are computed in memory (`plan`), and only then are files written (`commit`).

mod codex;
mod commit;
mod file_patch;
mod fit;
mod hunk_range;
mod lines;
mod misfit;
mod parse;
mod plan;
#[cfg(feature = "mcp")]
mod renamed;
mod request;
mod rewrite;
mod run;
mod syntax;
#[cfg(test)]
mod tests;
mod unified;

pub use misfit::{HunkProblem, PatchProblem};
#[cfg(feature = "mcp")]
pub(crate) use renamed::with_paths;
pub use request::{ApplyPatch, PatchAction, PatchResult, PatchedFile};
pub(super) use rewrite::{RewrittenFiles, rewrite_files};
pub use run::apply_patch;
#[cfg(feature = "mcp")]
pub(crate) use run::patched_paths;
