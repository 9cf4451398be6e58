//! The filesystem tools, as plain functions over a [`Workspace`].
//!
//! Each takes its typed input and gives a typed result; most results also have a `to_text`, the cheapest
//! form a reader can take them in. All block, and say so when a limit bit: what was cut, how much there
//! was, how to get the rest.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use core_tools::filesystem::{self, EditFile, Edit};
//! use core_tools::workspace::Workspace;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate("a.txt")?.write(b"one\ntwo\n")?;
//! let edited = filesystem::edit_file(
//!     &workspace,
//!     &EditFile {
//!         path: "a.txt".into(),
//!         edits: vec![Edit { old_string: "two".into(), new_string: "2".into(), replace_all: false }],
//!         dry_run: false,
//!     },
//! )?;
//! assert!(edited.diff.contains("-two\n+2\n"));
//! # Ok(())
//! # }
//! ```

mod directories;
mod edit;
mod error;
mod exists;
mod find;
mod glob;
mod info;
mod list;
mod mask;
mod media;
mod moving;
mod read;
mod read_multiple;
mod search;
mod signature;
#[cfg(test)]
mod testing;
mod tree;
mod walk;
mod write;

pub use directories::{CreateDirectory, CreatedDirectory, create_directory};
pub use edit::{Edit, EditFile, EditProblem, Edited, edit_file};
pub use error::Error;
pub use exists::{Existence, Exists, directory_exists, file_exists};
pub use find::{FindFiles, FindKind, FoundFiles, find_files};
pub use glob::GlobList;
pub use info::{FileInfo, GetFileInfo, get_file_info};
pub use list::{ListDirectory, Listed, Listing, list_directory};
pub use media::{Media, MediaFile, ReadMediaFile, read_media_file};
pub use moving::{DeleteFile, Deleted, MoveFile, Moved, delete_file, move_file};
pub use read::{ReadFile, TextFile, read_file};
pub use read_multiple::{FileOrError, FilesRead, ReadMultipleFiles, read_multiple_files};
pub use search::{Case, SearchFiles, SearchMode, SearchResult, search_files};
pub use tree::{DirectoryTree, Tree, directory_tree};
pub use write::{WriteFile, WriteMode, Written, write_file};

#[cfg(doc)]
use crate::workspace::Workspace;

/// The most text one answer holds, in bytes: about 10,000 tokens.
pub const MAX_TEXT_BYTES: usize = 40_000;

/// The path of the primary root, for inputs whose path may be left out.
fn here() -> String {
    ".".to_owned()
}
