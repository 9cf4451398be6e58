//! The key `otherwise` of a rule.

/// The consequence of a rule whose conditions do not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// The call is refused.
    #[default]
    Deny,
    /// A person is asked. A condition that cannot be judged still refuses the call.
    Ask,
}
