//! The orphans of runs, which this process adopts as a child subreaper (prctl(2), `PR_SET_CHILD_SUBREAPER`).
//!
//! Every process that a run starts stays a descendant of this process then, whatever session or environment it gives
//! itself: when its parent ends, it becomes a child of this process. A child that is neither a run's leader nor a
//! helper is therefore an orphan of some run.
//!
//! In a PID namespace of a confinement, an orphan becomes a child of the first process there, which is a child of this
//! process and has no other children than such orphans.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};
use rustix::thread::gettid;

use super::leader::ProcessLeader;
use super::linux::start_time;

static ENABLED: AtomicBool = AtomicBool::new(false);
static CHILDREN: Mutex<KnownChildren> = Mutex::new(KnownChildren {
    next_start: 1,
    starts: BTreeSet::new(),
    leaders: BTreeMap::new(),
    namespace_inits: BTreeSet::new(),
});

/// The children that this process has started itself.
struct KnownChildren {
    next_start: u64,
    /// The starts in progress. Their processes may exist already.
    starts: BTreeSet<u64>,
    /// The processes that were started and not reaped, by pid.
    leaders: BTreeMap<i32, Weak<ProcessLeader>>,
    /// The first processes of PID namespaces.
    namespace_inits: BTreeSet<i32>,
}

impl KnownChildren {
    fn contains(&self, pid: i32) -> bool {
        self.leaders.contains_key(&pid) || self.namespace_inits.contains(&pid)
    }
}

/// The answer to the question whose an unknown child is.
pub(crate) enum Attribution {
    /// It may be a program that is just being started. The question must be asked again.
    Undecided,
    /// It was started by this process.
    OwnChild,
    /// It is an orphan of this run, or of another run of the same owner.
    Run(Arc<ProcessLeader>),
    /// It is an orphan, and runs of several owners may have started it, or none that is still known.
    Unknown,
}

fn children() -> MutexGuard<'static, KnownChildren> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// Makes this process adopt the orphans of everything that it starts. It cannot be undone.
///
/// # Errors
/// If the system has no child subreapers.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    if !ENABLED.load(Ordering::Acquire) {
        set_child_subreaper(Some(getpid()))?;
        ENABLED.store(true, Ordering::Release);
    }
    Ok(())
}

/// Returns true if this process adopts orphans.
pub(crate) fn adopts_orphans() -> bool {
    ENABLED.load(Ordering::Acquire)
}

/// A start in progress. Until it is dropped, an unknown child may be its process.
pub(super) struct StartTicket(Option<u64>);

impl StartTicket {
    pub(super) fn new() -> Self {
        if !adopts_orphans() {
            return Self(None);
        }
        let mut children = children();
        let number = children.next_start;
        children.next_start += 1;
        children.starts.insert(number);
        Self(Some(number))
    }

    /// Records the process that was started.
    pub(super) fn started(self, leader: &Arc<ProcessLeader>) {
        if self.0.is_some() {
            children().leaders.insert(raw(leader.pid()), Arc::downgrade(leader));
        }
    }
}

impl Drop for StartTicket {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            children().starts.remove(&number);
        }
    }
}

/// The first process of a PID namespace, known as a child of this process that adopts orphans, until it is dropped.
pub(super) struct NamespaceInit(i32);

impl NamespaceInit {
    /// Records the process. A [`StartTicket`] must be held since before it was made.
    pub(super) fn new(pid: i32) -> Self {
        children().namespace_inits.insert(pid);
        Self(pid)
    }
}

impl Drop for NamespaceInit {
    fn drop(&mut self) {
        children().namespace_inits.remove(&self.0);
    }
}

/// Returns the processes that adopt the orphans of runs, this process first; none if this process does not.
pub(crate) fn adopters() -> Vec<Pid> {
    if !adopts_orphans() {
        return Vec::new();
    }
    let children = children();
    let inits = children.namespace_inits.iter().copied().filter_map(Pid::from_raw);
    std::iter::once(getpid()).chain(inits).collect()
}

/// Forgets a leader that was reaped.
pub(super) fn forget(leader: &ProcessLeader) {
    if !adopts_orphans() {
        return;
    }
    let mut children = children();
    // The pid may be that of another leader by now.
    let is_same = |known: &Weak<ProcessLeader>| std::ptr::eq(known.as_ptr(), leader);
    if children.leaders.get(&raw(leader.pid())).is_some_and(is_same) {
        children.leaders.remove(&raw(leader.pid()));
    }
}

/// Returns a number that is above those of all starts so far. An unknown child that is seen now can only belong to a
/// start below it.
pub(crate) fn start_bound() -> u64 {
    children().next_start
}

/// Finds the run whose orphan the child `pid` is. `first_seen` is the [`start_bound`] when it was first seen.
///
/// A run can be the one only if it had begun by the time the orphan was started, and is not over. Among several runs of
/// one owner, the latest is taken.
pub(crate) fn attribute(pid: Pid, start_ticks: u64, first_seen: u64) -> Attribution {
    {
        let children = children();
        if children.contains(raw(pid)) {
            return Attribution::OwnChild;
        }
        if children.starts.first().is_some_and(|start| *start < first_seen) {
            return Attribution::Undecided;
        }
    }
    let mut candidates: Vec<(u64, Arc<ProcessLeader>)> = run_leaders()
        .into_iter()
        .filter_map(|leader| Some((start_time(leader.session()?)?, leader)))
        .filter(|(started, _)| *started <= start_ticks)
        .collect();
    candidates.sort_by_key(|(started, leader)| (*started, leader.run()));
    let Some((_, latest)) = candidates.pop() else { return Attribution::Unknown };
    let name = |leader: &ProcessLeader| leader.owner().map(|owner| owner.name().to_owned());
    match candidates.iter().all(|(_, other)| name(other) == name(&latest)) {
        true => Attribution::Run(latest),
        false => Attribution::Unknown,
    }
}

/// Returns the leaders of all runs that are not over.
pub(crate) fn run_leaders() -> Vec<Arc<ProcessLeader>> {
    children().leaders.values().filter_map(Weak::upgrade).filter(|leader| leader.is_run()).collect()
}

/// Takes the status of an orphan that has ended, unless it may be a child that this process has started itself.
pub(crate) fn reap_orphan(pid: Pid) {
    let children = children();
    if children.starts.is_empty() && !children.contains(raw(pid)) {
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// Returns true if this thread has children, and true where that cannot be found out.
pub(crate) fn thread_has_children() -> bool {
    // `__WNOTHREAD` (wait(2)): without the children of the other threads of this process.
    let own = WaitIdOptions::from_bits_retain(libc::__WNOTHREAD.cast_unsigned());
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT | own;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Returns false if this process has certainly adopted nobody.
// The kernel gives an orphan to the first thread of the process that adopts it, and programs are started by others. So
// the main thread has a child only if it is an orphan or if the thread that started it has ended. Who became a child of a
// namespace's first process is not known without a look.
pub(crate) fn may_have_orphans() -> bool {
    adopts_orphans()
        && (gettid() != getpid() || thread_has_children() || !children().namespace_inits.is_empty())
}
