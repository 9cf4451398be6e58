//! The states of a session, and the transitions between them.

use crate::diagnosis::SessionStopDiagnosis;
use crate::process_table::ProcessIdentity;
use crate::state_kind::SessionStateKind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An action for a session whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionAction {
    /// Starts the agent again, which continues its conversation.
    Resume,
    /// Ends this session and starts another with the next step.
    NewSession,
    /// Starts the command again as it was.
    Restart,
    /// Starts the agent again with a message.
    Message,
}

impl SessionAction {
    /// Returns the name that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::NewSession => "new_session",
            Self::Restart => "restart",
            Self::Message => "message",
        }
    }

    /// Describes the action for a log line, as a verb phrase.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::NewSession => "go on in a new session",
            Self::Restart => "restart",
            Self::Message => "go on with a message",
        }
    }
}

impl fmt::Display for SessionAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An action with the time at which it is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScheduledSessionAction {
    /// The action.
    pub(crate) action: SessionAction,
    /// The time at which it is due, in milliseconds since 1970.
    pub(crate) at: u64,
    /// The number of the attempt, from 1.
    pub(crate) attempt: u32,
    /// The time at which it was decided, in milliseconds since 1970.
    pub(crate) since: u64,
    /// The stop that it answers.
    pub(crate) stop: SessionStopDiagnosis,
}

/// The state of a session. It is stored as JSON, so that the names of its fields stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum SessionState {
    /// The first process is being started.
    Starting,
    /// The process runs.
    Running {
        /// The process.
        process: ProcessIdentity,
    },
    /// The process has ended, and an action is due later.
    Waiting {
        /// The action.
        next: ScheduledSessionAction,
    },
    /// The action is being done.
    Resuming {
        /// The action.
        next: ScheduledSessionAction,
    },
    /// An action is due or will be, and is held back by a pause.
    Paused {
        /// The action.
        next: ScheduledSessionAction,
    },
    /// The session is over, unless somebody sends it a message.
    Stopped {
        /// The last stop of its process.
        stop: SessionStopDiagnosis,
    },
    /// The session is over and cannot go on.
    Failed {
        /// The reason.
        why: String,
        /// The last stop of its process, if it had one.
        stop: Option<SessionStopDiagnosis>,
    },
}

/// An event that changes the state of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SessionEvent {
    /// The process runs.
    Started(ProcessIdentity),
    /// The process could not be started.
    NotStarted {
        /// The reason.
        why: String,
        /// The next attempt, if there is one.
        next: Option<ScheduledSessionAction>,
    },
    /// The process has ended.
    Ended {
        /// The diagnosis.
        stop: SessionStopDiagnosis,
        /// The action that follows, if there is one.
        next: Option<ScheduledSessionAction>,
        /// The reason why no action follows although one should.
        given_up: Option<String>,
    },
    /// The time of the scheduled action has come.
    Due,
    /// A pause began.
    Pause,
    /// The pause is over.
    Unpause,
    /// The scheduled action was cancelled.
    Cancel,
    /// Another session has taken the place of this one.
    Replaced,
    /// A message revives a session that was over.
    Revived(ScheduledSessionAction),
}

/// The error of an event that cannot happen in a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session that is {state} cannot {event}")]
pub(crate) struct IllegalSessionTransition {
    /// The state.
    pub(crate) state: SessionStateKind,
    /// The event, as a verb phrase.
    pub(crate) event: &'static str,
}

impl SessionState {
    /// Returns the kind of the state.
    pub(crate) fn kind(&self) -> SessionStateKind {
        match self {
            Self::Starting => SessionStateKind::Starting,
            Self::Running { .. } => SessionStateKind::Running,
            Self::Waiting { .. } => SessionStateKind::Waiting,
            Self::Resuming { .. } => SessionStateKind::Resuming,
            Self::Paused { .. } => SessionStateKind::Paused,
            Self::Stopped { .. } => SessionStateKind::Stopped,
            Self::Failed { .. } => SessionStateKind::Failed,
        }
    }

    /// Returns the process, while it runs.
    pub(crate) fn process(&self) -> Option<ProcessIdentity> {
        match self {
            Self::Running { process } => Some(*process),
            _ => None,
        }
    }

    /// Returns the action that is scheduled, held back or being done.
    pub(crate) fn next(&self) -> Option<&ScheduledSessionAction> {
        match self {
            Self::Waiting { next } | Self::Resuming { next } | Self::Paused { next } => Some(next),
            _ => None,
        }
    }

    /// Tells whether the session is over: without a message nothing happens to it any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::Failed { .. })
    }

    /// Returns the state that follows `event`.
    ///
    /// # Errors
    /// The event cannot happen in this state.
    pub(crate) fn after(&self, event: SessionEvent) -> Result<Self, IllegalSessionTransition> {
        use SessionEvent as Event;
        let illegal = IllegalSessionTransition { state: self.kind(), event: event.describe() };
        Ok(match (self, event) {
            (Self::Starting | Self::Resuming { .. }, Event::Started(process)) => Self::Running { process },
            (Self::Starting, Event::NotStarted { why, .. }) => Self::Failed { why, stop: None },
            (Self::Resuming { .. }, Event::NotStarted { next: Some(next), .. }) => Self::Waiting { next },
            // A session that was over before the message is over as it was: its work has not failed.
            (Self::Resuming { next: failed }, Event::NotStarted { next: None, .. })
                if failed.action == SessionAction::Message =>
            {
                Self::Stopped { stop: failed.stop.clone() }
            }
            (Self::Resuming { next: failed }, Event::NotStarted { why, next: None }) => {
                Self::Failed { why, stop: Some(failed.stop.clone()) }
            }
            (Self::Running { .. }, Event::Ended { next: Some(next), .. }) => Self::Waiting { next },
            (Self::Running { .. }, Event::Ended { stop, next: None, given_up: Some(why) }) => {
                Self::Failed { why, stop: Some(stop) }
            }
            (Self::Running { .. }, Event::Ended { stop, next: None, given_up: None }) => {
                Self::Stopped { stop }
            }
            (Self::Waiting { next }, Event::Due) => Self::Resuming { next: next.clone() },
            (Self::Waiting { next }, Event::Pause) => Self::Paused { next: next.clone() },
            (Self::Paused { next }, Event::Unpause) => Self::Waiting { next: next.clone() },
            (Self::Waiting { next } | Self::Paused { next }, Event::Cancel) => {
                Self::Stopped { stop: next.stop.clone() }
            }
            (Self::Resuming { next }, Event::Replaced) => Self::Stopped { stop: next.stop.clone() },
            (Self::Stopped { .. }, Event::Revived(next)) => Self::Waiting { next },
            _ => return Err(illegal),
        })
    }
}

impl SessionEvent {
    fn describe(&self) -> &'static str {
        match self {
            Self::Started(_) => "start to run",
            Self::NotStarted { .. } => "fail to start",
            Self::Ended { .. } => "end",
            Self::Due => "become due",
            Self::Pause => "be paused",
            Self::Unpause => "be unpaused",
            Self::Cancel => "be cancelled",
            Self::Replaced => "be replaced",
            Self::Revived(_) => "be revived",
        }
    }
}

/// A change of a session's state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionStateTransition {
    /// The time, in milliseconds since 1970.
    pub(crate) at: u64,
    /// The state before; none for the first.
    pub(crate) from: Option<SessionStateKind>,
    /// The state after.
    pub(crate) to: SessionStateKind,
    /// The reason.
    pub(crate) reason: String,
}

impl fmt::Display for SessionStateTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(from) = self.from {
            write!(f, "{from} → ")?;
        }
        write!(f, "{}: {}", self.to, self.reason)
    }
}

/// A session's state, which only legal events change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionStateMachine {
    state: SessionState,
    since: u64,
}

impl SessionStateMachine {
    /// Creates the machine of a session that is starting.
    #[cfg(test)]
    pub(crate) fn new(at: u64) -> Self {
        Self { state: SessionState::Starting, since: at }
    }

    /// Creates the machine of a session that is in `state` since a time in milliseconds since 1970.
    pub(crate) fn restored(state: SessionState, since: u64) -> Self {
        Self { state, since }
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// Returns the time since when the session is in this state, in milliseconds since 1970.
    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    /// Applies an event and returns the transition.
    ///
    /// # Errors
    /// The event cannot happen in this state. Nothing has changed.
    pub(crate) fn apply(
        &mut self,
        event: SessionEvent,
        at: u64,
        reason: impl Into<String>,
    ) -> Result<SessionStateTransition, IllegalSessionTransition> {
        let state = self.state.after(event)?;
        let (from, to) = (Some(self.state.kind()), state.kind());
        (self.state, self.since) = (state, at);
        Ok(SessionStateTransition { at, from, to, reason: reason.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::SessionStopCause;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn stop() -> SessionStopDiagnosis {
        SessionStopDiagnosis::certain(SessionStopCause::Crash, "exit code 1")
    }

    fn next(at: u64) -> ScheduledSessionAction {
        ScheduledSessionAction { action: SessionAction::Resume, at, attempt: 1, since: 0, stop: stop() }
    }

    fn event(kind: u8, with_next: bool, pid: u32) -> SessionEvent {
        let then = with_next.then(|| next(u64::from(pid)));
        match kind {
            0 => SessionEvent::Started(ProcessIdentity { pid, started: u64::from(pid) * 7 }),
            1 => SessionEvent::NotStarted { why: "no such program".to_owned(), next: then },
            2 => SessionEvent::Ended { stop: stop(), next: then, given_up: None },
            3 => SessionEvent::Ended { stop: stop(), next: None, given_up: Some("5 attempts".to_owned()) },
            4 => SessionEvent::Due,
            5 => SessionEvent::Pause,
            6 => SessionEvent::Unpause,
            7 => SessionEvent::Cancel,
            8 => SessionEvent::Replaced,
            _ => SessionEvent::Revived(next(1)),
        }
    }

    proptest! {
        /// Many sessions see any events in any order: none is lost, none is in a state that it could
        /// not reach, and the processes that are there are exactly those that a running session owns.
        #[test]
        fn no_order_of_events_loses_a_session_or_leaves_a_process_without_an_owner(
            events in prop::collection::vec((0usize..6, 0u8..10, any::<bool>()), 0..400)
        ) {
            let mut sessions: BTreeMap<usize, SessionStateMachine> = (0..6).map(|id| (id, SessionStateMachine::new(0))).collect();
            let mut processes: BTreeSet<ProcessIdentity> = BTreeSet::new();
            for (at, (id, kind, with_next)) in events.into_iter().enumerate() {
                let machine = sessions.get_mut(&id).unwrap();
                let before = machine.clone();
                let happened = event(kind, with_next, u32::try_from(at).unwrap() + 1);
                match machine.apply(happened.clone(), at as u64, "test") {
                    Ok(transition) => {
                        prop_assert_eq!(transition.from, Some(before.state().kind()));
                        prop_assert_eq!(transition.to, machine.state().kind());
                        prop_assert!(!matches!(before.state(), SessionState::Failed { .. }), "what failed is final");
                        if let SessionEvent::Started(process) = happened {
                            processes.insert(process);
                        }
                        // The only ways out of having a process are that it has ended.
                        if let Some(process) = before.state().process() {
                            let ended = matches!(happened, SessionEvent::Ended { .. });
                            prop_assert!(ended, "{:?}", happened);
                            processes.remove(&process);
                        }
                    }
                    Err(_) => prop_assert_eq!(&before, &*machine, "what is illegal changes nothing"),
                }
                let owned: BTreeSet<_> = sessions.values().filter_map(|machine| machine.state().process()).collect();
                prop_assert_eq!(&owned, &processes);
                prop_assert_eq!(sessions.len(), 6);
            }
        }

        #[test]
        fn a_state_is_read_back_as_it_was_written(kind in 0u8..10, with_next in any::<bool>(), first in 0u8..10) {
            let mut machine = SessionStateMachine::new(0);
            let _ = machine.apply(event(first, with_next, 3), 1, "test");
            let _ = machine.apply(event(kind, with_next, 4), 2, "test");
            let text = serde_json::to_string(machine.state()).unwrap();
            prop_assert_eq!(machine.state(), &serde_json::from_str::<SessionState>(&text).unwrap());
        }
    }

    impl PartialOrd for ProcessIdentity {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for ProcessIdentity {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            (self.pid, self.started).cmp(&(other.pid, other.started))
        }
    }

    #[test]
    fn a_limit_leads_through_waiting_and_resuming_back_to_running() {
        let mut machine = SessionStateMachine::new(0);
        let process = ProcessIdentity { pid: 7, started: 1 };
        let mut names = vec![machine.state().kind().as_str()];
        let ended = SessionEvent::Ended { stop: stop(), next: Some(next(30)), given_up: None };
        for event in [
            SessionEvent::Started(process),
            ended,
            SessionEvent::Pause,
            SessionEvent::Unpause,
            SessionEvent::Due,
            SessionEvent::Started(ProcessIdentity { pid: 8, started: 2 }),
        ] {
            machine.apply(event, 1, "test").unwrap();
            names.push(machine.state().kind().as_str());
        }
        assert_eq!(names, ["starting", "running", "waiting", "paused", "waiting", "resuming", "running"]);
    }

    #[test]
    fn a_session_with_a_process_cannot_be_cancelled_away_from_it() {
        let mut machine = SessionStateMachine::new(0);
        machine.apply(SessionEvent::Started(ProcessIdentity { pid: 7, started: 1 }), 1, "test").unwrap();
        let refused = machine.apply(SessionEvent::Cancel, 2, "test").unwrap_err();
        assert_eq!(refused.to_string(), "a session that is running cannot be cancelled");
        assert_eq!(machine.state().kind(), SessionStateKind::Running);
    }
}
