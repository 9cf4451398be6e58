//! The processes that a finished run has left alive, and the caller to whom they belong.

use std::any::Any;
use std::fmt::{self, Debug};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::leftover_state::LeftoverState;
use crate::outcome::LeftoverProcess;
use crate::reaper::{self, MemberAction};
use crate::tree::{self, LeaderHold, ProcessLeader, ProcessStamp};

tokio::task_local! {
    /// The owner of the runs that the current task starts.
    static RUN_OWNER: Arc<dyn RunOwner>;
}

/// The caller for whom runs are started.
pub trait RunOwner: Debug + Send + Sync {
    /// Returns the name, by which runs of the same owner are told from those of others.
    fn name(&self) -> &str;

    /// Returns what runs of this owner are for, such as the name of a tool. [`Runner::usage`](crate::Runner::usage) counts
    /// runs of different purposes apart. By default they have none.
    fn purpose(&self) -> Option<&str> {
        None
    }

    /// Takes over what a run of this owner has left alive, or has it ended. It is called before the run is over, and must
    /// not block.
    fn take_leftovers(&self, tree: LeftoverTree) -> LeftoverDecision;
}

/// The decision of a [`RunOwner`] about the processes that a run has left alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftoverDecision {
    /// The processes may go on.
    Keep,
    /// The processes are killed. The output of the run names each of them.
    End {
        /// The reason, for the caller.
        reason: String,
    },
}

/// Runs `future`; every run that `future` starts belongs to `owner`, as do the processes that such a run leaves alive.
///
/// Runs that a spawned task starts do not belong to `owner`.
pub fn owned_by<F: Future>(owner: Arc<dyn RunOwner>, future: F) -> impl Future<Output = F::Output> {
    RUN_OWNER.scope(owner, future)
}

/// Ends the namespaces of the owner of this name, with every process in them and the files in their `/tmp` and `/dev/shm`,
/// which take memory. For an owner who starts no more programs.
///
/// A start of the owner that is under way goes on, and its program ends at once.
pub fn release_owner(name: &str) {
    tree::release_owner(name);
}

/// Returns the owner of the runs that the current task starts.
pub(crate) fn current_owner() -> Option<Arc<dyn RunOwner>> {
    RUN_OWNER.try_with(Arc::clone).ok()
}

/// The processes that a run has left alive after its program ended by itself, such as a server that was started with
/// `&` or `nohup`.
///
/// A [`Runner`](crate::Runner) keeps them in its [list](crate::Runner::leftover_trees) until they have ended, if it
/// [adopts orphans](crate::RunnerBuilder::adopt_orphans). The processes end with the runner at the latest.
#[derive(Clone, Debug)]
pub struct LeftoverTree(Arc<LeftoverState>);

/// The interval at which a tree that was asked to end is looked at.
const END_INTERVAL: Duration = Duration::from_millis(25);

impl LeftoverTree {
    pub(crate) fn new(
        leader: Arc<ProcessLeader>,
        label: String,
        started: Instant,
        processes: Vec<LeftoverProcess>,
    ) -> Self {
        Self(Arc::new(LeftoverState::new(leader, label, started, processes)))
    }

    /// Returns the number of the run, which no other run of this process has.
    pub fn run_number(&self) -> u64 {
        self.0.leader.run().number
    }

    /// Returns the name of the run's owner; see [`owned_by`].
    pub fn owner(&self) -> Option<&str> {
        self.0.leader.owner_name()
    }

    /// Returns the leader of the run, which has ended.
    pub(crate) fn leader(&self) -> &Arc<ProcessLeader> {
        &self.0.leader
    }

    /// Returns the label of the run's command.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Returns when the run began.
    pub fn started(&self) -> Instant {
        self.0.started
    }

    /// Returns the processes that were alive when they were last looked for, at most a second or two ago.
    pub fn processes(&self) -> Vec<LeftoverProcess> {
        if self.has_ended() {
            return Vec::new();
        }
        self.0.processes()
    }

    /// Returns true once all of them have ended.
    pub fn has_ended(&self) -> bool {
        self.0.leader.is_reaped()
    }

    /// Keeps `value`, such as a permit, until the processes have ended.
    pub fn hold(&self, value: impl Any + Send + Sync) {
        let leader = &self.0.leader;
        leader.hold(Box::new(HeldValue(Box::new(value))));
        // Nothing would drop it later.
        if leader.is_reaped() {
            leader.release();
        }
    }

    /// Asks the processes to end, kills them after `grace`, and waits for their end. Returns the pids of those that
    /// cannot be killed.
    pub async fn end(&self, grace: Duration) -> Vec<u32> {
        let leader = &self.0.leader;
        let kill_at = Instant::now() + grace;
        let mut action = MemberAction::TerminateEscaped;
        if !grace.is_zero() {
            leader.terminate_group();
        }
        while Instant::now() < kill_at && !self.has_ended() {
            match reaper::inspect(Arc::clone(leader), action, Vec::new()).await {
                Ok(found) if found.members.is_empty() && !found.undecided => break,
                Ok(_) => tokio::time::sleep(END_INTERVAL).await,
                Err(_) => break, // the reaper has panicked, and another takes its place
            }
            // `SIGTERM` is sent once. A second one makes some programs end without saving their work.
            action = MemberAction::None;
        }
        let alive = reaper::end(Arc::clone(leader)).await.map(|end| end.alive).unwrap_or_default();
        if alive.is_empty() {
            leader.reap();
        }
        alive
    }

    /// Kills the processes, without waiting for their end.
    pub fn kill(&self) {
        if !self.has_ended() {
            reaper::abandon(Arc::clone(&self.0.leader));
        }
    }
}

/// A value that a caller keeps with a tree.
struct HeldValue(#[allow(dead_code, reason = "it is there to be dropped")] Box<dyn Any + Send + Sync>);

impl LeaderHold for HeldValue {
    fn adopted(&self, _process: ProcessStamp) {}
}

impl Debug for HeldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldValue")
    }
}

/// The trees that the runs of one runner have left alive.
#[derive(Debug, Default)]
pub(crate) struct LeftoverRegistry {
    trees: Mutex<Vec<LeftoverTree>>,
    closed: AtomicBool,
}

impl LeftoverRegistry {
    fn lock(&self) -> MutexGuard<'_, Vec<LeftoverTree>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a tree, has the reaper watch it, and gives it to the owner of its run. It is killed if the owner wants that,
    /// and after [`close`](Self::close).
    pub(crate) fn add(&self, tree: &LeftoverTree, owner: Option<&dyn RunOwner>) -> LeftoverDecision {
        let mut trees = self.lock();
        // The flag is read under the lock that `close` holds, so that no tree is added after the last look.
        if self.closed.load(Ordering::Acquire) {
            tree.kill();
            return LeftoverDecision::Keep;
        }
        trees.retain(|tree| !tree.has_ended());
        reaper::watch(Arc::clone(&tree.0));
        trees.push(tree.clone());
        // The owner is asked without the lock, because it may look at the list of trees itself.
        drop(trees);
        let decision = owner.map_or(LeftoverDecision::Keep, |owner| owner.take_leftovers(tree.clone()));
        if matches!(decision, LeftoverDecision::End { .. }) {
            tree.kill();
        }
        decision
    }

    /// Returns the trees that have not ended.
    pub(crate) fn alive(&self) -> Vec<LeftoverTree> {
        let mut trees = self.lock();
        trees.retain(|tree| !tree.has_ended());
        trees.clone()
    }

    /// Refuses further trees, and returns those there are.
    pub(crate) fn close(&self) -> Vec<LeftoverTree> {
        let mut trees = self.lock();
        self.closed.store(true, Ordering::Release);
        std::mem::take(&mut *trees)
    }
}
