//! [`SessionFollower`]: notices the changes of the sessions of a supervisor in another process.

use crate::change::SessionChange;
use crate::client::SupervisorClient;
use crate::error::Error;
use crate::protocol::{SessionInfo, SessionList, SessionLogLines, SessionLogRequest, SupervisorRequest};
use crate::state_kind::SessionStateKind;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The longest time of one wait for a line of the supervisor's log.
const WAIT: Duration = Duration::from_secs(30);
/// The most lines of the log that are read at once. Their text does not matter.
const MAX_LINES: usize = 1000;

/// Notices the changes of the sessions of a supervisor in another process: each change has a line in the supervisor's log,
/// and the list of sessions then has the new state.
#[derive(Debug)]
pub(crate) struct SessionFollower {
    client: SupervisorClient,
    /// The position in the log up to which the states are known.
    cursor: u64,
    states: BTreeMap<String, SessionStateKind>,
}

impl SessionFollower {
    /// Follows the sessions of the supervisor of the state directory `state` from now on.
    ///
    /// # Errors
    /// There is no supervisor, or it refuses to list its sessions.
    pub(crate) async fn begin(state: &Path) -> Result<Self, Error> {
        let client = SupervisorClient::new(state);
        let mut follower = Self { client, cursor: 0, states: BTreeMap::new() };
        // The position before the list, so that a change between the two is noticed.
        let log: SessionLogLines = follower.ask(SupervisorRequest::Logs(SessionLogRequest::new(1))).await?;
        follower.cursor = log.cursor;
        let sessions = follower.sessions().await?;
        follower.states = sessions.into_iter().map(|session| (session.session_id, session.state)).collect();
        Ok(follower)
    }

    /// Waits for changes. Returns none if there were none for a while.
    ///
    /// # Errors
    /// The supervisor has ended, or refuses.
    pub(crate) async fn next(&mut self) -> Result<Vec<SessionChange>, Error> {
        let mut request = SessionLogRequest::new(MAX_LINES);
        request.cursor = Some(self.cursor);
        request.wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX);
        let log: SessionLogLines = self.ask(SupervisorRequest::Logs(request)).await?;
        self.cursor = log.cursor;
        if log.lines.is_empty() {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        for session in self.sessions().await? {
            let before = self.states.insert(session.session_id.clone(), session.state);
            if before != Some(session.state) {
                changes.push(change_of(session));
            }
        }
        Ok(changes)
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        let list: SessionList = self.ask(SupervisorRequest::List { all: true }).await?;
        Ok(list.sessions)
    }

    async fn ask<T: DeserializeOwned>(&self, request: SupervisorRequest) -> Result<T, Error> {
        let answer = self.client.ask(&request).await?;
        serde_json::from_value(answer)
            .map_err(|error| Error::broken("the supervisor's answer cannot be read", &error))
    }
}

fn change_of(session: SessionInfo) -> SessionChange {
    SessionChange {
        reason: session.failure.unwrap_or_else(|| format!("it is {}", session.state)),
        session_id: session.session_id,
        principal: session.principal,
        state: session.state,
    }
}
