//! Identifies the caller. The inner layers find the [`Principal`](crate::auth::principal::Principal) in the request.

use crate::app_state::App;
use crate::middleware::Next;
use crate::net::address::ConnectionPeer;
use crate::net::connection_limit::ConnectionStanding;
use crate::refusal;
use crate::response;
use axum::extract::Request;
use axum::response::Response;
use std::sync::Arc;

/// Refuses a request whose caller is not authenticated.
pub(crate) async fn identify(app: App, mut request: Request, next: impl Next<Request>) -> Response {
    let Some(peer) = ConnectionPeer::of(&request) else { return response::peer_unknown() };
    match app.authenticator.authenticate(request.headers(), peer).await {
        Ok(principal) => {
            if let Some(standing) = request.extensions().get::<ConnectionStanding>() {
                standing.set_identified();
            }
            request.extensions_mut().insert(Arc::new(principal));
            next(request).await
        }
        Err(error) => refusal::unauthenticated(app, &error, peer),
    }
}
