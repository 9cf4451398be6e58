//! The states of a session, and which may follow which.

use super::classify::Stop;
use serde::{Deserialize, Serialize};

/// A process, so that it is told from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// When the system started it, in the system's own count; see `starttime` in `proc_pid_stat(5)`.
    pub started: u64,
}

/// What is done for a session whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Its agent is started again and goes on where it was.
    Resume,
    /// A new session begins with the next step; this one is over.
    NewSession,
    /// Its command is started again as it was.
    Restart,
    /// Its agent is started again with a message.
    Message,
}

impl Action {
    /// Its name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::NewSession => "new_session",
            Self::Restart => "restart",
            Self::Message => "message",
        }
    }
}

/// What happens next, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// What.
    pub action: Action,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The how manieth attempt it is, from 1.
    pub attempt: u32,
    /// When it was decided, in milliseconds since 1970.
    pub since: u64,
    /// Why.
    pub stop: Stop,
}

/// What a session is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Its process is about to run.
    Starting,
    /// Its process runs.
    Running {
        /// The process.
        process: Process,
    },
    /// Its process has ended, and something is done about it at a time.
    Waiting {
        /// What, and when.
        next: Next,
    },
    /// It is being done.
    Resuming {
        /// What.
        next: Next,
    },
    /// It would be done, and is not as long as everything is paused.
    Paused {
        /// What.
        next: Next,
    },
    /// It is over, until somebody sends it a message.
    Stopped {
        /// Why.
        stop: Stop,
    },
    /// It cannot go on.
    Failed {
        /// Why.
        why: String,
        /// Why its process had ended, if there was one.
        stop: Option<Stop>,
    },
}

/// What happens to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Its process runs.
    Started(Process),
    /// Its process could not be started: what is tried next, if anything.
    NotStarted {
        /// Why not.
        why: String,
        /// What is tried next.
        next: Option<Next>,
    },
    /// Its process has ended.
    Ended {
        /// Why.
        stop: Stop,
        /// What is done about it, if anything.
        next: Option<Next>,
        /// Why nothing is done although something should be.
        given_up: Option<String>,
    },
    /// The time has come.
    Due,
    /// Everything is paused.
    Pause,
    /// Nothing is paused any more.
    Unpause,
    /// What was to be done is not done.
    Cancel,
    /// Another session goes on in its place.
    Replaced,
    /// Somebody has a message for a session that is over.
    Again(Next),
}

/// A state in which something cannot happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session that is {state} cannot {event}")]
pub struct Illegal {
    /// The state.
    pub state: &'static str,
    /// What cannot happen.
    pub event: &'static str,
}

impl State {
    /// Its name in answers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running { .. } => "running",
            Self::Waiting { .. } => "waiting",
            Self::Resuming { .. } => "resuming",
            Self::Paused { .. } => "paused",
            Self::Stopped { .. } => "stopped",
            Self::Failed { .. } => "failed",
        }
    }

    /// Its process, where it has one.
    pub fn process(&self) -> Option<Process> {
        match self {
            Self::Running { process } => Some(*process),
            _ => None,
        }
    }

    /// What is done next, where something is.
    pub fn next(&self) -> Option<&Next> {
        match self {
            Self::Waiting { next } | Self::Resuming { next } | Self::Paused { next } => Some(next),
            _ => None,
        }
    }

    /// Why its process ended last, where it has.
    pub fn stop(&self) -> Option<&Stop> {
        match self {
            Self::Stopped { stop } => Some(stop),
            Self::Failed { stop, .. } => stop.as_ref(),
            _ => self.next().map(|next| &next.stop),
        }
    }

    /// Nothing happens to it by itself any more.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::Failed { .. })
    }

    /// The state after `event`.
    ///
    /// # Errors
    /// It cannot happen in this state.
    pub fn after(&self, event: Event) -> Result<Self, Illegal> {
        let illegal = Illegal { state: self.name(), event: event.name() };
        Ok(match (self, event) {
            (Self::Starting | Self::Resuming { .. }, Event::Started(process)) => Self::Running { process },
            (Self::Starting, Event::NotStarted { why, .. }) => Self::Failed { why, stop: None },
            (Self::Resuming { .. }, Event::NotStarted { next: Some(next), .. }) => Self::Waiting { next },
            // It was over before, and still is.
            (Self::Resuming { next: done }, Event::NotStarted { next: None, .. })
                if done.action == Action::Message =>
            {
                Self::Stopped { stop: done.stop.clone() }
            }
            (Self::Resuming { next: done }, Event::NotStarted { why, next: None }) => {
                Self::Failed { why, stop: Some(done.stop.clone()) }
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
            (Self::Stopped { .. }, Event::Again(next)) => Self::Waiting { next },
            _ => return Err(illegal),
        })
    }
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Self::Started(_) => "start to run",
            Self::NotStarted { .. } => "fail to start",
            Self::Ended { .. } => "end",
            Self::Due => "become due",
            Self::Pause => "be paused",
            Self::Unpause => "be taken up again",
            Self::Cancel => "be cancelled",
            Self::Replaced => "be replaced",
            Self::Again(_) => "begin again",
        }
    }
}

/// One change of a session's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The state before; empty for the first.
    pub from: String,
    /// The state after.
    pub to: String,
    /// Why.
    pub reason: String,
}

/// A session's state, which only legal events change.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    state: State,
    since: u64,
}

impl Machine {
    /// One that is starting.
    pub fn new(at: u64) -> Self {
        Self { state: State::Starting, since: at }
    }

    /// One that was written down.
    pub fn restored(state: State, since: u64) -> Self {
        Self { state, since }
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Since when, in milliseconds since 1970.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Changes the state, and says how.
    ///
    /// # Errors
    /// The event cannot happen now; nothing has changed.
    pub fn apply(&mut self, event: Event, at: u64, reason: impl Into<String>) -> Result<Transition, Illegal> {
        let state = self.state.after(event)?;
        let (from, to) = (self.state.name().to_owned(), state.name().to_owned());
        (self.state, self.since) = (state, at);
        Ok(Transition { at, from, to, reason: reason.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::classify::{Reason, Stop};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn stop() -> Stop {
        Stop::plain(Reason::Crash, "exit code 1")
    }

    fn next(at: u64) -> Next {
        Next { action: Action::Resume, at, attempt: 1, since: 0, stop: stop() }
    }

    fn event(kind: u8, with_next: bool, pid: u32) -> Event {
        let then = with_next.then(|| next(u64::from(pid)));
        match kind {
            0 => Event::Started(Process { pid, started: u64::from(pid) * 7 }),
            1 => Event::NotStarted { why: "no such program".to_owned(), next: then },
            2 => Event::Ended { stop: stop(), next: then, given_up: None },
            3 => Event::Ended { stop: stop(), next: None, given_up: Some("5 attempts".to_owned()) },
            4 => Event::Due,
            5 => Event::Pause,
            6 => Event::Unpause,
            7 => Event::Cancel,
            8 => Event::Replaced,
            _ => Event::Again(next(1)),
        }
    }

    proptest! {
        /// Whatever happens in whatever order to many sessions: none is lost, none is in a state that it could
        /// not reach, and the processes that are there are exactly those that a running session owns.
        #[test]
        fn no_order_of_events_loses_a_session_or_leaves_a_process_without_an_owner(
            events in prop::collection::vec((0usize..6, 0u8..10, any::<bool>()), 0..400)
        ) {
            let mut sessions: BTreeMap<usize, Machine> = (0..6).map(|id| (id, Machine::new(0))).collect();
            let mut processes: BTreeSet<Process> = BTreeSet::new();
            for (at, (id, kind, with_next)) in events.into_iter().enumerate() {
                let machine = sessions.get_mut(&id).unwrap();
                let before = machine.clone();
                let happened = event(kind, with_next, u32::try_from(at).unwrap() + 1);
                match machine.apply(happened.clone(), at as u64, "test") {
                    Ok(transition) => {
                        prop_assert_eq!(&transition.from, before.state().name());
                        prop_assert_eq!(&transition.to, machine.state().name());
                        prop_assert!(!matches!(before.state(), State::Failed { .. }), "what failed is final");
                        if let Event::Started(process) = happened {
                            processes.insert(process);
                        }
                        // The only ways out of having a process are that it has ended.
                        if let Some(process) = before.state().process() {
                            let ended = matches!(happened, Event::Ended { .. });
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
            let mut machine = Machine::new(0);
            let _ = machine.apply(event(first, with_next, 3), 1, "test");
            let _ = machine.apply(event(kind, with_next, 4), 2, "test");
            let text = serde_json::to_string(machine.state()).unwrap();
            prop_assert_eq!(machine.state(), &serde_json::from_str::<State>(&text).unwrap());
        }
    }

    impl PartialOrd for Process {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Process {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            (self.pid, self.started).cmp(&(other.pid, other.started))
        }
    }

    #[test]
    fn a_limit_leads_through_waiting_and_resuming_back_to_running() {
        let mut machine = Machine::new(0);
        let process = Process { pid: 7, started: 1 };
        let mut names = vec![machine.state().name()];
        let ended = Event::Ended { stop: stop(), next: Some(next(30)), given_up: None };
        for event in [
            Event::Started(process),
            ended,
            Event::Pause,
            Event::Unpause,
            Event::Due,
            Event::Started(Process { pid: 8, started: 2 }),
        ] {
            machine.apply(event, 1, "test").unwrap();
            names.push(machine.state().name());
        }
        assert_eq!(names, ["starting", "running", "waiting", "paused", "waiting", "resuming", "running"]);
    }

    #[test]
    fn a_session_with_a_process_cannot_be_cancelled_away_from_it() {
        let mut machine = Machine::new(0);
        machine.apply(Event::Started(Process { pid: 7, started: 1 }), 1, "test").unwrap();
        let refused = machine.apply(Event::Cancel, 2, "test").unwrap_err();
        assert_eq!(refused.to_string(), "a session that is running cannot be cancelled");
        assert_eq!(machine.state().name(), "running");
    }
}
