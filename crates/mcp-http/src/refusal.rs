//! Refusals: the answer to a request that is turned away, and its records in the metrics, the audit and the page.

use crate::app_state::App;
use crate::auth::error::{AuthError, MissingGrant, RefusedCaller, RefusedIdentity};
use crate::auth::principal::Principal;
use crate::limits::caller_limits::LimitRejection;
use crate::net::address::ConnectionPeer;
use crate::recent_calls::STRANGER;
use crate::refusal_reason::RefusalReason;
use crate::response;
use axum::response::Response;
use core_tools::mcp::{CallDecision, CallRecord, Outcome};
use http::{HeaderValue, StatusCode, header};
use json_rpc::message::Id;
use role_policy::Caller;

/// Answers a caller that is over a limit: not now, and when to try again.
pub(crate) fn over_limit(
    app: App,
    principal: &Principal,
    id: Option<&Id>,
    rejection: &LimitRejection,
) -> Response {
    let message = note_over_limit(app, principal, rejection);
    response::try_later(StatusCode::TOO_MANY_REQUESTS, id, &message, rejection.retry_after)
}

/// Counts and records that a call is over a limit of its caller. Returns the words for the caller.
pub(crate) fn note_over_limit(app: App, principal: &Principal, rejection: &LimitRejection) -> String {
    app.metrics.turned_away(RefusalReason::Rate);
    record(app, &app.caller(principal, None), "http: rate");
    format!("{}; try again in {} ms", rejection.reason, rejection.retry_after.as_millis())
}

/// Answers a request whose caller is not authenticated, and counts and records it.
pub(crate) fn unauthenticated(app: App, refused: &RefusedCaller, peer: ConnectionPeer) -> Response {
    let RefusedCaller { error, identity } = refused;
    let (_, reason, _) = classify(error);
    turn_away_bearer(app, peer, reason, error, identity);
    challenge(app, error)
}

/// Returns the status, the reason and the code of RFC 6750 §3.1 with which a caller is refused.
fn classify(error: &AuthError) -> (StatusCode, RefusalReason, Option<&'static str>) {
    match error {
        AuthError::Missing => (StatusCode::UNAUTHORIZED, RefusalReason::NoToken, None),
        AuthError::Invalid(_) | AuthError::Revoked(_) | AuthError::UnknownKey => {
            (StatusCode::UNAUTHORIZED, RefusalReason::BadToken, Some("invalid_token"))
        }
        AuthError::Insufficient(_) => {
            (StatusCode::FORBIDDEN, RefusalReason::Insufficient, Some("insufficient_scope"))
        }
    }
}

/// Makes the answer to a request whose caller is not authenticated, with the challenge of RFC 6750 §3 and RFC 9728 §5.1.
pub(crate) fn challenge(app: App, error: &AuthError) -> Response {
    let (status, _, code) = classify(error);
    let mut challenge = "Bearer realm=\"coretools\"".to_owned();
    let mut add = |name: &str, value: &str| challenge.push_str(&format!(", {name}=\"{value}\""));
    if let Some(code) = code {
        add("error", code);
    }
    if let Some(oauth) = &app.oauth {
        let scope = match error {
            AuthError::Insufficient(MissingGrant::Scope(scope)) => Some(scope),
            AuthError::Insufficient(MissingGrant::Role { .. }) => None,
            _ => oauth.scope.as_ref(),
        };
        if let Some(scope) = scope {
            add("scope", scope);
        }
        add("resource_metadata", &oauth.metadata_url);
    }
    let mut response = response::text(
        status,
        "this server needs a bearer token: none was given, or it is unknown, revoked or expired. The server's operator makes \
         one with `mcp-http token new`\n",
    );
    // The challenge contains configured text. If that is not a valid header value, the refusal goes out without it.
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Counts and records that a peer was turned away before it was authenticated.
pub(crate) fn turn_away(app: App, peer: ConnectionPeer, reason: RefusalReason) {
    app.metrics.turned_away(reason);
    record_turned_away(app, reason, &format!("{STRANGER}{}", peer.label()), "");
}

/// Counts and records that a bearer was turned away. The name of one whose signature holds is the principal of the record;
/// the name that another gives itself is a part of the reason.
fn turn_away_bearer(
    app: App,
    peer: ConnectionPeer,
    reason: RefusalReason,
    error: &AuthError,
    identity: &RefusedIdentity,
) {
    if *error == AuthError::Missing {
        return turn_away(app, peer, reason);
    }
    app.metrics.turned_away(reason);
    let (peer, why) = (peer.label(), error.reason());
    let (principal, why) = match identity {
        RefusedIdentity::Unknown => (format!("{STRANGER}{peer}"), format!(": {why}")),
        RefusedIdentity::Claimed(subject) => {
            (format!("{STRANGER}{peer}"), format!(": {why}; it says it is `{subject}`, unverified"))
        }
        RefusedIdentity::Verified(name) => (name.clone(), format!(" from {peer}: {why}")),
    };
    tracing::info!("refused a token of {principal}{why}");
    record_turned_away(app, reason, &principal, &why);
}

/// Records that a peer was turned away. Not each is recorded: strangers could fill the audit.
fn record_turned_away(app: App, reason: RefusalReason, principal: &str, why: &str) {
    if let Some(left_out) = app.unauthenticated_peers.admit_record(reason) {
        let more = if left_out > 0 { format!(", and {left_out} before") } else { String::new() };
        let caller = Caller::new("none").with_principal(principal);
        // The claims of a JWT are text of others.
        let why = app.workspaces.full_host().redactor().redact(why);
        record(app, &caller, &format!("http: {reason}{why}{more}"));
    }
}

/// Records a refusal in the audit and for the page.
fn record(app: App, caller: &Caller, rule: &str) {
    let record = CallRecord::new(caller, "", CallDecision::Refused, Outcome::NotRun).rule(rule);
    if let Some(audit) = app.workspaces.full_host().audit() {
        audit.end(&record);
    }
    if let Some(store) = &app.audit_store {
        store.record(&record);
    }
    app.recent_calls.record(&record);
    app.activity.record(&record);
}
