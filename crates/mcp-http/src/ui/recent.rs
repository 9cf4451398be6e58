//! What runs and what ran of late, of each caller: in memory, bounded, and gone with the process. The audit is what stays.

use core_tools::mcp::{Outcome, Record};
use role_policy::Caller;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Lines that are kept of one caller, of calls and of refusals each: nobody's calls push out another's.
const LINES: usize = 50;
/// Callers of whom lines are kept; of more, those who were heard of last.
const CALLERS: usize = 500;
/// How the name begins of who is not known.
const STRANGER: &str = "stranger:";

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    running: Mutex<Running>,
    callers: Mutex<HashMap<String, Lines>>,
}

#[derive(Debug, Default)]
struct Running {
    last: u64,
    calls: BTreeMap<u64, Call>,
}

/// A call that runs.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) principal: String,
    pub(super) role: String,
    pub(super) tool: String,
    pub(super) since: Instant,
}

#[derive(Debug, Default)]
struct Lines {
    calls: VecDeque<Ended>,
    refusals: VecDeque<Ended>,
    last: Option<Instant>,
}

/// A call that ended, or was not run.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) at: SystemTime,
    pub(super) principal: String,
    pub(super) role: String,
    pub(super) tool: String,
    pub(super) decision: &'static str,
    pub(super) rule: String,
    pub(super) outcome: Outcome,
    pub(super) duration: Duration,
    /// Names and sizes, never values.
    pub(super) arguments: String,
    pub(super) bytes_out: usize,
}

/// A call that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seen(Arc<Recent>, u64);

impl Recent {
    /// A call begins. `tool` is what was asked for, masked.
    pub(crate) fn begin(self: &Arc<Self>, caller: &Caller, tool: &str) -> Seen {
        let mut running = lock(&self.running);
        running.last += 1;
        let number = running.last;
        let principal = caller.principal().unwrap_or_default().to_owned();
        let call = Call { principal, role: caller.role(), tool: short(tool), since: Instant::now() };
        running.calls.insert(number, call);
        Seen(Arc::clone(self), number)
    }

    /// A call has ended, or was refused.
    pub(crate) fn ended(&self, record: &Record<'_>) {
        let principal = record.caller.principal().unwrap_or_default();
        let ended = Ended {
            at: SystemTime::now(),
            principal: principal.to_owned(),
            role: record.caller.role(),
            tool: short(record.tool),
            decision: record.decision,
            rule: record.rule.to_owned(),
            outcome: record.outcome,
            duration: record.duration,
            arguments: record.arguments.to_owned(),
            bytes_out: record.bytes_out,
        };
        // Whoever comes without a token has any number of addresses.
        let principal = if principal.starts_with(STRANGER) { STRANGER } else { principal };
        let mut callers = lock(&self.callers);
        if callers.len() >= CALLERS && !callers.contains_key(principal) {
            let oldest = callers.iter().min_by_key(|(_, lines)| lines.last).map(|(name, _)| name.clone());
            oldest.and_then(|name| callers.remove(&name));
        }
        let lines = callers.entry(principal.to_owned()).or_default();
        lines.last = Some(Instant::now());
        let place = if ended.outcome == Outcome::NotRun { &mut lines.refusals } else { &mut lines.calls };
        if place.len() >= LINES {
            place.pop_front();
        }
        place.push_back(ended);
    }

    /// What runs, of `principal` or of all, the oldest first.
    pub(super) fn running(&self, principal: Option<&str>) -> Vec<Call> {
        let running = lock(&self.running);
        let mine = |call: &&Call| principal.is_none_or(|principal| call.principal == principal);
        running.calls.values().filter(mine).cloned().collect()
    }

    /// What ended and what was not run, of `principal` or of all, the latest first.
    pub(super) fn lately(&self, principal: Option<&str>) -> [Vec<Ended>; 2] {
        let callers = lock(&self.callers);
        let mine: Vec<&Lines> = match principal {
            Some(principal) => callers.get(principal).into_iter().collect(),
            None => callers.values().collect(),
        };
        let sorted = |lines: &dyn Fn(&Lines) -> VecDeque<Ended>| {
            let mut all: Vec<Ended> = mine.iter().flat_map(|mine| lines(mine)).collect();
            all.sort_by_key(|ended| std::cmp::Reverse(ended.at));
            all.truncate(LINES);
            all
        };
        [sorted(&|lines| lines.calls.clone()), sorted(&|lines| lines.refusals.clone())]
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        lock(&self.0.running).calls.remove(&self.1);
    }
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(recent: &Recent, principal: &str, tool: &str, outcome: Outcome) {
        recent.ended(&Record {
            caller: &Caller::new("dev").with_principal(principal),
            tool,
            decision: "allowed",
            rule: "",
            outcome,
            duration: Duration::ZERO,
            arguments: "",
            bytes_in: 0,
            bytes_out: 0,
        });
    }

    #[test]
    fn nobodys_calls_push_out_anothers_and_what_is_kept_is_bounded() {
        let recent = Recent::default();
        record(&recent, "quiet", "read_file", Outcome::Ok);
        (0..10_000).for_each(|_| record(&recent, "busy", "run_command", Outcome::Failed));
        let [calls, refusals] = recent.lately(Some("quiet"));
        assert_eq!((calls.len(), refusals.len()), (1, 0));
        assert_eq!(recent.lately(Some("busy"))[0].len(), LINES);
        (0..2 * CALLERS).for_each(|number| record(&recent, &format!("{number}"), "x", Outcome::NotRun));
        assert_eq!(lock(&recent.callers).len(), CALLERS);
        assert_eq!(recent.lately(None)[1].len(), LINES);
    }

    #[test]
    fn a_call_is_seen_until_it_is_over_and_by_its_caller() {
        let recent = Arc::new(Recent::default());
        let seen = recent.begin(&Caller::new("dev").with_principal("ada"), &"x".repeat(1000));
        assert_eq!(recent.running(Some("ada"))[0].tool.len(), 64);
        assert!(recent.running(Some("bob")).is_empty());
        drop(seen);
        assert!(recent.running(None).is_empty());
    }
}
