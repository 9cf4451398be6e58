//! The actions of a viewer: ending a call, a program in the background and the session of an agent, answering a question,
//! revoking a token.

use super::form::PageForm;
use super::html_response::see_other;
use super::viewer::PageViewer;
use crate::app_state::App;
use crate::operator_actions::{self, Revocation};
use crate::response;
use axum::extract::State;
use axum::response::Response;
use core_tools::mcp::{ApprovalAnswer, ApprovalVerdict, CallContext, Host, shown_text};
use http::StatusCode;
use serde_json::Map;

/// Ends what the form names, as a call of `stop_command` or `end_session` by the viewer. The policy judges it and the audit
/// records it as any other call.
pub(super) async fn stop(State(app): State<App>, viewer: PageViewer, form: PageForm) -> Response {
    if let Some(refusal) = refuse_foreign_form(&viewer, &form) {
        return refusal;
    }
    // The form may name any owner; `may_end_for` decides.
    let owner = form.get("owner").unwrap_or(&viewer.principal.name);
    if let Some(number) = form.get("call") {
        return stop_call(app, &viewer, owner, number);
    }
    if let Some(session) = form.get("session") {
        return end_session(app, &viewer, owner, session).await;
    }
    match form.get("id").and_then(|id| id.parse().ok()) {
        Some(id) => stop_program(app, &viewer, owner, id).await,
        None => response::text(StatusCode::BAD_REQUEST, "which program?\n"),
    }
}

/// Answers the question that the form names, in the name of the viewer, who must see everything.
pub(super) async fn answer(State(app): State<App>, viewer: PageViewer, form: PageForm) -> Response {
    if let Some(refusal) = refuse_foreign_form(&viewer, &form) {
        return refusal;
    }
    if !viewer.sees_all {
        return response::text(StatusCode::FORBIDDEN, "your role may not approve the calls of others\n");
    }
    let (verdict, done) = match form.get("verdict") {
        Some("once") => (ApprovalVerdict::AllowOnce, "/ui/approvals?said=allowed"),
        Some("session") => (ApprovalVerdict::AllowForSession, "/ui/approvals?said=allowed"),
        Some("deny") => {
            let reason = form.get("reason").map(str::trim).filter(|reason| !reason.is_empty());
            let reason = reason.map(|reason| shown_text(reason, 500));
            (ApprovalVerdict::Deny(reason), "/ui/approvals?said=denied")
        }
        _ => return response::text(StatusCode::BAD_REQUEST, "allowed or denied?\n"),
    };
    let answer = ApprovalAnswer::now(verdict, format!("{} on the page", viewer.principal.name));
    let id = form.get("id").unwrap_or_default();
    match app.workspaces.full_host().approvals().queue.answer(id, answer) {
        Ok(()) => see_other(done),
        Err(_) => see_other("/ui/approvals?said=late"),
    }
}

/// Revokes the token that the form names: the viewer's own, or anybody's for a viewer who sees everything.
pub(super) async fn revoke(State(app): State<App>, viewer: PageViewer, form: PageForm) -> Response {
    if let Some(refusal) = refuse_foreign_form(&viewer, &form) {
        return refusal;
    }
    let name = form.get("name").unwrap_or_default();
    if !may_end_for(&viewer, name) {
        return see_other("/ui/tokens?said=no-token");
    }
    see_other(match operator_actions::revoke_token(app, &viewer.caller, name).await {
        Revocation::Revoked => "/ui/tokens?said=revoked",
        Revocation::UntilRestart => "/ui/tokens?said=revoked-here",
        Revocation::NoToken => "/ui/tokens?said=no-token",
    })
}

fn stop_call(app: App, viewer: &PageViewer, owner: &str, number: &str) -> Response {
    let call = number.parse().ok().and_then(|number| app.recent_calls.find_running(number));
    // The owner of the call counts and not that of the form, which the browser may have changed.
    match call.filter(|call| call.principal == owner && may_end_for(viewer, owner)) {
        Some(call) => {
            operator_actions::stop_call(app, &viewer.caller, &call);
            see_other("/ui/calls?said=call-stopped#now")
        }
        None => see_other("/ui/calls?said=call-over#now"),
    }
}

/// Refuses a form that is not from the viewer's own page. A browser sends the cookie with the forms of other pages too, and
/// a header of ours with none.
fn refuse_foreign_form(viewer: &PageViewer, form: &PageForm) -> Option<Response> {
    let secret = form.get("secret").unwrap_or_default();
    let is_foreign = viewer.login.as_ref().is_some_and(|login| !login.verifies_form(secret));
    is_foreign.then(|| {
        response::text(StatusCode::FORBIDDEN, "this form is not from this page, or too old; load it again\n")
    })
}

async fn end_session(app: App, viewer: &PageViewer, owner: &str, session: &str) -> Response {
    if !may_end_for(viewer, owner) {
        return see_other("/ui/sessions?said=gone#agents");
    }
    if owner != &*viewer.principal.name {
        tracing::warn!("{} ends the session {session:?} of {owner}", viewer.principal.name);
    }
    let arguments = Map::from_iter([("session_id".to_owned(), session.into())]);
    let context = context(app, viewer, owner);
    match app.workspaces.full_host().call("end_session", arguments, context).await {
        Ok(answer) if !answer.is_failed() => see_other("/ui/sessions?said=ended#agents"),
        _ => see_other("/ui/sessions?said=not-ended#agents"),
    }
}

async fn stop_program(app: App, viewer: &PageViewer, owner: &str, id: u32) -> Response {
    let runs_it = |host: &Host| {
        host.background_processes().iter().any(|program| program.id == id && program.principal == owner)
    };
    // Each host has its own registry of programs, and the number alone does not tell which one it is.
    let host = app.workspaces.hosts().into_iter().find(runs_it);
    let Some(host) = host.filter(|_| may_end_for(viewer, owner)) else {
        return see_other("/ui/calls?said=gone#programs");
    };
    if owner != &*viewer.principal.name {
        tracing::warn!("{} stops the program {id} of {owner}", viewer.principal.name);
    }
    let arguments = Map::from_iter([("id".to_owned(), id.into())]);
    match host.call("stop_command", arguments, context(app, viewer, owner)).await {
        Ok(answer) if !answer.is_failed() => see_other("/ui/calls?said=stopped#programs"),
        _ => see_other("/ui/calls?said=refused#programs"),
    }
}

/// Returns true if the viewer may end what is `owner`'s: its own, or anybody's where it sees everything.
fn may_end_for(viewer: &PageViewer, owner: &str) -> bool {
    viewer.sees_all || owner == &*viewer.principal.name
}

/// Makes the context of a call by the viewer that ends what is `owner`'s.
fn context(app: App, viewer: &PageViewer, owner: &str) -> CallContext {
    let mut context = CallContext::new(viewer.caller.clone(), viewer.principal.revoked.child_token());
    context.owner = Some(owner.to_owned());
    context.observer = Some(app.observer.clone());
    context
}
