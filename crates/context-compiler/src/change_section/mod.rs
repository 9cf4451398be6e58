//! The section with the changes of the repository: line counts of every file first, then the hunks.

mod patch;
mod private_key;
mod section;
mod untracked;

pub(crate) use patch::is_lock_file;
pub(crate) use section::{changes_section, describe_outcome};
