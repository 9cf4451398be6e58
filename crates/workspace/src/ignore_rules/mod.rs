//! Ignore files, with the meaning that gitignore(5) gives them: the one reader of them in CoreTools.
//!
//! Nothing here opens a file. A walk reads the files of each folder in its own way and hands their bytes to
//! [`FolderRules::with_folder`], which keeps the rules of the folders above.
//!
//! ```
//! use std::convert::Infallible;
//! use workspace::ignore_rules::{FolderRules, IgnoreFile};
//!
//! # fn main() -> Result<(), Infallible> {
//! let read = |_name: &str| Ok::<_, Infallible>(IgnoreFile::parse(b"*.log\n!keep.log\n"));
//! let rules = FolderRules::default().with_folder(b"src", &[".gitignore"], read)?;
//! assert!(rules.is_ignored(b"src/deep/a.log", false));
//! assert!(!rules.is_ignored(b"src/keep.log", false));
//! # Ok(())
//! # }
//! ```
//!
//! The globs of the crates `ignore` and `globset` are not git's: they know `{a,b}` and match characters, git's know no
//! braces and match bytes. A file that is left out here and not by git is a surprise, so the tests compare with the real git.

mod file;
mod folder_rules;
mod rule;
mod wildcard;

pub use file::IgnoreFile;
pub use folder_rules::FolderRules;

/// The ignore file of a repository that is not part of its content. The file applies to the whole repository, after
/// every `.gitignore`.
pub const GIT_INFO_EXCLUDE: &str = ".git/info/exclude";
