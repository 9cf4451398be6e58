//! Signing in and out.

use super::form::PageForm;
use super::html_response::see_other;
use super::sign_in_refusal::refuse;
use super::viewer::PageViewer;
use crate::app_state::App;
use crate::net::address::ConnectionPeer;
use crate::response;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Signs in a browser whose form contains a token that is good.
pub(super) async fn sign_in(
    State(app): State<App>,
    Extension(peer): Extension<ConnectionPeer>,
    headers: HeaderMap,
    form: PageForm,
) -> Response {
    let bearer = form.get("token").unwrap_or_default().trim();
    if let Err(error) = app.authenticator.authenticate_bearer(bearer, peer).await {
        return refuse(app, &error, peer, Some("That is no token that is good here."));
    }
    // A proxy may end TLS, so that the connection does not tell. The form came from this page, whose origin the browser says.
    let is_https = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    match app.logins.sign_in(bearer, is_https) {
        Ok(cookie) => with_cookie(see_other("/ui"), &cookie),
        Err(error) => {
            tracing::error!("nobody can sign in: {error}");
            response::text(StatusCode::SERVICE_UNAVAILABLE, "nobody can sign in now\n")
        }
    }
}

/// Signs out the browser that sends the request.
pub(super) async fn sign_out(State(app): State<App>, headers: HeaderMap, _: PageViewer) -> Response {
    with_cookie(see_other("/ui"), &app.logins.sign_out(&headers))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
