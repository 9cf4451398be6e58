//! The diagnosis of a stop, and the history by which the restart policy judges it.

use crate::classify::classify;
use crate::clock;
use crate::diagnosis::{
    AgentRetryHint, AgentRetrySource, AgentRetryTime, ObservedSessionExit, SessionStopCause,
    SessionStopDiagnosis,
};
use crate::record::SessionRecord;
use crate::restart_policy::{SessionRestartHistory, SessionRestartPolicy};
use crate::supervisor_context::SupervisorContext;

/// Finds out why the process of a session ended that printed `lines` last. `end_reason` is the reason for which it was
/// ended, if it was.
pub(super) fn diagnose(
    context: &SupervisorContext,
    record: &SessionRecord,
    exit: ObservedSessionExit,
    lines: &[String],
    end_reason: Option<String>,
) -> SessionStopDiagnosis {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut diagnosis = classify(&context.settings().agents, record.agent.as_deref(), exit, &lines);
    if let Some(reason) = end_reason {
        diagnosis = SessionStopDiagnosis {
            exit_code: diagnosis.exit_code,
            signal: diagnosis.signal,
            ..SessionStopDiagnosis::certain(SessionStopCause::Ended, reason)
        };
    }
    // The lines come from the tail, which is not redacted, and the diagnosis is stored and shown.
    for evidence in &mut diagnosis.evidence {
        *evidence = context.options.redactor.redact(evidence).into_owned();
    }
    diagnosis.retry = diagnosis.retry.and_then(resolve_time_of_day);
    diagnosis
}

/// Returns the failures of a session, this stop included.
pub(super) fn history(
    policy: &SessionRestartPolicy,
    record: &SessionRecord,
    stop: &SessionStopDiagnosis,
    now_ms: u64,
) -> SessionRestartHistory {
    // A process that ran for long has got over the earlier failures.
    let settled = now_ms.saturating_sub(record.started) >= clock::as_millis(policy.settled_after);
    let mut history = SessionRestartHistory {
        attempts: if settled { 0 } else { record.attempts },
        crashes: record.crashes.clone(),
    };
    if stop.reason == SessionStopCause::Crash {
        history.crashes.push(now_ms);
        // Those before the last few cannot be part of a crash loop.
        let excess = history.crashes.len().saturating_sub(policy.crash_limit.max(1));
        history.crashes.drain(..excess);
    }
    history
}

/// Turns a time of day into a point in time. A time that cannot be resolved says nothing about the wait.
fn resolve_time_of_day(hint: AgentRetryHint) -> Option<AgentRetryHint> {
    let AgentRetryTime::Clock { time, zone } = &hint.when else { return Some(hint) };
    let at = clock::next_time_of_day(time, zone.as_deref(), clock::now_ms())?;
    Some(AgentRetryHint { source: AgentRetrySource::Reset, when: AgentRetryTime::At(at) })
}
