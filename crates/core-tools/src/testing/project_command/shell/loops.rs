//! The words that the loops around a command take one after the other.

use std::sync::Arc;

/// The number of words that are kept of one loop, and looked at for one command.
const MAX_WORDS: usize = 500;
/// The number of loops that are kept for one command.
const MAX_LOOPS: usize = 100;

/// The words of one loop. All commands in the loop share them.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    words: Arc<[String]>,
    /// Those that may name files.
    pub(super) files: Arc<[String]>,
}

impl Loop {
    pub(super) fn of<'s>(words: impl IntoIterator<Item = &'s str>) -> Self {
        let words: Arc<[String]> = words.into_iter().take(MAX_WORDS).map(str::to_owned).collect();
        let files = words.iter().filter(|word| word.contains(['/', '.'])).cloned().collect();
        Self { words, files }
    }
}

/// The words of the loops around a command: `tests/*.sh` of `for f in tests/*.sh; do sh $f; done`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoopWords(Vec<Arc<[String]>>);

impl LoopWords {
    /// Adds the words of the loops around one more run of the command.
    pub(super) fn extend(&mut self, loops: &[Loop]) {
        for Loop { words, .. } in loops.iter().filter(|around| !around.words.is_empty()) {
            if self.0.len() >= MAX_LOOPS {
                break;
            }
            if !self.0.iter().any(|known| Arc::ptr_eq(known, words)) {
                self.0.push(Arc::clone(words));
            }
        }
    }

    /// Returns the words, from the outermost loop to the innermost one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flat_map(|words| words.iter()).take(MAX_WORDS)
    }

    /// Returns true if both have the words of the same loops in one place of the memory.
    #[cfg(test)]
    pub(super) fn shares_all(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}
