//! What is known of contents that were seen before, so that nothing is read, counted or parsed twice.
//!
//! Facts hang on the SHA-256 of a content, never on its path or time, so a cache can make a result faster and not
//! different. Beside them an index says which content a path had in which state (size, times, inode); it is a
//! hint that saves reading, and an entry is trusted only if the file was last changed well before it was looked at:
//! a change within the same tick of the file system's clock leaves the state as it was.
//!
//! In memory it is bounded. On disk it is optional: one folder of private files that are written whole, beside the
//! old ones, and renamed; what is damaged, of another version or of another counter is not used. Several processes
//! may share the folder: each reads what was last written whole.

#[cfg(unix)]
mod store;

use crate::code::{Item, Kind, Language, Outline};
use crate::count::TokenCounter;
use crate::source::Stamp;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// SHA-256 of a content.
pub type ContentHash = [u8; 32];

/// What the memory of a cache is limited to, unless said otherwise: 64 MiB.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// A file changed less than this before it was looked at may change again and look the same. FAT counts in two
/// seconds, everything else in less.
const TICK_NS: i128 = 2_000_000_000;

/// The SHA-256 of `content`.
pub fn hash(content: &[u8]) -> ContentHash {
    Sha256::digest(content).into()
}

/// What a content is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Text or not.
    pub kind: Kind,
    /// Tokens by the cache's counter; of text that is not UTF-8, with U+FFFD in place of what is not.
    pub tokens: usize,
    /// Line ends, and a last line without one.
    pub lines: usize,
}

/// What it takes to quote a content, masked and escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    /// The length of the fence around it.
    pub(crate) fence: usize,
    pub(crate) tokens: usize,
}

/// The content as it is in the file, the form that it is written in, and the [key](crate::Redact::key) of the redactor if there is one;
/// for an outline the language. Kept in memory only: the key holds for one process.
pub(crate) type QuoteKey = (ContentHash, u8, Option<u64>, Option<Language>);

/// What is known of contents, for one counter.
pub struct Cache {
    counter: Arc<dyn TokenCounter>,
    known: Mutex<Known>,
    #[cfg(unix)]
    store: Option<store::Store>,
}

/// The maps, and which of them differ from what the disk holds.
struct Known {
    index: Bounded<String, Seen>,
    facts: Bounded<ContentHash, Facts>,
    outlines: Bounded<(ContentHash, Language), Arc<Outline>>,
    /// `None` where there is nothing to quote.
    quotes: Bounded<QuoteKey, Option<Quote>>,
    facts_changed: bool,
    outlines_changed: bool,
    /// Those of the folder wait until one is asked for.
    #[cfg(unix)]
    outlines_unread: bool,
}

/// Which content a path had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    stamp: Stamp,
    /// Nanoseconds from 1970 to when the file was looked at, or earlier.
    at_ns: i128,
    hash: ContentHash,
}

impl Cache {
    /// A cache in memory, of at most about `limit` bytes ([`DEFAULT_LIMIT`] is a good one), for counts by `counter`.
    pub fn new(counter: Arc<dyn TokenCounter>, limit: usize) -> Self {
        let known = Known {
            index: Bounded::new(limit / 4),
            facts: Bounded::new(limit / 8),
            outlines: Bounded::new(limit / 2),
            quotes: Bounded::new(limit / 8),
            facts_changed: false,
            outlines_changed: false,
            #[cfg(unix)]
            outlines_unread: false,
        };
        Self {
            counter,
            known: Mutex::new(known),
            #[cfg(unix)]
            store: None,
        }
    }

    /// The same, with what `folder` holds of `project`, and [`save`](Self::save) writes there.
    ///
    /// `folder` is made if it is missing, for its owner alone. `project` tells the projects of one folder from each
    /// other, such as by their root; files are named by its hash.
    ///
    /// # Errors
    /// The folder cannot be made or opened, or is not its owner's alone. What is wrong with a file in it is no
    /// error: it is as if it were not there.
    #[cfg(unix)]
    pub fn in_folder(
        counter: Arc<dyn TokenCounter>,
        limit: usize,
        folder: &std::path::Path,
        project: &str,
    ) -> std::io::Result<Self> {
        let mut cache = Self::new(counter, limit);
        let store = store::Store::open(folder, project, cache.counter.name())?;
        if let Some(bytes) = store.read(store::Part::Facts) {
            store::decode_facts(&bytes, &mut cache.lock());
        }
        cache.lock().outlines_unread = true;
        cache.store = Some(store);
        Ok(cache)
    }

    /// Writes to the folder what is new, if there is a folder and anything is, and removes what is too old or too
    /// much in it (30 days without use, 256 MiB).
    ///
    /// # Errors
    /// What the operating system said; the files are then as they were.
    #[cfg(unix)]
    pub fn save(&self) -> std::io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let (facts, outlines) = {
            let known = self.lock();
            let facts = known.facts_changed.then(|| store::encode_facts(&known));
            (facts, known.outlines_changed.then(|| store::encode_outlines(&known)))
        };
        let nothing = facts.is_none() && outlines.is_none();
        // What another thread adds from here on is written the next time it adds something.
        if let Some(bytes) = facts {
            store.write(store::Part::Facts, bytes)?;
            self.lock().facts_changed = false;
        }
        if let Some(bytes) = outlines {
            store.write(store::Part::Outlines, bytes)?;
            self.lock().outlines_changed = false;
        }
        if !nothing {
            store.prune();
        }
        Ok(())
    }

    /// The counter whose counts these are.
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.counter
    }

    /// Whether anything is known of the file at `path`, so that its state is worth asking for.
    pub(crate) fn has_seen(&self, path: &str) -> bool {
        self.lock().index.get(path).is_some()
    }

    /// The content that the file at `path` has if its state is `stamp`, if that is known for certain.
    pub fn content_of(&self, path: &str, stamp: &Stamp) -> Option<ContentHash> {
        let mut known = self.lock();
        let seen = known.index.get(path)?;
        let settled = stamp.mtime_ns.max(stamp.ctime_ns) + TICK_NS <= seen.at_ns;
        (seen.stamp == *stamp && settled).then_some(seen.hash)
    }

    /// Remembers that the file at `path` had this content in the state `stamp`, when it was looked at `at_ns`
    /// nanoseconds after 1970.
    pub fn remember(&self, path: &str, stamp: &Stamp, at_ns: i128, hash: ContentHash) {
        let seen = Seen { stamp: *stamp, at_ns, hash };
        let mut known = self.lock();
        if known.index.get(path) != Some(&seen) {
            known.facts_changed = true;
            known.index.insert(path.to_owned(), seen, path.len() + size_of::<(String, Seen)>());
        }
    }

    /// What is known of the content of this hash.
    pub fn facts(&self, hash: &ContentHash) -> Option<Facts> {
        self.lock().facts.get(hash).copied()
    }

    /// What `content`, whose hash is `hash`, is: from the cache, or found out now.
    pub fn facts_of(&self, hash: &ContentHash, content: &[u8]) -> Facts {
        if let Some(facts) = self.facts(hash) {
            return facts;
        }
        // Not under the lock: this is what takes the time.
        let facts = Facts::of(content, &*self.counter);
        let mut known = self.lock();
        known.facts_changed = true;
        known.facts.insert(*hash, facts, size_of::<(ContentHash, Facts)>());
        facts
    }

    /// The tokens of `text`: from the cache, or counted now.
    pub fn tokens(&self, text: &str) -> usize {
        self.facts_of(&hash(text.as_bytes()), text.as_bytes()).tokens
    }

    /// What it takes to quote this: from the cache, or found out now.
    pub(crate) fn quote(&self, key: &QuoteKey) -> Option<Option<Quote>> {
        self.lock().quotes.get(key).copied()
    }

    pub(crate) fn remember_quote(&self, key: QuoteKey, quote: Option<Quote>) {
        self.lock().quotes.insert(key, quote, size_of::<(QuoteKey, Quote)>());
    }

    /// The outline of `text`, whose hash is `hash`, as the language of `path`: from the cache, or made now. `None`
    /// where there is none, see [`outline`](crate::code::outline).
    pub fn outline(&self, path: &str, hash: &ContentHash, text: &str) -> Option<Arc<Outline>> {
        let language = Language::of(path)?;
        {
            let mut known = self.lock();
            #[cfg(unix)]
            if std::mem::take(&mut known.outlines_unread)
                && let Some(bytes) = self.store.as_ref().and_then(|store| store.read(store::Part::Outlines))
            {
                store::decode_outlines(&bytes, &mut known);
            }
            if let Some(outline) = known.outlines.get(&(*hash, language)) {
                return Some(Arc::clone(outline));
            }
        }
        let outline = Arc::new(crate::code::outline(path, text)?);
        self.lock().insert_outline((*hash, language), Arc::clone(&outline));
        Some(outline)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("counter", &self.counter.name()).finish_non_exhaustive()
    }
}

impl Known {
    fn insert_outline(&mut self, key: (ContentHash, Language), outline: Arc<Outline>) {
        let items: usize = outline.items.iter().map(|item| item.name.len() + size_of::<Item>()).sum();
        let bytes = outline.text.len() + items + size_of::<(ContentHash, Outline)>();
        self.outlines_changed = true;
        self.outlines.insert(key, outline, bytes);
    }
}

impl Facts {
    fn of(content: &[u8], counter: &dyn TokenCounter) -> Self {
        /// Where a zero byte says that this is no text, as for git.
        const LOOKED_AT: usize = 8000;
        if content[..content.len().min(LOOKED_AT)].contains(&0) {
            return Self { kind: Kind::Binary, tokens: 0, lines: 0 };
        }
        let text = String::from_utf8_lossy(content);
        let kind = if matches!(text, std::borrow::Cow::Borrowed(_)) { Kind::Text } else { Kind::NotUtf8 };
        Self { kind, tokens: counter.count(&text), lines: text.lines().count() }
    }
}

/// A map that forgets what was not used for long once it holds more than its limit: two generations, of which the
/// older is dropped whole.
struct Bounded<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    young_bytes: usize,
    limit: usize,
}

impl<K: Hash + Eq + Clone + Ord, V> Bounded<K, V> {
    /// At most `limit` bytes, by the sizes that come with what is inserted.
    fn new(limit: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), young_bytes: 0, limit }
    }

    fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, (value, bytes)) = self.old.remove_entry(key)?;
            self.insert(key, value, bytes);
        }
        self.young.get(key).map(|(value, _)| value)
    }

    fn insert(&mut self, key: K, value: V, bytes: usize) {
        if bytes > self.limit / 2 {
            return;
        }
        if self.young_bytes + bytes > self.limit / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.old.remove(&key);
        self.young_bytes += bytes;
        if let Some((_, before)) = self.young.insert(key, (value, bytes)) {
            self.young_bytes -= before;
        }
    }

    /// Everything, by key.
    #[cfg(unix)]
    fn sorted(&self) -> Vec<(&K, &V)> {
        let mut all: Vec<_> =
            self.young.iter().chain(&self.old).map(|(key, (value, _))| (key, value)).collect();
        all.sort_unstable_by_key(|&(key, _)| key);
        all
    }
}
