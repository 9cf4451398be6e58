//! The policy that decides what is done when a session's process has ended.

use crate::clock::as_millis;
use crate::diagnosis::{AgentRetryTime, SessionStopCause, SessionStopDiagnosis};
use crate::state::{ScheduledSessionAction, SessionAction};
use std::time::Duration;

/// The policy for sessions whose process has ended: what is done for each cause, when, and how often.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionRestartPolicy {
    /// Waits and resumes after a rate limit. True by default.
    pub resume_after_limit: bool,
    /// Goes on in a new session when the context is exhausted. True by default.
    pub renew_context: bool,
    /// Restarts after a crash. True by default.
    pub restart_after_crash: bool,
    /// The first wait where the agent named none. 30 s by default; each further wait is twice as long.
    pub backoff_base: Duration,
    /// The longest of these waits. 300 s by default.
    pub backoff_cap: Duration,
    /// The longest wait that an agent may name: a session that would have to wait longer fails. 7 days by default.
    pub max_wait: Duration,
    /// The number of attempts in a row that may fail. 5 by default.
    pub max_attempts: u32,
    /// The time after which a running process counts as a success. 10 minutes by default.
    pub settled_after: Duration,
    /// The wait after a crash. 1 s by default.
    pub crash_delay: Duration,
    /// The number of crashes within [`crash_window`](Self::crash_window) that make a crash loop. 3 by default.
    pub crash_limit: usize,
    /// The time in which crashes are counted. 60 s by default.
    pub crash_window: Duration,
    /// The wait in a crash loop. 60 s by default.
    pub crash_loop_delay: Duration,
}

impl Default for SessionRestartPolicy {
    fn default() -> Self {
        Self {
            resume_after_limit: true,
            renew_context: true,
            restart_after_crash: true,
            backoff_base: Duration::from_secs(30),
            backoff_cap: Duration::from_secs(300),
            max_wait: Duration::from_secs(7 * 86_400),
            max_attempts: 5,
            settled_after: Duration::from_secs(600),
            crash_delay: Duration::from_secs(1),
            crash_limit: 3,
            crash_window: Duration::from_secs(60),
            crash_loop_delay: Duration::from_secs(60),
        }
    }
}

/// The failures of a session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionRestartHistory {
    /// The number of attempts in a row that failed.
    pub(crate) attempts: u32,
    /// The times of its crashes, this one included, in milliseconds since 1970.
    pub(crate) crashes: Vec<u64>,
}

/// A decision about a session whose process has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SessionRestartDecision {
    /// The action is done at its time.
    Schedule(ScheduledSessionAction),
    /// Nothing needs to be done.
    Rest,
    /// Something should be done and cannot; the text says why.
    GiveUp(String),
}

impl SessionRestartPolicy {
    /// Decides what is done after a stop. `random` is a number from 0 to 1, for the jitter.
    pub(crate) fn decide(
        &self,
        stop: &SessionStopDiagnosis,
        history: &SessionRestartHistory,
        now_ms: u64,
        random: f64,
    ) -> SessionRestartDecision {
        let (action, enabled) = match stop.reason {
            SessionStopCause::RateLimit => (SessionAction::Resume, self.resume_after_limit),
            SessionStopCause::ContextExhausted => (SessionAction::NewSession, self.renew_context),
            SessionStopCause::Crash => (SessionAction::Restart, self.restart_after_crash),
            // What was meant to end, or ended for a reason nobody knows, is not started again; nor is an agent that somebody
            // has to log in first, which would fail in the same way.
            SessionStopCause::Completed
            | SessionStopCause::NeedsAttention
            | SessionStopCause::UserExit
            | SessionStopCause::Ended
            | SessionStopCause::Lost
            | SessionStopCause::Unknown => return SessionRestartDecision::Rest,
        };
        if !enabled {
            return SessionRestartDecision::Rest;
        }
        if history.attempts >= self.max_attempts {
            return SessionRestartDecision::GiveUp(format!(
                "{} attempts in a row led to nothing; the last end: {}",
                history.attempts,
                stop.reason.as_str()
            ));
        }
        let wait_ms = match action {
            SessionAction::Resume => match named_wait_ms(stop, now_ms) {
                Some(named) if named > as_millis(self.max_wait) => {
                    return SessionRestartDecision::GiveUp(format!(
                        "it would have to wait for {} h, and the longest wait is {} h",
                        named / 3_600_000,
                        self.max_wait.as_secs() / 3600
                    ));
                }
                Some(named) => named,
                None => as_millis(self.backoff(history.attempts, random)),
            },
            SessionAction::Restart => as_millis(self.crash_wait(&history.crashes, now_ms)),
            SessionAction::NewSession | SessionAction::Message => 0,
        };
        SessionRestartDecision::Schedule(ScheduledSessionAction {
            action,
            at: now_ms.saturating_add(wait_ms),
            attempt: history.attempts + 1,
            since: now_ms,
            stop: stop.clone(),
        })
    }

    /// Returns base × 2^attempts, at most the cap, ± 10 %.
    ///
    /// The jitter keeps sessions that hit the same limit from coming back in the same moment.
    pub(crate) fn backoff(&self, attempts: u32, random: f64) -> Duration {
        // Saturating: after 32 doublings the cap holds, and not an overflow.
        let exact = self.backoff_base.saturating_mul(2u32.saturating_pow(attempts)).min(self.backoff_cap);
        exact.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0))
    }

    fn crash_wait(&self, crashes: &[u64], now_ms: u64) -> Duration {
        let window_start = now_ms.saturating_sub(as_millis(self.crash_window));
        let recent = crashes.iter().filter(|at| **at >= window_start).count();
        if recent >= self.crash_limit { self.crash_loop_delay } else { self.crash_delay }
    }
}

/// Returns the wait that the agent named, in milliseconds.
fn named_wait_ms(stop: &SessionStopDiagnosis, now_ms: u64) -> Option<u64> {
    match stop.retry.as_ref()?.when {
        AgentRetryTime::In(millis) => Some(millis),
        // A time that is past says nothing about how long the limit lasts.
        AgentRetryTime::At(at) => at.checked_sub(now_ms).filter(|wait| *wait > 0),
        // `stop::diagnose` has turned it into a point in time, or dropped it.
        AgentRetryTime::Clock { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{AgentRetryHint, AgentRetrySource};
    use proptest::prelude::*;

    fn stopped(reason: SessionStopCause, when: Option<AgentRetryTime>) -> SessionStopDiagnosis {
        let retry = when.map(|when| AgentRetryHint { source: AgentRetrySource::Words, when });
        SessionStopDiagnosis { retry, ..SessionStopDiagnosis::certain(reason, "test") }
    }

    fn decide(stop: &SessionStopDiagnosis, history: &SessionRestartHistory) -> SessionRestartDecision {
        SessionRestartPolicy::default().decide(stop, history, 1_000_000, 0.5)
    }

    fn doing(stop: &SessionStopDiagnosis, history: &SessionRestartHistory) -> (SessionAction, u64, u32) {
        match decide(stop, history) {
            SessionRestartDecision::Schedule(next) => (next.action, next.at - 1_000_000, next.attempt),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_reason_has_its_own_consequence() {
        let history = SessionRestartHistory::default();
        assert_eq!(
            doing(&stopped(SessionStopCause::RateLimit, None), &history),
            (SessionAction::Resume, 30_000, 1)
        );
        assert_eq!(
            doing(&stopped(SessionStopCause::ContextExhausted, None), &history),
            (SessionAction::NewSession, 0, 1)
        );
        assert_eq!(
            doing(&stopped(SessionStopCause::Crash, None), &history),
            (SessionAction::Restart, 1_000, 1)
        );
        for reason in [
            SessionStopCause::Completed,
            SessionStopCause::NeedsAttention,
            SessionStopCause::UserExit,
            SessionStopCause::Ended,
            SessionStopCause::Lost,
            SessionStopCause::Unknown,
        ] {
            assert_eq!(decide(&stopped(reason, None), &history), SessionRestartDecision::Rest, "{reason:?}");
        }
    }

    #[test]
    fn what_was_asked_for_is_waited_and_nothing_else() {
        let history = SessionRestartHistory { attempts: 3, ..SessionRestartHistory::default() };
        let wait = |when| doing(&stopped(SessionStopCause::RateLimit, Some(when)), &history).1;
        assert_eq!(wait(AgentRetryTime::In(37_000)), 37_000);
        assert_eq!(wait(AgentRetryTime::At(1_090_000)), 90_000);
        assert_eq!(wait(AgentRetryTime::At(900_000)), 240_000, "a time that is past says nothing");
        let week = stopped(SessionStopCause::RateLimit, Some(AgentRetryTime::In(8 * 86_400_000)));
        assert!(
            matches!(decide(&week, &history), SessionRestartDecision::GiveUp(why) if why.contains("192 h"))
        );
    }

    #[test]
    fn the_third_crash_in_a_minute_backs_off_and_the_attempts_are_bounded() {
        let crash = stopped(SessionStopCause::Crash, None);
        let after = |crashes: &[u64], attempts| {
            doing(&crash, &SessionRestartHistory { attempts, crashes: crashes.to_vec() }).1
        };
        assert_eq!(after(&[999_000, 1_000_000], 1), 1_000);
        assert_eq!(after(&[990_000, 999_000, 1_000_000], 2), 60_000);
        assert_eq!(after(&[900_000, 910_000, 1_000_000], 2), 1_000, "older ones do not count");
        let history = SessionRestartHistory { attempts: 5, crashes: vec![] };
        assert!(
            matches!(decide(&crash, &history), SessionRestartDecision::GiveUp(why) if why.starts_with("5 attempts"))
        );
    }

    proptest! {
        #[test]
        fn a_wait_doubles_to_the_cap_and_strays_by_a_tenth(attempts in 0u32..200, random in 0.0f64..=1.0) {
            let plan = SessionRestartPolicy::default();
            let exact = 30.0 * 2f64.powi(i32::try_from(attempts.min(20)).unwrap());
            let exact = exact.min(300.0);
            let wait = plan.backoff(attempts, random).as_secs_f64();
            prop_assert!(wait >= exact * 0.9 - 1e-6 && wait <= exact * 1.1 + 1e-6, "{wait} {exact}");
        }
    }
}
