//! The calls that a tool makes in the name of its caller.

use super::host::Host;
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::permits::{Permit, PermitRelease};
use crate::mcp::tool_caller::ToolCaller;
use crate::mcp::tool_error::ToolError;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

impl Host {
    /// Returns what makes calls in the context of `outer`.
    pub(super) fn tool_caller(&self, outer: &CallContext) -> ToolCaller {
        let host = self.clone();
        let mut context = outer.clone();
        // Each call acquires its own.
        context.call_permit = None;
        context.permit_release = None;
        ToolCaller::new(move |tool, arguments| {
            let (host, mut context) = (host.clone(), context.clone());
            // A deadline cancels the one call that it ends.
            context.cancel = context.cancel.child_token();
            async move { host.call_inner(&tool, arguments, context).await }.boxed()
        })
    }

    /// Makes one call, once the transport has admitted it as it does a call that comes alone.
    async fn call_inner(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        mut context: CallContext,
    ) -> Answer {
        // Until the call ends, or waits for a person.
        let held: Arc<Mutex<Option<Permit>>> = Arc::default();
        if let Some(admission) = &context.call_admission {
            let class = self.resources(&context.caller, tool);
            let admitted = tokio::select! {
                biased;
                admitted = admission.admit(class) => admitted,
                () = context.cancel.cancelled() => return Answer::error(&ToolError::new("cancelled")),
            };
            match admitted {
                Ok(permits) => {
                    context.call_permit = permits.call_permit;
                    *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(permits.held);
                    let held = Arc::clone(&held);
                    context.permit_release = Some(PermitRelease::new(move || {
                        drop(held.lock().unwrap_or_else(PoisonError::into_inner).take());
                    }));
                }
                Err(error) => return Answer::error(&ToolError::new(format!("not run: {error}"))),
            }
        }
        match self.call(tool, arguments, context).await {
            Ok(answer) => answer,
            Err(error) => Answer::error(&ToolError::from_error(&error)),
        }
    }
}
