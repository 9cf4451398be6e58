//! An authenticated caller.

use crate::limits::caller_limits::CallerLimits;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// An authenticated caller, and its rights.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    /// The name in the audit, the sessions and the accounts.
    pub(crate) name: Arc<str>,
    /// The role in the policy.
    pub(crate) role: String,
    /// The roots that the caller may use; empty for all that the server may.
    pub(crate) roots: Arc<[PathBuf]>,
    /// The name of the remote on which its tools work, if it is not this machine.
    pub(crate) remote: Option<Arc<str>>,
    /// The limits of its requests.
    pub(crate) limits: CallerLimits,
    /// Cancelled once the caller may make no further call.
    pub(crate) revoked: CancellationToken,
    /// The end of what the caller presented. A token is revoked when it ends, so that it needs none.
    pub(crate) expires_at: Option<SystemTime>,
}
