//! Admits requests at the rates of their callers, and charges the answers to them. The inner layers get a [`McpRequest`].

use crate::app_state::App;
use crate::auth::principal::Principal;
use crate::limits::account::CallerAccount;
use crate::mcp_request::McpRequest;
use crate::middleware::Next;
use crate::net::address::ConnectionPeer;
use crate::refusal;
use crate::response;
use crate::response_guard::{self, ResponseGuard};
use axum::extract::Request;
use axum::response::Response;
use std::sync::Arc;

/// Refuses a request that is over a rate of its caller, or over the caller's share of the server's.
pub(crate) async fn admit(app: App, request: Request, next: impl Next<Box<McpRequest>>) -> Response {
    let principal = request.extensions().get::<Arc<Principal>>().map(Arc::clone);
    let (Some(peer), Some(principal)) = (ConnectionPeer::of(&request), principal) else {
        return response::peer_unknown();
    };
    let account = app.admission.account(&principal.name, &principal.limits);
    if let Err(rejection) = app.admission.admit(&account) {
        return refusal::over_limit(app, &principal, None, &rejection);
    }
    let request = McpRequest {
        http: request,
        peer,
        principal,
        account: Arc::clone(&account),
        message: Arc::default(),
        session: None,
        target: None,
        span: None,
        permits: None,
        running: None,
        call: None,
        cancellation: None,
    };
    let response = next(Box::new(request)).await;
    response_guard::hold(response, Some(SentAnswerBytes { app, account }))
}

/// Counts the bytes of an answer as they are handed over.
struct SentAnswerBytes {
    app: App,
    account: Arc<CallerAccount>,
}

impl ResponseGuard for SentAnswerBytes {
    // Charged piece by piece: a client that goes away in the middle pays for what it was sent.
    fn sent(&mut self, bytes: usize) {
        self.account.charge(bytes);
        self.app.metrics.bytes_sent.inc_by(bytes as u64);
    }

    fn complete(self) {}
}
