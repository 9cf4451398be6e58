//! The account of one caller: what it has used of its limits, and the permits of its calls.

use super::caller_limits::{CallerLimits, LimitRejection};
use super::shared_capacity::{ServerCapacity, semaphore};
use crate::wait_reason::WaitReason;
use core_tools::mcp::{CallPermit, NoPermit, Permit, ResourceClass, TokenBucket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The account of one caller.
#[derive(Debug)]
pub(crate) struct CallerAccount {
    limits: CallerLimits,
    usage: Mutex<CallerUsage>,
    call_permits: Arc<Semaphore>,
    program_permits: Arc<Semaphore>,
    /// For reading and parsing a large message: one at a time.
    message_permit: Arc<Semaphore>,
    shared: Arc<ServerCapacity>,
}

#[derive(Debug)]
struct CallerUsage {
    requests: TokenBucket,
    bytes: TokenBucket,
    /// Calls that wait for a permit.
    queued: u64,
    /// Bytes of the last seconds: those of a second ago count for a third.
    recent_bytes: f64,
    recent_bytes_at: Instant,
}

/// The permits of a call, and of its program; dropping them frees them.
#[derive(Debug, Default)]
pub(crate) struct CallerPermits(Mutex<HeldPermits>);

#[derive(Debug, Default)]
struct HeldPermits {
    _permits: Vec<OwnedSemaphorePermit>,
    call_permit: Option<CallPermit>,
}

impl CallerPermits {
    fn new(permits: Vec<OwnedSemaphorePermit>, call_permit: Option<CallPermit>) -> Self {
        Self(Mutex::new(HeldPermits { _permits: permits, call_permit }))
    }

    fn held(&self) -> MutexGuard<'_, HeldPermits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the permits before this is dropped, for a call that waits for a person.
    pub(crate) fn release(&self) {
        *self.held() = HeldPermits::default();
    }

    /// Returns the permit that the host would otherwise acquire for the call, if it needs one.
    pub(crate) fn call_permit(&self) -> Option<CallPermit> {
        self.held().call_permit.clone()
    }
}

/// The time after which a caller may try again whose calls wait for its own: nobody knows when one ends.
const RETRY_LATER: Duration = Duration::from_secs(1);

impl CallerAccount {
    /// Makes the account of a caller who has used nothing.
    pub(super) fn new(limits: CallerLimits, shared: Arc<ServerCapacity>) -> Self {
        let now = tokio::time::Instant::now().into_std();
        let usage = CallerUsage {
            requests: TokenBucket::new(
                // A burst may have twice the rate.
                limits.calls_per_second.saturating_mul(2),
                limits.calls_per_second,
                Duration::from_secs(1),
                now,
            ),
            bytes: TokenBucket::new(
                limits.bytes_per_minute,
                limits.bytes_per_minute,
                Duration::from_secs(60),
                now,
            ),
            queued: 0,
            recent_bytes: 0.0,
            recent_bytes_at: now,
        };
        let (call_permits, program_permits) =
            (semaphore(limits.calls_in_flight), semaphore(limits.processes));
        let message_permit = semaphore(1);
        Self { limits, usage: Mutex::new(usage), call_permits, program_permits, message_permit, shared }
    }

    /// Returns the limits of the caller.
    pub(super) fn limits(&self) -> &CallerLimits {
        &self.limits
    }

    fn usage(&self) -> MutexGuard<'_, CallerUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the account could be forgotten: a new one would allow no more.
    pub(super) fn is_idle(&self) -> bool {
        let (mut usage, now) = (self.usage(), tokio::time::Instant::now().into_std());
        usage.requests.is_full(now) && usage.bytes.is_full(now)
    }

    /// Counts one request, or refuses it where the caller is over its rates.
    pub(super) fn admit(&self) -> Result<(), LimitRejection> {
        let (mut usage, now) = (self.usage(), tokio::time::Instant::now().into_std());
        // Bytes are charged after the fact, so the balance may be below zero; requests are charged here.
        if usage.bytes.available(now) < 0.0 {
            return Err(LimitRejection {
                reason: format!(
                    "this caller may send and receive {} bytes in a minute",
                    self.limits.bytes_per_minute
                ),
                retry_after: usage.bytes.time_until(0.0),
            });
        }
        if usage.requests.available(now) < 1.0 {
            return Err(LimitRejection {
                reason: format!("this caller may make {} requests in a second", self.limits.calls_per_second),
                retry_after: usage.requests.time_until(1.0),
            });
        }
        usage.requests.spend(1.0, now);
        Ok(())
    }

    /// Counts bytes that were sent or received. They are there already, so this only delays the next requests.
    #[allow(clippy::cast_precision_loss, reason = "a body past 2^53 bytes is none")]
    pub(crate) fn charge(&self, bytes: usize) {
        let (now, bytes) = (tokio::time::Instant::now().into_std(), bytes as f64);
        let mut usage = self.usage();
        usage.bytes.spend(bytes, now);
        usage.fade(now);
        usage.recent_bytes += bytes;
        drop(usage);
        self.shared.usage().bytes.spend(bytes, now);
    }

    /// Waits until the caller may send a large message, which is read and parsed one at a time for each caller.
    ///
    /// # Errors
    /// The queue is full, or those before it took longer than the caller's `queue_timeout`.
    pub(crate) async fn acquire_message(&self) -> Result<OwnedSemaphorePermit, LimitRejection> {
        if let Ok(permit) = Arc::clone(&self.message_permit).try_acquire_owned() {
            return Ok(permit);
        }
        let _queued = self.join_queue()?;
        let acquired = Arc::clone(&self.message_permit).acquire_owned();
        match tokio::time::timeout(self.limits.queue_timeout, acquired).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(LimitRejection {
                reason: format!(
                    "for {} ms other large messages of this caller were read, which is done one at a time",
                    self.limits.queue_timeout.as_millis()
                ),
                retry_after: RETRY_LATER,
            }),
        }
    }

    /// Waits for a processor on which a large message may be parsed.
    pub(crate) async fn acquire_parser(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.shared.parse_permits).acquire_owned().await.ok()
    }

    /// Returns the bytes of the last seconds.
    pub(super) fn recent_bytes(&self, now: Instant) -> f64 {
        let mut usage = self.usage();
        usage.fade(now);
        usage.recent_bytes
    }

    /// Returns the semaphores that a call takes a permit of, in this order, before it takes one of the host's. The
    /// caller's own come first, so that a long queue of one caller is not in front of another's, and no caller holds
    /// more of the server's permits than of its own.
    fn semaphores(&self, class: ResourceClass) -> impl Iterator<Item = &Arc<Semaphore>> {
        // The program permit comes before the host's call permit: a call that waits for one would otherwise hold a call
        // permit of the server, which another caller could use meanwhile.
        let semaphores = [
            class.needs_call_permit().then_some(&self.call_permits),
            class.needs_process_permit().then_some(&self.program_permits),
            class.needs_process_permit().then_some(&self.shared.program_permits),
            class.needs_process_permit().then_some(&self.shared.program_call_permits),
        ];
        semaphores.into_iter().flatten()
    }

    /// Returns the permits that a call needs if all of them are free.
    fn try_acquire(&self, class: ResourceClass) -> Option<CallerPermits> {
        let free = self.semaphores(class).map(|semaphore| Arc::clone(semaphore).try_acquire_owned().ok());
        let permits = free.collect::<Option<Vec<_>>>()?;
        let call_permit = match class.needs_call_permit() {
            true => Some(self.shared.call_permits.try_acquire()?),
            false => None,
        };
        Some(CallerPermits::new(permits, call_permit))
    }

    /// Waits for the permits that a call needs. If it waits, `on_wait` is called with what for.
    ///
    /// # Errors
    /// The queue is full, or none became free within the caller's `queue_timeout`.
    pub(crate) async fn acquire(
        &self,
        class: ResourceClass,
        on_wait: impl FnOnce(WaitReason),
    ) -> Result<CallerPermits, LimitRejection> {
        // Without a free permit the call joins the queue, which costs two locks.
        if let Some(permits) = self.try_acquire(class) {
            return Ok(permits);
        }
        let _queued = self.join_queue()?;
        on_wait(self.wait_reason(class));
        let all = async {
            let mut permits = Vec::new();
            for semaphore in self.semaphores(class) {
                permits.push(Arc::clone(semaphore).acquire_owned().await.ok()?);
            }
            let call_permit = match class.needs_call_permit() {
                true => Some(self.shared.call_permits.acquire().await.ok()?),
                false => None,
            };
            Some(CallerPermits::new(permits, call_permit))
        };
        match tokio::time::timeout(self.limits.queue_timeout, all).await {
            Ok(Some(permits)) => Ok(permits),
            _ => {
                let CallerLimits { queue_timeout, calls_in_flight, processes, .. } = &self.limits;
                let allowed =
                    match class.needs_process_permit() && self.program_permits.available_permits() == 0 {
                        true => format!("{processes} programs at once, in the background too"),
                        false => format!("{calls_in_flight} calls at once"),
                    };
                let waited = queue_timeout.as_millis();
                let reason = format!(
                    "for {waited} ms no place was free: this caller may run {allowed}, and the server is shared"
                );
                Err(LimitRejection { reason, retry_after: RETRY_LATER })
            }
        }
    }

    /// Returns what a call of this class waits for.
    fn wait_reason(&self, class: ResourceClass) -> WaitReason {
        let is_used_up = |permits: &Semaphore| permits.available_permits() == 0;
        if is_used_up(&self.call_permits) {
            return WaitReason::CallsOfCaller(self.limits.calls_in_flight);
        }
        match class.needs_process_permit() {
            true if is_used_up(&self.program_permits) => WaitReason::ProgramsOfCaller(self.limits.processes),
            true if is_used_up(&self.shared.program_permits) => {
                WaitReason::ProgramsOfServer(self.shared.limits.processes)
            }
            true if is_used_up(&self.shared.program_call_permits) => {
                WaitReason::ProgramCallsOfServer(self.shared.max_program_calls)
            }
            _ => WaitReason::CallsOfServer(self.shared.call_permits.total().into()),
        }
    }

    /// Waits until a call may run that another one makes: at the caller's rate, as if it had come alone, and with its
    /// permits.
    ///
    /// # Errors
    /// As [`Self::acquire`]; or the rate allows none within the caller's `queue_timeout`.
    pub(crate) async fn admit_inner_call(
        &self,
        class: ResourceClass,
    ) -> Result<CallerPermits, LimitRejection> {
        let latest = tokio::time::Instant::now() + self.limits.queue_timeout;
        while let Err(rejection) = self.admit() {
            let again = tokio::time::Instant::now() + rejection.retry_after;
            if again > latest {
                return Err(rejection);
            }
            tokio::time::sleep_until(again).await;
        }
        self.acquire(class, |_| {}).await
    }

    /// Takes a permit for a program that outlives its call.
    ///
    /// # Errors
    /// The caller or the server runs as many as it may.
    pub(crate) fn acquire_program(&self) -> Result<Permit, NoPermit> {
        // Never waits: a program may run for hours, and the call that starts it would wait as long.
        let acquire = |semaphore: &Arc<Semaphore>| Arc::clone(semaphore).try_acquire_owned();
        let caller_permit = acquire(&self.program_permits).map_err(|_| {
            NoPermit::new(format!(
                "this caller may run {} programs at once, and they run; stop one, or wait for one to end",
                self.limits.processes
            ))
        })?;
        let server_permit = acquire(&self.shared.program_permits).map_err(|_| {
            NoPermit::new("the server runs all the programs that it may; try again in 1000 ms")
        })?;
        Ok(Box::new([caller_permit, server_permit]))
    }

    fn join_queue(&self) -> Result<QueuedCallGuard<'_>, LimitRejection> {
        let mut usage = self.usage();
        if usage.queued >= self.limits.queue {
            return Err(LimitRejection {
                reason: format!(
                    "this caller has {} calls running and {} waiting, which is all it may",
                    self.limits.calls_in_flight, self.limits.queue
                ),
                retry_after: RETRY_LATER,
            });
        }
        // An account is locked before the shared usage, here as everywhere (`ServerCapacity::usage`).
        let mut shared = self.shared.usage();
        if shared.queued >= self.shared.limits.queue {
            let reason = format!("{} calls are waiting, which is all there may be", shared.queued);
            return Err(LimitRejection { reason, retry_after: RETRY_LATER });
        }
        shared.queued += 1;
        usage.queued += 1;
        Ok(QueuedCallGuard(self))
    }
}

/// A call in the queue; dropping it leaves the queue.
struct QueuedCallGuard<'a>(&'a CallerAccount);

impl Drop for QueuedCallGuard<'_> {
    fn drop(&mut self) {
        self.0.usage().queued -= 1;
        self.0.shared.usage().queued -= 1;
    }
}

impl CallerUsage {
    /// Lets the recent bytes fade, by half in 0.7 seconds.
    fn fade(&mut self, now: Instant) {
        self.recent_bytes *= (-(now - self.recent_bytes_at).as_secs_f64()).exp();
        self.recent_bytes_at = now;
    }
}
