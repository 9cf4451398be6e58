//! The context of a call, which a tool gets beside its input.

use super::answer::Answer;
use super::approval::ClientApprover;
use super::client_log::ClientLog;
use super::client_requests::ClientRequests;
use super::effects::workspace_within;
use super::found_tools::FoundTools;
use super::limits::HostLimits;
use super::observer::CallObserver;
use super::permits::{CallAdmission, CallPermit, PermitRelease, ProcessPermits};
use super::progress::ProgressReporter;
use super::tool_caller::ToolCaller;
use super::tool_directory::ToolDirectory;
use super::tool_error::ToolError;
#[cfg(feature = "ci")]
use crate::ci::EgressLog;
use crate::redact::Redactor;
use crate::workspace::Workspace;
use process_runner::ResourceLimits;
use role_policy::{CallScope, Caller, CredentialRule, Policy, RoleLimits, SystemCallGroup};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The context of one call: its caller, its cancellation, its limits, and where to report progress.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallContext {
    /// The caller.
    pub caller: Caller,
    /// Cancelled when the client cancels or goes away, at the deadline, and when the server ends.
    pub cancel: CancellationToken,
    /// Receives the progress of the call.
    pub progress: ProgressReporter,
    /// Receives log messages for the client. They are discarded if the client wants none.
    pub log: ClientLog,
    /// Asks the client: its user, its model, or for its roots. Every request fails if the call has no client.
    pub client: ClientRequests,
    /// The longest time limit that a tool may grant its caller: the host's or the role's, whichever is less.
    pub max_timeout: Duration,
    /// The longest that the caller's role lets anything run, also what outlives the call. No limit by default.
    pub role_limit: Option<Duration>,
    /// The paths that the policy lets this call reach. Everything, outside a host.
    pub scope: CallScope,
    /// The system calls that the programs of this call may make beside the usual ones. None outside a host.
    pub system_calls: Vec<SystemCallGroup>,
    /// The memory, processes and processor time that the programs of the caller may use together. No limit outside a host.
    pub resource_limits: ResourceLimits,
    /// The credentials that the proxy puts into requests of the programs of this call. None outside a host.
    pub credentials: Vec<Arc<CredentialRule>>,
    /// The caller's own limits, in addition to the limits of its role. None by default.
    pub limits: RoleLimits,
    /// A permit that the transport has acquired for this call from [`Host::call_permits`](super::Host::call_permits).
    /// Without it the host waits for one.
    pub call_permit: Option<CallPermit>,
    /// Admits the calls that the tool makes in the name of its caller, by the rules of the transport. Without it the host
    /// alone bounds them.
    pub call_admission: Option<CallAdmission>,
    /// Gives back the permits that the transport holds for the call, while the call waits for a person. Afterwards the
    /// call is admitted again, by [`call_admission`](Self::call_admission).
    pub permit_release: Option<PermitRelease>,
    /// Permits for programs that outlive the call; without them the tool's own number bounds them.
    pub process_permits: Option<ProcessPermits>,
    /// Notified of the end of the call.
    pub observer: Option<CallObserver>,
    /// True if the caller may call every tool that there is, and the policy requires nothing of the arguments of any.
    /// Found out for tools that [ask for it](super::Tool::checks_unrestricted); false for others and outside a host.
    pub unrestricted: bool,
    /// True if the caller may not do everything, so that the files that clients load at their start are protected from the call.
    pub restricted: bool,
    /// The policy that the call was judged by. None outside a host.
    pub policy: Option<Arc<Policy>>,
    /// The principal whose background programs and sessions the call is about; the caller's own by default. The code
    /// that sets it checks first that the caller may act for that principal.
    pub owner: Option<String>,
    /// Receives the connections that are refused to the programs of the call. Its text becomes a part of the answer.
    #[cfg(feature = "ci")]
    pub egress_log: EgressLog,
    /// Masks what the caller sees. None outside a host.
    pub(super) redactor: Option<Redactor>,
    /// The tools that the caller may call, for a tool that searches among them. None for others.
    pub(super) directory: Option<ToolDirectory>,
    /// Makes calls in the name of the caller, for a tool that calls others. None for others.
    pub(super) tool_caller: Option<ToolCaller>,
    /// The tools that the client has found beyond its list.
    pub(super) found: FoundTools,
    /// Asks the client's user. None if the client shows no questions.
    pub(super) client_approver: Option<ClientApprover>,
}

impl CallContext {
    /// A context for one call by `caller`, with no limits but the host's.
    pub fn new(caller: Caller, cancel: CancellationToken) -> Self {
        Self {
            caller,
            cancel,
            progress: ProgressReporter::default(),
            log: ClientLog::default(),
            client: ClientRequests::default(),
            max_timeout: HostLimits::default().max_timeout,
            role_limit: None,
            scope: CallScope::default(),
            system_calls: Vec::new(),
            resource_limits: ResourceLimits::default(),
            credentials: Vec::new(),
            limits: RoleLimits::default(),
            call_permit: None,
            call_admission: None,
            permit_release: None,
            process_permits: None,
            observer: None,
            unrestricted: false,
            restricted: false,
            policy: None,
            owner: None,
            #[cfg(feature = "ci")]
            egress_log: EgressLog::default(),
            redactor: None,
            directory: None,
            tool_caller: None,
            found: FoundTools::default(),
            client_approver: None,
        }
    }

    /// Returns the principal whose background programs the call is about. A local server has one caller, with an empty
    /// name.
    pub(crate) fn background_owner(&self) -> &str {
        self.owner.as_deref().or_else(|| self.caller.principal()).unwrap_or_default()
    }

    /// Lets the call go on as a task, if its tool [begins tasks](super::Tool::begins_task) and its client has the tasks
    /// extension. Otherwise the client waits further.
    pub async fn begin_task(&self) {
        self.client.begin_task().await;
    }

    /// Calls another tool in the name of the caller, for a prompt or a resource that
    /// [uses tools](super::Prompt::uses_tools). The call is judged and recorded as one of the caller's own, so that it may be
    /// of every tool that the caller may call. The names of `uses_tools` decide who sees the prompt or resource.
    ///
    /// # Errors
    /// The prompt or resource does not use tools.
    pub async fn call_tool(&self, tool: &str, arguments: Map<String, Value>) -> Result<Answer, ToolError> {
        match &self.tool_caller {
            Some(caller) => Ok(caller.call(tool.to_owned(), arguments).await),
            None => Err(ToolError::new(format!("`{tool}` is not among the tools that this may call"))),
        }
    }

    /// Calls another tool as [`call_tool`](Self::call_tool) does, and returns its answer as text.
    ///
    /// # Errors
    /// The prompt or resource does not use tools, or the answer is that of a call that failed.
    #[cfg_attr(not(feature = "ci"), allow(dead_code, reason = "no toolset without commands has resources"))]
    pub(crate) async fn text_of_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, ToolError> {
        let answer = self.call_tool(tool, arguments).await?;
        match answer.is_failed() {
            true => Err(ToolError::new(answer.to_text())),
            false => Ok(answer.to_text()),
        }
    }

    /// Returns `workspace` as far as the policy lets this call reach.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn within(&self, workspace: &Arc<Workspace>) -> Result<Arc<Workspace>, ToolError> {
        let workspace = match self.restricted {
            true => Cow::Owned(Arc::new(workspace.restricted())),
            false => Cow::Borrowed(workspace),
        };
        workspace_within(&self.scope, &workspace).map_err(|error| ToolError::from_error(&error))
    }

    /// Runs blocking work on a thread of the blocking pool. `work` should look at the token from time to
    /// time: a thread cannot be ended from outside.
    ///
    /// # Errors
    /// The error of `work`, or that the server is ending.
    pub async fn blocking<T, W>(self, work: W) -> Result<T, ToolError>
    where
        T: Send + 'static,
        W: FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
    {
        let cancel = self.cancel.clone();
        match tokio::task::spawn_blocking(move || work(&cancel)).await {
            Ok(result) => result,
            // On this thread the host catches it, as it does every panic of a tool.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The only other error is a task that the runtime dropped before it began, as it does when it shuts down.
            Err(_) => Err(ToolError::new("the server is ending")),
        }
    }
}
