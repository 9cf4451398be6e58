//! How much of the arguments of a call is recorded.

/// The part of a call's arguments that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// Names and sizes.
    #[default]
    Names,
    /// Names and sizes, and what the call reaches: paths, the command, hosts, the kind of SQL, the role.
    Targets,
    /// All of it, masked and bounded.
    Full,
}
