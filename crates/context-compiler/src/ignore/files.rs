//! The names and the size of ignore files.

use workspace::ignore_rules::GIT_INFO_EXCLUDE;

/// The ignore files of a folder. The first one in this order that has a matching rule decides.
pub(super) const IGNORE_FILES: [&str; 4] = [CONTEXT_IGNORE_FILE, ".ignore", ".gitignore", GIT_INFO_EXCLUDE];

/// The ignore file of this crate, which no other tool reads.
pub(super) const CONTEXT_IGNORE_FILE: &str = ".contextignore";

/// The largest ignore file. A larger one is an error and not read in part: the rules left out could be the ones that keep
/// a file private.
pub(super) const MAX_IGNORE_FILE_BYTES: u64 = 1 << 20;
