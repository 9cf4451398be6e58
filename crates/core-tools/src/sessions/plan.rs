//! What is done when a session's process has ended.

use super::classify::{Reason, Stop, When};
use super::state::{Action, Next};
use std::time::Duration;

/// What is done for each reason, and how often.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// At a rate limit: wait and resume. True by default.
    pub resume_after_limit: bool,
    /// When the context is exhausted: go on in a new session. True by default.
    pub renew_context: bool,
    /// After a crash: start it again. True by default.
    pub restart_after_crash: bool,
    /// The first wait where nobody said how long. 30 s by default; each further one is twice as long.
    pub base: Duration,
    /// The longest of these waits. 300 s by default.
    pub cap: Duration,
    /// The longest wait that somebody may ask for: a session that would have to wait longer stops. 7 days by default.
    pub longest: Duration,
    /// Attempts in a row without success. 5 by default.
    pub attempts: u32,
    /// A process that ran for so long was a success. 10 minutes by default.
    pub settled: Duration,
    /// The wait after a crash. 1 s by default.
    pub crash_delay: Duration,
    /// So many crashes within [`crash_window`](Self::crash_window) are a loop. 3 by default.
    pub crash_limit: usize,
    /// 60 s by default.
    pub crash_window: Duration,
    /// The wait in a loop of crashes. 60 s by default.
    pub crash_pause: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            resume_after_limit: true,
            renew_context: true,
            restart_after_crash: true,
            base: Duration::from_secs(30),
            cap: Duration::from_secs(300),
            longest: Duration::from_secs(7 * 86_400),
            attempts: 5,
            settled: Duration::from_secs(600),
            crash_delay: Duration::from_secs(1),
            crash_limit: 3,
            crash_window: Duration::from_secs(60),
            crash_pause: Duration::from_secs(60),
        }
    }
}

/// What happened to a session before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Attempts in a row that led to nothing.
    pub attempts: u32,
    /// When it crashed, this time included, in milliseconds since 1970.
    pub crashes: Vec<u64>,
}

/// What is done now.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// This.
    Do(Next),
    /// Nothing.
    Nothing,
    /// Nothing, though something would have to be done.
    GiveUp(String),
}

impl Plan {
    /// What is done about `stop`. `random` is a number from 0 to 1, for the jitter.
    pub fn decide(&self, stop: &Stop, past: &Past, now: u64, random: f64) -> Decision {
        let (action, wanted) = match stop.reason {
            Reason::RateLimit => (Action::Resume, self.resume_after_limit),
            Reason::ContextExhausted => (Action::NewSession, self.renew_context),
            Reason::Crash => (Action::Restart, self.restart_after_crash),
            Reason::Completed | Reason::UserExit | Reason::Ended | Reason::Lost | Reason::Unknown => {
                return Decision::Nothing;
            }
        };
        if !wanted {
            return Decision::Nothing;
        }
        if past.attempts >= self.attempts {
            return Decision::GiveUp(format!(
                "{} attempts in a row led to nothing; the last end: {}",
                past.attempts,
                stop.reason.as_str()
            ));
        }
        let wait = match action {
            Action::Resume => match self.asked(stop, now) {
                Some(asked) if asked > millis(self.longest) => {
                    return Decision::GiveUp(format!(
                        "it would have to wait for {} h, and the longest wait is {} h",
                        asked / 3_600_000,
                        self.longest.as_secs() / 3600
                    ));
                }
                Some(asked) => asked,
                None => millis(self.backoff(past.attempts, random)),
            },
            Action::Restart => millis(self.after_crash(&past.crashes, now)),
            Action::NewSession | Action::Message => 0,
        };
        let at = now.saturating_add(wait);
        Decision::Do(Next { action, at, attempt: past.attempts + 1, since: now, stop: stop.clone() })
    }

    /// base × 2^attempts, at most cap, ± 10 %.
    pub fn backoff(&self, attempts: u32, random: f64) -> Duration {
        let whole = self.base.saturating_mul(2u32.saturating_pow(attempts)).min(self.cap);
        whole.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0))
    }

    /// How long was asked for, in milliseconds.
    fn asked(&self, stop: &Stop, now: u64) -> Option<u64> {
        match stop.retry.as_ref()?.when {
            When::In(millis) => Some(millis),
            // One that is past already says nothing of how long it will take.
            When::At(at) => at.checked_sub(now).filter(|wait| *wait > 0),
            When::Clock { .. } => None,
        }
    }

    fn after_crash(&self, crashes: &[u64], now: u64) -> Duration {
        let window = now.saturating_sub(millis(self.crash_window));
        let recent = crashes.iter().filter(|at| **at >= window).count();
        if recent >= self.crash_limit { self.crash_pause } else { self.crash_delay }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::classify::{RetryAt, RetrySource};
    use proptest::prelude::*;

    fn stopped(reason: Reason, when: Option<When>) -> Stop {
        let retry = when.map(|when| RetryAt { source: RetrySource::Words, when });
        Stop { retry, ..Stop::plain(reason, "test") }
    }

    fn decided(stop: &Stop, past: &Past) -> Decision {
        Plan::default().decide(stop, past, 1_000_000, 0.5)
    }

    fn doing(stop: &Stop, past: &Past) -> (Action, u64, u32) {
        match decided(stop, past) {
            Decision::Do(next) => (next.action, next.at - 1_000_000, next.attempt),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_reason_has_its_own_consequence() {
        let past = Past::default();
        assert_eq!(doing(&stopped(Reason::RateLimit, None), &past), (Action::Resume, 30_000, 1));
        assert_eq!(doing(&stopped(Reason::ContextExhausted, None), &past), (Action::NewSession, 0, 1));
        assert_eq!(doing(&stopped(Reason::Crash, None), &past), (Action::Restart, 1_000, 1));
        for reason in [Reason::Completed, Reason::UserExit, Reason::Ended, Reason::Lost, Reason::Unknown] {
            assert_eq!(decided(&stopped(reason, None), &past), Decision::Nothing, "{reason:?}");
        }
    }

    #[test]
    fn what_was_asked_for_is_waited_and_nothing_else() {
        let past = Past { attempts: 3, ..Past::default() };
        let wait = |when| doing(&stopped(Reason::RateLimit, Some(when)), &past).1;
        assert_eq!(wait(When::In(37_000)), 37_000);
        assert_eq!(wait(When::At(1_090_000)), 90_000);
        assert_eq!(wait(When::At(900_000)), 240_000, "a time that is past says nothing");
        let week = stopped(Reason::RateLimit, Some(When::In(8 * 86_400_000)));
        assert!(matches!(decided(&week, &past), Decision::GiveUp(why) if why.contains("192 h")));
    }

    #[test]
    fn the_third_crash_in_a_minute_backs_off_and_the_attempts_are_bounded() {
        let crash = stopped(Reason::Crash, None);
        let after =
            |crashes: &[u64], attempts| doing(&crash, &Past { attempts, crashes: crashes.to_vec() }).1;
        assert_eq!(after(&[999_000, 1_000_000], 1), 1_000);
        assert_eq!(after(&[990_000, 999_000, 1_000_000], 2), 60_000);
        assert_eq!(after(&[900_000, 910_000, 1_000_000], 2), 1_000, "older ones do not count");
        let past = Past { attempts: 5, crashes: vec![] };
        assert!(matches!(decided(&crash, &past), Decision::GiveUp(why) if why.starts_with("5 attempts")));
    }

    proptest! {
        #[test]
        fn a_wait_doubles_to_the_cap_and_strays_by_a_tenth(attempts in 0u32..200, random in 0.0f64..=1.0) {
            let plan = Plan::default();
            let exact = 30.0 * 2f64.powi(i32::try_from(attempts.min(20)).unwrap());
            let exact = exact.min(300.0);
            let wait = plan.backoff(attempts, random).as_secs_f64();
            prop_assert!(wait >= exact * 0.9 - 1e-6 && wait <= exact * 1.1 + 1e-6, "{wait} {exact}");
        }
    }
}
