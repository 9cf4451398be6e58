//! The one thread that ends process trees.
//!
//! It is a plain thread, so it goes on when a future is dropped, when a runtime is, and when there is none;
//! and it is one, so that ending fifty runs at once costs one pass over `/proc` and not fifty. A run asks it
//! to look or to end and waits for the answer; whoever drops a run leaves it here and goes on at once.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::outcome::Leftover;
use crate::tree::{self, Leader, Member, Search};

/// How long a tree is killed before what still lives is called unkillable.
const PATIENCE: Duration = Duration::from_secs(1);
/// Passes in a row that must find nothing: a process that is forked during one can be missed by it.
const QUIET_PASSES: u8 = 2;

/// What became of a tree that had to end.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Those that outlived the leader or left its group, and were killed.
    pub(crate) killed: Vec<Leftover>,
    /// Those that could not be killed. The reaper goes on trying.
    pub(crate) alive: Vec<u32>,
}

/// What [`look`] has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) members: Vec<Leftover>,
    /// One that holds a pipe is not waiting for anything but a processor: its silence means nothing.
    pub(crate) busy: bool,
}

/// What [`look`] does with the members of a run that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    Nothing,
    /// Ends politely those that the signal to the leader's group has not reached.
    TerminateEscaped,
    /// Kills those that hold one of the run's pipes, if none of these is busy.
    KillIdleHolders,
    /// Kills those that hold one of the run's pipes.
    KillHolders,
}

enum Job {
    End { leader: Arc<Leader>, reply: Option<oneshot::Sender<Ended>> },
    Look { leader: Arc<Leader>, action: Do, pipes: Vec<u64>, reply: oneshot::Sender<Found> },
}

/// Starts the thread if it does not run yet. To be done before a process is started.
pub(crate) fn ensure() -> io::Result<()> {
    let mut sender = SENDER.lock().unwrap_or_else(PoisonError::into_inner);
    // A thread that has panicked, which none should, is replaced: its jobs are lost, later ones are not.
    if sender.as_ref().is_none_or(|(_, thread)| thread.is_finished()) {
        let (jobs, incoming) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("process-reaper".into())
            .spawn(move || Reaper::default().run(&incoming))?;
        *sender = Some((jobs, thread));
    }
    Ok(())
}

static SENDER: Mutex<Option<(mpsc::Sender<Job>, std::thread::JoinHandle<()>)>> = Mutex::new(None);

fn submit(job: Job) {
    let sender = SENDER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((sender, _)) = &*sender {
        // The thread never ends, so there is somebody to receive.
        let _ = sender.send(job);
    }
}

/// Kills everything of a run and reaps its leader. Returns at once.
pub(crate) fn abandon(leader: Arc<Leader>) {
    leader.signal_group(Signal::KILL);
    submit(Job::End { leader, reply: None });
}

/// Kills everything of a run. The leader is left to be reaped by whoever gets the answer; if nobody does, it
/// is reaped here.
pub(crate) fn end(leader: Arc<Leader>) -> oneshot::Receiver<Ended> {
    let (reply, answer) = oneshot::channel();
    submit(Job::End { leader, reply: Some(reply) });
    answer
}

/// Lists what of a run is alive beside its leader, in one pass.
pub(crate) fn look(leader: Arc<Leader>, action: Do, pipes: Vec<u64>) -> oneshot::Receiver<Found> {
    let (reply, answer) = oneshot::channel();
    submit(Job::Look { leader, action, pipes, reply });
    answer
}

#[derive(Default)]
struct Reaper {
    ending: Vec<Ending>,
    looks: Vec<Look>,
}

struct Look {
    leader: Arc<Leader>,
    action: Do,
    pipes: Vec<u64>,
    reply: oneshot::Sender<Found>,
    found: Found,
    /// Which members of this pass hold a pipe.
    holders: Vec<usize>,
}

struct Ending {
    leader: Arc<Leader>,
    reply: Option<oneshot::Sender<Ended>>,
    begun: Instant,
    next_pass: Instant,
    pause: Duration,
    quiet: u8,
    killed: Vec<Leftover>,
    /// Found by the last pass.
    alive: Vec<u32>,
}

impl Reaper {
    fn run(mut self, incoming: &mpsc::Receiver<Job>) {
        loop {
            let first = match self.ending.iter().map(|ending| ending.next_pass).min() {
                None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => incoming.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match first {
                Ok(job) => self.accept(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(job) = incoming.try_recv() {
                self.accept(job);
            }
            self.pass();
        }
    }

    fn accept(&mut self, job: Job) {
        match job {
            Job::End { leader, reply } => {
                let now = Instant::now();
                self.ending.push(Ending {
                    leader,
                    reply,
                    begun: now,
                    next_pass: now,
                    pause: Duration::from_millis(1),
                    quiet: 0,
                    killed: Vec::new(),
                    alive: Vec::new(),
                });
            }
            Job::Look { leader, action, pipes, reply } => {
                self.looks.push(Look {
                    leader,
                    action,
                    pipes,
                    reply,
                    found: Found::default(),
                    holders: Vec::new(),
                });
            }
        }
    }

    fn pass(&mut self) {
        let now = Instant::now();
        let Self { ending, looks } = self;
        for ending in ending.iter_mut().filter(|ending| ending.next_pass <= now) {
            ending.alive.clear();
        }
        // A run may be among both, and more than once: everybody gets what is found of its run.
        let leaders: Vec<Arc<Leader>> = ending
            .iter()
            .map(|ending| &ending.leader)
            .chain(looks.iter().map(|look| &look.leader))
            .cloned()
            .collect();
        let members = find(&leaders);
        // The group at once and first, so that no shell in it lives to see its children die; but after the
        // search, which has seen who was there.
        for ending in ending.iter().filter(|ending| ending.next_pass <= now) {
            ending.leader.signal_group(Signal::KILL);
        }
        for (at, member) in members.iter().enumerate() {
            let Some(owner) = leaders.get(member.owner) else { continue };
            for ending in ending.iter_mut().filter(|ending| Arc::ptr_eq(&ending.leader, owner)) {
                ending.meet(member, now);
            }
            for look in looks.iter_mut().filter(|look| Arc::ptr_eq(&look.leader, owner)) {
                look.meet(member, at);
            }
        }
        for look in looks.drain(..) {
            look.answer(&members);
        }
        ending.retain_mut(|ending| ending.next_pass > now || ending.goes_on(now));
    }
}

/// One pass over all processes for all runs. A member's owner is the place of its leader.
fn find(leaders: &[Arc<Leader>]) -> Vec<Member> {
    let indexed = || leaders.iter().enumerate().rev();
    let sessions: HashMap<_, _> =
        indexed().filter_map(|(at, leader)| Some((leader.session()?, at))).collect();
    let markers: HashMap<_, _> =
        indexed().filter_map(|(at, leader)| Some((leader.marker()?.0, at))).collect();
    // What is older than all of the leaders belongs to none of them.
    let start = |leader: &Arc<Leader>| tree::start_time(leader.session()?);
    let since = leaders.iter().map(|leader| start(leader).unwrap_or(0)).min().unwrap_or(0);
    let search = Search {
        since,
        by_session: &|session| sessions.get(&session).copied(),
        prefix: tree::marker_prefix(),
        by_marker: &|number| markers.get(&number).copied(),
    };
    tree::scan(&search).unwrap_or_default()
}

impl Look {
    /// `at`: its place among the members of this pass.
    fn meet(&mut self, member: &Member, at: usize) {
        if self.action == Do::TerminateEscaped && member.group != Some(self.leader.pid()) {
            member.signal(Signal::TERM);
            member.signal(Signal::CONT);
        }
        let held_pipe = !self.pipes.is_empty() && tree::holds(member.pid, &self.pipes);
        if held_pipe {
            self.found.busy |= member.busy;
            self.holders.push(at);
        }
        let (pid, name) = (member.pid_number(), member.name.clone());
        self.found.members.push(Leftover { pid, name, held_pipe, killed: false });
    }

    fn answer(mut self, members: &[Member]) {
        let kill = match self.action {
            Do::KillHolders => true,
            Do::KillIdleHolders => !self.found.busy,
            Do::Nothing | Do::TerminateEscaped => false,
        };
        for holder in self.holders.iter().filter_map(|at| members.get(*at)).filter(|_| kill) {
            let killed = holder.signal(Signal::KILL);
            let pid = holder.pid_number();
            for found in self.found.members.iter_mut().filter(|found| found.pid == pid) {
                found.killed = killed;
            }
        }
        let _ = self.reply.send(self.found);
    }
}

impl Ending {
    fn meet(&mut self, member: &Member, now: Instant) {
        if self.next_pass > now {
            return;
        }
        let (pid, killed) = (member.pid_number(), member.signal(Signal::KILL));
        self.alive.push(pid);
        match self.killed.iter_mut().find(|known| known.pid == pid && known.name == member.name) {
            Some(known) => known.killed |= killed,
            None => {
                self.killed.push(Leftover { pid, name: member.name.clone(), held_pipe: false, killed });
            }
        }
    }

    /// After a pass: whether there must be another.
    fn goes_on(&mut self, now: Instant) -> bool {
        let leader_lives = self.leader.exit_status().is_none();
        if self.alive.is_empty() && !leader_lives {
            self.quiet += 1;
            if self.quiet < QUIET_PASSES {
                return true; // at once
            }
            let reply = self.reply.take();
            let answer = Ended { killed: std::mem::take(&mut self.killed), alive: Vec::new() };
            if reply.is_none_or(|reply| reply.send(answer).is_err()) {
                // Nobody is there to reap it.
                self.leader.reap();
            }
            return false;
        }
        self.quiet = 0;
        if now.duration_since(self.begun) > PATIENCE
            && let Some(reply) = self.reply.take()
        {
            let leader = leader_lives.then(|| self.leader.pid_number());
            let alive = leader.into_iter().chain(self.alive.iter().copied()).collect();
            let _ = reply.send(Ended { killed: self.killed.clone(), alive });
        }
        let longest =
            if self.reply.is_some() || now.duration_since(self.begun) < PATIENCE { 10 } else { 250 };
        self.next_pass = now + self.pause;
        self.pause = (self.pause * 2).min(Duration::from_millis(longest));
        true
    }
}
