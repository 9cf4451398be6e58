//! Refuses requests that call the server by a name of another, or come from a page that may not call it.

use crate::allowed_hosts::HostCheckError;
use crate::app_state::App;
use crate::middleware::Next;
use crate::net::address::ConnectionPeer;
use crate::refusal;
use crate::refusal_reason::RefusalReason;
use crate::response;
use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;

/// Checks the host and the origin of a request.
pub(crate) async fn check_host(app: App, request: Request, next: impl Next<Request>) -> Response {
    let checked = app.allowed_hosts.check(request.version(), request.uri(), request.headers());
    let (status, reason) = match checked {
        Ok(()) => return next(request).await,
        Err(HostCheckError::Ambiguous) => (StatusCode::BAD_REQUEST, RefusalReason::HostUnclear),
        Err(HostCheckError::Host) => (StatusCode::FORBIDDEN, RefusalReason::Host),
        Err(HostCheckError::Origin) => (StatusCode::FORBIDDEN, RefusalReason::Origin),
    };
    let Some(peer) = ConnectionPeer::of(&request) else { return response::peer_unknown() };
    refusal::turn_away(app, peer, reason);
    response::text(
        status,
        "this server is not called by that name (http.hosts), or not from that page (http.origins)\n",
    )
}
