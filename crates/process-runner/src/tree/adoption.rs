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
use std::time::{Duration, Instant};

use rustix::fs::stat;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};
use rustix::thread::gettid;

use super::leader::ProcessLeader;
use super::leader_hold::ProcessStamp;
use super::linux::start_time;

static ENABLED: AtomicBool = AtomicBool::new(false);
static CHILDREN: Mutex<KnownChildren> = Mutex::new(KnownChildren {
    next_start: 1,
    starts: BTreeMap::new(),
    inherited: BTreeSet::new(),
    leaders: BTreeMap::new(),
    namespace_inits: BTreeSet::new(),
    first_run: None,
});

/// The children that this process has started itself.
struct KnownChildren {
    next_start: u64,
    /// The starts in progress, and when each began. Their processes may exist already.
    starts: BTreeMap<u64, Instant>,
    /// The processes that were children of this one before it started any: a shell that becomes another program by
    /// `exec` leaves it those that it had started.
    inherited: BTreeSet<ProcessStamp>,
    /// The processes that were started and not reaped, by pid.
    leaders: BTreeMap<i32, Weak<ProcessLeader>>,
    /// The first processes of PID namespaces.
    namespace_inits: BTreeSet<i32>,
    /// The time when the first run of this process started. What is older is no orphan of a run.
    first_run: Option<u64>,
}

impl KnownChildren {
    fn contains(&self, pid: i32) -> bool {
        self.leaders.contains_key(&pid) || self.namespace_inits.contains(&pid)
    }

    /// Returns true if a start with a number below `bound` may have made a process that is not recorded.
    ///
    /// A start that takes long hangs before the program is in place, so its process still runs this program's file.
    /// Without this, one start that hangs for ever would leave every later orphan undecided. A start without such a process
    /// waits for a processor, and its program may have run and ended.
    fn has_unrecorded_start(&self, bound: u64) -> bool {
        let ages: Vec<_> = self.starts.range(..bound).map(|(_, began)| began.elapsed()).collect();
        let is_recent = ages.iter().any(|age| *age < LONGEST_PROMPT_START);
        is_recent || !ages.is_empty() && ages.len() > self.hanging_starts()
    }

    fn has_starts(&self, bound: u64) -> bool {
        self.starts.range(..bound).next().is_some()
    }

    /// Returns the number of children that do not run their program yet.
    fn hanging_starts(&self) -> usize {
        let unknown = |child: &ProcessStamp| !self.contains(child.pid) && !self.inherited.contains(child);
        let pids =
            current_children().into_iter().filter(unknown).filter_map(|child| Pid::from_raw(child.pid));
        pids.filter(|pid| runs_this_program(*pid)).count()
    }
}

/// The time within which a start that does not hang is recorded once its program is in place.
const LONGEST_PROMPT_START: Duration = Duration::from_secs(5);

/// Returns true if `pid` runs the file of this program.
fn runs_this_program(pid: Pid) -> bool {
    let file =
        |process: &str| stat(format!("/proc/{process}/exe")).ok().map(|file| (file.st_dev, file.st_ino));
    let own = file("self");
    own.is_some() && file(&raw(pid).to_string()) == own
}

/// Returns the children of this process, of all its threads.
#[allow(clippy::disallowed_methods, reason = "files of /proc about this process")]
pub(super) fn current_children() -> BTreeSet<ProcessStamp> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids = lists.flat_map(|list| {
        list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
    });
    pids.filter_map(|pid| Some(ProcessStamp { pid, start_ticks: start_time(Pid::from_raw(pid)?)? })).collect()
}

/// The answer to the question whose an unknown child is.
pub(crate) enum Attribution {
    /// It may be a program that is just being started. The question must be asked again.
    Undecided,
    /// It was started by this process.
    OwnChild,
    /// It is an orphan of this run, or of another run of the same owner.
    Run(Arc<ProcessLeader>),
    /// It is an orphan, and several runs that start daemons may have started it: it is no part of any run.
    Daemon,
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
        children().inherited = current_children();
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
        children.starts.insert(number, Instant::now());
        Self(Some(number))
    }

    /// Records the process that was started.
    pub(super) fn started(self, leader: &Arc<ProcessLeader>) {
        if self.0.is_some() {
            leader.on_reaped(forget);
            let mut children = children();
            children.leaders.insert(raw(leader.pid()), Arc::downgrade(leader));
            if children.first_run.is_none() && leader.is_run() {
                children.first_run = start_time(leader.pid());
            }
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
fn forget(leader: &ProcessLeader) {
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

/// Returns when the first run of this process started, if this process adopts orphans: one that is younger may be of a
/// run that is over.
pub(crate) fn first_run() -> Option<u64> {
    children().first_run
}

/// Returns a number that is above those of all starts so far. An unknown child that is seen now can only belong to a
/// start below it.
pub(crate) fn start_bound() -> u64 {
    children().next_start
}

/// Finds the run whose orphan the child `pid` of `parent` is. `first_seen` is the [`start_bound`] when it was first seen.
///
/// A run can be the one only if it is in the PID namespace whose orphans `parent` adopts, had begun by the time the orphan
/// was started, and is not over. Among several runs of one owner, the latest is taken.
pub(crate) fn attribute(pid: Pid, parent: Option<Pid>, start_ticks: u64, first_seen: u64) -> Attribution {
    {
        let children = children();
        let stamp = ProcessStamp { pid: raw(pid), start_ticks };
        if children.contains(stamp.pid) || children.inherited.contains(&stamp) {
            return Attribution::OwnChild;
        }
        if children.has_unrecorded_start(first_seen)
            || children.has_starts(first_seen) && runs_this_program(pid)
        {
            return Attribution::Undecided;
        }
        // A leader is forgotten only after it was reaped, so one that is there and unknown is none.
        if start_time(pid) != Some(start_ticks) {
            return Attribution::OwnChild;
        }
    }
    let mut candidates: Vec<(u64, Arc<ProcessLeader>)> = run_leaders()
        .into_iter()
        .filter(|leader| is_adopted_by(leader, parent))
        .filter_map(|leader| Some((start_time(leader.session()?)?, leader)))
        .filter(|(started, _)| *started <= start_ticks)
        .collect();
    // Of several runs that start daemons, none may end with another's. What only one run can have started is of that run, so
    // that it ends with a run that is killed in the middle.
    let starting_daemons = candidates.iter().filter(|(_, leader)| leader.starts_daemons()).count();
    if starting_daemons == candidates.len() && starting_daemons > 1 {
        return Attribution::Daemon;
    }
    if starting_daemons < candidates.len() {
        candidates.retain(|(_, leader)| !leader.starts_daemons());
    }
    candidates.sort_by_key(|(started, leader)| (*started, leader.run()));
    let owner = |leader: &ProcessLeader| leader.owner_name().map(str::to_owned);
    // A run without an owner is the server's own, and no other caller's.
    let owners: BTreeSet<_> = candidates.iter().filter_map(|(_, leader)| owner(leader)).collect();
    if owners.len() > 1 {
        return Attribution::Unknown;
    }
    let is_candidate = |leader: &ProcessLeader| owners.is_empty() || owner(leader).is_some();
    let mut latest_first = candidates.into_iter().rev().map(|(_, leader)| leader);
    latest_first.find(|leader| is_candidate(leader)).map_or(Attribution::Unknown, Attribution::Run)
}

/// Returns true if `adopter` is the process to which an orphan of the leader's run comes.
pub(crate) fn is_adopted_by(leader: &ProcessLeader, adopter: Option<Pid>) -> bool {
    adopter == Some(leader.namespace_init().unwrap_or_else(getpid))
}

/// Returns the leaders of all runs that are not over.
pub(crate) fn run_leaders() -> Vec<Arc<ProcessLeader>> {
    children().leaders.values().filter_map(Weak::upgrade).filter(|leader| leader.is_run()).collect()
}

/// Takes the status of an orphan that has ended, unless it may be a child that this process has started itself.
pub(crate) fn reap_orphan(pid: Pid) {
    let children = children();
    if !children.has_unrecorded_start(u64::MAX) && !children.contains(raw(pid)) {
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// Takes the status of every orphan that has ended. A program that forks all the time leaves a thousand in a second, and
/// they would fill the table of processes of the whole system before a search through all processes finds them.
#[allow(clippy::disallowed_methods, reason = "a file of /proc about this process")]
pub(crate) fn reap_orphans() {
    if !ENABLED.load(Ordering::Relaxed) {
        return;
    }
    // The kernel gives orphans to the first thread.
    let own = getpid().as_raw_nonzero();
    let list = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).unwrap_or_default();
    for pid in list.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)) {
        reap_orphan(pid);
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
