//! A map with a bound on its memory.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map that forgets the entries that were not used recently once it holds more than its limit.
///
/// It has two generations. When the young one is full the old one is dropped and the young one becomes the old; an entry
/// of the old generation that is used moves to the young one. That approximates LRU without a list of uses.
pub(super) struct BoundedMap<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    young_bytes: usize,
    max_bytes: usize,
}

impl<K: Hash + Eq + Clone + Ord, V> BoundedMap<K, V> {
    /// A map of at most `max_bytes`, by the sizes that callers give for their entries.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), young_bytes: 0, max_bytes }
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, (value, bytes)) = self.old.remove_entry(key)?;
            self.insert(key, value, bytes);
        }
        self.young.get(key).map(|(value, _)| value)
    }

    /// Inserts an entry of about `bytes`. One that would fill a generation alone is not kept.
    pub(super) fn insert(&mut self, key: K, value: V, bytes: usize) {
        // A generation has half of the limit, since the young one and the old one may be full at once.
        if bytes > self.max_bytes / 2 {
            return;
        }
        if self.young_bytes + bytes > self.max_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        // In one generation only: an outdated value must not come back from the old one.
        self.old.remove(&key);
        self.young_bytes += bytes;
        if let Some((_, replaced_bytes)) = self.young.insert(key, (value, bytes)) {
            self.young_bytes -= replaced_bytes;
        }
    }

    /// Returns all entries, sorted by key.
    #[cfg(unix)]
    pub(super) fn sorted(&self) -> Vec<(&K, &V)> {
        let mut entries: Vec<_> =
            self.young.iter().chain(&self.old).map(|(key, (value, _))| (key, value)).collect();
        entries.sort_unstable_by_key(|&(key, _)| key);
        entries
    }
}
