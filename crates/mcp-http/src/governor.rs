//! How much of the server one caller may use, so that another's share is left alone.

use core_tools::config::Http;
use core_tools::mcp::{Held, Needs};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Programs that run at once, in the background and in calls.
    pub(crate) processes: u64,
}

/// What all callers together may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    /// Calls that run at once.
    pub(crate) calls_in_flight: u64,
    /// Calls that wait for a place.
    pub(crate) queue: u64,
    /// Bytes in a second, sent and received; twice that is saved up.
    pub(crate) bytes_per_second: u64,
    /// Programs that run at once.
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
    server: Arc<Server>,
}

/// What is there for all callers.
#[derive(Debug)]
struct Server {
    totals: Totals,
    places: Arc<Semaphore>,
    programs: Arc<Semaphore>,
    used: Mutex<Total>,
}

#[derive(Debug)]
struct Total {
    bytes: Bucket,
    waiting: u64,
    /// Callers who have a share of the bytes, and when they were counted.
    sharing: (usize, Instant),
}

/// What one caller has used.
#[derive(Debug)]
pub(crate) struct Account {
    limits: Limits,
    used: Mutex<Used>,
    places: Arc<Semaphore>,
    programs: Arc<Semaphore>,
    server: Arc<Server>,
}

#[derive(Debug)]
struct Used {
    requests: Bucket,
    bytes: Bucket,
    waiting: u64,
    /// Bytes of late: a second ago counts for a third.
    lately: f64,
    then: Instant,
}

/// Fills at a rate, up to a size.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    size: f64,
    per_second: f64,
    left: f64,
    filled: Instant,
}

/// A place to run a call in, and one for its program, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Place {
    _permits: Vec<OwnedSemaphorePermit>,
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
    /// All callers together may use `totals`.
    pub(crate) fn new(totals: Totals) -> Self {
        let now = Instant::now();
        let bytes = Bucket::new(totals.bytes_per_second.saturating_mul(2), totals.bytes_per_second, 1, now);
        let server = Server {
            totals,
            places: places(totals.calls_in_flight),
            programs: places(totals.processes),
            used: Mutex::new(Total { bytes, waiting: 0, sharing: (1, now) }),
        };
        Self { accounts: Mutex::default(), server: Arc::new(server) }
    }

    /// The account of a caller. With other limits than before it begins anew.
    pub(crate) fn account(&self, name: &Arc<str>, limits: &Limits) -> Arc<Account> {
        let mut accounts = self.accounts();
        if let Some(account) = accounts.get(name).filter(|account| account.limits == *limits) {
            return Arc::clone(account);
        }
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.retain(|_, account| Arc::strong_count(account) > 1 || !account.is_idle());
        }
        let account = Arc::new(Account::new(limits.clone(), Arc::clone(&self.server)));
        accounts.insert(Arc::clone(name), Arc::clone(&account));
        account
    }

    /// Waits until no call runs that had a place.
    pub(crate) async fn at_rest(&self) {
        let all = u32::try_from(self.server.totals.calls_in_flight).unwrap_or(u32::MAX);
        let _ = self.server.places.acquire_many(all).await;
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that wait for a place.
    pub(crate) fn waiting(&self) -> u64 {
        self.server.used().waiting
    }

    /// Lets a request of `account` in.
    pub(crate) fn admit(&self, account: &Account) -> Result<(), NotNow> {
        account.admit()?;
        let now = Instant::now();
        let wait = {
            let mut total = self.server.used();
            total.bytes.fill(now);
            if total.bytes.left >= 0.0 {
                return Ok(());
            }
            total.bytes.until(0.0)
        };
        // All together have more than they may: those wait who have more than their share.
        let mut sharing = self.server.used().sharing;
        if now - sharing.1 >= RECOUNT {
            let accounts = self.accounts();
            sharing =
                (accounts.values().filter(|account| account.lately(now) >= A_SHARE).count().max(1), now);
            drop(accounts);
            self.server.used().sharing = sharing;
        }
        #[allow(clippy::cast_precision_loss, reason = "a limit past 2^53 is none")]
        let share = self.server.totals.bytes_per_second as f64 / sharing.0 as f64;
        if account.lately(now) <= share {
            return Ok(());
        }
        let most = self.server.totals.bytes_per_second;
        let why = format!(
            "all callers together may send and receive {most} bytes in a second, and this one has more than its share"
        );
        Err(NotNow { why, wait })
    }
}

/// How often those are counted who have a share.
const RECOUNT: Duration = Duration::from_millis(100);
/// Who had fewer bytes of late has none.
const A_SHARE: f64 = 1024.0;

fn places(number: u64) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(usize::try_from(number).unwrap_or(usize::MAX).min(usize::MAX >> 4)))
}

impl Server {
    fn used(&self) -> MutexGuard<'_, Total> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn new(limits: Limits, server: Arc<Server>) -> Self {
        let now = Instant::now();
        let used = Used {
            requests: Bucket::new(limits.calls_per_second.saturating_mul(2), limits.calls_per_second, 1, now),
            bytes: Bucket::new(limits.bytes_per_minute, limits.bytes_per_minute, 60, now),
            waiting: 0,
            lately: 0.0,
            then: now,
        };
        let (calls, programs) = (places(limits.calls_in_flight), places(limits.processes));
        Self { limits, used: Mutex::new(used), places: calls, programs, server }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
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

    fn admit(&self) -> Result<(), NotNow> {
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
        let now = Instant::now();
        let mut used = self.used();
        used.bytes.fill(now);
        used.bytes.left -= bytes as f64;
        used.fade(now);
        used.lately += bytes as f64;
        drop(used);
        let mut total = self.server.used();
        total.bytes.fill(now);
        total.bytes.left -= bytes as f64;
    }

    fn lately(&self, now: Instant) -> f64 {
        let mut used = self.used();
        used.fade(now);
        used.lately
    }

    /// What a call waits for: first among the caller's own, so that its line is before nobody else's. Each caller can
    /// have no more of the server's than of its own.
    fn line(&self, needs: Needs) -> impl Iterator<Item = &Arc<Semaphore>> {
        let place = [needs.place.then_some(&self.places), needs.program.then_some(&self.programs)];
        let server = &self.server;
        let shared = [needs.program.then_some(&server.programs), needs.place.then_some(&server.places)];
        place.into_iter().chain(shared).flatten()
    }

    /// Waits for what a call needs to run.
    pub(crate) async fn place(&self, needs: Needs) -> Result<Place, NotNow> {
        let at_once = self.line(needs).map(|line| Arc::clone(line).try_acquire_owned().ok());
        if let Some(permits) = at_once.collect::<Option<Vec<_>>>() {
            return Ok(Place { _permits: permits });
        }
        let _waiting = self.wait_in_line()?;
        let all = async {
            let mut permits = Vec::new();
            for line in self.line(needs) {
                permits.push(Arc::clone(line).acquire_owned().await.ok()?);
            }
            Some(Place { _permits: permits })
        };
        match tokio::time::timeout(self.limits.wait, all).await {
            Ok(Some(place)) => Ok(place),
            _ => {
                let Limits { wait, calls_in_flight, processes, .. } = &self.limits;
                let what = match needs.program && self.programs.available_permits() == 0 {
                    true => format!("{processes} programs at once, in the background too"),
                    false => format!("{calls_in_flight} calls at once"),
                };
                let wait = wait.as_millis();
                let why = format!(
                    "for {wait} ms no place was free: this caller may run {what}, and the server is shared"
                );
                Err(NotNow { why, wait: Duration::from_secs(1) })
            }
        }
    }

    /// A place for a program that outlives its call.
    pub(crate) fn program(&self) -> Result<Held, String> {
        let of = |line: &Arc<Semaphore>| Arc::clone(line).try_acquire_owned();
        let own = of(&self.programs).map_err(|_| {
            format!(
                "this caller may run {} programs at once, and they run; stop one, or wait for one to end",
                self.limits.processes
            )
        })?;
        let server = of(&self.server.programs)
            .map_err(|_| "the server runs all the programs that it may; try again in 1000 ms".to_owned())?;
        Ok(Box::new(Place { _permits: vec![own, server] }))
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
        let mut total = self.server.used();
        if total.waiting >= self.server.totals.queue {
            let why = format!("{} calls are waiting, which is all there may be", total.waiting);
            return Err(NotNow { why, wait: Duration::from_secs(1) });
        }
        total.waiting += 1;
        used.waiting += 1;
        Ok(Waiting(self))
    }
}

/// One who waits for a place.
struct Waiting<'a>(&'a Account);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.used().waiting -= 1;
        self.0.server.used().waiting -= 1;
    }
}

impl Used {
    fn fade(&mut self, now: Instant) {
        self.lately *= (-(now - self.then).as_secs_f64()).exp();
        self.then = now;
    }
}

impl Bucket {
    /// Full, and filled with `amount` in so many seconds.
    #[allow(clippy::cast_precision_loss, reason = "a limit past 2^53 is none")]
    fn new(size: u64, amount: u64, seconds: u64, now: Instant) -> Self {
        let per_second = amount as f64 / seconds as f64;
        Self { size: size as f64, per_second, left: size as f64, filled: now }
    }

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

    const CALL: Needs = Needs { place: true, program: false };
    const COMMAND: Needs = Needs { place: true, program: true };

    fn limits(calls_per_second: u64, calls_in_flight: u64, queue: u64) -> Limits {
        Limits {
            calls_per_second,
            calls_in_flight,
            queue,
            wait: Duration::from_secs(5),
            bytes_per_minute: 6000,
            processes: 1,
        }
    }

    fn governor() -> Governor {
        Governor::new(Totals { calls_in_flight: 100, queue: 100, bytes_per_second: 1 << 30, processes: 100 })
    }

    fn account(calls_per_second: u64, calls_in_flight: u64, queue: u64) -> Arc<Account> {
        governor().account(&"ada".into(), &limits(calls_per_second, calls_in_flight, queue))
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
        let account = account(10, 1, 1);
        let first = account.place(CALL).await.unwrap();
        let second = tokio::spawn({
            let account = Arc::clone(&account);
            async move { account.place(CALL).await }
        });
        tokio::task::yield_now().await;
        assert!(account.place(CALL).await.unwrap_err().why.contains("1 waiting"));
        assert!(second.await.unwrap().unwrap_err().why.contains("5000 ms"));
        drop(first);
        assert!(account.place(CALL).await.is_ok());
    }

    #[tokio::test]
    async fn one_callers_line_is_before_nobody_elses() {
        let governor =
            Governor::new(Totals { calls_in_flight: 3, queue: 100, bytes_per_second: 1, processes: 3 });
        let limits = Limits { processes: 2, ..limits(10, 2, 50) };
        let [greedy, quiet] = ["greedy", "quiet"].map(|name| governor.account(&name.into(), &limits));
        let _taken = (greedy.place(COMMAND).await.unwrap(), greedy.place(COMMAND).await.unwrap());
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                let greedy = Arc::clone(&greedy);
                tokio::spawn(async move { greedy.place(COMMAND).await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(governor.waiting(), 20);
        assert!(tokio::time::timeout(Duration::from_millis(500), quiet.place(COMMAND)).await.is_ok());
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        for ended in waiting {
            assert!(ended.await.unwrap_err().is_cancelled());
        }
        assert_eq!(governor.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn programs_in_the_background_and_in_calls_are_counted_together() {
        let account = account(10, 4, 4);
        let background = account.program().unwrap();
        assert!(account.program().err().unwrap().contains("1 programs"));
        assert!(account.place(CALL).await.is_ok());
        assert!(account.place(COMMAND).await.unwrap_err().why.contains("1 programs"));
        drop(background);
        let call = account.place(COMMAND).await.unwrap();
        assert!(account.program().is_err());
        drop(call);
        assert!(account.program().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_has_fewer_places_than_all_callers_could_take() {
        let totals = Totals { calls_in_flight: 2, queue: 1, bytes_per_second: 1, processes: 2 };
        let governor = Governor::new(totals);
        let [one, two, three, four] =
            ["one", "two", "three", "four"].map(|name| governor.account(&name.into(), &limits(10, 5, 5)));
        let first = one.program().unwrap();
        let second = two.place(COMMAND).await.unwrap();
        assert!(three.program().err().unwrap().contains("the server"));
        let waits = tokio::spawn(async move { three.place(COMMAND).await });
        tokio::task::yield_now().await;
        assert!(four.place(COMMAND).await.unwrap_err().why.contains("1 calls are waiting"));
        drop((first, second));
        assert!(waits.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_servers_bytes_those_wait_who_have_more_than_their_share() {
        let totals = Totals { calls_in_flight: 9, queue: 9, bytes_per_second: 1_000_000, processes: 9 };
        let governor = Governor::new(totals);
        let limits = Limits { bytes_per_minute: 1 << 40, ..limits(1000, 5, 5) };
        let [greedy, quiet] = ["greedy", "quiet"].map(|name| governor.account(&name.into(), &limits));
        quiet.spend(100_000);
        greedy.spend(1_000_000);
        assert!(governor.admit(&greedy).is_ok(), "two seconds are saved up");
        greedy.spend(2_000_000);
        let not_now = governor.admit(&greedy).unwrap_err();
        assert!(
            not_now.wait > Duration::from_secs(1) && not_now.wait < Duration::from_millis(1200),
            "{not_now:?}"
        );
        assert!(governor.admit(&quiet).is_ok());
        tokio::time::advance(not_now.wait).await;
        assert!(governor.admit(&greedy).is_ok());
    }
}
