//! A cache of facts about contents, so that no content is read, counted or parsed twice.
//!
//! Facts are stored by the SHA-256 of a content and never by its path or time, so a cache makes a result faster and not
//! different. An index beside them records which content a path had in which state (size, times, inode). It is a hint
//! that saves reading, and an entry is used only if the file was last changed well before it was looked at: a change
//! within the same tick of the file system's clock leaves the state as it was.
//!
//! The memory of a cache is bounded. A cache [in a folder](ContentCache::in_folder) also lasts longer than the process:
//! its files are private, and are written whole beside the old ones and renamed. A file that is damaged, of another
//! version or of another counter is ignored. Several processes can share the folder.

mod bounded_map;
mod content_cache;
mod entries;
#[cfg(unix)]
mod format;
#[cfg(unix)]
mod store;
#[cfg(all(test, unix))]
mod tests;

pub use content_cache::ContentCache;
pub(crate) use entries::{ContentKind, QuotedContentSize, QuotedSizeKey};
