//! The distribution of durations.

use std::time::Duration;

/// The number of classes: the first is below 128 µs, and each is twice as wide as the one before, to beyond an hour.
const CLASSES: usize = 27;
/// The upper bound of the first class, in microseconds.
const FIRST_BOUND: u64 = 128;

/// Counts of durations by their size.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatencyCounts([u32; CLASSES]);

impl LatencyCounts {
    /// Counts a duration.
    pub(super) fn add(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let class = (micros / FIRST_BOUND).checked_ilog2().map_or(0, |log| log as usize + 1);
        if let Some(count) = self.0.get_mut(class.min(CLASSES - 1)) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds the counts of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        for (count, other) in self.0.iter_mut().zip(&other.0) {
            *count = count.saturating_add(*other);
        }
    }

    /// Returns the duration that the share `quantile` of all, from 0 to 1, does not exceed: the middle of its class, so that
    /// it is right within a third. `None` if there are none.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of calls are far below 2^52, and a quantile is between 0 and 1"
    )]
    pub(crate) fn quantile(&self, quantile: f64) -> Option<Duration> {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        if total == 0 {
            return None;
        }
        let rank = ((total as f64 * quantile).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        let class = self.0.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        let micros = match class {
            0 => FIRST_BOUND / 2,
            // The geometric middle of a class from b to 2 b is b times the square root of 2.
            class => ((FIRST_BOUND << (class - 1)) as f64 * std::f64::consts::SQRT_2) as u64,
        };
        Some(Duration::from_micros(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_within_a_third() {
        let mut counts = LatencyCounts::default();
        assert_eq!(counts.quantile(0.5), None);
        for millis in 1..=1000 {
            counts.add(Duration::from_millis(millis));
        }
        for (quantile, expected) in [(0.5, 500.0), (0.95, 950.0), (0.01, 10.0)] {
            let found = counts.quantile(quantile).unwrap().as_secs_f64() * 1000.0;
            assert!((found / expected - 1.0).abs() < 0.5, "{quantile}: {found} for {expected}");
        }
        let mut other = LatencyCounts::default();
        for duration in [Duration::ZERO, Duration::from_secs(1 << 40)] {
            other.add(duration);
        }
        assert_eq!(other.quantile(0.5), Some(Duration::from_micros(64)));
        assert!(other.quantile(1.0).unwrap() > Duration::from_secs(3600));
    }
}
