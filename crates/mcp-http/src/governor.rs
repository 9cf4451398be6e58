//! How much of the server one caller may use, so that another's share is left alone.

use core_tools::config::Http;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// What one caller may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Requests in a second; as many as two seconds bring are saved up.
    pub(crate) calls_per_second: u64,
    /// Calls that run at once.
    pub(crate) calls_in_flight: u64,
    /// Calls that wait for a place.
    pub(crate) queue: u64,
    /// How long they wait.
    pub(crate) wait: Duration,
    /// Bytes in a minute, sent and received.
    pub(crate) bytes_per_minute: u64,
    /// Programs that run in the background at once.
    pub(crate) processes: u64,
}

impl Limits {
    /// Those of callers who have none of their own.
    pub(crate) fn of(http: &Http) -> Self {
        Self {
            calls_per_second: *http.calls_per_second,
            calls_in_flight: *http.calls_in_flight,
            queue: *http.queue,
            wait: Duration::from_millis(*http.queue_ms),
            bytes_per_minute: *http.bytes_per_minute,
            processes: *http.processes,
        }
    }
}

/// Keeps the account of every caller.
#[derive(Debug)]
pub(crate) struct Governor {
    accounts: Mutex<HashMap<Arc<str>, Arc<Account>>>,
    /// Places for calls of the whole server.
    places: Arc<Semaphore>,
}

/// What one caller has used.
#[derive(Debug)]
pub(crate) struct Account {
    limits: Limits,
    used: Mutex<Used>,
    places: Arc<Semaphore>,
    server: Arc<Semaphore>,
}

#[derive(Debug)]
struct Used {
    requests: Bucket,
    bytes: Bucket,
    waiting: u64,
}

/// Fills at a rate, up to a size.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    size: f64,
    per_second: f64,
    left: f64,
    filled: Instant,
}

/// A place to run a call in, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _own: OwnedSemaphorePermit,
    _server: OwnedSemaphorePermit,
}

/// Not now. In words, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotNow {
    pub(crate) why: String,
    pub(crate) wait: Duration,
}

/// Accounts that are remembered; of more, those that are unused are forgotten.
const MAX_ACCOUNTS: usize = 10_000;

impl Governor {
    /// `places` calls run at once, all callers together.
    pub(crate) fn new(places: usize) -> Self {
        Self { accounts: Mutex::default(), places: Arc::new(Semaphore::new(places)) }
    }

    /// The account of a caller. With other limits than before it begins anew.
    pub(crate) fn account(&self, name: &Arc<str>, limits: &Limits) -> Arc<Account> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get(name).filter(|account| account.limits == *limits) {
            return Arc::clone(account);
        }
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.retain(|_, account| Arc::strong_count(account) > 1 || !account.is_idle());
        }
        let account = Arc::new(Account::new(limits.clone(), Arc::clone(&self.places)));
        accounts.insert(Arc::clone(name), Arc::clone(&account));
        account
    }
}

impl Account {
    fn new(limits: Limits, server: Arc<Semaphore>) -> Self {
        let now = Instant::now();
        #[allow(clippy::cast_precision_loss, reason = "a limit past 2^53 is none")]
        let bucket = |size: u64, per_second: f64| Bucket {
            size: size as f64,
            per_second,
            left: size as f64,
            filled: now,
        };
        #[allow(clippy::cast_precision_loss, reason = "a limit past 2^53 is none")]
        let used = Used {
            requests: bucket(limits.calls_per_second.saturating_mul(2), limits.calls_per_second as f64),
            bytes: bucket(limits.bytes_per_minute, limits.bytes_per_minute as f64 / 60.0),
            waiting: 0,
        };
        let places =
            Arc::new(Semaphore::new(usize::try_from(limits.calls_in_flight).unwrap_or(usize::MAX >> 4)));
        Self { limits, used: Mutex::new(used), places, server }
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        let mut used = self.used();
        let now = Instant::now();
        let full = |bucket: &mut Bucket| {
            bucket.fill(now);
            bucket.left >= bucket.size
        };
        full(&mut used.requests) && full(&mut used.bytes)
    }

    /// Lets a request in.
    pub(crate) fn admit(&self) -> Result<(), NotNow> {
        let now = Instant::now();
        let mut used = self.used();
        used.bytes.fill(now);
        if used.bytes.left < 0.0 {
            return Err(NotNow {
                why: format!(
                    "this caller may send and receive {} bytes in a minute",
                    self.limits.bytes_per_minute
                ),
                wait: used.bytes.until(0.0),
            });
        }
        used.requests.fill(now);
        if used.requests.left < 1.0 {
            return Err(NotNow {
                why: format!("this caller may make {} requests in a second", self.limits.calls_per_second),
                wait: used.requests.until(1.0),
            });
        }
        used.requests.left -= 1.0;
        Ok(())
    }

    /// Counts bytes that were sent or received. They are there already, so this only delays what comes next.
    #[allow(clippy::cast_precision_loss, reason = "a body past 2^53 bytes is none")]
    pub(crate) fn spend(&self, bytes: usize) {
        let mut used = self.used();
        used.bytes.fill(Instant::now());
        used.bytes.left -= bytes as f64;
    }

    /// Waits for a place to run a call in: first among the caller's own, so that its queue is before nobody else's.
    pub(crate) async fn place(&self) -> Result<Place, NotNow> {
        let (own, server) = (Arc::clone(&self.places), Arc::clone(&self.server));
        if let Ok(own) = Arc::clone(&own).try_acquire_owned()
            && let Ok(server) = Arc::clone(&server).try_acquire_owned()
        {
            return Ok(Place { _own: own, _server: server });
        }
        let _waiting = self.wait_in_line()?;
        let both = async {
            let own = own.acquire_owned().await.ok()?;
            Some(Place { _own: own, _server: server.acquire_owned().await.ok()? })
        };
        match tokio::time::timeout(self.limits.wait, both).await {
            Ok(Some(place)) => Ok(place),
            _ => Err(NotNow {
                why: format!(
                    "for {} ms no place was free: this caller may run {} calls at once, and the server is shared",
                    self.limits.wait.as_millis(),
                    self.limits.calls_in_flight
                ),
                wait: Duration::from_secs(1),
            }),
        }
    }

    fn wait_in_line(&self) -> Result<Waiting<'_>, NotNow> {
        let mut used = self.used();
        if used.waiting >= self.limits.queue {
            return Err(NotNow {
                why: format!(
                    "this caller has {} calls running and {} waiting, which is all it may",
                    self.limits.calls_in_flight, self.limits.queue
                ),
                wait: Duration::from_secs(1),
            });
        }
        used.waiting += 1;
        Ok(Waiting(self))
    }
}

/// One who waits for a place.
struct Waiting<'a>(&'a Account);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.used().waiting -= 1;
    }
}

impl Bucket {
    fn fill(&mut self, now: Instant) {
        self.left = (self.left + (now - self.filled).as_secs_f64() * self.per_second).min(self.size);
        self.filled = now;
    }

    fn until(&self, enough: f64) -> Duration {
        Duration::try_from_secs_f64((enough - self.left).max(0.0) / self.per_second).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(calls_per_second: u64, calls_in_flight: u64, queue: u64) -> Account {
        let limits = Limits {
            calls_per_second,
            calls_in_flight,
            queue,
            wait: Duration::from_secs(5),
            bytes_per_minute: 6000,
            processes: 1,
        };
        Account::new(limits, Arc::new(Semaphore::new(100)))
    }

    #[tokio::test(start_paused = true)]
    async fn two_seconds_of_requests_are_saved_up_and_then_they_come_at_their_rate() {
        let account = account(10, 1, 0);
        assert_eq!((0..100).filter(|_| account.admit().is_ok()).count(), 20);
        assert_eq!(account.admit().unwrap_err().wait, Duration::from_millis(100));
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(account.admit().is_ok() && account.admit().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_counted_when_they_have_come_and_delay_the_next_request() {
        let account = account(10, 1, 0);
        account.spend(6500);
        let not_now = account.admit().unwrap_err();
        assert_eq!(not_now.wait, Duration::from_secs(5));
        tokio::time::advance(not_now.wait).await;
        assert!(account.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_of_calls_has_an_end_and_a_patience() {
        let account = Arc::new(account(10, 1, 1));
        let first = account.place().await.unwrap();
        let second = tokio::spawn({
            let account = Arc::clone(&account);
            async move { account.place().await }
        });
        tokio::task::yield_now().await;
        assert!(account.place().await.unwrap_err().why.contains("1 waiting"));
        assert!(second.await.unwrap().unwrap_err().why.contains("5000 ms"));
        drop(first);
        assert!(account.place().await.is_ok());
    }

    #[tokio::test]
    async fn one_callers_line_is_before_nobody_elses() {
        let governor = Governor::new(3);
        let limits = account(10, 2, 50).limits;
        let [greedy, quiet] = ["greedy", "quiet"].map(|name| governor.account(&name.into(), &limits));
        let _taken = (greedy.place().await.unwrap(), greedy.place().await.unwrap());
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                let greedy = Arc::clone(&greedy);
                tokio::spawn(async move { greedy.place().await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(tokio::time::timeout(Duration::from_millis(500), quiet.place()).await.is_ok());
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
