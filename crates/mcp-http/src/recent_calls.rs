//! The calls that run and those of the recent past, for the page. They are bounded, in memory, and gone with the process;
//! the audit is what stays.

use core_tools::mcp::{CallDecision, CallRecord, Outcome};
use role_policy::Caller;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The calls that are kept of one caller, and as many refusals. Each caller has its own, so that nobody's calls push out
/// another's.
const MAX_PER_CALLER: usize = 50;
/// The callers that are kept: those that called last.
const MAX_CALLERS: usize = 500;
/// The start of the name of a peer that is not authenticated.
pub(crate) const STRANGER: &str = "stranger:";

/// The calls that run, and the last calls of each caller.
#[derive(Debug, Default)]
pub(crate) struct RecentCalls {
    running: Mutex<RunningCalls>,
    callers: Mutex<HashMap<String, CallerHistory>>,
}

#[derive(Debug, Default)]
struct RunningCalls {
    last_number: u64,
    calls: BTreeMap<u64, RunningCall>,
}

/// A call that runs.
#[derive(Clone, Debug)]
pub(crate) struct RunningCall {
    pub(crate) principal: String,
    pub(crate) role: String,
    pub(crate) tool: String,
    pub(crate) since: Instant,
}

#[derive(Debug, Default)]
struct CallerHistory {
    calls: VecDeque<FinishedCall>,
    refusals: VecDeque<FinishedCall>,
    last_call: Option<Instant>,
}

/// A call that has ended, or was not run.
#[derive(Clone, Debug)]
pub(crate) struct FinishedCall {
    pub(crate) at: SystemTime,
    pub(crate) principal: String,
    pub(crate) role: String,
    pub(crate) tool: String,
    pub(crate) decision: CallDecision,
    pub(crate) rule: String,
    pub(crate) outcome: Outcome,
    pub(crate) duration: Duration,
    /// The names and sizes of the arguments, never their values.
    pub(crate) arguments: String,
    pub(crate) bytes_out: usize,
}

/// The last calls, the latest first.
#[derive(Debug)]
pub(crate) struct FinishedCalls {
    pub(crate) run: Vec<FinishedCall>,
    pub(crate) not_run: Vec<FinishedCall>,
}

/// A call that runs; dropping it takes the call off the list.
#[derive(Debug)]
pub(crate) struct RunningCallGuard(Arc<RecentCalls>, u64);

impl RecentCalls {
    /// Adds a call that begins. `tool` is the name that was asked for, redacted.
    pub(crate) fn start(self: &Arc<Self>, caller: &Caller, tool: &str) -> RunningCallGuard {
        let mut running = lock(&self.running);
        running.last_number += 1;
        let number = running.last_number;
        let principal = caller.principal().unwrap_or_default().to_owned();
        let call =
            RunningCall { principal, role: caller.role(), tool: truncated(tool), since: Instant::now() };
        running.calls.insert(number, call);
        RunningCallGuard(Arc::clone(self), number)
    }

    /// Adds a call that has ended, or was not run.
    pub(crate) fn record(&self, record: &CallRecord<'_>) {
        let principal = record.caller.principal().unwrap_or_default();
        // Made before the lock is taken, because it copies text.
        let call = FinishedCall {
            at: SystemTime::now(),
            principal: principal.to_owned(),
            role: record.caller.role(),
            tool: truncated(record.tool),
            decision: record.decision,
            rule: record.rule.to_owned(),
            outcome: record.outcome,
            duration: record.duration,
            arguments: record.arguments.to_owned(),
            bytes_out: record.bytes_out,
        };
        // A peer without a token can have any number of addresses.
        let principal = if principal.starts_with(STRANGER) { STRANGER } else { principal };
        let mut callers = lock(&self.callers);
        if callers.len() >= MAX_CALLERS && !callers.contains_key(principal) {
            let oldest =
                callers.iter().min_by_key(|(_, history)| history.last_call).map(|(name, _)| name.clone());
            oldest.and_then(|name| callers.remove(&name));
        }
        let history = callers.entry(principal.to_owned()).or_default();
        history.last_call = Some(Instant::now());
        let calls = if call.outcome == Outcome::NotRun { &mut history.refusals } else { &mut history.calls };
        if calls.len() >= MAX_PER_CALLER {
            calls.pop_front();
        }
        calls.push_back(call);
    }

    /// Returns the calls that run, of `principal` or of all, the oldest first.
    pub(crate) fn running(&self, principal: Option<&str>) -> Vec<RunningCall> {
        let running = lock(&self.running);
        let is_shown = |call: &&RunningCall| principal.is_none_or(|principal| call.principal == principal);
        running.calls.values().filter(is_shown).cloned().collect()
    }

    /// Returns the calls that ended and those that were not run, of `principal` or of all, the latest first.
    pub(crate) fn finished(&self, principal: Option<&str>) -> FinishedCalls {
        let callers = lock(&self.callers);
        let histories: Vec<&CallerHistory> = match principal {
            Some(principal) => callers.get(principal).into_iter().collect(),
            None => callers.values().collect(),
        };
        let latest = |calls: fn(&CallerHistory) -> &VecDeque<FinishedCall>| {
            let mut all: Vec<&FinishedCall> =
                histories.iter().copied().flat_map(|history| calls(history).iter()).collect();
            all.sort_by_key(|call| std::cmp::Reverse(call.at));
            all.into_iter().take(MAX_PER_CALLER).cloned().collect()
        };
        FinishedCalls { run: latest(|history| &history.calls), not_run: latest(|history| &history.refusals) }
    }
}

impl Drop for RunningCallGuard {
    fn drop(&mut self) {
        lock(&self.0.running).calls.remove(&self.1);
    }
}

/// Cuts a name that a client chose to what a table has room for.
fn truncated(text: &str) -> String {
    text.chars().take(64).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(recent: &RecentCalls, principal: &str, tool: &str, outcome: Outcome) {
        let caller = Caller::new("dev").with_principal(principal);
        recent.record(&CallRecord::new(&caller, tool, CallDecision::Allowed, outcome));
    }

    #[test]
    fn nobodys_calls_push_out_anothers_and_what_is_kept_is_bounded() {
        let recent = RecentCalls::default();
        add(&recent, "quiet", "read_file", Outcome::Ok);
        (0..10_000).for_each(|_| add(&recent, "busy", "run_command", Outcome::Failed));
        let quiet = recent.finished(Some("quiet"));
        assert_eq!((quiet.run.len(), quiet.not_run.len()), (1, 0));
        assert_eq!(recent.finished(Some("busy")).run.len(), MAX_PER_CALLER);
        (0..2 * MAX_CALLERS).for_each(|number| add(&recent, &format!("{number}"), "x", Outcome::NotRun));
        assert_eq!(lock(&recent.callers).len(), MAX_CALLERS);
        assert_eq!(recent.finished(None).not_run.len(), MAX_PER_CALLER);
    }

    #[test]
    fn a_call_is_listed_until_it_is_over() {
        let recent = Arc::new(RecentCalls::default());
        let running = recent.start(&Caller::new("dev").with_principal("ada"), &"x".repeat(1000));
        assert_eq!(recent.running(Some("ada"))[0].tool.len(), 64);
        assert!(recent.running(Some("bob")).is_empty());
        drop(running);
        assert!(recent.running(None).is_empty());
    }
}
