//! The filesystem tools, as plain functions over a [`Workspace`].
//!
//! Each function takes a typed input and returns a typed result. Most results also have a `to_text`, which gives
//! them in the fewest tokens. All functions block: asynchronous callers run them on a blocking thread. Where a limit
//! cuts a result, its notes say what was cut, how much there was, and how to get the rest.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use core_tools::filesystem::{self, EditFile, TextReplacement};
//! use core_tools::workspace::Workspace;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate("a.txt")?.write(b"one\ntwo\n")?;
//! let edited = filesystem::edit_file(&workspace, &EditFile::new("a.txt", vec![TextReplacement::new("two", "2")]))?;
//! assert!(edited.diff.contains("-two\n+2\n"));
//! # Ok(())
//! # }
//! ```

mod create_directory;
mod delete_file;
mod edit;
mod entry;
mod error;
mod exists;
mod find;
mod glob;
mod ignore_files;
mod info;
mod key_context;
mod limits;
mod list;
mod mask;
mod media;
mod move_file;
#[cfg(feature = "context")]
mod outline;
mod parameters;
mod patch;
mod read;
mod read_multiple;
#[cfg(test)]
mod schema_tests;
mod search;
mod signature;
#[cfg(test)]
mod testing;
mod tree;
mod walk;
mod work_queue;
mod write;

pub use create_directory::{CreateDirectory, CreateDirectoryResult, create_directory};
pub use delete_file::{DeleteFile, DeleteResult, delete_file};
pub use edit::{EditFile, EditProblem, EditResult, TextReplacement, edit_file, edit_file_with_secrets};
pub use error::Error;
#[cfg(feature = "mcp")]
pub(crate) use exists::exists_if_cached;
pub use exists::{Existence, PathExistenceCheck, directory_exists, file_exists};
pub use find::{FindFiles, FindKind, FoundFiles, find_files};
pub use glob::GlobList;
pub use info::{FileInfo, GetFileInfo, get_file_info};
pub use limits::MAX_TEXT_BYTES;
pub use list::{DirectoryListing, ListDirectory, ListedEntry, list_directory};
pub use media::{MediaFile, MediaKind, ReadMediaFile, read_media_file};
pub use move_file::{MoveFile, MoveResult, move_file};
#[cfg(feature = "context")]
pub use outline::{FileOutline, OutlineDefinition, OutlinedFile, OutlinedFiles, file_outline};
pub use patch::{ApplyPatch, HunkProblem, PatchAction, PatchProblem, PatchResult, PatchedFile, apply_patch};
#[cfg(feature = "mcp")]
pub(crate) use patch::{patched_paths, with_paths};
pub use read::{ReadFile, TextFile, read_file};
pub use read_multiple::{
    FileReadOutcome, FileToRead, LinesToRead, MultipleFiles, ReadMultipleFiles, read_multiple_files,
};
pub use search::{CaseMode, SearchFiles, SearchMode, SearchResult, search_files, search_files_with_secrets};
pub use tree::{DirectoryTree, RenderedTree, directory_tree};
pub use write::{WriteFile, WriteMode, WriteResult, write_file};

#[cfg(doc)]
use crate::workspace::Workspace;
