//! The activity of this process, as calls and samples bring it.

use super::activity_counts::ActivityCounts;
use super::chart_number::as_f64;
use super::machine::MachineState;
use super::timeline::{ActivityTimeline, ServerLoad, TimeBucket, TimeSpan, change_counts};
use crate::recent_calls::STRANGER;
use core_tools::mcp::{CallDecision, CallRecord};
use process_runner::ProgramUsage;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The activity of the last hour and day.
#[derive(Debug)]
pub(crate) struct ActivityHistory {
    began: Instant,
    state: Mutex<HistoryState>,
}

#[derive(Debug)]
struct HistoryState {
    timelines: [ActivityTimeline; 2],
    /// The CPU time of each owner and purpose at the last sample.
    cpu_before: HashMap<ProgramKey, Duration>,
    /// The use of the programs that run, at the last sample.
    current: HashMap<ProgramKey, CurrentUse>,
    last_sample: Option<Instant>,
    machine: MachineState,
}

/// The owner of programs, and the tool that runs them.
type ProgramKey = (Option<Arc<str>>, Option<Arc<str>>);

/// The use that programs make of the machine now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CurrentUse {
    pub(crate) programs: usize,
    pub(crate) processes: usize,
    pub(crate) memory: u64,
    /// Processors that are busy.
    pub(crate) processors: f64,
}

/// The name of strangers in the activity. No token and no other caller can have it.
pub(crate) const STRANGERS: &str = "(strangers)";
/// The tool of programs that a finished call has left running.
const LEFT_RUNNING: &str = "(left running)";
/// The caller of programs that no call has started, such as agents.
const SERVER: &str = "(server)";

/// A sample of this process and of the machine.
#[derive(Debug)]
pub(super) struct LoadSample {
    pub(super) programs: Vec<ProgramUsage>,
    /// The load at the moment; the CPU time is that since the last sample.
    pub(super) load: ServerLoad,
    pub(super) machine: MachineState,
}

/// The activity of a span, as a page shows it.
#[derive(Debug)]
pub(crate) struct ActivityView {
    /// One entry for each piece of time, the oldest first.
    pub(crate) pieces: Vec<TimeBucketView>,
    pub(crate) total: ActivityCounts,
    /// The callers, those first that have used most CPU time, then those with most calls.
    pub(crate) callers: Vec<NamedActivity>,
    /// The tools, likewise. Empty where the activity is that of one caller.
    pub(crate) tools: Vec<NamedActivity>,
}

/// One piece of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeBucketView {
    /// The part of it that this process has lived through. Zero before its start.
    pub(crate) elapsed: Duration,
    pub(crate) counts: ActivityCounts,
    pub(crate) load: ServerLoad,
}

/// The activity of one caller, or with one tool.
#[derive(Debug)]
pub(crate) struct NamedActivity {
    pub(crate) name: String,
    pub(crate) total: ActivityCounts,
    /// Processors that its programs kept busy, for each piece of time.
    pub(crate) processors: Vec<f64>,
    /// The memory of its programs in bytes, likewise.
    pub(crate) memory: Vec<f64>,
}

impl Default for ActivityHistory {
    fn default() -> Self {
        let state = HistoryState {
            timelines: TimeSpan::ALL.map(ActivityTimeline::new),
            cpu_before: HashMap::new(),
            current: HashMap::new(),
            last_sample: None,
            machine: MachineState::default(),
        };
        Self { began: Instant::now(), state: Mutex::new(state) }
    }
}

impl ActivityHistory {
    fn state(&self) -> MutexGuard<'_, HistoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since this process began to serve.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Counts a call that has ended, or was not run.
    pub(crate) fn record(&self, record: &CallRecord<'_>) {
        self.record_at(record, self.began.elapsed());
    }

    fn record_at(&self, record: &CallRecord<'_>, elapsed: Duration) {
        let principal = record.caller.principal().unwrap_or_default();
        let caller = if principal.starts_with(STRANGER) { STRANGERS } else { principal };
        // A client can invent names, and a request that was turned away has none.
        let has_tool = !record.tool.is_empty() && record.decision != CallDecision::Unknown;
        for timeline in &mut self.state().timelines {
            let Some(piece) = timeline.now(elapsed) else { continue };
            piece.total.record(record);
            change_counts(&mut piece.callers, caller, |counts| counts.record(record));
            if has_tool {
                change_counts(&mut piece.tools, record.tool, |counts| counts.record(record));
            }
        }
    }

    /// Adds a sample.
    pub(super) fn sample(&self, sample: LoadSample) {
        self.sample_at(sample, self.began.elapsed(), Instant::now());
    }

    fn sample_at(&self, sample: LoadSample, elapsed: Duration, now: Instant) {
        let mut state = self.state();
        let HistoryState { timelines, cpu_before, current, last_sample, machine } = &mut *state;
        let since = last_sample.map_or(Duration::ZERO, |last| now.duration_since(last));
        (*last_sample, *machine) = (Some(now), sample.machine);
        current.clear();
        let mut before = std::mem::take(cpu_before);
        for usage in sample.programs {
            let key = (usage.owner, usage.purpose);
            // Less than before if processes have ended whose time is lost; see `ProgramUsage::cpu`.
            let cpu = usage.cpu.saturating_sub(before.remove(&key).unwrap_or_default());
            let caller = key.0.as_deref().unwrap_or(SERVER);
            let tool = key.1.as_deref().unwrap_or(if key.0.is_some() { LEFT_RUNNING } else { SERVER });
            for timeline in timelines.iter_mut() {
                let Some(piece) = timeline.now(elapsed) else { continue };
                let add =
                    |counts: &mut ActivityCounts| counts.sample(cpu, usage.memory_bytes, usage.programs);
                if !cpu.is_zero() || usage.programs > 0 {
                    change_counts(&mut piece.callers, caller, add);
                    change_counts(&mut piece.tools, tool, add);
                }
                piece.total.cpu += cpu;
            }
            if usage.programs > 0 {
                let processors = match since.is_zero() {
                    true => 0.0,
                    false => cpu.as_secs_f64() / since.as_secs_f64(),
                };
                let use_now = CurrentUse {
                    programs: usage.programs,
                    processes: usage.processes,
                    memory: usage.memory_bytes,
                    processors,
                };
                current.insert(key.clone(), use_now);
            }
            cpu_before.insert(key, usage.cpu);
        }
        let programs: usize = current.values().map(|current| current.programs).sum();
        let memory: u64 = current.values().map(|current| current.memory).sum();
        for timeline in timelines {
            let Some(piece) = timeline.now(elapsed) else { continue };
            piece.total.sample(Duration::ZERO, memory, programs);
            let (load, new) = (&mut piece.load, &sample.load);
            load.running = load.running.max(new.running);
            load.waiting = load.waiting.max(new.waiting);
            load.cpu += new.cpu;
            load.memory = load.memory.max(new.memory);
        }
    }

    /// Returns the state of the machine at the last sample.
    pub(crate) fn machine(&self) -> MachineState {
        self.state().machine.clone()
    }

    /// Returns what the programs of a caller use, those that `tool` has started or all.
    pub(crate) fn current_use(&self, principal: &str, tool: Option<&str>) -> CurrentUse {
        let state = self.state();
        let of_caller = state.current.iter().filter(|((owner, purpose), _)| {
            owner.as_deref() == Some(principal) && tool.is_none_or(|tool| purpose.as_deref() == Some(tool))
        });
        of_caller.fold(CurrentUse::default(), |sum, (_, one)| CurrentUse {
            programs: sum.programs + one.programs,
            processes: sum.processes + one.processes,
            memory: sum.memory + one.memory,
            processors: sum.processors + one.processors,
        })
    }

    /// Returns the activity of a span, of `principal` or of all.
    pub(crate) fn view(&self, span: TimeSpan, principal: Option<&str>) -> ActivityView {
        self.view_at(span, principal, self.began.elapsed())
    }

    fn view_at(&self, span: TimeSpan, principal: Option<&str>, elapsed: Duration) -> ActivityView {
        let state = self.state();
        let mut view = ActivityView {
            pieces: vec![TimeBucketView::default(); span.pieces()],
            total: ActivityCounts::default(),
            callers: Vec::new(),
            tools: Vec::new(),
        };
        let Some(timeline) = state.timelines.iter().find(|timeline| timeline.span == span) else {
            return view;
        };
        let (now, width) = (timeline.number_at(elapsed), span.piece());
        let count = span.pieces() as u64;
        // The index of a piece in the view, of which the last is the piece that is now.
        let index = |number: u64| usize::try_from((number + count).checked_sub(now + 1)?).ok();
        for number in (now + 1).saturating_sub(count)..=now {
            if let Some(piece) = index(number).and_then(|index| view.pieces.get_mut(index)) {
                piece.elapsed = width.min(elapsed - width * u32::try_from(number).unwrap_or(u32::MAX));
            }
        }
        for piece in &timeline.pieces {
            let Some(shown) = index(piece.number).and_then(|index| view.pieces.get_mut(index)) else {
                continue;
            };
            match principal {
                None => (shown.counts, shown.load) = (piece.total.clone(), piece.load),
                Some(name) => shown.counts = piece.callers.get(name).cloned().unwrap_or_default(),
            }
            view.total.merge(&shown.counts);
        }
        if principal.is_none() {
            let named = |of: fn(&TimeBucket) -> &HashMap<String, ActivityCounts>| {
                let mut all: HashMap<&str, NamedActivity> = HashMap::new();
                for piece in &timeline.pieces {
                    let Some(index) = index(piece.number) else { continue };
                    let seconds = view.pieces.get(index).map_or(0.0, |piece| piece.elapsed.as_secs_f64());
                    for (name, counts) in of(piece) {
                        let named = all.entry(name).or_insert_with(|| NamedActivity {
                            name: name.clone(),
                            total: ActivityCounts::default(),
                            processors: vec![0.0; span.pieces()],
                            memory: vec![0.0; span.pieces()],
                        });
                        named.total.merge(counts);
                        if let Some(processors) = named.processors.get_mut(index) {
                            *processors = counts.cpu.as_secs_f64() / seconds.max(1.0);
                        }
                        if let Some(memory) = named.memory.get_mut(index) {
                            *memory = as_f64(counts.memory);
                        }
                    }
                }
                let mut all: Vec<NamedActivity> = all.into_values().collect();
                all.sort_by(|one, other| {
                    let key =
                        |named: &NamedActivity| (named.total.cpu, named.total.ran(), named.total.refused);
                    key(other).cmp(&key(one)).then_with(|| one.name.cmp(&other.name))
                });
                all
            };
            (view.callers, view.tools) = (named(|piece| &piece.callers), named(|piece| &piece.tools));
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_tools::mcp::Outcome;
    use role_policy::Caller;

    fn call(history: &ActivityHistory, principal: &str, tool: &str, outcome: Outcome, at: u64) {
        let caller = Caller::new("dev").with_principal(principal);
        let record = CallRecord::new(&caller, tool, CallDecision::Allowed, outcome);
        history.record_at(&record.duration(Duration::from_millis(10)), Duration::from_secs(at));
    }

    fn usage(owner: &str, tool: &str, programs: usize, cpu: u64) -> ProgramUsage {
        let mut usage = ProgramUsage::default();
        (usage.owner, usage.purpose) = (Some(owner.into()), Some(tool.into()));
        (usage.programs, usage.cpu, usage.memory_bytes) = (programs, Duration::from_secs(cpu), 1000);
        usage
    }

    #[test]
    fn what_happened_is_shown_in_its_piece_and_forgotten_when_it_is_too_old() {
        let history = ActivityHistory::default();
        call(&history, "ada", "read_file", Outcome::Ok, 5);
        call(&history, "ada", "read_file", Outcome::Failed, 65);
        call(&history, "stranger:10.0.0.1", "", Outcome::NotRun, 65);
        let at = Duration::from_secs(70);
        let view = history.view_at(TimeSpan::Hour, None, at);
        assert_eq!(view.pieces.len(), 120);
        let calls: Vec<u32> = view.pieces.iter().rev().take(3).map(|piece| piece.counts.ran()).collect();
        assert_eq!(calls, [1, 0, 1]);
        let elapsed: Vec<u64> =
            view.pieces.iter().rev().take(4).map(|piece| piece.elapsed.as_secs()).collect();
        assert_eq!(elapsed, [10, 30, 30, 0]);
        assert_eq!((view.total.ok, view.total.failed, view.total.refused), (1, 1, 1));
        let names: Vec<&str> = view.callers.iter().map(|named| &*named.name).collect();
        assert_eq!(names, ["ada", STRANGERS]);
        assert_eq!(view.tools.len(), 1, "a request that was turned away has no tool");
        let own = history.view_at(TimeSpan::Hour, Some("ada"), at);
        assert_eq!((own.total.ran(), own.total.refused, own.callers.len()), (2, 0, 0));
        // An hour later, and a day.
        let later = Duration::from_secs(3600 + 59);
        assert_eq!(history.view_at(TimeSpan::Hour, None, later).total.ran(), 1);
        assert_eq!(history.view_at(TimeSpan::Day, None, later).total.ran(), 2);
        call(&history, "bob", "read_file", Outcome::Ok, 90_000);
        assert_eq!(history.view_at(TimeSpan::Day, None, Duration::from_secs(90_000)).total.ran(), 1);
        assert_eq!(history.state().timelines[0].pieces.len(), 1);
    }

    #[test]
    fn cpu_time_is_that_since_the_last_sample_and_never_negative() {
        let (history, began) = (ActivityHistory::default(), Instant::now());
        let sample = |programs: Vec<ProgramUsage>, at: u64| {
            let sample =
                LoadSample { programs, load: ServerLoad::default(), machine: MachineState::default() };
            history.sample_at(sample, Duration::from_secs(at), began + Duration::from_secs(at));
        };
        sample(vec![usage("ada", "run_command", 1, 3)], 5);
        sample(vec![usage("ada", "run_command", 2, 13), usage("bob", "build", 1, 1)], 10);
        let current = history.current_use("ada", Some("run_command"));
        assert_eq!((current.programs, current.processors), (2, 2.0));
        assert_eq!(history.current_use("ada", Some("build")), CurrentUse::default());
        sample(vec![usage("ada", "run_command", 0, 8), usage("bob", "build", 0, 2)], 15);
        let view = history.view_at(TimeSpan::Hour, None, Duration::from_secs(16));
        assert_eq!(view.total.cpu, Duration::from_secs(15));
        assert_eq!(
            view.callers.iter().map(|named| (&*named.name, named.total.cpu.as_secs())).collect::<Vec<_>>(),
            [("ada", 13), ("bob", 2)]
        );
        assert_eq!((view.total.programs, view.total.memory), (3, 2000));
        assert_eq!(history.current_use("ada", None), CurrentUse::default());
    }

    #[test]
    fn any_number_of_names_takes_bounded_memory() {
        let history = ActivityHistory::default();
        (0..1000).for_each(|number| call(&history, &format!("jwt:{number}"), "read_file", Outcome::Ok, 1));
        let view = history.view_at(TimeSpan::Hour, None, Duration::from_secs(1));
        assert_eq!((view.callers.len(), view.total.ran()), (151, 1000));
    }
}
