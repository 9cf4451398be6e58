//! The reasons for which a caller is not authenticated.

/// A request whose caller is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthError {
    /// The request says nothing of its caller.
    Missing,
    /// The token or JWT of the request is not good. The reason is for the log alone: it would help somebody who tries tokens.
    Invalid(&'static str),
    /// The JWT names a key of its issuer that is not known here, or not yet.
    UnknownKey,
    /// The token holds and does not suffice: this scope is missing, or no role is given to its claims.
    Insufficient(Option<String>),
}
