//! A rate with a burst: the token bucket behind every limit of so many in a span of time.

use std::time::{Duration, Instant};

/// A token bucket: it starts full, spending takes tokens out, and time puts them back at a steady rate.
///
/// Every method takes the time, so that one reading of the clock serves all the buckets that a request passes, and so that
/// no runtime is needed to read it.
///
/// ```
/// use role_policy::TokenBucket;
/// use std::time::{Duration, Instant};
///
/// let start = Instant::now();
/// // A burst of 2, and one more every 100 ms.
/// let mut bucket = TokenBucket::new(2, 10, Duration::from_secs(1), start);
/// assert!(bucket.try_take(1.0, start).is_ok() && bucket.try_take(1.0, start).is_ok());
/// assert_eq!(bucket.try_take(1.0, start), Err(Duration::from_millis(100)));
/// assert!(bucket.try_take(1.0, start + Duration::from_millis(100)).is_ok());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    capacity: f64,
    tokens_per_second: f64,
    /// Negative after [`Self::spend`] took more than there was.
    tokens: f64,
    refilled_at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket of `capacity` tokens that regains `refill` tokens in each `period`.
    pub fn new(capacity: u64, refill: u64, period: Duration, now: Instant) -> Self {
        let mut bucket = Self { capacity: 0.0, tokens_per_second: 0.0, tokens: 0.0, refilled_at: now };
        bucket.set_limit(capacity, refill, period);
        bucket.tokens = bucket.capacity;
        bucket
    }

    /// Changes the limit. Tokens that were regained under the former one and not yet counted are counted by the new
    /// one; more than the new capacity are lost at the next use.
    #[allow(clippy::cast_precision_loss, reason = "past 2^53 tokens a limit limits nothing")]
    pub fn set_limit(&mut self, capacity: u64, refill: u64, period: Duration) {
        self.capacity = capacity as f64;
        self.tokens_per_second = refill as f64 / period.as_secs_f64();
    }

    /// Takes `cost` tokens.
    ///
    /// # Errors
    /// There are fewer; nothing is taken. Holds the time after which there will be enough.
    pub fn try_take(&mut self, cost: f64, now: Instant) -> Result<(), Duration> {
        if self.available(now) < cost {
            return Err(self.time_until(cost));
        }
        self.tokens -= cost;
        Ok(())
    }

    /// Takes `cost` tokens for what has happened already, and goes into debt where there are fewer.
    pub fn spend(&mut self, cost: f64, now: Instant) {
        self.refill(now);
        self.tokens -= cost;
    }

    /// Returns the tokens that are there; a negative number is a debt.
    pub fn available(&mut self, now: Instant) -> f64 {
        self.refill(now);
        self.tokens
    }

    /// Returns true if nothing has been spent that has not been regained.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.available(now) >= self.capacity
    }

    /// Returns how long it takes from the last use until there are `tokens`. [`Duration::MAX`] if never.
    pub fn time_until(&self, tokens: f64) -> Duration {
        let missing = (tokens - self.tokens).max(0.0);
        Duration::try_from_secs_f64(missing / self.tokens_per_second).unwrap_or(Duration::MAX)
    }

    fn refill(&mut self, now: Instant) {
        // Callers read the clock before they take a lock, so a later call may bring an earlier time.
        let elapsed = now.saturating_duration_since(self.refilled_at);
        self.tokens = (self.tokens + elapsed.as_secs_f64() * self.tokens_per_second).min(self.capacity);
        self.refilled_at = self.refilled_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_is_as_large_as_the_capacity_and_no_rest_makes_it_larger() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(3, 1, SECOND, start);
        for now in [start, start + 100 * SECOND] {
            assert!(bucket.is_full(now));
            assert_eq!((0..10).filter(|_| bucket.try_take(1.0, now).is_ok()).count(), 3);
        }
    }

    #[test]
    fn what_was_spent_beyond_the_bucket_delays_what_comes_next() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(10, 10, SECOND, start);
        bucket.spend(30.0, start);
        assert_eq!(bucket.time_until(0.0), 2 * SECOND);
        assert!(bucket.available(start + 2 * SECOND) >= 0.0);
    }

    #[test]
    fn a_bucket_that_regains_nothing_is_never_filled() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(1, 0, SECOND, start);
        assert_eq!(bucket.try_take(1.0, start), Ok(()));
        assert_eq!(bucket.try_take(1.0, start + SECOND), Err(Duration::MAX));
    }

    #[test]
    fn a_time_that_lies_before_the_last_one_adds_nothing() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(1, 1, SECOND, start + SECOND);
        bucket.spend(1.0, start + SECOND);
        assert!(bucket.try_take(1.0, start).is_err());
        assert!(bucket.try_take(1.0, start + 2 * SECOND).is_ok());
    }
}
