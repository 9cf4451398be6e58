//! The limits of a role on its callers: calls in a minute, and calls at once.

use role_policy::{Caller, RoleLimits, TokenBucket};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts the calls of callers whose roles have limits.
///
/// Each principal has one account; where a caller has no principal, each session has. Another session or a narrower
/// role gives a principal no more.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    accounts: Arc<Mutex<HashMap<Caller, CallerRateAccount>>>,
}

#[derive(Debug)]
struct CallerRateAccount {
    calls: TokenBucket,
    last_call: Instant,
    running: u64,
}

/// A call that counts as running; dropping it ends that.
#[derive(Debug)]
pub(crate) struct RateLimitedCall {
    accounts: Arc<Mutex<HashMap<Caller, CallerRateAccount>>>,
    caller: Caller,
}

impl Drop for RateLimitedCall {
    fn drop(&mut self) {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get_mut(&self.caller) {
            account.running = account.running.saturating_sub(1);
        }
    }
}

/// A limit of the caller's role that a call would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RateLimited {
    /// As many calls are running as may run at once.
    #[error("not run: this role may run {limit} calls at once, and so many are running")]
    Concurrency { limit: u64 },
    /// The calls of this minute have been made.
    #[error("not run: this role may make {limit} calls in a minute; try again in {retry_after_ms} ms")]
    Rate { limit: u64, retry_after_ms: u128 },
}

/// The accounts that are kept. Beyond them, those of callers who were idle for a minute are dropped: their buckets are
/// full again, so nothing is forgotten that would count.
const MAX_ACCOUNTS: usize = 10_000;

const MINUTE: Duration = Duration::from_secs(60);

impl RateLimiter {
    /// Admits a call. Returns nothing to hold where the role has no limits.
    ///
    /// # Errors
    /// The limit that the call would exceed.
    pub(crate) fn admit(
        &self,
        caller: &Caller,
        limits: RoleLimits,
    ) -> Result<Option<RateLimitedCall>, RateLimited> {
        if limits.calls_per_minute.is_none() && limits.concurrent_calls.is_none() {
            return Ok(None);
        }
        // One account for all sessions of a principal: opening another session must not reset its limits.
        let key = match caller.principal() {
            Some(principal) => Caller::new("").with_principal(principal),
            None => caller.clone(),
        };
        let now = tokio::time::Instant::now().into_std();
        let per_minute = limits.calls_per_minute.unwrap_or(u64::MAX);
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.retain(|_, account| account.running > 0 || now - account.last_call < MINUTE);
        }
        let account = accounts.entry(key.clone()).or_insert_with(|| CallerRateAccount {
            calls: TokenBucket::new(per_minute, per_minute, MINUTE, now),
            last_call: now,
            running: 0,
        });
        // Before the bucket: a call that has to wait for another one should not cost a token.
        if let Some(limit) = limits.concurrent_calls.filter(|limit| account.running >= *limit) {
            return Err(RateLimited::Concurrency { limit });
        }
        // A principal may call in several roles, and a policy may be reloaded.
        account.calls.set_limit(per_minute, per_minute, MINUTE);
        account.last_call = now;
        account.calls.try_take(1.0, now).map_err(|wait| RateLimited::Rate {
            limit: per_minute,
            // Rounded up, so that a caller who tries again at that time finds a token.
            retry_after_ms: wait.as_nanos().div_ceil(1_000_000),
        })?;
        account.running += 1;
        Ok(Some(RateLimitedCall { accounts: Arc::clone(&self.accounts), caller: key }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(calls_per_minute: Option<u64>, concurrent_calls: Option<u64>) -> RoleLimits {
        let mut limits = RoleLimits::default();
        (limits.calls_per_minute, limits.concurrent_calls) = (calls_per_minute, concurrent_calls);
        limits
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_calls_in_a_minute_and_then_one_at_a_time() {
        let (limiter, ada) = (RateLimiter::default(), Caller::new("dev").with_principal("ada"));
        let limits = limits(Some(3), None);
        for _ in 0..3 {
            assert!(limiter.admit(&ada, limits).is_ok());
        }
        let refused = limiter.admit(&ada, limits).unwrap_err();
        assert_eq!(refused, RateLimited::Rate { limit: 3, retry_after_ms: 20_000 });
        // Another's calls are another's.
        assert!(limiter.admit(&Caller::new("dev").with_principal("bob"), limits).is_ok());
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(limiter.admit(&ada, limits).is_ok());
        assert!(limiter.admit(&ada, limits).is_err());
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!((0..10).filter(|_| limiter.admit(&ada, limits).is_ok()).count(), 3);
    }

    #[test]
    fn so_many_calls_at_once() {
        let (limiter, ada) = (RateLimiter::default(), Caller::new("dev"));
        let limits = limits(None, Some(2));
        let first = limiter.admit(&ada, limits).unwrap();
        let _second = limiter.admit(&ada, limits).unwrap();
        assert_eq!(limiter.admit(&ada, limits).unwrap_err(), RateLimited::Concurrency { limit: 2 });
        drop(first);
        assert!(limiter.admit(&ada, limits).is_ok());
        assert!(limiter.admit(&ada, RoleLimits::default()).unwrap().is_none());
    }
}
