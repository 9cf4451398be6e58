//! The pages.

#[cfg(feature = "sessions")]
mod agents;
pub(super) mod approvals;
pub(super) mod calls;
mod charts;
mod format;
mod head;
mod headroom;
pub(super) mod history;
mod layout;
pub(super) mod overview;
mod query;
pub(super) mod roles;
mod running;
mod server_state;
pub(super) mod sessions;
pub(super) mod sign_in_form;
pub(super) mod tokens;
pub(super) mod traces;

use super::html_response;
use super::viewer::PageViewer;
use axum::response::Response;

/// Answers with the script that keeps a page up to date.
pub(super) async fn script(_: PageViewer) -> Response {
    html_response::script()
}
