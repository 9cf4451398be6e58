//! Counts the calls that run, and keeps them on the list for the page.

use crate::app_state::App;
use crate::mcp_request::McpRequest;
use crate::middleware::Next;
use crate::recent_calls::RunningCallGuard;
use crate::response_guard::{self, ResponseGuard};
use axum::response::Response;

/// Notes a call from here until its answer was sent. Its outcome is recorded by the host's observer.
pub(crate) async fn count_call(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    let guard = request.running.take().map(|running| {
        if let Some(cancellation) = &request.cancellation {
            running.call.set_work(cancellation.clone());
        }
        request.call = Some(std::sync::Arc::clone(&running.call));
        app.metrics.calls_in_flight.inc();
        MeasuredCall { app, _running: running }
    });
    response_guard::hold(next(request).await, guard)
}

/// A call in the metrics and on the page.
struct MeasuredCall {
    app: App,
    _running: RunningCallGuard,
}

impl ResponseGuard for MeasuredCall {
    fn complete(self) {}
}

impl Drop for MeasuredCall {
    fn drop(&mut self) {
        self.app.metrics.calls_in_flight.dec();
    }
}
