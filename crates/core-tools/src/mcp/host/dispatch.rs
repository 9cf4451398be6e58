//! A tool that runs: its permit, its deadline, and its end.

use super::host::Host;
use super::leftovers::CallRunOwner;
use super::tools::RegisteredTool;
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::call_tools::MAX_CALLS;
use crate::mcp::deadline_owner::DeadlineOwner;
use crate::mcp::permits::CallPermit;
use crate::mcp::tool_error::{FailureCause, ToolError};
use crate::redact::Redactor;
use futures_util::FutureExt;
use role_policy::{Authorized, Call};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time that a cancelled tool has to answer with what it had done. Short: its client waits for it, or is gone.
const CANCEL_GRACE: Duration = Duration::from_millis(250);

/// The time that a tool with a deadline of its own has beyond it: grace, drain and sweep of a process runner.
const OWN_DEADLINE_BACKSTOP: Duration = Duration::from_secs(10);

impl Host {
    /// Runs an authorised call: with a permit if the tool needs one, to its deadline, and until it is cancelled.
    pub(super) async fn dispatch(
        &self,
        registered: &RegisteredTool,
        call: Authorized<Call>,
        mut context: CallContext,
    ) -> Result<Answer, ToolError> {
        let cancel = context.cancel.clone();
        let (limit, grace) = match registered.tool.deadline() {
            // The tool ends itself and says what it had by then; this is for one that does not.
            DeadlineOwner::Own => (context.max_timeout + OWN_DEADLINE_BACKSTOP, OWN_DEADLINE_BACKSTOP),
            DeadlineOwner::Host => {
                let host = self.shared.limits.call_timeout;
                (context.role_limit.map_or(host, |role| role.min(host)), CANCEL_GRACE)
            }
            // Longer than all its calls together may take, each to its own deadline, and wait before they begin.
            DeadlineOwner::InnerCalls => {
                let longest = self.shared.limits.call_timeout.max(context.max_timeout);
                let with_wait = longest.saturating_mul(2).saturating_add(4 * OWN_DEADLINE_BACKSTOP);
                (with_wait.saturating_mul(MAX_CALLS), OWN_DEADLINE_BACKSTOP + CANCEL_GRACE)
            }
        };
        let deadline = Instant::now() + limit;
        // A transport with its own queue hands its permit over. A wait for a second permit could last for ever, if
        // every running call held one and waited in the same way.
        let handed_over = context.call_permit.take();
        let permit = match registered.tool.resources().needs_call_permit() {
            false => None,
            true => Some(match handed_over {
                Some(permit) => permit,
                None => self.acquire_permit(limit, deadline, &cancel).await?,
            }),
        };
        // Given back while the tool waits for its client.
        let client = context.client.clone();
        let outer_permit = client.hold(permit.clone());
        // The client may have gone while the call waited for its permit. Nothing may start then.
        if cancel.is_cancelled() {
            client.hold(outer_permit);
            return Err(cancelled());
        }
        let permits = context.process_permits.clone();
        let name = registered.tool.name();
        let owner = Arc::new(CallRunOwner::new(context.background_owner(), name, &self.tools, permits));
        let tool = process_runner::owned_by(owner.clone(), registered.tool.run(call, context));
        let mut tool = std::pin::pin!(AssertUnwindSafe(tool).catch_unwind());
        let ended = tokio::select! {
            // Many tools end before they wait for anything, and then nothing has to wake them.
            biased;
            ended = &mut tool => Some(ended),
            () = cancel.cancelled() => None,
            () = tokio::time::sleep_until(deadline) => {
                cancel.cancel();
                None
            }
        };
        // Asked before the grace time, which would make a time limit of every slow cancellation.
        let is_past_deadline = Instant::now() >= deadline;
        // A cancelled tool has a moment to say what it had done; after that its future is
        // dropped, and with it whatever it started.
        let ended = match ended {
            Some(ended) => Some(ended),
            None => tokio::time::timeout(grace, &mut tool).await.ok(),
        };
        // An inner call shares its client with the outer one, which would keep the permit of this call until its own end.
        client.hold(outer_permit);
        owner.name_leftovers(match ended {
            Some(Ok(result)) => result,
            Some(Err(panic)) => Err(panicked(registered.tool.name(), panic.as_ref(), &self.shared.redactor)),
            None if is_past_deadline => Err(ToolError::new(format!(
                "`{}` was ended at the time limit of {} s; what it had done by then stays done",
                registered.tool.name(),
                limit.as_secs()
            ))),
            None => Err(cancelled()),
        })
    }

    /// Waits for a call permit until `deadline`, which is `limit` after the call began.
    async fn acquire_permit(
        &self,
        limit: Duration,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<CallPermit, ToolError> {
        tokio::select! {
            // In this order: most calls find a permit at once, and then need no timer.
            biased;
            permit = self.shared.call_permits.acquire() => permit.map_err(|error| ToolError::from_error(&error)),
            () = cancel.cancelled() => Err(cancelled()),
            () = tokio::time::sleep_until(deadline) => Err(ToolError::new(format!(
                "not started: for {} s as many calls as may run at once ({}) were running; try again, or end some",
                limit.as_secs(),
                self.shared.call_permits.total()
            ))),
        }
    }
}

fn cancelled() -> ToolError {
    ToolError::new("cancelled").because(FailureCause::Cancelled)
}

/// Logs a panic and returns the error for the caller. A panic is a defect of the server, not of the call; its message
/// goes to the log alone, since it may hold anything.
fn panicked(tool: &str, panic: &(dyn Any + Send), redactor: &Redactor) -> ToolError {
    let message = panic
        .downcast_ref::<&str>()
        .map(|message| (*message).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!(tool, "a tool panicked: {}", redactor.redact(&message));
    ToolError::new(format!(
        "`{tool}` stopped because of a defect in this server; it may have done a part of its work. \
         The server goes on, and its log has the details"
    ))
    .because(FailureCause::Defect)
}
