//! The source files of a request: whole, in outline, or by name, as much of each as fits.
//!
//! [`collect_source_files`] selects and measures them, and `ranking` orders them by what the request says. [`SourceFiles`]
//! is the section that writes them: `steps` is a sequence from no file to every file whole, of which as many are taken as
//! the budget allows, and `partial` a part of the first that does not fit.

mod collect;
mod detail_steps;
mod files;
mod index;
mod measure;
mod mentions;
mod outline_head;
mod partial;
mod ranking;
mod task_words;

pub(crate) use collect::{SourceFilesRequest, collect_source_files};
pub(crate) use files::SourceFiles;
