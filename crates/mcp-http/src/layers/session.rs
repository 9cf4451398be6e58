//! Enters the session of a request, begins one for `initialize` and ends one for DELETE. The inner layers find the
//! [`SessionGuard`] in a request that has a session.

use super::rpc_body::{INVALID_REQUEST, RpcRequest, SESSION_HEADER, VERSION_HEADER};
use crate::auth::principal::Principal;
use crate::middleware::Next;
use crate::refusal_reason::RefusalReason;
use crate::response;
use crate::response_guard::{self, ResponseGuard};
use crate::sessions::{RequestIdGuard, SessionGuard};
use crate::state::App;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// The first revision of the protocol without sessions.
const FIRST_STATELESS_VERSION: &str = "2026-07-28";

/// The time after which a client may try again where there are too many sessions.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Refuses a request in a session that is not its caller's, and more sessions than there may be.
pub(crate) async fn enter_session(
    State(app): State<App>,
    Extension(principal): Extension<Arc<Principal>>,
    Extension(message): Extension<Arc<RpcRequest>>,
    mut request: Request,
    next: Next,
) -> Response {
    // Proxies in front cannot mistake one kind of request for the other: a revision without sessions has no session id,
    // and the first request of a session is in none.
    if is_stateless(request.headers()) || message.method == "initialize" {
        request.headers_mut().remove(SESSION_HEADER);
    }
    if let Some(id) = request.headers().get(SESSION_HEADER) {
        let session = id.to_str().ok().and_then(|id| app.sessions.enter(id, &principal.name));
        return match session {
            None => {
                let id = message.id.as_ref();
                response::rpc_error(StatusCode::NOT_FOUND, id, INVALID_REQUEST, "no such session")
            }
            Some(session) => continue_session(app, Arc::new(session), &message, request, next).await,
        };
    }
    if message.method == "initialize" {
        return begin_session(app, &principal, &message, request, next).await;
    }
    next.run(request).await
}

async fn continue_session(
    app: App,
    session: Arc<SessionGuard>,
    message: &RpcRequest,
    mut request: Request,
    next: Next,
) -> Response {
    if request.method() == Method::DELETE {
        app.sessions.end(&session.id).await;
        return response::text(StatusCode::ACCEPTED, "");
    }
    let mut request_id = None;
    if let Some(id) = &message.id {
        request_id = session.claim_request_id(id);
        if request_id.is_none() {
            let why = format!("the request {id} of this session is open; each has an id of its own");
            return response::rpc_error(StatusCode::BAD_REQUEST, Some(id), INVALID_REQUEST, &why);
        }
    }
    request.extensions_mut().insert(Arc::clone(&session));
    let response = next.run(request).await;
    response_guard::hold(response, SessionRequest { _session: session, _request_id: request_id })
}

async fn begin_session(
    app: App,
    principal: &Principal,
    message: &RpcRequest,
    request: Request,
    next: Next,
) -> Response {
    let Some(slot) = app.sessions.reserve(&principal.name).await else {
        app.metrics.turned_away(RefusalReason::Sessions);
        let why =
            "there are as many sessions as there may be (http.max_sessions); end some, or try again later";
        return response::try_later(StatusCode::SERVICE_UNAVAILABLE, message.id.as_ref(), why, RETRY_AFTER);
    };
    let response = next.run(request).await;
    if let Some(id) = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok()) {
        app.sessions.start(&slot, id, &principal.name, &principal.revoked);
    }
    response
}

/// A request that is open in a session, and its id.
struct SessionRequest {
    _session: Arc<SessionGuard>,
    _request_id: Option<RequestIdGuard>,
}

impl ResponseGuard for SessionRequest {
    fn complete(self) {}
}

/// Returns true if the client speaks a revision without sessions.
fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok());
    // Revisions are dates, so that their order is that of their text.
    version.is_some_and(|version| version >= FIRST_STATELESS_VERSION)
}
