//! The answer to a request without a viewer: the form to sign in.

use super::html_response;
use super::pages::sign_in_form;
use crate::app_state::App;
use crate::auth::error::{AuthError, RefusedCaller};
use crate::net::address::ConnectionPeer;
use crate::refusal;
use axum::response::Response;
use http::header;

/// Answers with the form to sign in, and with the status and the challenge of a refusal.
pub(super) fn refuse(
    app: App,
    error: &RefusedCaller,
    peer: ConnectionPeer,
    message: Option<&'static str>,
) -> Response {
    // A browser that has not signed in yet is shown the form. Nobody was refused.
    let refusal = match error.error {
        AuthError::Missing => refusal::challenge(app, &error.error),
        _ => refusal::unauthenticated(app, error, peer),
    };
    let mut response = html_response::html(refusal.status(), sign_in_form::render(message));
    if let Some(challenge) = refusal.headers().get(header::WWW_AUTHENTICATE) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.clone());
    }
    response
}
