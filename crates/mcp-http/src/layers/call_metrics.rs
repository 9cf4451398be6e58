//! Counts the calls that run, and lists them for the page.

use super::rpc_body::RpcRequest;
use super::workspace::CallTarget;
use crate::middleware::Next;
use crate::recent_calls::RunningCallGuard;
use crate::response_guard::{self, ResponseGuard};
use crate::state::App;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;

/// Notes a call from here until its answer was sent. Its outcome is recorded by the host's observer.
pub(crate) async fn count_call(
    State(app): State<App>,
    Extension(message): Extension<Arc<RpcRequest>>,
    request: Request,
    next: Next,
) -> Response {
    let (Some(tool), Some(target)) = (&message.tool, request.extensions().get::<CallTarget>()) else {
        return next.run(request).await;
    };
    // A client can send any text as the name, including one that holds a secret.
    let running = app.recent_calls.start(&target.caller, &target.host.redactor().redact(tool));
    app.metrics.calls_in_flight.inc();
    let guard = CountedCall { app, _running: running };
    response_guard::hold(next.run(request).await, guard)
}

/// A call in the metrics and on the page.
struct CountedCall {
    app: App,
    _running: RunningCallGuard,
}

impl ResponseGuard for CountedCall {
    fn complete(self) {}
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.app.metrics.calls_in_flight.dec();
    }
}
