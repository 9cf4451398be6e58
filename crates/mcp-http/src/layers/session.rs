//! Enters the session of a request, begins one for `initialize` and ends one for DELETE. The inner layers find the
//! [`ClientSessionGuard`] in a request that has a session.

use super::rpc_body::{INVALID_REQUEST, SESSION_HEADER, VERSION_HEADER};
use crate::app_state::App;
use crate::auth::principal::Principal;
use crate::mcp_request::{McpRequest, RpcRequest};
use crate::middleware::Next;
use crate::refusal_reason::RefusalReason;
use crate::response;
use crate::response_guard::{self, ResponseGuard};
use crate::sessions::{ClientSessionGuard, ClientSessionSlot, RequestIdGuard};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// The first revision of the protocol without sessions.
const FIRST_STATELESS_VERSION: &str = "2026-07-28";

/// The time after which a client may try again where there are too many sessions.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Refuses a request in a session that is not its caller's, and more sessions than there may be.
pub(crate) async fn enter_session(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    let begins = request.message.method == "initialize";
    // Proxies in front cannot mistake one kind of request for the other: a revision without sessions has no session id,
    // and the first request of a session is in none.
    if is_stateless(request.http.headers()) || begins {
        request.http.headers_mut().remove(SESSION_HEADER);
    }
    let entered = match request.http.headers().get(SESSION_HEADER).cloned() {
        None if begins => begin_session(app, &request.principal, &request.message).await,
        None => Ok(EnteredSession::None),
        Some(id) => continue_session(app, &id, &mut request).await,
    };
    let entered = match entered {
        Ok(entered) => entered,
        Err(answer) => return *answer,
    };
    // Copied before the request goes on: the inner layers take it.
    let principal = matches!(entered, EnteredSession::Begun(_)).then(|| Arc::clone(&request.principal));
    let response = next(request).await;
    match entered {
        EnteredSession::None => response,
        EnteredSession::Open(session) => response_guard::hold(response, Some(session)),
        EnteredSession::Begun(slot) => {
            // rmcp makes the id while it answers, so the session can be entered only now. An answer without an id began
            // none.
            let id = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok());
            if let (Some(id), Some(principal)) = (id, principal) {
                app.sessions.start(&slot, id, &principal.name, &principal.revoked);
            }
            response
        }
    }
}

/// The session that a request is in.
enum EnteredSession {
    None,
    Open(SessionRequest),
    /// The session begins with the answer, in this slot.
    Begun(ClientSessionSlot),
}

/// Enters a session. An error is the answer to a request that goes no further.
async fn continue_session(
    app: App,
    id: &HeaderValue,
    request: &mut McpRequest,
) -> Result<EnteredSession, Box<Response>> {
    let message = Arc::clone(&request.message);
    let refuse = |status, why: &str| {
        Err(Box::new(response::rpc_error(status, message.id.as_ref(), INVALID_REQUEST, why)))
    };
    let session = id.to_str().ok().and_then(|id| app.sessions.enter(id, &request.principal.name));
    let Some(session) = session.map(Arc::new) else {
        return refuse(StatusCode::NOT_FOUND, "no such session");
    };
    if request.http.method() == Method::DELETE {
        app.sessions.end(&session.id).await;
        return Err(Box::new(response::text(StatusCode::ACCEPTED, "")));
    }
    let mut request_id = None;
    if let Some(id) = &message.id {
        request_id = session.claim_request_id(id);
        if request_id.is_none() {
            let why = format!("the request {id} of this session is open; each has an id of its own");
            return refuse(StatusCode::BAD_REQUEST, &why);
        }
    }
    request.session = Some(Arc::clone(&session));
    Ok(EnteredSession::Open(SessionRequest { _session: session, _request_id: request_id }))
}

/// Reserves the slot of a session that `message` begins. An error is the answer where there is none.
async fn begin_session(
    app: App,
    principal: &Principal,
    message: &RpcRequest,
) -> Result<EnteredSession, Box<Response>> {
    if let Some(slot) = app.sessions.reserve(&principal.name).await {
        return Ok(EnteredSession::Begun(slot));
    }
    app.metrics.turned_away(RefusalReason::Sessions);
    let why = "there are as many sessions as there may be (http.max_sessions); end some, or try again later";
    let id = message.id.as_ref();
    Err(Box::new(response::try_later(StatusCode::SERVICE_UNAVAILABLE, id, why, RETRY_AFTER)))
}

/// A request that is open in a session, and its id.
struct SessionRequest {
    _session: Arc<ClientSessionGuard>,
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
