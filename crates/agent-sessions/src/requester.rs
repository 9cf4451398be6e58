//! The requester: who asks a supervisor, and what it may ask.

use crate::error::{Error, ErrorCode};
use crate::protocol::{NewSession, SupervisorRequest};
use crate::record::SessionRecord;
use std::sync::Arc;

/// The requester. The default is the user for whom the supervisor runs, to whom all sessions belong.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionCaller {
    /// The session to which the requesting process belongs.
    pub(crate) session: Option<Arc<SessionRecord>>,
    /// The caller of a shared server. Only its own sessions exist for it.
    pub(crate) principal: Option<String>,
    /// Tells that the process was run by somebody else's tool: it speaks for nobody.
    pub(crate) is_untrusted: bool,
}

impl SessionCaller {
    /// Creates the requester for a caller of a shared server or, without a name, for the user.
    pub(crate) fn for_principal(principal: Option<&str>) -> Self {
        Self { principal: principal.map(str::to_owned), ..Self::default() }
    }

    /// Checks whether the requester may make a request.
    ///
    /// An untrusted process may only ask to whom its credential belongs. The agent of a session that may not steer
    /// others may only ask what concerns itself, whatever its own server allows it.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn authorize(&self, request: &SupervisorRequest) -> Result<(), Error> {
        // A credential proves itself, so anybody may ask whose it is.
        if self.is_untrusted && !matches!(request, SupervisorRequest::Identify { .. }) {
            return Err(Error::new(
                ErrorCode::Refused,
                "a program that a tool runs, or one without privileges to gain (PR_SET_NO_NEW_PRIVS), steers no \
                 sessions; use the tools",
            ));
        }
        let Some(session) = &self.session else { return Ok(()) };
        let is_steering = match request {
            SupervisorRequest::Status {}
            | SupervisorRequest::List { .. }
            | SupervisorRequest::Identify { .. }
            | SupervisorRequest::For { .. } => false,
            SupervisorRequest::Logs(logs) => logs.session.as_deref().is_some_and(|id| id != session.id),
            SupervisorRequest::Pause {}
            | SupervisorRequest::Resume {}
            | SupervisorRequest::New(_)
            | SupervisorRequest::Send { .. }
            | SupervisorRequest::End { .. } => true,
        };
        if !is_steering || session.orchestrates {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::Refused,
            format!("session {} runs as {}, which starts and steers no sessions", session.id, session.role),
        ))
    }

    /// Checks whether the requester may steer sessions.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn authorize_steering(&self) -> Result<(), Error> {
        self.authorize(&SupervisorRequest::Pause {})
    }

    /// Returns a new session within the limits of the requester's own: with all roles of that too, its confinement,
    /// its environment, its roots and at most its resources, and steering others only if that does.
    pub(crate) fn limit(&self, mut new: NewSession) -> NewSession {
        let Some(parent) = &self.session else { return new };
        // Each role can only take away, so all of the parent's together allow no more than it may do itself.
        for role in &parent.roles {
            if !new.roles.contains(role) {
                new.roles.push(role.clone());
            }
        }
        new.orchestrates &= parent.orchestrates;
        new.parent = Some(parent.id.clone());
        // The parent may be an agent that asks for a session outside its own confinement.
        if parent.confinement.is_some() {
            new.confinement.clone_from(&parent.confinement);
        }
        new.resource_limits = new.resource_limits.narrowed_by(parent.resource_limits);
        if parent.inherited_variables.is_some() {
            new.inherited_variables.clone_from(&parent.inherited_variables);
        }
        if !parent.roots.is_empty() {
            new.roots.clone_from(&parent.roots);
        }
        new
    }
}
