//! Admits requests at the rates of their callers, and charges the answers to them. The inner layers find the
//! [`CallerAccount`] in the request.

use crate::auth::principal::Principal;
use crate::limits::account::CallerAccount;
use crate::middleware::Next;
use crate::refusal;
use crate::response_guard::{self, ResponseGuard};
use crate::state::App;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;

/// Refuses a request that is over a rate of its caller, or over the caller's share of the server's.
pub(crate) async fn admit(
    State(app): State<App>,
    Extension(principal): Extension<Arc<Principal>>,
    mut request: Request,
    next: Next,
) -> Response {
    let account = app.admission.account(&principal.name, &principal.limits);
    if let Err(rejection) = app.admission.admit(&account) {
        return refusal::over_limit(app, &principal, None, &rejection);
    }
    request.extensions_mut().insert(Arc::clone(&account));
    let response = next.run(request).await;
    response_guard::hold(response, SentBytes { app, account })
}

/// Counts the bytes of an answer as they are handed over.
struct SentBytes {
    app: App,
    account: Arc<CallerAccount>,
}

impl ResponseGuard for SentBytes {
    // Charged piece by piece: a client that goes away in the middle pays for what it was sent.
    fn sent(&mut self, bytes: usize) {
        self.account.charge(bytes);
        self.app.metrics.bytes_sent.inc_by(bytes as u64);
    }

    fn complete(self) {}
}
