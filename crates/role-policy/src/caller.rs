//! The caller of a tool.

/// The caller of a tool: its roles and, if known, the person or token behind it and its session.
///
/// Several roles come from several sources, or from two axes such as what the person may and what the
/// session may. Each of them must allow a call: a further role only takes away.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    role: String,
    /// Further roles, each of which narrows the first.
    narrowing: Vec<String>,
    principal: Option<String>,
    session: Option<String>,
}

impl Caller {
    /// Creates a caller in `role`, with no principal and no session.
    pub fn new(role: impl Into<String>) -> Self {
        Self { role: role.into(), narrowing: Vec::new(), principal: None, session: None }
    }

    /// Also puts the caller in `role`: what it may do is what all its roles allow.
    #[must_use]
    pub fn narrowed_by(mut self, role: impl Into<String>) -> Self {
        let role = role.into();
        // The same role twice would be judged twice, and read as `dev and dev`.
        if !self.roles().any(|existing| existing == role) {
            self.narrowing.push(role);
        }
        self
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

    /// Returns the roles, all of which must allow a call. There is at least one.
    pub fn roles(&self) -> impl Iterator<Item = &str> + Clone {
        std::iter::once(self.role.as_str()).chain(self.narrowing.iter().map(String::as_str))
    }

    /// Returns the roles in words: `orchestrator`, or `orchestrator and worker`.
    pub fn role(&self) -> String {
        self.roles().collect::<Vec<_>>().join(" and ")
    }

    /// Returns the person or token behind the calls, if there is one.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Returns the session the calls belong to, if there is one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_held_twice_is_held_once() {
        let caller = Caller::new("worker").narrowed_by("qa").narrowed_by("worker");
        assert_eq!(caller.roles().collect::<Vec<_>>(), ["worker", "qa"]);
        assert_eq!(caller.role(), "worker and qa");
    }
}
