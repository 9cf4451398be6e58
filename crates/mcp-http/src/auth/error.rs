//! The reasons for which a caller is not authenticated.

use std::borrow::Cow;
use std::time::SystemTime;

/// A request whose caller is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthError {
    /// The request says nothing of its caller.
    Missing,
    /// The token or JWT of the request is not good. The reason is for the log and the audit alone: it would help somebody who
    /// tries tokens.
    Invalid(&'static str),
    /// The token was revoked at this time.
    Revoked(SystemTime),
    /// The JWT names a key of its issuer that is not known here, or not yet.
    UnknownKey,
    /// The token holds and does not suffice.
    Insufficient(MissingGrant),
}

/// The thing that a good token lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MissingGrant {
    /// This scope.
    Scope(String),
    /// A role: none of these claims has a value of `http.jwt_roles`.
    Role { claims: Vec<String> },
}

impl AuthError {
    /// Returns the reason for the log and the audit. It names the claim of a JWT that is missing or does not fit.
    pub(crate) fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::Missing => "no token".into(),
            Self::Invalid(why) => (*why).into(),
            Self::Revoked(at) => {
                let at = audit_log::timestamp(*at);
                format!("it was revoked on {}", at.split('T').next().unwrap_or_default()).into()
            }
            Self::UnknownKey => "its key is not known".into(),
            Self::Insufficient(MissingGrant::Scope(scope)) => {
                format!("the scope `{scope}` is missing in its claim `scope` or `scp`").into()
            }
            Self::Insufficient(MissingGrant::Role { claims }) => {
                format!("http.jwt_roles gives no role to its claims; it looks at `{}`", claims.join("`, `"))
                    .into()
            }
        }
    }
}

/// A caller who is not let in, and who it is as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedCaller {
    pub(crate) error: AuthError,
    pub(crate) identity: RefusedIdentity,
}

/// The identity of a caller who is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefusedIdentity {
    /// Nothing says who it is.
    Unknown,
    /// The subject in a JWT whose signature does not hold, or could not be verified: anybody may have written it.
    Claimed(String),
    /// The name of a caller whose token or signature holds.
    Verified(String),
}

impl From<AuthError> for RefusedCaller {
    fn from(error: AuthError) -> Self {
        Self { error, identity: RefusedIdentity::Unknown }
    }
}
