//! The number of a run, and the environment marker by which its processes are known.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The beginning of the names of all markers.
pub(crate) const MARKER_PREFIX: &str = "PROCESS_RUNNER_RUN_";

/// A run: its number within this process, and the token of its environment marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId {
    pub(crate) number: u64,
    pub(crate) token: RunToken,
}

impl RunId {
    /// A helper of our own, which is no run and has no marker.
    pub(crate) const HELPER: Self = Self { number: 0, token: RunToken(0) };

    /// Returns a run with a number that no other run of this process has, and a token that nobody else knows.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub(crate) fn next() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(io::Error::other)?;
        // Relaxed: only uniqueness matters, and nothing else is published with it.
        Ok(Self { number: NEXT.fetch_add(1, Ordering::Relaxed), token: RunToken(u128::from_ne_bytes(token)) })
    }

    /// Returns `PROCESS_RUNNER_RUN_<token>`, the name of the run's environment variable.
    // The token is in the name and not in the value, so that a run within a run carries both markers.
    pub(crate) fn marker(self) -> String {
        format!("{MARKER_PREFIX}{}", self.token.hex())
    }
}

/// The token of a run: 128 random bits, which only the programs of the run and their descendants are told. With a
/// number that can be guessed, a program could claim its processes for the run of another caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunToken(u128);

impl RunToken {
    /// Returns it as it is in the name of the marker.
    pub(crate) fn hex(self) -> String {
        format!("{:032x}", self.0)
    }

    /// Parses exactly what [`hex`](Self::hex) writes.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only Unix searches for markers"))]
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits =
            std::str::from_utf8(text).ok().filter(|_| text.len() == 32 && text.iter().all(is_digit))?;
        u128::from_str_radix(digits, 16).ok().map(Self)
    }
}

impl fmt::Debug for RunToken {
    /// Writes nothing of the token, which a log would give away.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunToken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_has_a_token_that_is_read_as_it_was_written() {
        let (one, other) = (RunId::next().unwrap(), RunId::next().unwrap());
        assert!(one.number < other.number && one.token != other.token);
        let marker = one.marker();
        let token = marker.strip_prefix(MARKER_PREFIX).unwrap();
        assert_eq!((token.len(), RunToken::parse(token.as_bytes())), (32, Some(one.token)));
        for wrong in ["", "7", &token[1..], &format!("+{}", &token[1..]), &format!("{token}0")] {
            assert_eq!(RunToken::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
