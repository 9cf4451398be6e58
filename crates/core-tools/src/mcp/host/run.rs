//! A tool that runs: its place, its deadline, and its end.

use super::{Context, Host, Registered};
use crate::mcp::answer::{Answer, ToolError};
use crate::redact::Redactor;
use futures_util::FutureExt;
use role_policy::{Authorized, Call};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::time::Instant;

/// How long a tool that is told to stop may take to say what it had done.
const STOPPING: Duration = Duration::from_millis(250);

/// Beyond the longest time limit a caller may ask for: grace, drain and sweep of a process runner.
const OWN_DEADLINE_BACKSTOP: Duration = Duration::from_secs(10);

impl Host {
    pub(super) async fn run(
        &self,
        registered: &Registered,
        call: Authorized<Call>,
        context: Context,
    ) -> Result<Answer, ToolError> {
        let limits = &self.shared.limits;
        let cancel = context.cancel.clone();
        let (limit, stopping) = if registered.tool.has_own_deadline() {
            // The tool ends itself and says what it had by then; this is for one that does not.
            (context.max_timeout + OWN_DEADLINE_BACKSTOP, OWN_DEADLINE_BACKSTOP)
        } else {
            (context.role_limit.map_or(limits.call_timeout, |most| most.min(limits.call_timeout)), STOPPING)
        };
        let deadline = Instant::now() + limit;
        let _place = match registered.tool.needs().place {
            false => None,
            true => tokio::select! {
                // Most calls find a place at once, and then need no timer.
                biased;
                place = self.shared.places.acquire() => Some(place.map_err(|_| ToolError::new("the server is ending"))?),
                () = cancel.cancelled() => return Err(cancelled()),
                () = tokio::time::sleep_until(deadline) => return Err(ToolError::new(format!(
                    "not started: for {} s as many calls as may run at once ({}) were running; try again, or end some",
                    limit.as_secs(),
                    limits.max_concurrent_calls
                ))),
            },
        };
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let tool = registered.tool.run(call, context);
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
        // A tool that is told to stop has a moment to say what it had done; after that its future is
        // dropped, and with it whatever it started.
        let late = Instant::now() >= deadline;
        let ended = match ended {
            Some(ended) => Some(ended),
            None => tokio::time::timeout(stopping, &mut tool).await.ok(),
        };
        match ended {
            Some(Ok(result)) => result,
            Some(Err(panic)) => Err(panicked(registered.tool.name(), panic.as_ref(), &self.shared.redactor)),
            None if late => Err(ToolError::new(format!(
                "`{}` was ended at the time limit of {} s; what it had done by then stays done",
                registered.tool.name(),
                limit.as_secs()
            ))),
            None => Err(cancelled()),
        }
    }
}

fn cancelled() -> ToolError {
    ToolError::new("cancelled")
}

/// A panic is a defect of the server, not of the call. Its message goes to the log alone: it may hold
/// anything.
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
}
