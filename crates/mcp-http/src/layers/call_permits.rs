//! Waits until a call may run, beside the other calls of its caller and those of all.

use crate::limits::account::CallerPermits;
use crate::mcp_request::McpRequest;
use crate::middleware::Next;
use crate::refusal;
use crate::response_guard::{self, ResponseGuard};
use crate::state::App;
use axum::response::Response;
use std::sync::Arc;

/// Refuses a call that gets no permit in time. Requests that call no tool need none.
pub(crate) async fn acquire_permits(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    if let (Some(tool), Some(target)) = (&request.message.tool, &request.target) {
        let class = target.host.resources(&target.caller, tool);
        match request.account.acquire(class).await {
            Ok(permits) => request.permits = Some(Arc::new(permits)),
            Err(rejection) => {
                let id = request.message.id.as_ref();
                return refusal::over_limit(app, &request.principal, id, &rejection);
            }
        }
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
