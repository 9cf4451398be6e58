//! The calls that run and those of the recent past, for the page. They are bounded, in memory, and gone with the process;
//! the audit is what stays.

use crate::call_words::{describe_arguments, describe_targets};
use crate::wait_reason::WaitReason;
use core_tools::mcp::{CallDecision, CallRecord, Outcome};
use role_policy::Caller;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio_util::sync::CancellationToken;

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
    calls: BTreeMap<u64, Arc<ActiveCall>>,
}

/// A call that runs, or waits to be run.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    /// Its number, which no other call of this process has.
    pub(crate) number: u64,
    pub(crate) principal: String,
    pub(crate) role: String,
    pub(crate) tool: String,
    pub(crate) since: Instant,
    /// The targets that the call reaches, once the policy has allowed the call.
    detail: OnceLock<String>,
    /// The permit that it waits for.
    waits_for: Mutex<Option<WaitReason>>,
    /// Cancelled to end it.
    stop: CancellationToken,
    /// Cancels its work, once that has begun.
    work: OnceLock<CancellationToken>,
}

impl ActiveCall {
    /// Notes what the call reaches. Only the first note counts: the calls that a tool makes come later.
    pub(crate) fn note_start(&self, record: &CallRecord<'_>) {
        let _ = self.detail.set(detail(record));
    }

    /// Returns what the call reaches; empty until the policy has allowed it.
    pub(crate) fn detail(&self) -> &str {
        self.detail.get().map_or("", String::as_str)
    }

    /// Notes what the call waits for; `None` once it has its permits.
    pub(crate) fn set_waits_for(&self, reason: Option<WaitReason>) {
        *lock(&self.waits_for) = reason;
    }

    /// Returns what the call waits for.
    pub(crate) fn waits_for(&self) -> Option<WaitReason> {
        *lock(&self.waits_for)
    }

    /// Notes what cancels the work of the call.
    pub(crate) fn set_work(&self, work: CancellationToken) {
        let work = self.work.get_or_init(|| work);
        // It may have been stopped while it waited.
        if self.stop.is_cancelled() {
            work.cancel();
        }
    }

    /// Ends the call.
    pub(crate) fn stop(&self) {
        // First, so that work which begins meanwhile sees it.
        self.stop.cancel();
        if let Some(work) = self.work.get() {
            work.cancel();
        }
    }

    /// Waits until somebody stops the call.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }
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
    /// The targets that the call reached, masked and cut. If the audit records no targets, the names and sizes of the
    /// arguments.
    pub(crate) detail: String,
    pub(crate) bytes_out: usize,
    /// The first line of its error; empty if there is none, or the audit records no targets.
    pub(crate) error: String,
}

/// The last calls, the latest first.
#[derive(Debug)]
pub(crate) struct FinishedCalls {
    pub(crate) run: Vec<FinishedCall>,
    pub(crate) not_run: Vec<FinishedCall>,
}

/// A call that runs; dropping it takes the call off the list.
#[derive(Debug)]
pub(crate) struct RunningCallGuard {
    recent: Arc<RecentCalls>,
    pub(crate) call: Arc<ActiveCall>,
}

impl RecentCalls {
    /// Adds a call that begins. `tool` is the name that was asked for, redacted.
    pub(crate) fn start(self: &Arc<Self>, caller: &Caller, tool: &str) -> RunningCallGuard {
        let (principal, role) = (caller.principal().unwrap_or_default().to_owned(), caller.role());
        let mut running = lock(&self.running);
        running.last_number += 1;
        let number = running.last_number;
        let call = Arc::new(ActiveCall {
            number,
            principal,
            role,
            tool: truncated(tool, MAX_NAME_CHARS),
            since: Instant::now(),
            detail: OnceLock::new(),
            waits_for: Mutex::default(),
            stop: CancellationToken::new(),
            work: OnceLock::new(),
        });
        running.calls.insert(number, Arc::clone(&call));
        RunningCallGuard { recent: Arc::clone(self), call }
    }

    /// Adds a call that has ended, or was not run.
    pub(crate) fn record(&self, record: &CallRecord<'_>) {
        let principal = record.caller.principal().unwrap_or_default();
        // Made before the lock is taken, because it copies text.
        let call = FinishedCall {
            at: SystemTime::now(),
            principal: principal.to_owned(),
            role: record.caller.role(),
            tool: truncated(record.tool, MAX_NAME_CHARS),
            decision: record.decision,
            rule: record.rule.to_owned(),
            outcome: record.outcome,
            duration: record.duration,
            detail: detail(record),
            bytes_out: record.bytes_out,
            error: record.error.to_owned(),
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
    pub(crate) fn running(&self, principal: Option<&str>) -> Vec<Arc<ActiveCall>> {
        let running = lock(&self.running);
        let is_shown =
            |call: &&Arc<ActiveCall>| principal.is_none_or(|principal| call.principal == principal);
        running.calls.values().filter(is_shown).cloned().collect()
    }

    /// Returns the number of calls that run.
    pub(crate) fn running_count(&self) -> usize {
        lock(&self.running).calls.len()
    }

    /// Returns the call of this number, if it runs.
    pub(crate) fn find_running(&self, number: u64) -> Option<Arc<ActiveCall>> {
        lock(&self.running).calls.get(&number).cloned()
    }

    /// Returns the calls that ended and those that were not run, of `principal` or of all, that `is_shown` accepts, the latest
    /// first.
    pub(crate) fn finished(
        &self,
        principal: Option<&str>,
        is_shown: impl Fn(&FinishedCall) -> bool,
    ) -> FinishedCalls {
        let callers = lock(&self.callers);
        let histories: Vec<&CallerHistory> = match principal {
            Some(principal) => callers.get(principal).into_iter().collect(),
            None => callers.values().collect(),
        };
        let latest = |calls: fn(&CallerHistory) -> &VecDeque<FinishedCall>| {
            let mut all: Vec<&FinishedCall> = histories
                .iter()
                .copied()
                .flat_map(|history| calls(history).iter())
                .filter(|call| is_shown(call))
                .collect();
            all.sort_by_key(|call| std::cmp::Reverse(call.at));
            all.into_iter().take(MAX_PER_CALLER).cloned().collect()
        };
        FinishedCalls { run: latest(|history| &history.calls), not_run: latest(|history| &history.refusals) }
    }
}

impl Drop for RunningCallGuard {
    fn drop(&mut self) {
        lock(&self.recent.running).calls.remove(&self.call.number);
    }
}

/// The length of a name that a client chose.
const MAX_NAME_CHARS: usize = 64;
/// The length of what a call reaches.
const MAX_DETAIL_CHARS: usize = 300;

/// Returns what a call reaches, in words; the names and sizes of its arguments where nothing else is recorded.
fn detail(record: &CallRecord<'_>) -> String {
    match record.targets.filter(|targets| !targets.is_empty()) {
        Some(targets) => truncated(&describe_targets(record.tool, targets), MAX_DETAIL_CHARS),
        None => truncated(&describe_arguments(record.arguments), MAX_DETAIL_CHARS),
    }
}

/// Cuts a text to what a table has room for.
fn truncated(text: &str, max_chars: usize) -> String {
    let mut short: String = text.chars().take(max_chars).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
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
        let quiet = recent.finished(Some("quiet"), |_| true);
        assert_eq!((quiet.run.len(), quiet.not_run.len()), (1, 0));
        assert_eq!(recent.finished(Some("busy"), |_| true).run.len(), MAX_PER_CALLER);
        (0..2 * MAX_CALLERS).for_each(|number| add(&recent, &format!("{number}"), "x", Outcome::NotRun));
        assert_eq!(lock(&recent.callers).len(), MAX_CALLERS);
        assert_eq!(recent.finished(None, |_| true).not_run.len(), MAX_PER_CALLER);
    }

    #[test]
    fn a_call_is_listed_until_it_is_over() {
        let recent = Arc::new(RecentCalls::default());
        let running = recent.start(&Caller::new("dev").with_principal("ada"), &"x".repeat(1000));
        assert_eq!(recent.running(Some("ada"))[0].tool.chars().count(), MAX_NAME_CHARS + 1);
        assert!(recent.running(Some("bob")).is_empty());
        drop(running);
        assert!(recent.running(None).is_empty() && recent.find_running(1).is_none());
    }

    #[test]
    fn a_call_that_is_stopped_while_it_waits_ends_its_work_as_well() {
        let recent = Arc::new(RecentCalls::default());
        let [early, late] =
            [(); 2].map(|()| recent.start(&Caller::new("dev").with_principal("ada"), "build"));
        let [first, second] = [(); 2].map(|()| CancellationToken::new());
        recent.find_running(early.call.number).unwrap().stop();
        early.call.set_work(first.clone());
        late.call.set_work(second.clone());
        assert!(first.is_cancelled() && !second.is_cancelled());
        late.call.stop();
        assert!(second.is_cancelled());
    }
}
