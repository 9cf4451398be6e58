//! What each caller's role may use of the server: calls in a minute, and calls at once.

use role_policy::{Caller, RoleLimits};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::{Duration, Instant};

/// Counts the calls of callers whose roles have limits. Each principal counts by itself, and where there is none each
/// session: another session or a narrower role gives a principal no more.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    callers: Arc<Mutex<HashMap<Caller, Usage>>>,
}

#[derive(Debug)]
struct Usage {
    /// Calls that may begin now: a bucket that fills by its size in a minute.
    left: f64,
    filled: Instant,
    running: u64,
}

/// A call that is counted as running until this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    callers: Arc<Mutex<HashMap<Caller, Usage>>>,
    caller: Caller,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(usage) = callers.get_mut(&self.caller) {
            usage.running = usage.running.saturating_sub(1);
        }
    }
}

/// So many callers are told apart; those who have been idle for a minute are forgotten first.
const MAX_CALLERS: usize = 10_000;

const MINUTE: Duration = Duration::from_secs(60);

impl Meter {
    /// Lets a call begin, or says in words for the caller when it may.
    pub(crate) fn begin(&self, caller: &Caller, limits: RoleLimits) -> Result<Option<Running>, String> {
        if limits.calls_per_minute.is_none() && limits.concurrent_calls.is_none() {
            return Ok(None);
        }
        let key = match caller.principal() {
            Some(principal) => Caller::new("").with_principal(principal),
            None => caller.clone(),
        };
        let now = Instant::now();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= MAX_CALLERS {
            callers.retain(|_, usage| usage.running > 0 || now - usage.filled < MINUTE);
        }
        let per_minute = limits.calls_per_minute.unwrap_or(u64::MAX);
        #[allow(clippy::cast_precision_loss, reason = "a limit past 2^53 calls is none")]
        let size = per_minute as f64;
        let usage = callers.entry(key.clone()).or_insert(Usage { left: size, filled: now, running: 0 });
        if limits.concurrent_calls.is_some_and(|most| usage.running >= most) {
            return Err(format!(
                "not run: this role may run {} calls at once, and so many are running",
                limits.concurrent_calls.unwrap_or_default()
            ));
        }
        usage.left = (usage.left + (now - usage.filled).as_secs_f64() / 60.0 * size).min(size);
        usage.filled = now;
        if usage.left < 1.0 {
            let wait = ((1.0 - usage.left) * 60_000.0 / size).ceil();
            return Err(format!(
                "not run: this role may make {per_minute} calls in a minute; try again in {wait} ms"
            ));
        }
        usage.left -= 1.0;
        usage.running += 1;
        Ok(Some(Running { callers: Arc::clone(&self.callers), caller: key }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(calls_per_minute: Option<u64>, concurrent_calls: Option<u64>) -> RoleLimits {
        RoleLimits { calls_per_minute, concurrent_calls, ..RoleLimits::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_calls_in_a_minute_and_then_one_at_a_time() {
        let (meter, ada) = (Meter::default(), Caller::new("dev").with_principal("ada"));
        let limits = limits(Some(3), None);
        for _ in 0..3 {
            assert!(meter.begin(&ada, limits).is_ok());
        }
        assert!(meter.begin(&ada, limits).unwrap_err().contains("try again in 20000 ms"));
        // Another's calls are another's.
        assert!(meter.begin(&Caller::new("dev").with_principal("bob"), limits).is_ok());
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(meter.begin(&ada, limits).is_ok());
        assert!(meter.begin(&ada, limits).is_err());
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!((0..10).filter(|_| meter.begin(&ada, limits).is_ok()).count(), 3);
    }

    #[test]
    fn so_many_calls_at_once() {
        let (meter, ada) = (Meter::default(), Caller::new("dev"));
        let limits = limits(None, Some(2));
        let first = meter.begin(&ada, limits).unwrap();
        let _second = meter.begin(&ada, limits).unwrap();
        assert!(meter.begin(&ada, limits).unwrap_err().contains("2 calls at once"));
        drop(first);
        assert!(meter.begin(&ada, limits).is_ok());
        assert!(meter.begin(&ada, RoleLimits::default()).unwrap().is_none());
    }
}
