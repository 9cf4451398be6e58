//! Access to the files of one project: the trait [`SourceTree`], and [`FolderTree`], which implements it on disk.
//!
//! The compiler itself opens no file. A program that already has its own way to files (roots, limits by role) implements
//! [`SourceTree`] over it; every other program uses [`FolderTree`].

#[cfg(unix)]
mod folder;
pub(crate) mod name;
pub(crate) mod path;
mod stable_read;
mod tree;

#[cfg(unix)]
pub use folder::FolderTree;
pub use name::printable_name;
pub use stable_read::read_stable;
pub use tree::{
    SourceEntryKind, SourceFileContent, SourceFileState, SourceReadError, SourceTree, SourceTreeEntry,
};
