//! The search for many literal texts at once.

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, MatchKind};

/// Many literal texts, looked for in one pass; of those that begin at one place, the longest.
// Whole texts only. The output of programs, which comes in pieces, is searched by `process-runner`, in `secrets/matcher.rs`.
#[derive(Clone)]
pub(crate) enum LiteralMatcher {
    /// By vector instructions; for few literals, and where the processor has them.
    Packed(Searcher),
    Automaton(AhoCorasick),
}

impl LiteralMatcher {
    /// Prepares the search for `literals`, which are known by their index from then on.
    pub(crate) fn new<P: AsRef<[u8]>>(literals: &[P]) -> Result<Self, aho_corasick::BuildError> {
        // The longest match, since one value may be the beginning of another, whose rest would remain.
        let packed = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostLongest)
            .builder()
            .extend(literals)
            .build();
        match packed {
            Some(searcher) => Ok(Self::Packed(searcher)),
            None => AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(literals)
                .map(Self::Automaton),
        }
    }

    /// Calls `on_match` with each literal's number, start and end.
    pub(crate) fn for_each_match(&self, bytes: &[u8], mut on_match: impl FnMut(usize, usize, usize)) {
        match self {
            Self::Packed(searcher) => searcher
                .find_iter(bytes)
                .for_each(|hit| on_match(hit.pattern().as_usize(), hit.start(), hit.end())),
            Self::Automaton(automaton) => automaton
                .find_iter(bytes)
                .for_each(|hit| on_match(hit.pattern().as_usize(), hit.start(), hit.end())),
        }
    }
}
