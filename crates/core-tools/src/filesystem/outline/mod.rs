//! `file_outline`: the definitions in source files, with their lines.

mod definitions;
mod request;
mod run;
mod symbol_lines;
#[cfg(test)]
mod tests;

pub(super) use definitions::EnclosingDefinitions;
pub use request::{FileOutline, OutlineDefinition, OutlinedFile, OutlinedFiles};
pub use run::file_outline;
pub(super) use symbol_lines::symbol_lines;
