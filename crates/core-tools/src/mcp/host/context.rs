//! What a running tool may use.

use super::record::Observer;
use crate::mcp::answer::ToolError;
use crate::mcp::effects::ScopeLimit;
use crate::mcp::limits::{Limits, Programs};
use crate::mcp::progress::Progress;
use crate::workspace::{Limit, Workspace};
use role_policy::{Caller, Policy, RoleLimits, Scope};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a running tool may use: who calls, how long it has, when to stop, where to say how it goes.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who is calling.
    pub caller: Caller,
    /// Cancelled when the client cancels or goes away, at the deadline, and when the server ends.
    pub cancel: CancellationToken,
    /// Where to say how it goes.
    pub progress: Progress,
    /// The longest time limit that a tool may grant its caller: the host's and the role's, whichever is less.
    pub max_timeout: Duration,
    /// The longest that the caller's role lets anything run, also what outlives the call. No limit by default.
    pub role_limit: Option<Duration>,
    /// What the policy lets this call reach. Everything, outside a host.
    pub scope: Scope,
    /// What the caller itself may use, on top of what its role may. No limit by default.
    pub limits: RoleLimits,
    /// Where programs that outlive the call get a place; without it the tool's own number bounds them.
    pub programs: Option<Programs>,
    /// Hears how the call came out.
    pub observer: Option<Observer>,
    /// The caller may call every tool that there is, and the policy requires nothing of the arguments of any. False
    /// outside a host.
    pub unrestricted: bool,
    /// The policy that the call was judged by. None outside a host.
    pub policy: Option<Arc<Policy>>,
    /// Whose background programs and sessions the call is about; the caller's own by default. Whoever sets it has made sure that the
    /// caller may.
    pub owner: Option<String>,
}

impl Context {
    /// A context for one call, outside a host.
    pub fn new(caller: Caller, cancel: CancellationToken) -> Self {
        Self {
            caller,
            cancel,
            progress: Progress::default(),
            max_timeout: Limits::default().max_timeout,
            role_limit: None,
            scope: Scope::default(),
            limits: RoleLimits::default(),
            programs: None,
            observer: None,
            unrestricted: false,
            policy: None,
            owner: None,
        }
    }

    /// `workspace`, as far as the policy lets this call reach.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn within(&self, workspace: &Arc<Workspace>) -> Result<Arc<Workspace>, ToolError> {
        if self.scope.reaches_all_paths() {
            return Ok(Arc::clone(workspace));
        }
        let limit: Arc<dyn Limit> = Arc::new(ScopeLimit(self.scope.clone()));
        let limited = workspace.limited(&limit).map_err(|error| ToolError::from_error(&error))?;
        Ok(Arc::new(limited))
    }

    /// Runs blocking work on a thread where it blocks nobody. `work` should look at the token from time to
    /// time: a thread cannot be ended from outside.
    ///
    /// # Errors
    ///
    /// What `work` answers, or that the work was cancelled.
    pub async fn blocking<T, W>(self, work: W) -> Result<T, ToolError>
    where
        T: Send + 'static,
        W: FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
    {
        let cancel = self.cancel.clone();
        match tokio::task::spawn_blocking(move || work(&cancel)).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(ToolError::new("the server is ending")),
        }
    }
}
