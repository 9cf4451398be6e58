//! [`Heartbeat`]: the times at which this process reached the database.

/// The times at which this process reached the database, by the clock of the database.
///
/// An expired lease says that its owner is dead only if the owner could have reached the database meanwhile. After a gap, of
/// the database or of this machine, the owners of all leases may be alive, so nothing counts as expired for one silence.
#[derive(Debug)]
pub(super) struct Heartbeat {
    silence_ms: i64,
    /// The longest time between two signs of life that is no gap.
    longest_pause_ms: i64,
    last_ms: i64,
    /// Nothing counts as expired before this time.
    pub(super) trusted_from_ms: i64,
}

impl Heartbeat {
    /// The heartbeat of a process that has reached the database for the first time.
    pub(super) fn new(now_ms: i64, silence_ms: i64, longest_pause_ms: i64) -> Self {
        let trusted_from_ms = now_ms.saturating_add(silence_ms);
        Self { silence_ms, longest_pause_ms, last_ms: now_ms, trusted_from_ms }
    }

    /// Notes that the database was reached at this time.
    pub(super) fn note(&mut self, now_ms: i64) {
        // A clock that goes back is that of another database: a fail-over.
        if now_ms < self.last_ms || now_ms - self.last_ms > self.longest_pause_ms {
            self.trusted_from_ms = now_ms.saturating_add(self.silence_ms);
        }
        self.last_ms = now_ms;
    }

    /// Returns the time before which a lease must have expired, so that its owner counts as dead. None: nothing counts as
    /// expired now.
    pub(super) fn expired_before_ms(&self) -> Option<i64> {
        (self.last_ms >= self.trusted_from_ms).then_some(self.last_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_counts_as_expired_for_one_silence_after_the_start_and_after_each_gap() {
        let mut heartbeat = Heartbeat::new(1000, 100, 40);
        let mut at = |now| {
            heartbeat.note(now);
            heartbeat.expired_before_ms()
        };
        assert_eq!([1020, 1060, 1099, 1100].map(&mut at), [None, None, None, Some(1100)]);
        // A gap.
        assert_eq!([1141, 1181, 1221, 1241].map(&mut at), [None, None, None, Some(1241)]);
        // A clock that goes back.
        assert_eq!([500, 540, 580, 600].map(&mut at), [None, None, None, Some(600)]);
    }
}
