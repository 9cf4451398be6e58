//! Who asks, and what of the sessions is theirs.

use super::error::{Code, Error};
use super::process;
use super::protocol::{NewSession, Request};
use super::store::Record;
use super::supervisor::Supervisor;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// Who asks a supervisor. The default is the user that it runs for, to whom all sessions belong.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    /// The session that it belongs to.
    session: Option<Record>,
    /// The caller of a server for many. For it there are its own sessions and no others.
    principal: Option<String>,
    /// A program that somebody has run by a tool: it speaks for nobody.
    is_stranger: bool,
}

impl Asker {
    /// A caller of a server for many, or, where it has no name, the user that the supervisor runs for.
    pub fn of(principal: Option<&str>) -> Self {
        Self { principal: principal.map(str::to_owned), ..Self::default() }
    }
}

impl Supervisor {
    /// Who the process `pid` is, as far as the system vouches for it. `principal` is for whom it says that it asks: who
    /// may ask for all may ask for one.
    ///
    /// # Errors
    /// It asks for another than it belongs to.
    pub(super) fn asker(&self, pid: Option<u32>, principal: Option<&str>) -> Result<Asker, Error> {
        let Some(pid) = pid else { return Ok(Asker::of(principal)) };
        let session = self.session_of(pid);
        let own = session.as_ref().and_then(|session| session.principal.clone());
        if own.is_some() && principal.is_some() && own.as_deref() != principal {
            return Err(Error::new(
                Code::Refused,
                "a session asks for whom it belongs to, and for nobody else",
            ));
        }
        let is_stranger = session.is_none() && self.is_stranger(pid);
        Ok(Asker { session, principal: own.or_else(|| principal.map(str::to_owned)), is_stranger })
    }

    /// Whether a process is one that was run for somebody else: it is gone before it could be looked at; it is behind a
    /// fence and we are not, which no program can undo (`PR_SET_NO_NEW_PRIVS`, which Landlock asks for); or it descends
    /// from this process, which runs programs for many.
    fn is_stranger(&self, pid: u32) -> bool {
        let own = std::process::id();
        if pid == own {
            return false;
        }
        match process::is_restricted(pid) {
            None => true,
            Some(true) if process::is_restricted(own) == Some(false) => true,
            Some(_) => self.0.options.strangers && process::ancestors(pid).contains(&own),
        }
    }

    /// What is asked, done.
    ///
    /// # Errors
    /// It was not done, and why.
    pub async fn answer(&self, request: Request, asker: &Asker) -> Result<Value, Error> {
        fn json<T: serde::Serialize>(answer: &T) -> Result<Value, Error> {
            serde_json::to_value(answer).map_err(|error| Error::broken("cannot write the answer", &error))
        }
        check(asker, &request)?;
        let principal = asker.principal.as_deref();
        match request {
            Request::Status {} => json(&self.status_for(principal)),
            Request::Pause {} => json(&self.switch(principal, true).await),
            Request::Resume {} => json(&self.switch(principal, false).await),
            Request::List { all } => json(&self.list_for(principal, all)),
            Request::New(new) => {
                let new = match &asker.session {
                    Some(parent) => within(*new, parent),
                    None => *new,
                };
                json(&self.new_session_for(principal, new).await?)
            }
            Request::Send { session_id, text } => {
                self.check_owner(&session_id, principal)?;
                json(&self.send(&session_id, &text).await?)
            }
            Request::End { session_id, grace_ms } => {
                self.check_owner(&session_id, principal)?;
                json(&self.end(&session_id, Duration::from_millis(grace_ms)).await?)
            }
            Request::Logs(logs) => {
                if let Some(session) = &logs.session {
                    self.check_owner(session, principal)?;
                }
                json(&self.logs_for(principal, &logs).await?)
            }
            Request::Identify { credential } => json(&self.identify(&credential)?),
            // Of a connection, where it is answered.
            Request::For { .. } => Err(Error::new(Code::Invalid, "who asks is said first, and once")),
        }
    }

    /// Whether whoever asks may steer sessions.
    pub(super) fn may_steer(&self, asker: &Asker) -> Result<(), Error> {
        check(asker, &Request::Pause {})
    }

    /// A session of another is answered as one that there is not.
    fn check_owner(&self, id: &str, principal: Option<&str>) -> Result<(), Error> {
        match self.record_of(id)?.is_of(principal) {
            true => Ok(()),
            false => Err(Error::no_session(id)),
        }
    }

    /// The session that a process belongs to, if to one: by its ancestors, which it cannot choose.
    fn session_of(&self, pid: u32) -> Option<Record> {
        let table = self.table();
        let running = table
            .sessions
            .iter()
            .filter_map(|(id, entry)| entry.record.state.process().map(|process| (process.pid, id.as_str())));
        let leaders: HashMap<u32, &str> = running.collect();
        let id = process::session_of(pid, &leaders)?;
        table.sessions.get(id).map(|entry| entry.record.clone())
    }
}

/// What the agent of a session may ask for itself, whatever its own server lets it: where it may not steer others, only
/// what tells of itself. What a stranger may ask is nothing but whose credential it has.
fn check(asker: &Asker, request: &Request) -> Result<(), Error> {
    if asker.is_stranger && !matches!(request, Request::Identify { .. }) {
        return Err(Error::new(
            Code::Refused,
            "a program that a tool runs, or one without privileges to gain (PR_SET_NO_NEW_PRIVS), steers no sessions; \
             use the tools",
        ));
    }
    let Some(session) = &asker.session else { return Ok(()) };
    let own = |id: &str| id == session.id;
    let harmless = match request {
        Request::Status {} | Request::List { .. } | Request::Identify { .. } | Request::For { .. } => true,
        Request::Logs(logs) => logs.session.as_deref().is_none_or(own),
        Request::Pause {}
        | Request::Resume {}
        | Request::New(_)
        | Request::Send { .. }
        | Request::End { .. } => false,
    };
    if harmless || session.orchestrates {
        return Ok(());
    }
    Err(Error::new(
        Code::Refused,
        format!("session {} runs as {}, which starts and steers no sessions", session.id, session.role),
    ))
}

/// A session within the one that asks for it: in all its roles too, behind its fence, and steering others only if that
/// does.
fn within(mut new: NewSession, parent: &Record) -> NewSession {
    for role in &parent.roles {
        if !new.roles.contains(role) {
            new.roles.push(role.clone());
        }
    }
    new.orchestrates &= parent.orchestrates;
    new.parent = Some(parent.id.clone());
    if parent.confinement.is_some() {
        new.confinement.clone_from(&parent.confinement);
    }
    if !parent.roots.is_empty() {
        new.roots.clone_from(&parent.roots);
    }
    new
}
