//! The source files of a request: whole, in outline, or by name, as much of each as fits.
//!
//! [`collect_source_files`] selects and measures them. [`SourceFiles`] is the section that writes them; it decides how
//! much of each file is there by a sequence of steps from no file to every file whole, of which as many are taken as the
//! budget allows.

mod collect;
mod files;
mod index;
mod measure;
mod mentions;
mod partial;
mod ranking;
mod steps;
mod task_words;

pub(crate) use collect::{SourceFilesRequest, collect_source_files};
pub(crate) use files::SourceFiles;
