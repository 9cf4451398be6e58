//! `/ui`: what runs, what ran, and what was refused, for people. The server renders it: it can be read without JavaScript,
//! which only keeps it up to date. A caller sees its own calls; a caller whose role restricts nothing sees the calls of
//! all.

mod actions;
mod form;
mod html_response;
mod pages;
mod sign_in;
mod sign_in_refusal;
mod viewer;

use crate::app_state::App;
use crate::response;
use axum::Router;
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::StatusCode;
use viewer::PageViewer;

/// Returns the routes of the page.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/ui", page(get(pages::overview::show)))
        .route("/ui/calls", page(get(pages::calls::show)))
        .route("/ui/history", page(get(pages::history::show)))
        .route("/ui/tokens", page(get(pages::tokens::show)))
        .route("/ui/sessions", page(get(pages::sessions::show)))
        .route("/ui/approvals", page(get(pages::approvals::show).post(actions::answer)))
        .route("/ui/roles", page(get(pages::roles::show)))
        .route("/ui/traces", page(get(pages::traces::show)))
        .route("/ui/trace/{name}", page(get(pages::traces::picture)))
        .route("/ui/live.js", page(get(pages::script)))
        .route("/ui/stop", page(post(actions::stop).get(nothing_here)))
        .route("/ui/revoke", page(post(actions::revoke).get(nothing_here)))
        .route("/ui/sign-out", page(post(sign_in::sign_out).get(nothing_here)))
        .route("/ui/sign-in", page(post(sign_in::sign_in).get(nothing_here)))
        .route("/ui/", page(get(nothing_here)))
        .route("/ui/{*path}", page(get(nothing_here)))
        .layer(from_fn(form::require_same_origin))
}

/// Refuses the methods that a route does not have.
fn page(route: MethodRouter<App>) -> MethodRouter<App> {
    route.fallback(not_allowed)
}

async fn not_allowed(_: PageViewer) -> Response {
    response::text(StatusCode::METHOD_NOT_ALLOWED, "that cannot be done here\n")
}

async fn nothing_here(_: PageViewer) -> Response {
    html_response::nothing_here()
}
