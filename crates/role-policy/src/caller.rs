//! Who is calling.

/// Who is calling: a role, and where there is one, the person or token behind it and its session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    role: String,
    principal: Option<String>,
    session: Option<String>,
}

impl Caller {
    /// A caller in `role`, with no principal and no session.
    pub fn new(role: impl Into<String>) -> Self {
        Self { role: role.into(), principal: None, session: None }
    }

    /// Names the person or token behind the calls. None by default: a local server has one user.
    #[must_use]
    pub fn with_principal(mut self, principal: impl Into<String>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Names the session the calls belong to. None by default.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The role's name.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// The person or token behind the calls, where there is one.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// The session the calls belong to, where there is one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}
