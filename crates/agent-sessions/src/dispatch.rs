//! Dispatches requests: finds out who asks, checks that it may, and answers.

use crate::error::{Error, ErrorCode};
use crate::process_table;
use crate::protocol::SupervisorRequest;
use crate::record::SessionRecord;
use crate::requester::SessionCaller;
use crate::supervisor::Supervisor;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

impl Supervisor {
    /// Finds out who the process `pid` is, as far as the system vouches for it. `principal` is the caller for whom it
    /// says it asks: whoever may ask for all may ask for one.
    ///
    /// # Errors
    /// It belongs to another caller.
    pub(crate) fn requester(
        &self,
        pid: Option<u32>,
        principal: Option<&str>,
    ) -> Result<SessionCaller, Error> {
        let Some(pid) = pid else { return Ok(SessionCaller::for_principal(principal)) };
        // From the process table and not from what the client says: a program cannot choose its ancestors.
        let session = self.session_of_process(pid);
        let session_principal = session.as_ref().and_then(|session| session.principal.clone());
        if session_principal.is_some() && principal.is_some() && session_principal.as_deref() != principal {
            return Err(Error::new(
                ErrorCode::Refused,
                "a session asks for the caller to whom it belongs, and for nobody else",
            ));
        }
        let is_untrusted = session.is_none() && self.is_untrusted(pid);
        Ok(SessionCaller {
            session,
            principal: session_principal.or_else(|| principal.map(str::to_owned)),
            is_untrusted,
        })
    }

    /// Tells whether a process outside all sessions was run for somebody else.
    fn is_untrusted(&self, pid: u32) -> bool {
        let supervisor_pid = std::process::id();
        if pid == supervisor_pid {
            return false;
        }
        match process_table::is_restricted(pid) {
            // Gone before it could be looked at: nothing vouches for it.
            None => true,
            // Confined, and this process is not. No program can undo that (`PR_SET_NO_NEW_PRIVS`, which Landlock
            // needs).
            Some(true) if process_table::is_restricted(supervisor_pid) == Some(false) => true,
            // A shared server runs programs for many: its descendants may be anybody's.
            Some(_) => {
                self.0.context.options.shared_server
                    && process_table::ancestors(pid).contains(&supervisor_pid)
            }
        }
    }

    /// Returns the session to which a process belongs, by its ancestors, which it cannot choose.
    fn session_of_process(&self, pid: u32) -> Option<Arc<SessionRecord>> {
        let records = self.0.registry.records(None);
        let leaders: HashMap<u32, &Arc<SessionRecord>> =
            records.iter().filter_map(|record| Some((record.state.process()?.pid, record))).collect();
        process_table::ancestors(pid).iter().find_map(|pid| leaders.get(pid).map(|record| Arc::clone(record)))
    }

    /// Answers a request.
    ///
    /// # Errors
    /// The requester may not ask that, or it was not done.
    pub(crate) async fn answer(
        &self,
        request: SupervisorRequest,
        requester: &SessionCaller,
    ) -> Result<Value, Error> {
        // Before anything is looked up, so that a refusal does not tell which sessions exist.
        requester.authorize(&request)?;
        let principal = requester.principal.as_deref();
        match request {
            SupervisorRequest::Status {} => to_json(&self.status_for(principal)),
            SupervisorRequest::Pause {} => to_json(&self.set_paused(principal, true).await),
            SupervisorRequest::Resume {} => to_json(&self.set_paused(principal, false).await),
            SupervisorRequest::List { all } => to_json(&self.list_for(principal, all)),
            SupervisorRequest::New(new) => {
                to_json(&self.new_session_for(principal, requester.limit(*new)).await?)
            }
            SupervisorRequest::Send { session_id, text } => {
                self.check_owner(&session_id, principal)?;
                to_json(&self.send(&session_id, &text).await?)
            }
            SupervisorRequest::End { session_id, grace_ms } => {
                self.check_owner(&session_id, principal)?;
                to_json(&self.end(&session_id, Duration::from_millis(grace_ms)).await?)
            }
            SupervisorRequest::Logs(logs) => {
                if let Some(session) = &logs.session {
                    self.check_owner(session, principal)?;
                }
                to_json(&self.logs_for(principal, &logs).await?)
            }
            SupervisorRequest::Identify { credential } => to_json(&self.identify(&credential)?),
            // The connection itself answers the first of these.
            SupervisorRequest::For { .. } => {
                Err(Error::new(ErrorCode::Invalid, "`for` comes once, before the other requests"))
            }
        }
    }

    /// Checks that a session belongs to a caller. A session of another is answered as one that does not exist.
    fn check_owner(&self, id: &str, principal: Option<&str>) -> Result<(), Error> {
        match self.record_of(id)?.belongs_to(principal) {
            true => Ok(()),
            false => Err(Error::no_session(id)),
        }
    }
}

fn to_json<T: serde::Serialize>(answer: &T) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| Error::broken("cannot write the answer", &error))
}
