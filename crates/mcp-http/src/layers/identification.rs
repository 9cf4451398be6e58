//! Identifies the caller. The inner layers find the [`Principal`](crate::auth::principal::Principal) in the request.

use crate::middleware::Next;
use crate::net::address::ConnectionPeer;
use crate::refusal;
use crate::state::App;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;

/// Refuses a request whose caller is not authenticated.
pub(crate) async fn identify(
    State(app): State<App>,
    Extension(peer): Extension<ConnectionPeer>,
    mut request: Request,
    next: Next,
) -> Response {
    match app.authenticator.authenticate(request.headers(), peer).await {
        Ok(principal) => {
            request.extensions_mut().insert(Arc::new(principal));
            next.run(request).await
        }
        Err(error) => refusal::unauthenticated(app, &error, peer),
    }
}
