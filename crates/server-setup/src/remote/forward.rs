//! Makes a call on a remote, and tells a remote of a policy that was read again.

use super::notices::RemoteNotices;
use crate::trusted_text;
use core_tools::mcp::{Answer, ForwardedCall, ToolError};
use error_causes::chain;
use remotes::{OnProgress, Remote, RemoteCall};
use std::path::Path;
use std::sync::Arc;

/// The tools that start what goes on after their call. A connection that is lost afterwards is told of.
const STARTS_BACKGROUND: [&str; 4] = ["start_command", "new_session", "run_agent_command", "resume"];

/// Tells a remote of a policy that was read again, so that its next connection is judged by it there too. One that is not
/// trusted holds here alone.
pub fn policy_has_changed(remote: &Remote, path: &Path) {
    match trusted_text::read(path) {
        Ok(text) => remote.change_request(|request| request.policy = Some(text)),
        Err(error) => {
            tracing::warn!("the policy of connections to remotes stays as it was: {}", chain(&error));
        }
    }
}

/// Makes a call on `remote`. Its caller is told by `notices` of what the call starts there; `machine` is the name before the
/// ids of sessions, if the remote was chosen.
pub(super) async fn forward(
    remote: Remote,
    call: ForwardedCall,
    notices: &RemoteNotices,
    machine: Option<&str>,
) -> Result<Answer, ToolError> {
    let ForwardedCall { tool, arguments, context, .. } = call;
    let name = remote.settings().label();
    let progress = context.progress.clone();
    let on_progress: OnProgress = match progress.is_requested() {
        true => Arc::new(move |text| progress.relay(text)),
        false => Arc::new(|_| {}),
    };
    let starts_background = STARTS_BACKGROUND.contains(&tool);
    if starts_background {
        notices.watch(&remote, context.caller.principal().unwrap_or_default(), machine);
    }
    let call = RemoteCall { tool, arguments, cancel: context.cancel.clone(), on_progress, starts_background };
    let result = remote.call(call).await.map_err(|error| match error {
        remotes::Error::Cancelled => ToolError::new("cancelled"),
        error => ToolError::new(format!("remote {name}: {}", chain(&error))),
    })?;
    Answer::from_call_result(result).map_err(|error| {
        ToolError::new(format!("remote {name}: its answer is refused: {error}; the call may have run"))
    })
}
