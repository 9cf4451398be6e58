//! The code of a project: selecting its files, measuring them, and naming what they export.
//!
//! [`select`] finds files by globs, [`survey`] measures them, and [`map`] lists what each of them exports; see
//! [`outline`](crate::outline::outline()) for one file. The results depend on the content of the files alone: the number of threads,
//! the order in which a file system lists, and a cache change how long they take and nothing else.

mod glob;
mod map;
pub(crate) mod reference_graph;
mod select;
mod selection;
mod survey;
mod walk;

pub use map::{CodeMap, ExportedName, MappedFile, ReferringFile, map};
pub use select::select;
pub use selection::{
    MatchedFiles, SkippedSourcePath, SourceSelectError, SourceSelectOptions, SourceSkipReason,
};
pub use survey::{CodeSurvey, FileFacts, FileKind, SurveyOptions, survey};
