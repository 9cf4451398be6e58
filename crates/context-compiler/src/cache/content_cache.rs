//! The cache, in memory and optionally in a folder.

use super::entries::{CachedPathEntry, ContentCacheEntries, ContentFacts, QuotedContentSize, QuotedSizeKey};
#[cfg(unix)]
use super::format;
#[cfg(unix)]
use super::store::{ContentCacheFile, ContentCacheFolder};
use crate::hash::{ContentHash, hash_content};
use crate::outline::{CodeOutline, Language, outline};
use crate::source::SourceFileState;
use crate::tokens::{TokenCounter, default_counter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of a cache where the caller sets no other limit: 64 MiB.
const DEFAULT_MAX_BYTES: usize = 64 << 20;

/// The time for which a changed file may change again and look the same. FAT has a resolution of two seconds, every other
/// file system a finer one.
const CLOCK_TICK_NS: i128 = 2_000_000_000;

/// Facts about contents for one token counter. Cheap to clone; clones share their facts.
#[derive(Clone)]
pub struct ContentCache(Arc<SharedContentCache>);

struct SharedContentCache {
    counter: Arc<dyn TokenCounter>,
    entries: Mutex<ContentCacheEntries>,
    #[cfg(unix)]
    store: Option<ContentCacheFolder>,
}

impl Default for ContentCache {
    /// An empty cache in memory for the [best counter](default_counter) of this build.
    fn default() -> Self {
        Self::new(default_counter())
    }
}

impl std::fmt::Debug for ContentCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentCache").field("counter", &self.0.counter.name()).finish_non_exhaustive()
    }
}

impl ContentCache {
    /// An empty cache in memory for counts by `counter`. The cache holds at most about 64 MiB.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self::with_max_bytes(counter, DEFAULT_MAX_BYTES)
    }

    /// An empty cache in memory that holds at most about `max_bytes`.
    pub fn with_max_bytes(counter: Arc<dyn TokenCounter>, max_bytes: usize) -> Self {
        Self(Arc::new(SharedContentCache {
            counter,
            entries: Mutex::new(ContentCacheEntries::new(max_bytes)),
            #[cfg(unix)]
            store: None,
        }))
    }

    /// A cache with the facts that `folder` has of `project`. [`save`](Self::save) writes new facts to the folder.
    ///
    /// The folder is created, accessible to its owner only, if it does not exist. `project` tells the projects of one
    /// folder apart, for instance by the paths of their roots; the names of the files contain its hash.
    ///
    /// # Errors
    /// The folder cannot be created or opened, or others than its owner have access to the folder. Unusable
    /// files in the folder are ignored.
    #[cfg(unix)]
    pub fn in_folder(
        counter: Arc<dyn TokenCounter>,
        folder: impl AsRef<std::path::Path>,
        project: &str,
    ) -> std::io::Result<Self> {
        let store = ContentCacheFolder::open(folder.as_ref(), project, counter.name())?;
        let mut entries = ContentCacheEntries::new(DEFAULT_MAX_BYTES);
        if let Some(bytes) = store.read(ContentCacheFile::Facts) {
            format::decode_facts(&bytes, &mut entries);
            entries.facts_changed = false;
        }
        entries.outlines_pending = true;
        Ok(Self(Arc::new(SharedContentCache { counter, entries: Mutex::new(entries), store: Some(store) })))
    }

    /// Writes new facts to the folder of the cache, if it has one, and removes files that were not used for 30 days or
    /// that exceed 256 MiB in all.
    ///
    /// # Errors
    /// A file cannot be written. The old files then stay as they were.
    #[cfg(unix)]
    pub fn save(&self) -> std::io::Result<()> {
        let Some(store) = &self.0.store else { return Ok(()) };
        // Encoded under the lock, so that a file is one consistent state of the maps.
        let (facts, outlines) = {
            let entries = self.lock();
            let facts = entries.facts_changed.then(|| format::encode_facts(&entries));
            (facts, entries.outlines_changed.then(|| format::encode_outlines(&entries)))
        };
        let is_unchanged = facts.is_none() && outlines.is_none();
        // Written without the lock. Facts that another thread adds meanwhile are saved when it next adds some.
        if let Some(bytes) = facts {
            store.write(ContentCacheFile::Facts, bytes)?;
            // Only after the file was written: after a failure the next call tries again.
            self.lock().facts_changed = false;
        }
        if let Some(bytes) = outlines {
            store.write(ContentCacheFile::Outlines, bytes)?;
            self.lock().outlines_changed = false;
        }
        if !is_unchanged {
            // Only after a write: a cache that is merely read adds nothing to the folder.
            store.prune();
        }
        Ok(())
    }

    /// Returns the counter whose counts the cache holds.
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.0.counter
    }

    /// Returns true if the index has an entry for `path`, so that the state of the file is worth asking for.
    pub(crate) fn has_index_entry(&self, path: &str) -> bool {
        self.lock().index.get(path).is_some()
    }

    /// Returns the hash of the content that the file at `path` has in `state`, if that is certain.
    pub(crate) fn indexed_hash(&self, path: &str, state: &SourceFileState) -> Option<ContentHash> {
        let mut entries = self.lock();
        let entry = entries.index.get(path)?;
        // The greater of the two times: a program may set the `mtime` of a file back, and no program can set its
        // `ctime`.
        let is_settled = state.mtime_ns.max(state.ctime_ns) + CLOCK_TICK_NS <= entry.looked_at_ns;
        (entry.state == *state && is_settled).then_some(entry.hash)
    }

    /// Records that the file at `path` had the content `hash` in `state` when it was looked at, `looked_at_ns` nanoseconds
    /// after 1970.
    pub(crate) fn record_index_entry(
        &self,
        path: &str,
        state: &SourceFileState,
        looked_at_ns: i128,
        hash: ContentHash,
    ) {
        let entry = CachedPathEntry { state: *state, looked_at_ns, hash };
        let mut entries = self.lock();
        // An entry that is there already must not mark the file of the cache as changed.
        if entries.index.get(path) != Some(&entry) {
            entries.insert_index_entry(path.to_owned(), entry);
        }
    }

    /// Returns the cached facts about the content `hash`.
    pub(crate) fn cached_facts(&self, hash: &ContentHash) -> Option<ContentFacts> {
        self.lock().facts.get(hash).copied()
    }

    /// Returns the facts about `content`, whose hash is `hash`.
    pub(crate) fn facts(&self, hash: &ContentHash, content: &[u8]) -> ContentFacts {
        if let Some(facts) = self.cached_facts(hash) {
            return facts;
        }
        // Measured without the lock: counting is what takes the time, and other threads count as well.
        let facts = ContentFacts::measure(content, self.counter());
        self.lock().insert_facts(*hash, facts);
        facts
    }

    /// Returns the tokens of `text`.
    pub(crate) fn tokens(&self, text: &str) -> usize {
        self.facts(&hash_content(text.as_bytes()), text.as_bytes()).tokens
    }

    /// Returns the cached quote; `Some(None)` if there is nothing to quote.
    pub(crate) fn cached_quote(&self, key: &QuotedSizeKey) -> Option<Option<QuotedContentSize>> {
        self.lock().quotes.get(key).copied()
    }

    pub(crate) fn record_quote(&self, key: QuotedSizeKey, quote: Option<QuotedContentSize>) {
        self.lock().insert_quote(key, quote);
    }

    /// Returns the outline of `text`, whose hash is `hash`, in the language of `path`. `None` if [`outline`] has none.
    pub(crate) fn outline(&self, path: &str, hash: &ContentHash, text: &str) -> Option<Arc<CodeOutline>> {
        let language = Language::of_path(path)?;
        if let Some(outline) = self.cached_outline(hash, language) {
            return Some(outline);
        }
        let outline = Arc::new(outline(path, text)?);
        self.lock().insert_outline((*hash, language), Arc::clone(&outline));
        Some(outline)
    }

    fn cached_outline(&self, hash: &ContentHash, language: Language) -> Option<Arc<CodeOutline>> {
        let mut entries = self.lock();
        // Read under the lock: another thread that wants an outline would otherwise parse it again.
        #[cfg(unix)]
        if std::mem::take(&mut entries.outlines_pending)
            && let Some(bytes) =
                self.0.store.as_ref().and_then(|store| store.read(ContentCacheFile::Outlines))
        {
            format::decode_outlines(&bytes, &mut entries);
            entries.outlines_changed = false;
        }
        entries.outlines.get(&(*hash, language)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, ContentCacheEntries> {
        // A panic of another thread leaves at worst a fact out, so a poisoned lock is as good as a sound one.
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
