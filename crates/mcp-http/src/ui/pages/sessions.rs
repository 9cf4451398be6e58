//! The page of sessions: those of clients, and those of agents that the server supervises.

use super::super::html_response;
use super::super::viewer::PageViewer;
#[cfg(feature = "sessions")]
use super::agents;
use super::format;
use super::layout::{NavigationPage, bar, cell, page, said, section, table};
use super::query::PageQuery;
use crate::app_state::App;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use maud::{Markup, html};

/// Answers with the page.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    #[cfg(feature = "sessions")]
    let agents = agents::section(app, &viewer).await;
    #[cfg(not(feature = "sessions"))]
    let agents = Markup::default();
    let whose = match viewer.sees_all {
        true => "Everybody’s sessions at this server process.",
        false => "Your sessions at this server process.",
    };
    let content = html! {
        (said(result_of_form(PageQuery::of(&uri).get("said"))))
        (bar(&html! { (whose) }))
        (agents)
        (clients(app, &viewer))
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Sessions, &viewer, &content))
}

fn result_of_form(said: &str) -> &'static str {
    match said {
        "gone" => "There is no such session any more.",
        "ended" => "The session was ended.",
        "not-ended" => "The session was not ended: it is over, or the policy does not let you.",
        _ => "",
    }
}

fn clients(app: App, viewer: &PageViewer) -> Markup {
    let mut sessions = app.sessions.list();
    sessions.retain(|session| viewer.shown_principal().is_none_or(|shown| &*session.principal == shown));
    let rows: Vec<_> = sessions
        .iter()
        .map(|session| {
            vec![
                cell(&*session.principal).class("name"),
                cell(session.open).class("number"),
                cell(html! { (format::duration(session.idle)) " ago" }).class("time"),
            ]
        })
        .collect();
    let content = html! {
        p class="faint" {
            "Of clients that begin with " code { "initialize" } ". Clients of protocol version 2026-07-28 have none."
        }
        (table("sessions", &["Caller", "Open requests", "Last used"], &rows))
    };
    section("sessions", "Sessions of clients", &content)
}
