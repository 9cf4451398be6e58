//! Waits until a call may run, beside the other calls of its caller and those of all.

use super::rpc_body::RpcRequest;
use super::workspace::CallTarget;
use crate::auth::principal::Principal;
use crate::limits::account::{CallerAccount, CallerPermits};
use crate::middleware::Next;
use crate::refusal;
use crate::response_guard::{self, ResponseGuard};
use crate::state::App;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;

/// Refuses a call that gets no permit in time. Requests that call no tool need none.
pub(crate) async fn acquire_permits(
    State(app): State<App>,
    Extension(principal): Extension<Arc<Principal>>,
    Extension(message): Extension<Arc<RpcRequest>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(tool) = &message.tool else { return next.run(request).await };
    let extensions = request.extensions();
    let (Some(target), Some(account)) =
        (extensions.get::<CallTarget>(), extensions.get::<Arc<CallerAccount>>().map(Arc::clone))
    else {
        return next.run(request).await;
    };
    let class = target.host.resources(&target.caller, tool);
    let permits = match account.acquire(class).await {
        Ok(permits) => Arc::new(permits),
        Err(rejection) => return refusal::over_limit(app, &principal, message.id.as_ref(), &rejection),
    };
    // rmcp keeps the request as long as the call runs, which in a session can outlast the client. The permits stay
    // taken until then.
    request.extensions_mut().insert(Arc::clone(&permits));
    response_guard::hold(next.run(request).await, HeldPermits { _permits: permits })
}

/// Permits that are held until the answer was sent.
struct HeldPermits {
    _permits: Arc<CallerPermits>,
}

impl ResponseGuard for HeldPermits {
    fn complete(self) {}
}
