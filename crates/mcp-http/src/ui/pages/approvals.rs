//! The page of calls that wait for an approval.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::format;
use super::layout::{NavigationPage, bar, form_secret, page, said, section};
use crate::app_state::App;
use axum::extract::State;
use axum::response::Response;
use core_tools::mcp::PendingQuestion;
use http::{StatusCode, Uri};
use maud::{Markup, html};

/// Answers with the page, for a viewer who may answer.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    if !viewer.sees_all {
        return html_response::nothing_here();
    }
    let pending = app.workspaces.full_host().approvals().queue.pending();
    let content = html! {
        (said(result_of_form(uri.query().unwrap_or_default())))
        (bar(&html! { "Calls that the policy allows only with your word. No answer is no." }))
        (section("approvals", "Waiting", &questions(&pending, &viewer)))
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Approvals, &viewer, &content))
}

/// Returns the result of a form, from the query of the address to which it led.
fn result_of_form(query: &str) -> &'static str {
    match query {
        "said=allowed" => "The call was allowed.",
        "said=denied" => "The call was denied.",
        "said=late" => "The call did not wait any more: it was answered already, or it has ended.",
        _ => "",
    }
}

fn questions(pending: &[PendingQuestion], viewer: &PageViewer) -> Markup {
    if pending.is_empty() {
        return html! { p class="faint" { "None." } };
    }
    html! {
        @for waiting in pending {
            (question(waiting, viewer))
        }
    }
}

fn question(waiting: &PendingQuestion, viewer: &PageViewer) -> Markup {
    let PendingQuestion { id, question, .. } = waiting;
    html! {
        article aria-labelledby={ "tool-" (id) } {
            h3 id={ "tool-" (id) } { (question.tool) }
            p class="faint" {
                (question.principal.as_deref().unwrap_or("–")) ", role " (question.role) ", asked at "
                (format::moment(waiting.asked_at)) " UTC, until " (format::moment(waiting.expires_at))
            }
            p { code { (question.text()) } }
            form method="post" action="/ui/approvals" {
                input type="hidden" name="id" value=(id);
                (form_secret(viewer))
                button name="verdict" value="once" id={ "once-" (id) } { "Allow once" }
                " "
                button name="verdict" value="session" id={ "session-" (id) } { "Allow for this session" }
                " "
                label for={ "reason-" (id) } { "Reason " }
                input name="reason" id={ "reason-" (id) } maxlength="500" autocomplete="off";
                " "
                button class="stop" name="verdict" value="deny" id={ "deny-" (id) } { "Deny" }
            }
        }
    }
}
