//! Admission of requests: the accounts of all callers, and the rate at which they may ask together.

use super::account::CallerAccount;
use super::caller_limits::{CallerLimits, LimitRejection, ServerLimits};
use super::shared_capacity::ServerCapacity;
use core_tools::mcp::CallPermits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The accounts of all callers.
#[derive(Debug)]
pub(crate) struct AdmissionControl {
    accounts: Mutex<HashMap<Arc<str>, Arc<CallerAccount>>>,
    shared: Arc<ServerCapacity>,
}

/// The use of the server's capacity: for each part of it how much is used, and how much there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapacityUse {
    /// Calls that run.
    pub(crate) calls: (u64, u64),
    /// Programs that run, in calls and in the background.
    pub(crate) programs: (u64, u64),
    /// Calls that wait.
    pub(crate) queue: (u64, u64),
}

/// The accounts that are remembered. Beyond that number those that are not in use are forgotten.
const MAX_ACCOUNTS: usize = 10_000;

/// The time for which the number of active callers is used before they are counted again.
const ACTIVE_CALLERS_TTL: Duration = Duration::from_millis(100);
/// The recent bytes from which on a caller counts as active, and gets a share of the server's.
const MIN_ACTIVE_BYTES: f64 = 1024.0;

impl AdmissionControl {
    /// Admits requests of all callers together within `limits`, and calls with permits of the host.
    pub(crate) fn new(limits: ServerLimits, call_permits: CallPermits) -> Self {
        Self { accounts: Mutex::default(), shared: Arc::new(ServerCapacity::new(limits, call_permits)) }
    }

    /// Returns the account of a caller. With limits that have changed it begins anew.
    pub(crate) fn account(&self, name: &Arc<str>, limits: &CallerLimits) -> Arc<CallerAccount> {
        let mut accounts = self.accounts();
        if let Some(account) = accounts.get(name).filter(|account| account.limits() == limits) {
            return Arc::clone(account);
        }
        if accounts.len() >= MAX_ACCOUNTS {
            // An account that a request holds is kept: a second one for the same caller would double its limits.
            accounts.retain(|_, account| Arc::strong_count(account) > 1 || !account.is_idle());
        }
        let account = Arc::new(CallerAccount::new(limits.clone(), Arc::clone(&self.shared)));
        accounts.insert(Arc::clone(name), Arc::clone(&account));
        account
    }

    /// Waits until no call runs that holds a permit.
    pub(crate) async fn drained(&self) {
        self.shared.call_permits.drained().await;
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<CallerAccount>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of calls that wait for a permit.
    pub(crate) fn queued(&self) -> u64 {
        self.shared.usage().queued
    }

    /// Returns what is used of the server's capacity.
    pub(crate) fn capacity(&self) -> CapacityUse {
        let ServerCapacity { limits, call_permits, program_permits, .. } = &*self.shared;
        let total_calls = u64::from(call_permits.total());
        let used = |total: u64, available: usize| (total.saturating_sub(available as u64), total);
        CapacityUse {
            calls: used(total_calls, call_permits.available()),
            programs: used(limits.processes, program_permits.available_permits()),
            queue: (self.queued(), limits.queue),
        }
    }

    /// Counts a request of `account`.
    ///
    /// # Errors
    /// The caller is over one of its rates, or the server over its own and the caller has more than its share.
    pub(crate) fn admit(&self, account: &CallerAccount) -> Result<(), LimitRejection> {
        account.admit()?;
        let now = tokio::time::Instant::now().into_std();
        let (retry_after, mut active_callers) = {
            let mut usage = self.shared.usage();
            if usage.bytes.available(now) >= 0.0 {
                return Ok(());
            }
            (usage.bytes.time_until(0.0), usage.active_callers)
        };
        if now - active_callers.1 >= ACTIVE_CALLERS_TTL {
            // Counted without the lock of the shared usage: an account's lock comes before it.
            let is_active = |account: &&Arc<CallerAccount>| account.recent_bytes(now) >= MIN_ACTIVE_BYTES;
            active_callers = (self.accounts().values().filter(is_active).count().max(1), now);
            self.shared.usage().active_callers = active_callers;
        }
        let bytes_per_second = self.shared.limits.bytes_per_second;
        #[allow(clippy::cast_precision_loss, reason = "a limit past 2^53 is none")]
        let share = bytes_per_second as f64 / active_callers.0 as f64;
        // Only callers above their share have to wait: the others did not use up the rate.
        if account.recent_bytes(now) <= share {
            return Ok(());
        }
        let reason = format!(
            "all callers together may send and receive {bytes_per_second} bytes in a second, and this one has more than \
             its share"
        );
        Err(LimitRejection { reason, retry_after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_reason::WaitReason;
    use core_tools::mcp::ResourceClass;

    const CALL: ResourceClass = ResourceClass::Call;
    const COMMAND: ResourceClass = ResourceClass::Program;

    fn limits(calls_per_second: u64, calls_in_flight: u64, queue: u64) -> CallerLimits {
        CallerLimits {
            calls_per_second,
            calls_in_flight,
            queue,
            queue_timeout: Duration::from_secs(5),
            bytes_per_minute: 6000,
            processes: 1,
        }
    }

    fn admission_control() -> AdmissionControl {
        let totals =
            ServerLimits { queue: 100, bytes_per_second: 1 << 30, processes: 100, reserved_calls: 0 };
        AdmissionControl::new(totals, CallPermits::new(100))
    }

    fn account(calls_per_second: u64, calls_in_flight: u64, queue: u64) -> Arc<CallerAccount> {
        admission_control().account(&"ada".into(), &limits(calls_per_second, calls_in_flight, queue))
    }

    #[tokio::test(start_paused = true)]
    async fn two_seconds_of_requests_are_saved_up_and_then_the_rate_holds() {
        let account = account(10, 1, 0);
        assert_eq!((0..100).filter(|_| account.admit().is_ok()).count(), 20);
        assert_eq!(account.admit().unwrap_err().retry_after, Duration::from_millis(100));
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(account.admit().is_ok() && account.admit().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_charged_afterwards_and_delay_the_next_request() {
        let account = account(10, 1, 0);
        account.charge(6500);
        let rejection = account.admit().unwrap_err();
        assert_eq!(rejection.retry_after, Duration::from_secs(5));
        tokio::time::advance(rejection.retry_after).await;
        assert!(account.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_has_a_length_and_a_timeout() {
        let account = account(10, 1, 1);
        let first = account.acquire(CALL, |_| {}).await.unwrap();
        let second = tokio::spawn({
            let account = Arc::clone(&account);
            async move { account.acquire(CALL, |_| {}).await }
        });
        tokio::task::yield_now().await;
        assert!(account.acquire(CALL, |_| {}).await.unwrap_err().reason.contains("1 waiting"));
        assert!(second.await.unwrap().unwrap_err().reason.contains("5000 ms"));
        drop(first);
        assert!(account.acquire(CALL, |_| {}).await.is_ok());
    }

    #[tokio::test]
    async fn the_queue_of_one_caller_is_in_front_of_nobody_elses() {
        let totals = ServerLimits { queue: 100, bytes_per_second: 1, processes: 3, reserved_calls: 0 };
        let admission = AdmissionControl::new(totals, CallPermits::new(3));
        let limits = CallerLimits { processes: 2, ..limits(10, 2, 50) };
        let [greedy, quiet] = ["greedy", "quiet"].map(|name| admission.account(&name.into(), &limits));
        let _taken =
            (greedy.acquire(COMMAND, |_| {}).await.unwrap(), greedy.acquire(COMMAND, |_| {}).await.unwrap());
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                let greedy = Arc::clone(&greedy);
                tokio::spawn(async move { greedy.acquire(COMMAND, |_| {}).await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(admission.queued(), 20);
        assert!(
            tokio::time::timeout(Duration::from_millis(500), quiet.acquire(COMMAND, |_| {})).await.is_ok()
        );
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        for ended in waiting {
            assert!(ended.await.unwrap_err().is_cancelled());
        }
        assert_eq!(admission.queued(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn programs_in_the_background_and_in_calls_are_counted_together() {
        let account = account(10, 4, 4);
        let background = account.acquire_program().unwrap();
        assert!(account.acquire_program().err().unwrap().to_string().contains("1 programs"));
        assert!(account.acquire(CALL, |_| {}).await.is_ok());
        assert!(account.acquire(COMMAND, |_| {}).await.unwrap_err().reason.contains("1 programs"));
        drop(background);
        let call = account.acquire(COMMAND, |_| {}).await.unwrap();
        assert!(account.acquire_program().is_err());
        drop(call);
        assert!(account.acquire_program().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_has_fewer_permits_than_all_callers_together() {
        let totals = ServerLimits { queue: 1, bytes_per_second: 1, processes: 2, reserved_calls: 0 };
        let admission = AdmissionControl::new(totals, CallPermits::new(2));
        let [one, two, three, four] =
            ["one", "two", "three", "four"].map(|name| admission.account(&name.into(), &limits(10, 5, 5)));
        let first = one.acquire_program().unwrap();
        let second = two.acquire(COMMAND, |_| {}).await.unwrap();
        assert!(three.acquire_program().err().unwrap().to_string().contains("the server"));
        let waits = tokio::spawn(async move { three.acquire(COMMAND, |_| {}).await });
        tokio::task::yield_now().await;
        assert!(four.acquire(COMMAND, |_| {}).await.unwrap_err().reason.contains("1 calls are waiting"));
        drop((first, second));
        assert!(waits.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_with_those_that_the_host_has_from_elsewhere() {
        let permits = CallPermits::new(1);
        let totals = ServerLimits { queue: 9, bytes_per_second: 1, processes: 9, reserved_calls: 0 };
        let admission = AdmissionControl::new(totals, permits.clone());
        let account = admission.account(&"ada".into(), &limits(10, 5, 5));
        let elsewhere = permits.try_acquire().unwrap();
        assert!(account.acquire(CALL, |_| {}).await.is_err());
        drop(elsewhere);
        let call = account.acquire(CALL, |_| {}).await.unwrap();
        let handed_over = call.call_permit();
        drop(call);
        assert!(handed_over.is_some() && permits.try_acquire().is_none());
        drop(handed_over);
        admission.drained().await;
    }

    #[tokio::test(start_paused = true)]
    async fn over_the_servers_rate_callers_wait_who_have_more_than_their_share() {
        let totals = ServerLimits { queue: 9, bytes_per_second: 1_000_000, processes: 9, reserved_calls: 0 };
        let admission = AdmissionControl::new(totals, CallPermits::new(9));
        let limits = CallerLimits { bytes_per_minute: 1 << 40, ..limits(1000, 5, 5) };
        let [greedy, quiet] = ["greedy", "quiet"].map(|name| admission.account(&name.into(), &limits));
        quiet.charge(100_000);
        greedy.charge(1_000_000);
        assert!(admission.admit(&greedy).is_ok(), "two seconds are saved up");
        greedy.charge(2_000_000);
        let rejection = admission.admit(&greedy).unwrap_err();
        assert!(
            rejection.retry_after > Duration::from_secs(1)
                && rejection.retry_after < Duration::from_millis(1200),
            "{rejection:?}"
        );
        assert!(admission.admit(&quiet).is_ok());
        tokio::time::advance(rejection.retry_after).await;
        assert!(admission.admit(&greedy).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_run_a_program_leave_room_for_others() {
        let totals =
            ServerLimits { queue: 100, bytes_per_second: 1 << 30, processes: 100, reserved_calls: 2 };
        let admission = AdmissionControl::new(totals, CallPermits::new(8));
        let limits = CallerLimits { processes: 100, ..limits(1000, 100, 100) };
        let builder = admission.account(&"builder".into(), &limits);
        let mut builds = Vec::new();
        for _ in 0..6 {
            builds.push(builder.acquire(COMMAND, |_| {}).await.unwrap());
        }
        let mut reason = None;
        let seventh = builder.acquire(COMMAND, |waits| reason = Some(waits));
        assert!(tokio::time::timeout(Duration::from_secs(1), seventh).await.is_err());
        assert_eq!(reason, Some(WaitReason::ProgramCallsOfServer(6)));
        let reader = admission.account(&"reader".into(), &limits);
        let _reads =
            (reader.acquire(CALL, |_| {}).await.unwrap(), reader.acquire(CALL, |_| {}).await.unwrap());
        drop(builds.pop());
        assert!(builder.acquire(COMMAND, |_| {}).await.is_ok());
        // Of few calls nearly all may run programs.
        let small = AdmissionControl::new(totals, CallPermits::new(2));
        let builder = small.account(&"builder".into(), &limits);
        let _both = (
            builder.acquire(COMMAND, |_| {}).await.unwrap(),
            builder.acquire(COMMAND, |_| {}).await.unwrap(),
        );
    }
}
