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
use std::time::{Duration, SystemTime};

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
                (format::moment(waiting.asked_at)) " UTC, until " (format::moment(waiting.expires_at)) ", "
                strong { (time_left(waiting.expires_at)) }
            }
            p { code { (question.text()) } }
            form method="post" action="/ui/approvals" {
                input type="hidden" name="id" value=(id);
                (form_secret(viewer))
                p {
                    label for={ "reason-" (id) } { "Reason, which the agent reads if you deny " }
                    input name="reason" id={ "reason-" (id) } maxlength="500" autocomplete="off";
                }
                button name="verdict" value="once" id={ "once-" (id) } { "Allow once" }
                " "
                button name="verdict" value="session" id={ "session-" (id) } { "Allow for this session" }
                button class="stop apart" name="verdict" value="deny" id={ "deny-" (id) } { "Deny" }
                p class="faint small" {
                    "“For this session” also allows later calls with the same caller, tool, arguments and reason, until the server or                      the session of the caller ends, and for eight hours at most."
                }
            }
        }
    }
}

/// Says how much time is left.
fn time_left(end: SystemTime) -> String {
    match end.duration_since(SystemTime::now()) {
        Ok(left) => format!("{} left", format::duration(Duration::from_secs(left.as_secs()))),
        Err(_) => "no time left".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_told_in_whole_seconds() {
        let now = SystemTime::now();
        assert_eq!(time_left(now + Duration::from_millis(125_500)), "2 min 5 s left");
        assert_eq!(time_left(now - Duration::from_secs(1)), "no time left");
    }
}
