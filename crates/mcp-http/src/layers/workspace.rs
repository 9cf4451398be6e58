//! Resolves the tools of a caller, over its roots and in its roles. The inner layers find the [`McpCallTarget`] in the request.

use super::rpc_body::{INVALID_REQUEST, ROLE_HEADER};
use crate::app_state::App;
use crate::mcp_request::{McpCallTarget, McpRequest};
use crate::middleware::Next;
use crate::response;
use axum::response::Response;
use error_causes::chain;
use http::{HeaderMap, StatusCode};

/// Refuses a caller whose roots or remote cannot be served.
pub(crate) async fn resolve_workspace(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    let principal = &request.principal;
    // With the roles that are the caller's own: a remote is told those, and serves all of its requests.
    let own = app.caller(principal, None);
    let host = match app.workspaces.host_of(principal, &own) {
        Ok(host) => host,
        Err(error) => {
            tracing::error!("{} cannot be served: {}", principal.name, chain(&error));
            let why = "the roots or the remote of this caller cannot be served; ask the server's operator";
            return response::rpc_error(
                StatusCode::FORBIDDEN,
                request.message.id.as_ref(),
                INVALID_REQUEST,
                why,
            );
        }
    };
    let mut caller = app.caller(principal, requested_role(request.http.headers(), app).as_deref());
    if let Some(session) = &request.session {
        caller = caller.with_session(&*session.id);
    }
    request.target = Some(McpCallTarget { host, caller });
    next(request).await
}

/// Returns the role that a client asks to be narrowed to. A role that the policy does not declare narrows as far as possible.
fn requested_role(headers: &HeaderMap, app: App) -> Option<String> {
    let role = headers.get(ROLE_HEADER)?;
    let policy = app.workspaces.full_host().policy();
    let role = role.to_str().ok().filter(|role| policy.declares(role));
    Some(role.map_or_else(|| policy.minimal_role().to_owned(), str::to_owned))
}
