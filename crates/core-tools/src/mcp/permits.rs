//! Permits: what a call must hold while it runs, so that only so many run at once.

use futures_util::future::{BoxFuture, FutureExt};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits that a call of a tool needs while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceClass {
    /// None: the tool does no work of its own, it answers at once or waits. So a command can be stopped while every
    /// permit is taken.
    #[default]
    Unmetered,
    /// A call permit.
    Call,
    /// A call permit, and one for the program that the tool runs for as long as it is called.
    Program,
}

impl ResourceClass {
    /// Returns true if the limit of concurrent calls counts the call.
    pub fn needs_call_permit(self) -> bool {
        self != Self::Unmetered
    }

    /// Returns true if the call counts among the programs that its caller may run.
    pub fn needs_process_permit(self) -> bool {
        self == Self::Program
    }
}

/// The permits for the calls of one host: the one semaphore for
/// [`HostLimits::max_concurrent_calls`](super::HostLimits::max_concurrent_calls). Clones share the permits.
///
/// The host acquires one for each call that needs it. A transport that queues calls by its own rules acquires the
/// permit here and passes it to the host ([`CallContext::call_permit`](super::CallContext::call_permit)), so that no
/// call waits twice.
#[derive(Clone, Debug)]
pub struct CallPermits {
    semaphore: Arc<Semaphore>,
    total: u32,
}

/// A permit to run one call. The permit is free again when its last clone is dropped, or while its call waits for a
/// person.
#[derive(Clone, Debug)]
#[must_use = "the permit is free again when this is dropped"]
pub struct CallPermit {
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl CallPermit {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { permit: Arc::new(Mutex::new(Some(permit))) }
    }

    /// Frees the permit although clones of it are left: a transport keeps one with the request until that is answered.
    pub(super) fn release(self) {
        drop(self.permit.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Puts another permit in the place of one that was released.
    pub(super) fn refill(&self, other: &Self) {
        // Two statements, so that the two locks are never held at once.
        let other = other.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = other;
    }
}

impl CallPermits {
    /// Makes the permits for `total` calls at once, or for as many as the semaphore can count.
    pub fn new(total: usize) -> Self {
        // A u32 because the semaphore counts in it what one acquires ([`Self::drained`]).
        let total = u32::try_from(total.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self { semaphore: Arc::new(Semaphore::new(total as usize)), total }
    }

    /// Returns how many calls may run at once.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Returns how many calls may begin now.
    pub fn available(&self) -> usize {
        self.semaphore.available_permits()
    }

    /// Returns a permit if one is free.
    pub fn try_acquire(&self) -> Option<CallPermit> {
        Arc::clone(&self.semaphore).try_acquire_owned().ok().map(CallPermit::new)
    }

    /// Waits for a permit, first come first served.
    ///
    /// # Errors
    /// None in practice: the semaphore is never closed.
    pub async fn acquire(&self) -> Result<CallPermit, NoPermit> {
        let permit = Arc::clone(&self.semaphore).acquire_owned().await;
        permit.map(CallPermit::new).map_err(|_| NoPermit::new("the server is ending"))
    }

    /// Waits until no call holds a permit.
    pub async fn drained(&self) {
        let _ = self.semaphore.acquire_many(self.total).await;
    }
}

/// A permit of any kind; dropping it frees it.
pub type Permit = Box<dyn Any + Send + Sync>;

/// The permits for programs that outlive the call which starts them, within the limit of its caller.
#[derive(Clone)]
pub struct ProcessPermits(Arc<TryAcquire>);

type TryAcquire = dyn Fn() -> Result<Permit, NoPermit> + Send + Sync;

/// Admits the calls that a tool makes in the name of its caller. These calls are admitted as the transport admits
/// separate calls: at the caller's rate, and with a permit for each.
#[derive(Clone)]
pub struct CallAdmission(Arc<AdmitCall>);

type AdmitCall =
    dyn Fn(ResourceClass) -> BoxFuture<'static, Result<InnerCallPermits, NoPermit>> + Send + Sync;

/// The permits of a call that a tool makes. Dropping the `InnerCallPermits` frees the permits.
#[must_use = "the permits are free again when this is dropped"]
pub struct InnerCallPermits {
    /// The permit from [`CallPermits`], if the call needs one.
    pub call_permit: Option<CallPermit>,
    /// The permits that the transport has besides.
    pub held: Permit,
}

/// Gives back the permits of a call that waits for something other than work. Cheap to clone.
#[derive(Clone)]
pub struct PermitRelease(Arc<dyn Fn() + Send + Sync>);

/// No permit is free. The message says why, and what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoPermit(String);

impl NoPermit {
    /// An error in the words of `message`, which the caller reads.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl PermitRelease {
    /// Gives permits back by `release`, which is called at most once for each call.
    pub fn new(release: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(release))
    }

    /// Gives the permits back.
    pub(super) fn release(&self) {
        (self.0)();
    }
}

impl fmt::Debug for PermitRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermitRelease")
    }
}

impl ProcessPermits {
    /// Permits that `try_acquire` gives out. `try_acquire` must not block.
    pub fn new(try_acquire: impl Fn() -> Result<Permit, NoPermit> + Send + Sync + 'static) -> Self {
        Self(Arc::new(try_acquire))
    }

    /// Returns a permit if one is free.
    ///
    /// # Errors
    /// None is free.
    pub fn try_acquire(&self) -> Result<Permit, NoPermit> {
        (self.0)()
    }
}

impl CallAdmission {
    /// Admits each call by `admit`, which waits until the call may run.
    pub fn new<F>(admit: impl Fn(ResourceClass) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<InnerCallPermits, NoPermit>> + Send + 'static,
    {
        Self(Arc::new(move |class| admit(class).boxed()))
    }

    /// Waits until a call may run.
    ///
    /// # Errors
    /// It may not run in the time that a call may wait.
    pub async fn admit(&self, class: ResourceClass) -> Result<InnerCallPermits, NoPermit> {
        (self.0)(class).await
    }
}

impl fmt::Debug for CallAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallAdmission")
    }
}

impl fmt::Debug for InnerCallPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InnerCallPermits").field("call_permit", &self.call_permit).finish_non_exhaustive()
    }
}

impl fmt::Debug for ProcessPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessPermits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_permit_is_free_again_once_its_last_clone_is_dropped() {
        let permits = CallPermits::new(1);
        let permit = permits.try_acquire().unwrap();
        let clone = permit.clone();
        drop(permit);
        assert!(permits.try_acquire().is_none() && permits.drained().now_or_never().is_none());
        drop(clone);
        assert!(permits.drained().now_or_never().is_some() && permits.try_acquire().is_some());
    }

    #[test]
    fn a_permit_that_is_released_is_free_although_a_clone_is_left() {
        let permits = CallPermits::new(1);
        let permit = permits.try_acquire().unwrap();
        let _clone = permit.clone();
        permit.release();
        assert!(permits.try_acquire().is_some());
    }
}
