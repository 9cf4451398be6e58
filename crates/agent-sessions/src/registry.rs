//! The routing table of a supervisor: the references to its sessions by id.

use crate::error::{Error, ErrorCode};
use crate::options::EffectiveSupervisorOptions;
use crate::record::SessionRecord;
use crate::session::SessionRef;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The references to all sessions of a supervisor.
#[derive(Debug, Default)]
pub(crate) struct SessionRegistry(Mutex<SessionTable>);

#[derive(Debug, Default)]
struct SessionTable {
    sessions: BTreeMap<String, SessionRef>,
    /// Tells that no session is added any more.
    closed: bool,
}

impl SessionRegistry {
    /// Adds a session that an earlier supervisor left. No limit keeps it out.
    pub(crate) fn insert(&self, session: SessionRef) {
        let id = session.record().id.clone();
        self.routes().sessions.insert(id, session);
    }

    /// Adds a new session.
    ///
    /// # Errors
    /// A limit is reached, or the supervisor is ending.
    pub(crate) fn admit(
        &self,
        session: SessionRef,
        settings: &EffectiveSupervisorOptions,
    ) -> Result<(), Error> {
        // Counted and added under one lock, so that no two sessions take the last place.
        let mut routes = self.routes();
        if routes.closed {
            return Err(Error::ending());
        }
        let record = session.record();
        // A session that continues the work of another takes its place.
        if record.replaces.is_none() {
            let open: Vec<_> = routes
                .sessions
                .values()
                .map(SessionRef::record)
                .filter(|record| !record.state.is_over())
                .collect();
            let principal = record.principal.as_deref();
            let own_count = open.iter().filter(|open| open.belongs_to(principal)).count();
            if principal.is_some() && own_count >= settings.max_per_caller {
                return Err(limit_reached(settings.max_per_caller, "of your "));
            }
            if open.len() >= settings.max_sessions {
                return Err(limit_reached(settings.max_sessions, ""));
            }
        }
        routes.sessions.insert(record.id.clone(), session);
        Ok(())
    }

    /// Returns the session with this id.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, id: &str) -> Result<SessionRef, Error> {
        self.routes().sessions.get(id).cloned().ok_or_else(|| Error::no_session(id))
    }

    /// Returns all sessions.
    pub(crate) fn all(&self) -> Vec<SessionRef> {
        self.routes().sessions.values().cloned().collect()
    }

    /// Returns the records of a caller's sessions, the oldest first.
    pub(crate) fn records(&self, principal: Option<&str>) -> Vec<Arc<SessionRecord>> {
        let mut records: Vec<_> = self.routes().sessions.values().map(SessionRef::record).collect();
        records.retain(|record| record.belongs_to(principal));
        records.sort_by_key(|record| record.created);
        records
    }

    /// Removes a session.
    pub(crate) fn remove(&self, id: &str) {
        self.routes().sessions.remove(id);
    }

    /// Adds no session any more, and returns those there are.
    pub(crate) fn close(&self) -> Vec<SessionRef> {
        // In one step, so that no session comes in between and is left running.
        let mut routes = self.routes();
        routes.closed = true;
        routes.sessions.values().cloned().collect()
    }

    fn routes(&self) -> MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn limit_reached(limit: usize, owner: &str) -> Error {
    let message =
        format!("{limit} {owner}sessions are not over, which is the most there may be; end one first");
    Error::new(ErrorCode::Full, message)
}
