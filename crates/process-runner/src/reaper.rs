//! The thread that ends process trees.
//!
//! It is a plain thread, so it goes on when a future or a runtime is dropped, and works where there is no runtime. It
//! is one thread, so that ending fifty runs at once costs one pass over `/proc` and not fifty. A run asks it to inspect
//! or to end its tree and waits for the answer. A handle that is dropped leaves its run to it and does not wait.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::sync::oneshot;

use crate::leftover_state::LeftoverState;
use crate::outcome::LeftoverProcess;
use crate::tree::{
    self, Attribution, FrozenNamespace, ProcessLeader, ProcessScan, ProcessStamp, RunId, ScanQuery,
    TreeMember,
};

/// The time after which what still lives in a tree is called unkillable.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// The passes in a row that must find nothing. One pass can miss a process that is forked meanwhile.
const EMPTY_PASSES_NEEDED: u8 = 2;

/// The same after a process was found that forks all the time, where nothing can be made to stand still.
const EMPTY_PASSES_OF_FORKING: u8 = 10;
/// The passes with the same processes alive after which nothing forks any more.
const MAX_PASSES_WITHOUT_FORK: u32 = 50;
/// The times of further passes after such a process was killed. One that was missed is then an orphan of no run.
const FOLLOW_UPS: [Duration; 5] = [
    Duration::from_millis(5),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
];

/// The time between two looks at processes that a finished run has left alive.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The pause between two passes while somebody waits for the end of a tree, and after that.
const MAX_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE_UNKILLABLE: Duration = Duration::from_millis(250);

/// The result of ending a tree.
#[derive(Debug, Default)]
pub(crate) struct TreeEndOutcome {
    /// The processes that outlived the leader or left its group, and were killed.
    pub(crate) killed: Vec<LeftoverProcess>,
    /// The processes that could not be killed. The reaper goes on trying.
    pub(crate) alive: Vec<u32>,
}

/// The result of [`inspect`].
#[derive(Debug, Default)]
pub(crate) struct TreeInspection {
    pub(crate) members: Vec<LeftoverProcess>,
    /// True if a process that holds a pipe runs, or waits for a processor or a disk: that it prints nothing does not
    /// mean that it has nothing to print.
    pub(crate) busy: bool,
    /// True if a process was in the middle of `execve(2)` and may be a member.
    pub(crate) undecided: bool,
}

/// The action of [`inspect`] on the members that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberAction {
    None,
    /// Reads the members' command lines.
    Survey,
    /// Sends `SIGTERM` to the members outside the leader's group, which the signal to the group did not reach.
    TerminateEscaped,
    /// Kills the members that hold one of the run's pipes, if none of them is busy.
    KillIdleHolders,
    /// Kills the members that hold one of the run's pipes.
    KillHolders,
}

/// A request to the thread.
enum ReaperJob {
    End {
        leader: Arc<ProcessLeader>,
        reply: Option<oneshot::Sender<TreeEndOutcome>>,
    },
    Inspect {
        leader: Arc<ProcessLeader>,
        action: MemberAction,
        pipes: Vec<u64>,
        reply: oneshot::Sender<TreeInspection>,
    },
    Watch(Arc<LeftoverState>),
    /// Asks for a pass that kills the orphans of runs that are over. The answer is true if another pass is needed.
    Sweep(oneshot::Sender<bool>),
}

/// Starts the thread if it does not run yet. It must be called before a process is started.
///
/// # Errors
/// If no thread can be made.
pub(crate) fn ensure_running() -> io::Result<()> {
    let mut sender = REAPER_SENDER.lock().unwrap_or_else(PoisonError::into_inner);
    // A thread that has panicked, which none should, is replaced. Its jobs are lost, and later ones are not.
    if sender.as_ref().is_none_or(|(_, thread)| thread.is_finished()) {
        let (jobs, incoming) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("process-reaper".into())
            .spawn(move || Reaper::default().run(&incoming))?;
        *sender = Some((jobs, thread));
    }
    Ok(())
}

/// Returns true if the thread was ever started, as it is before the first process.
pub(crate) fn was_started() -> bool {
    REAPER_SENDER.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

static REAPER_SENDER: Mutex<Option<(mpsc::Sender<ReaperJob>, std::thread::JoinHandle<()>)>> =
    Mutex::new(None);

fn submit(job: ReaperJob) {
    let sender = REAPER_SENDER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((sender, _)) = &*sender {
        // It fails only if the thread has panicked. The next run starts another.
        let _ = sender.send(job);
    }
}

/// Kills everything that belongs to a run and reaps its leader. It returns at once. What the leader
/// [holds](ProcessLeader::hold) is dropped when the processes have ended, or cannot be killed.
pub(crate) fn abandon(leader: Arc<ProcessLeader>) {
    // From here, so that most of the tree is dead before the thread wakes up.
    leader.signal_group(Signal::KILL);
    submit(ReaperJob::End { leader, reply: None });
}

/// Kills everything that belongs to a run. The caller reaps the leader when the answer comes; if it has dropped the
/// receiver by then, the thread does.
pub(crate) fn end(leader: Arc<ProcessLeader>) -> oneshot::Receiver<TreeEndOutcome> {
    let (reply, answer) = oneshot::channel();
    submit(ReaperJob::End { leader, reply: Some(reply) });
    answer
}

/// Finds the members of a run beside its leader in one pass, and does `action` with them. `pipes` are the
/// [ids](tree::pipe_id) of the run's open pipes.
pub(crate) fn inspect(
    leader: Arc<ProcessLeader>,
    action: MemberAction,
    pipes: Vec<u64>,
) -> oneshot::Receiver<TreeInspection> {
    let (reply, answer) = oneshot::channel();
    submit(ReaperJob::Inspect { leader, action, pipes, reply });
    answer
}

/// Watches the processes that a finished run has left alive, and reaps its leader when they have ended.
pub(crate) fn watch(tree: Arc<LeftoverState>) {
    submit(ReaperJob::Watch(tree));
}

/// Looks for orphans that show no run, unless all processes were looked at a moment ago.
pub(crate) fn look_for_orphans(leader: &Arc<ProcessLeader>) {
    let last = LAST_PASS.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_some_and(|last| last.elapsed() < MIN_LOOK_INTERVAL) {
        return;
    }
    drop(last);
    // The look is what counts, and not its answer.
    drop(inspect(Arc::clone(leader), MemberAction::None, Vec::new()));
}

/// The time of the last pass.
static LAST_PASS: Mutex<Option<Instant>> = Mutex::new(None);
/// The shortest time between a pass and a look that many live runs ask for.
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Kills the adopted orphans that belong to no run any more. The answer is true if another pass is needed.
pub(crate) fn sweep() -> oneshot::Receiver<bool> {
    let (reply, answer) = oneshot::channel();
    submit(ReaperJob::Sweep(reply));
    answer
}

/// The state of the thread: the trees that must end, and the inspections of the next pass.
#[derive(Default)]
struct Reaper {
    endings: Vec<TreeEnding>,
    inspections: Vec<PendingInspection>,
    watched: Vec<WatchedTree>,
    sweeps: Vec<oneshot::Sender<bool>>,
    orphans: KnownOrphans,
    /// The times of further passes, after something was killed that may have escaped by forking.
    follow_ups: Vec<Instant>,
    /// The first processes of PID namespaces in which orphans of no run were killed: the next pass stops what is there.
    suspect_namespaces: HashSet<Pid>,
}

/// The orphans that only the adoption by this process shows.
#[derive(Default)]
struct KnownOrphans {
    /// The runs of those whose run was found.
    runs: HashMap<ProcessStamp, RunId>,
    /// Those that are no part of a run, also when the run that started them is over.
    daemons: HashSet<ProcessStamp>,
    /// The [`start_bound`](tree::start_bound) when each unknown child was first seen.
    first_seen: HashMap<ProcessStamp, u64>,
}

/// The processes that a finished run has left alive.
struct WatchedTree {
    tree: Arc<LeftoverState>,
    next_pass: Instant,
    empty_passes: u8,
}

/// An inspection that waits for the next pass.
struct PendingInspection {
    leader: Arc<ProcessLeader>,
    action: MemberAction,
    pipes: Vec<u64>,
    reply: oneshot::Sender<TreeInspection>,
    inspection: TreeInspection,
    /// The indices of the pass's members that hold a pipe.
    holders: Vec<usize>,
}

/// A tree that must end.
struct TreeEnding {
    leader: Arc<ProcessLeader>,
    reply: Option<oneshot::Sender<TreeEndOutcome>>,
    started_at: Instant,
    next_pass: Instant,
    /// The wait before the pass after the next.
    pause: Duration,
    /// The passes so far, and those in a row that found nothing.
    passes: u32,
    empty_passes: u8,
    killed: Vec<LeftoverProcess>,
    /// The processes that the last pass found.
    alive: Vec<u32>,
    /// Those that any pass found.
    seen: HashSet<ProcessStamp>,
    /// True once two passes have found processes that had not been there when the others were killed: signals to one process
    /// at a time lose the race against one that forks all the time.
    forks: bool,
    /// The number of the last pass that found such a process.
    last_new: u32,
    /// True if the processes of its PID namespace stand still in this pass.
    frozen: bool,
}

impl Reaper {
    fn run(mut self, incoming: &mpsc::Receiver<ReaperJob>) {
        loop {
            let endings = self.endings.iter().map(|ending| ending.next_pass);
            let watched = self.watched.iter().map(|watched| watched.next_pass);
            let first = match endings.chain(watched).chain(self.follow_ups.iter().copied()).min() {
                None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => incoming.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match first {
                Ok(job) => self.accept(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // Everything that has come meanwhile shares the pass.
            while let Ok(job) = incoming.try_recv() {
                self.accept(job);
            }
            self.pass();
        }
    }

    fn accept(&mut self, job: ReaperJob) {
        match job {
            ReaperJob::End { leader, reply } => {
                let now = Instant::now();
                self.endings.push(TreeEnding {
                    leader,
                    reply,
                    started_at: now,
                    next_pass: now,
                    pause: Duration::from_millis(1),
                    passes: 0,
                    empty_passes: 0,
                    killed: Vec::new(),
                    alive: Vec::new(),
                    seen: HashSet::new(),
                    forks: false,
                    last_new: 0,
                    frozen: false,
                });
            }
            ReaperJob::Inspect { leader, action, pipes, reply } => {
                self.inspections.push(PendingInspection {
                    leader,
                    action,
                    pipes,
                    reply,
                    inspection: TreeInspection::default(),
                    holders: Vec::new(),
                });
            }
            ReaperJob::Watch(tree) => {
                let next_pass = Instant::now() + WATCH_INTERVAL;
                self.watched.push(WatchedTree { tree, next_pass, empty_passes: 0 });
            }
            ReaperJob::Sweep(reply) => self.sweeps.push(reply),
        }
    }

    /// Searches all processes once, for all trees.
    fn pass(&mut self) {
        let now = Instant::now();
        *LAST_PASS.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        let Self { endings, inspections, watched, sweeps, orphans, follow_ups, suspect_namespaces } = self;
        follow_ups.retain(|at| *at > now);
        let mut frozen: HashMap<Pid, FrozenNamespace> = HashMap::new();
        for ending in endings.iter_mut().filter(|ending| ending.next_pass <= now) {
            let namespace = ending.leader.namespace_init().filter(|_| ending.forks);
            ending.frozen = namespace.is_some_and(|init| freeze(&mut frozen, init));
        }
        for init in suspect_namespaces.drain() {
            freeze(&mut frozen, init);
        }
        watched.retain(|watched| !watched.tree.leader.is_reaped());
        for ending in endings.iter_mut().filter(|ending| ending.next_pass <= now) {
            ending.alive.clear();
        }
        // A run may be in several lists, and more than once. Everyone who asked about a run gets its members.
        let mut leaders: Vec<Arc<ProcessLeader>> = endings
            .iter()
            .map(|ending| &ending.leader)
            .chain(inspections.iter().map(|pending| &pending.leader))
            .chain(watched.iter().map(|watched| &watched.tree.leader))
            .cloned()
            .collect();
        // An orphan that shows another run must not be taken for one that shows none.
        leaders.extend(tree::run_leaders());
        // First: what has ended makes the search longer, and each search lets more of it come.
        tree::reap_orphans();
        let mut scan = orphans.scan_for(&leaders);
        let unknown = orphans.attribute(&leaders, &mut scan, suspect_namespaces);
        let ProcessScan { members, undecided, .. } = scan;
        // The whole group at once and before single members, so that no shell in it sees its children die and goes on
        // with its script. After the search, which must see who was there.
        for ending in endings.iter().filter(|ending| ending.next_pass <= now) {
            ending.leader.signal_group(Signal::KILL);
        }
        for (index, member) in members.iter().enumerate() {
            let Some(owner) = leaders.get(member.owner) else { continue };
            for ending in endings.iter_mut().filter(|ending| Arc::ptr_eq(&ending.leader, owner)) {
                ending.kill_member(member, now);
            }
            for pending in inspections.iter_mut().filter(|pending| Arc::ptr_eq(&pending.leader, owner)) {
                pending.add_member(member, index);
            }
        }
        for mut pending in inspections.drain(..) {
            if pending.action == MemberAction::Survey {
                pending.inspection.members.extend(unknown.iter().cloned());
            }
            pending.answer(&members, undecided);
        }
        for reply in sweeps.drain(..) {
            let _ = reply.send(undecided || !unknown.is_empty());
        }
        for watched in watched.iter_mut().filter(|watched| watched.next_pass <= now) {
            watched.look(&leaders, &members, undecided, now);
        }
        // After the last kill: what goes on must not fork before everything that is to end is dead.
        drop(frozen);
        if !suspect_namespaces.is_empty() || endings.iter().any(|ending| ending.forks) {
            *follow_ups = FOLLOW_UPS.iter().map(|after| now + *after).collect();
        }
        endings.retain_mut(|ending| ending.next_pass > now || ending.needs_another_pass(now, undecided));
    }
}

/// Stops what is in a PID namespace, unless it stands still already. Returns true if it does then.
fn freeze(frozen: &mut HashMap<Pid, FrozenNamespace>, init: Pid) -> bool {
    if !frozen.contains_key(&init)
        && let Some(namespace) = tree::freeze_namespace(init)
    {
        frozen.insert(init, namespace);
    }
    frozen.contains_key(&init)
}

impl KnownOrphans {
    /// Searches all processes once for the members of all runs. A member's owner is the index of its leader.
    fn scan_for(&self, leaders: &[Arc<ProcessLeader>]) -> ProcessScan {
        // Reversed, so that of equal leaders the first index is the one that stays in the map.
        let indexed = || leaders.iter().enumerate().rev();
        let sessions: HashMap<_, _> =
            indexed().filter_map(|(index, leader)| Some((leader.session()?, index))).collect();
        let markers: HashMap<_, _> =
            indexed().filter_map(|(index, leader)| Some((leader.marker()?.token, index))).collect();
        let runs: HashMap<_, _> = indexed().map(|(index, leader)| (leader.run(), index)).collect();
        // A process that is older than all leaders belongs to none of them, and its environment need not be read. One that
        // was adopted may be the orphan of a run that is over.
        let start = |leader: &Arc<ProcessLeader>| tree::start_time(leader.session()?);
        let starts = leaders.iter().map(|leader| start(leader).unwrap_or(0));
        let started_since = starts.chain(tree::first_run()).min().unwrap_or(0);
        let by_adoption = |pid: Pid, start_ticks| {
            let stamp = ProcessStamp { pid: pid.as_raw_nonzero().get(), start_ticks };
            self.runs.get(&stamp).and_then(|run| runs.get(run).copied())
        };
        let adopters = tree::adopters();
        // A process that another than this run's orphans come to is none of them, whatever its environment says.
        let may_show = |index: usize, parent| {
            adopters.is_empty()
                || leaders.get(index).is_some_and(|leader| tree::is_adopted_by(leader, parent))
        };
        let query = ScanQuery {
            started_since,
            by_session: &|session| sessions.get(&session).copied(),
            by_adoption: &by_adoption,
            adopters: &adopters,
            by_marker: &|token, parent| markers.get(&token).copied().filter(|index| may_show(*index, parent)),
        };
        tree::scan(&query)
    }

    /// Finds the runs of the orphans that show none, and adds them to the members. Kills those whose run cannot be
    /// found, which would otherwise escape every limit of their caller, and returns them.
    fn attribute(
        &mut self,
        leaders: &[Arc<ProcessLeader>],
        scan: &mut ProcessScan,
        suspect_namespaces: &mut HashSet<Pid>,
    ) -> Vec<LeftoverProcess> {
        for pid in scan.zombies.drain(..) {
            tree::reap_orphan(pid);
        }
        let known: HashSet<_> = leaders.iter().map(|leader| leader.run()).collect();
        self.runs.retain(|_, run| known.contains(run));
        let seen: HashSet<_> = scan.orphans.iter().map(TreeMember::stamp).collect();
        self.first_seen.retain(|stamp, _| seen.contains(stamp));
        self.daemons.retain(|stamp| seen.contains(stamp));
        // An orphan that shows its run now may clear its environment in a moment.
        let adopters = tree::adopters();
        let is_adopted =
            |member: &&TreeMember| member.parent.is_some_and(|parent| adopters.contains(&parent));
        for member in scan.members.iter().filter(is_adopted) {
            let Some(leader) = leaders.get(member.owner) else { continue };
            if self.runs.insert(member.stamp(), leader.run()).is_none() {
                leader.report_adopted(member.stamp());
            }
        }
        let mut killed = Vec::new();
        for mut orphan in scan.orphans.drain(..) {
            let stamp = orphan.stamp();
            if self.daemons.contains(&stamp) {
                continue;
            }
            let first_seen = *self.first_seen.entry(stamp).or_insert_with(tree::start_bound);
            match tree::attribute(orphan.pid, orphan.parent, orphan.start_ticks, first_seen) {
                Attribution::OwnChild => continue,
                Attribution::Daemon => {
                    self.daemons.insert(stamp);
                    continue;
                }
                Attribution::Undecided => {}
                Attribution::Run(leader) => {
                    self.runs.insert(stamp, leader.run());
                    leader.report_adopted(stamp);
                    if let Some(owner) = leaders.iter().position(|known| Arc::ptr_eq(known, &leader)) {
                        orphan.owner = owner;
                        scan.members.push(orphan);
                    }
                }
                Attribution::Unknown => {
                    // Without its command line, which may be another caller's.
                    let killed_now = orphan.signal(Signal::KILL);
                    suspect_namespaces.extend(orphan.parent);
                    killed.push(leftover(&orphan, None, killed_now));
                }
            }
            // Only the next pass finds what descends from it.
            scan.undecided = true;
        }
        killed
    }
}

fn leftover(member: &TreeMember, command_line: Option<String>, killed: bool) -> LeftoverProcess {
    let (pid, name) = (member.pid_number(), member.name.clone());
    LeftoverProcess { pid, name, command_line, held_pipe: false, killed, refused: None }
}

impl WatchedTree {
    /// Records who is alive. Reaps the leader once nobody is.
    fn look(
        &mut self,
        leaders: &[Arc<ProcessLeader>],
        members: &[TreeMember],
        undecided: bool,
        now: Instant,
    ) {
        let is_own = |member: &&TreeMember| {
            leaders.get(member.owner).is_some_and(|leader| Arc::ptr_eq(leader, &self.tree.leader))
        };
        let alive: Vec<_> = members
            .iter()
            .filter(is_own)
            .map(|member| leftover(member, tree::command_line(member.pid), false))
            .collect();
        self.next_pass = now + WATCH_INTERVAL;
        if !alive.is_empty() || undecided {
            self.empty_passes = 0;
            if !alive.is_empty() {
                self.tree.set_processes(alive);
            }
            return;
        }
        self.empty_passes += 1;
        if self.empty_passes >= EMPTY_PASSES_NEEDED {
            self.tree.leader.reap();
        } else {
            self.next_pass = now;
        }
    }
}

impl PendingInspection {
    /// Adds a member, whose index in this pass is `index`.
    fn add_member(&mut self, member: &TreeMember, index: usize) {
        if self.action == MemberAction::TerminateEscaped && member.group != Some(self.leader.pid()) {
            member.signal(Signal::TERM);
            // A stopped process acts on SIGTERM only once it is continued.
            member.signal(Signal::CONT);
        }
        let held_pipe = !self.pipes.is_empty() && tree::holds_any_pipe(member.pid, &self.pipes);
        if held_pipe {
            self.inspection.busy |= member.busy;
            self.holders.push(index);
        }
        let command_line =
            (self.action == MemberAction::Survey).then(|| tree::command_line(member.pid)).flatten();
        let found = LeftoverProcess { held_pipe, ..leftover(member, command_line, false) };
        self.inspection.members.push(found);
    }

    /// Kills the holders if the action says so, and sends the answer.
    fn answer(mut self, members: &[TreeMember], undecided: bool) {
        self.inspection.undecided = undecided;
        let kill = match self.action {
            MemberAction::KillHolders => true,
            MemberAction::KillIdleHolders => !self.inspection.busy && !undecided,
            MemberAction::None | MemberAction::Survey | MemberAction::TerminateEscaped => false,
        };
        for holder in self.holders.iter().filter_map(|index| members.get(*index)).filter(|_| kill) {
            let killed = holder.signal(Signal::KILL);
            let pid = holder.pid_number();
            for found in self.inspection.members.iter_mut().filter(|found| found.pid == pid) {
                found.killed = killed;
            }
        }
        // It fails if the run was dropped meanwhile, and then nobody needs the answer.
        let _ = self.reply.send(self.inspection);
    }
}

impl TreeEnding {
    /// Kills a member and records it.
    fn kill_member(&mut self, member: &TreeMember, now: Instant) {
        if self.next_pass > now {
            return;
        }
        let (pid, killed) = (member.pid_number(), member.signal(Signal::KILL));
        self.alive.push(pid);
        if self.seen.insert(member.stamp()) && self.passes > 0 && self.last_new != self.passes {
            // One that was missed, because it was being started, is not yet such a process.
            self.forks |= self.last_new > 0;
            self.last_new = self.passes;
        }
        match self.killed.iter_mut().find(|known| known.pid == pid && known.name == member.name) {
            Some(known) => known.killed |= killed,
            None => self.killed.push(leftover(member, None, killed)),
        }
    }

    /// Decides after a pass whether there must be another, and answers when there need not be.
    fn needs_another_pass(&mut self, now: Instant, undecided: bool) -> bool {
        self.passes = self.passes.saturating_add(1);
        // What is always the same cannot be killed, and does not fork.
        self.forks &= self.alive.is_empty() || self.passes - self.last_new < MAX_PASSES_WITHOUT_FORK;
        let leader_lives = self.leader.exit_status().is_none();
        // A process of others that hangs in `execve(2)` must not keep the tree from being called ended.
        let undecided = undecided && now.duration_since(self.started_at) < KILL_TIMEOUT;
        if self.alive.is_empty() && !leader_lives && !undecided {
            self.empty_passes += 1;
            // One pass misses nothing of what stands still.
            let needed = match (self.frozen, self.forks) {
                (true, _) => 1,
                (false, true) => EMPTY_PASSES_OF_FORKING,
                (false, false) => EMPTY_PASSES_NEEDED,
            };
            if self.empty_passes < needed {
                return true; // at once
            }
            let reply = self.reply.take();
            let answer = TreeEndOutcome { killed: std::mem::take(&mut self.killed), alive: Vec::new() };
            if reply.is_none_or(|reply| reply.send(answer).is_err()) {
                // Nobody waits who would reap it.
                self.leader.reap();
            }
            return false;
        }
        self.empty_passes = 0;
        if now.duration_since(self.started_at) > KILL_TIMEOUT {
            match self.reply.take() {
                Some(reply) => {
                    let leader = leader_lives.then(|| self.leader.pid_number());
                    let alive = leader.into_iter().chain(self.alive.iter().copied()).collect();
                    let _ = reply.send(TreeEndOutcome { killed: self.killed.clone(), alive });
                }
                // Nobody waits longer for what cannot be killed.
                None => self.leader.release(),
            }
        }
        // A wait that doubles: most trees are dead after the first pass, and one that cannot be killed must not cost a
        // processor.
        let is_recent = self.reply.is_some() || now.duration_since(self.started_at) < KILL_TIMEOUT;
        let longest = if is_recent { MAX_PAUSE } else { MAX_PAUSE_UNKILLABLE };
        // At once, to be there before it forks again.
        self.next_pass = if self.forks { now } else { now + self.pause };
        self.pause = (self.pause * 2).min(longest);
        true
    }
}
