//! The allowed roots, and [`ConfinedPath`], the only way to a file beneath them.
//!
//! A path that a tool was given is *located* (a matter of text: which root, and where beneath it) and then
//! *opened beneath that root by directory handle*. Nothing is checked as text and opened later, so there is
//! no moment in which a folder swapped for a link could lead the opening elsewhere.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use workspace::Workspace;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate("notes/today.md")?.write(b"hello\n")?;
//! assert_eq!(workspace.locate("notes/today.md")?.metadata()?.size, 6);
//!
//! assert!(workspace.locate("/etc/passwd").unwrap_err().is_outside());
//! assert!(workspace.locate("../elsewhere")?.metadata().unwrap_err().is_outside());
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - **Linux**: `openat2(2)` with `RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS` decides in the kernel. Where it is
//!   missing or forbidden (kernels before 5.6, some container sandboxes), the walk below decides.
//! - **Unix**: a walk that opens component by component without following links, and resolves links itself.
//! - **Windows**: the same walk by path; a link swapped in *during* a call can win (see `folder/portable.rs`).
//!
//! Links are followed as long as they stay beneath *some* root, also absolute ones; those that leave are
//! refused. Opening never waits and wakes nothing: pipes, sockets and devices are refused by their kind
//! before they are opened.
//!
//! The folders of git (`.git`, and every folder with the layout of a git directory) can be read and not changed, because
//! hooks and settings in them run programs.
//!
//! # What does not
//!
//! A hard link to a file outside is that file: no operating system tells the two apart. Whoever can make
//! one could read the file anyway (`fs.protected_hardlinks`). Overwriting and editing replace the name and
//! so never reach the other one; appending to a file with several names is refused.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod access_limit;
mod changes;
mod error;
mod folder;
mod git_folder;
mod hint;
pub mod ignore_rules;
mod metadata;
mod path;
mod path_text;
mod protection;
mod resolve;
mod root;
mod root_set;
mod spelling;
mod staged;
mod target;
mod workspace;

#[cfg(test)]
#[cfg(unix)]
mod attacks;

pub use access_limit::{AccessDenied, AccessLimit};
pub use error::Error;
pub use folder::{DirEntry, Folder, FolderEntries};
pub use metadata::{FileRevision, Metadata, PathKind};
pub use path::ConfinedPath;
pub use path_text::printable;
pub use staged::{FileReplaceCondition, SetAsideFile, StagedFile};
pub use target::{TargetFile, TargetLock, TargetLocks};
pub use workspace::Workspace;
