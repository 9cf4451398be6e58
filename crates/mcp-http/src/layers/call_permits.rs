//! Lists a call for the page, and waits until it may run beside the other calls of its caller and those of all.

use crate::app_state::App;
use crate::limits::account::CallerPermits;
use crate::mcp_request::McpRequest;
use crate::middleware::Next;
use crate::refusal;
use crate::response;
use crate::response_guard::{self, ResponseGuard};
use axum::response::Response;
use http::StatusCode;
use std::sync::Arc;

/// The JSON-RPC error code of a call that somebody stopped before it began. It is outside of the codes that JSON-RPC and MCP
/// reserve.
const STOPPED: i32 = -31_499;
const STOPPED_WHILE_WAITING: &str =
    "not run: somebody stopped this call on the page of the server while it waited";

/// Refuses a call that gets no permit in time. Requests that lead to no call need none.
pub(crate) async fn acquire_permits(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    let requested = request.message.offer.as_ref().zip(request.target.as_ref());
    let requested = requested.and_then(|(offer, target)| {
        let (name, class) = target.host.requested_call(&target.caller, offer)?;
        Some((target, name, class))
    });
    if let Some((target, name, class)) = requested {
        // A client can send any text as the name of a tool, including one that holds a secret.
        let running = app.recent_calls.start(&target.caller, &target.host.redactor().redact(name));
        let call = &running.call;
        let acquired = tokio::select! {
            // In this order: most calls find a permit at once.
            biased;
            acquired = request.account.acquire(class, |reason| call.set_waits_for(Some(reason))) => acquired,
            () = call.stopped() => {
                let id = request.message.id.as_ref();
                return response::rpc_error(StatusCode::OK, id, STOPPED, STOPPED_WHILE_WAITING);
            }
        };
        call.set_waits_for(None);
        match acquired {
            Ok(permits) => request.permits = Some(Arc::new(permits)),
            Err(rejection) => {
                let id = request.message.id.as_ref();
                return refusal::over_limit(app, &request.principal, id, &rejection);
            }
        }
        request.running = Some(running);
    }
    // rmcp keeps the request as long as the call runs, which in a session can outlast the client. The permits stay
    // taken until then.
    let held = request.permits.clone().map(|permits| HeldCallPermits { _permits: permits });
    response_guard::hold(next(request).await, held)
}

/// Permits that are held until the answer was sent.
struct HeldCallPermits {
    _permits: Arc<CallerPermits>,
}

impl ResponseGuard for HeldCallPermits {
    fn complete(self) {}
}
