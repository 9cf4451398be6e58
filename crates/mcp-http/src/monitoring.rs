//! `/healthz`, `/readyz` and `/metrics`.

use crate::app_state::App;
use crate::audit_store::AuditStore;
use crate::auth::tokens::ActiveTokens;
use crate::metrics::{CONTENT_TYPE, MetricsSnapshot, TokenTimes};
use crate::process_usage::ProcessUsage;
use crate::response;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// Answers that the process lives.
pub(crate) async fn healthz() -> Response {
    response::text(StatusCode::OK, "ok\n")
}

/// Answers whether the server takes calls.
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    match app.ready.load(Ordering::Relaxed) && !app.shutting_down.is_cancelled() {
        // Others are served meanwhile, so that the server is ready.
        true if app.authenticator.waits_for_issuer() => response::text(
            StatusCode::OK,
            "ready; the keys of the JWT issuer could not be fetched, so that JWTs are refused\n",
        ),
        true => response::text(StatusCode::OK, "ready\n"),
        false => response::text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
    }
}

/// Answers with the metrics.
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let approvals = &app.workspaces.full_host().approvals().queue;
    let snapshot = MetricsSnapshot {
        sessions: app.sessions.count(),
        queued: app.admission.queued(),
        audit_rows: app.audit_store.as_ref().map(AuditStore::counts),
        approvals_waiting: approvals.pending_count(),
        approvals: approvals.answered_counts(),
        children: app.workspaces.runner.running(),
        draining: app.shutting_down.is_cancelled(),
        tokens: token_times(&app.authenticator.tokens()),
        process: ProcessUsage::now(),
        version: app.version,
    };
    response::document(StatusCode::OK, CONTENT_TYPE, app.metrics.render(snapshot))
}

/// Returns the times of the valid tokens, in the order of their names.
fn token_times(tokens: &ActiveTokens) -> Vec<TokenTimes> {
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs());
    let mut times: Vec<TokenTimes> = tokens
        .valid()
        .map(|token| TokenTimes {
            name: token.name.to_string(),
            expires: token.expires_at.and_then(seconds),
            last_used: token.last_used(),
        })
        .collect();
    times.sort_by(|one, other| one.name.cmp(&other.name));
    times
}
