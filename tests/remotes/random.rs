//! Random numbers that can be repeated: a test prints its seed, and takes it again from a variable.

use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that repeats a run.
const SEED: &str = "CORETOOLS_TEST_SEED";

/// A generator of numbers (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Starts with the seed of the variable, or else with one of the clock, and prints it.
    #[allow(clippy::print_stderr, reason = "a failed test shows it")]
    pub(crate) fn seeded(test: &str) -> Self {
        let given = std::env::var(SEED).ok().map(|seed| seed.parse().expect("a seed is a number"));
        let clock =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()));
        let seed = given.unwrap_or_else(clock).max(1);
        eprintln!("{test}: {SEED}={seed}");
        Self(seed)
    }

    /// Returns another generator, for another thread.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.below(u64::MAX - 1) + 1)
    }

    /// Returns a number from 0 to `limit` - 1.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }

    /// Returns one of `choices`.
    pub(crate) fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}
