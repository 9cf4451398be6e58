//! Resolves the tools of a caller, over its roots and in its roles. The inner layers find the [`CallTarget`] in the request.

use super::rpc_body::{INVALID_REQUEST, ROLE_HEADER, RpcRequest};
use crate::auth::principal::Principal;
use crate::middleware::Next;
use crate::response;
use crate::sessions::SessionGuard;
use crate::state::App;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use core_tools::mcp::Host;
use http::{HeaderMap, StatusCode};
use role_policy::Caller;
use server_setup::error_chain::chain;
use std::sync::Arc;

/// The tools that a request may reach, and the caller as the policy knows it.
#[derive(Clone, Debug)]
pub(crate) struct CallTarget {
    pub(crate) host: Host,
    pub(crate) caller: Caller,
}

/// Refuses a caller whose roots cannot be served.
pub(crate) async fn resolve_workspace(
    State(app): State<App>,
    Extension(principal): Extension<Arc<Principal>>,
    Extension(message): Extension<Arc<RpcRequest>>,
    mut request: Request,
    next: Next,
) -> Response {
    let host = match app.workspaces.host(&principal.roots) {
        Ok(host) => host,
        Err(error) => {
            tracing::error!("{} cannot be served: {}", principal.name, chain(&error));
            let why = "the roots of this caller cannot be served; ask the server's operator";
            return response::rpc_error(StatusCode::FORBIDDEN, message.id.as_ref(), INVALID_REQUEST, why);
        }
    };
    let mut caller = app.caller(&principal, requested_role(request.headers(), app).as_deref());
    if let Some(session) = request.extensions().get::<Arc<SessionGuard>>() {
        caller = caller.with_session(&*session.id);
    }
    request.extensions_mut().insert(CallTarget { host, caller });
    next.run(request).await
}

/// Returns the role that a client asks to be narrowed to. A role that the policy does not declare narrows as far as possible.
fn requested_role(headers: &HeaderMap, app: App) -> Option<String> {
    let role = headers.get(ROLE_HEADER)?;
    let policy = app.workspaces.full_host().policy();
    let role = role.to_str().ok().filter(|role| policy.declares(role));
    Some(role.map_or_else(|| policy.minimal_role().to_owned(), str::to_owned))
}
