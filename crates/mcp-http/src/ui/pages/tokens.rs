//! The page of tokens: whose they are, when they end, when they were used, and a button to revoke each.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::format;
use super::layout::{NavigationPage, TableCell, cell, form_secret, page, said, section, table};
use super::overview::percent_encoded;
use super::query::PageQuery;
use crate::app_state::App;
use crate::auth::token_usage::{TokenUse, TokenUses};
use crate::auth::tokens::ActiveToken;
use crate::console_output::name;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use maud::{Markup, html};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

/// A token that ends within this time is shown as one that ends soon.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// The revoked tokens that are shown.
const MAX_REVOKED_ROWS: usize = 20;

/// Answers with the page.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    let tokens = app.authenticator.tokens();
    let shown = viewer.shown_principal();
    let mut shown: Vec<&ActiveToken> =
        tokens.valid().filter(|token| shown.is_none_or(|shown| shown == &*token.name)).collect();
    // Those that end first are at the top, and those without an end at the bottom.
    let key = |token: &&ActiveToken| (token.expires_at.is_none(), token.expires_at, token.name.clone());
    shown.sort_by_key(key);
    let mut uses = written_uses(app);
    for (name, used) in tokens.uses() {
        if uses.get(&name).is_none_or(|before| before.at < used.at) {
            uses.insert(name, used);
        }
    }
    let now = SystemTime::now();
    let rows: Vec<_> = shown
        .iter()
        .map(|token| {
            let previous_end = tokens.previous_secret_ends(&token.name);
            row(token, previous_end, uses.get(&*token.name), now, &viewer)
        })
        .collect();
    let columns = ["Whose", "Role", "Ends", "Last used", "Roots", "Made", "Revoke"];
    let content = html! {
        (said(result_of_form(PageQuery::of(&uri).get("said"))))
        @if viewer.sees_all { (summary(&shown, now)) }
        (section("tokens", "Valid tokens", &table("tokens", &columns, &rows)))
        @if viewer.sees_all { (revoked_tokens(&tokens.revoked())) }
        p class="faint" {
            code { (name()) " token new --name NAME --role ROLE" } " makes a token, and " code { (name()) " token rotate NAME" }
            " gives one a new secret before it ends."
            @if app.authenticator.takes_jwts() {
                " Callers with a JWT have none of these tokens: their issuer decides when they end."
            }
        }
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Tokens, &viewer, &content))
}

fn result_of_form(said: &str) -> &'static str {
    match said {
        "revoked" => "The token was revoked. Its calls and programs are ended.",
        "revoked-here" => {
            "The token was revoked at this server process, and its calls and programs are ended. The file of tokens could not \
             be changed, as the log says: revoke it there as well, or it is good again after the next start."
        }
        "no-token" => "There is no such token that you may revoke.",
        _ => "",
    }
}

/// Returns the uses that the file has, also by processes before this one.
fn written_uses(app: App) -> TokenUses {
    let writer = app.token_usage.as_ref().map(|writer| writer.lock().unwrap_or_else(PoisonError::into_inner));
    writer.map(|writer| writer.written().clone()).unwrap_or_default()
}

/// Says whose tokens end soon.
fn summary(tokens: &[&ActiveToken], now: SystemTime) -> Markup {
    let ends_within = |from: u64, to: u64| -> Vec<&str> {
        let within = |token: &&&ActiveToken| {
            let left =
                token.expires_at.and_then(|end| end.duration_since(now).ok()).map(|left| left.as_secs());
            left.is_some_and(|left| (from * 86_400..to * 86_400).contains(&left))
        };
        tokens.iter().filter(within).map(|token| &*token.name).collect()
    };
    let spans = [("within 7 days", ends_within(0, 7)), ("in the 7 days after that", ends_within(7, 14))];
    html! {
        ul class="summary" {
            @for (when, names) in &spans {
                li {
                    @match names.as_slice() {
                        [] => { "No token ends " (when) "." }
                        [one] => { "The token of " strong { (one) } " ends " (when) "." }
                        more => { "The tokens of " strong { (more.join(", ")) } " end " (when) "." }
                    }
                }
            }
        }
    }
}

/// Renders the tokens that were revoked, each with a link to what its bearer did and tries.
fn revoked_tokens(revoked: &[(Arc<str>, SystemTime)]) -> Markup {
    let rows: Vec<_> = revoked
        .iter()
        .take(MAX_REVOKED_ROWS)
        .map(|(name, at)| {
            let history = format!("/ui/history?when=all&caller={}", percent_encoded(name));
            vec![
                cell(html! { strong { (name) } }).class("name"),
                cell(format::day_and_time(*at)).class("time"),
                cell(html! { a href=(history) { "History" } }),
            ]
        })
        .collect();
    section(
        "revoked",
        "Revoked in the last 90 days",
        &html! {
            (table("revoked", &["Whose", "Revoked (UTC)", "Calls"], &rows))
            @if revoked.len() > MAX_REVOKED_ROWS {
                p class="faint" { "And " (revoked.len() - MAX_REVOKED_ROWS) " more: " code { (name()) " token list --all" } " shows all." }
            }
        },
    )
}

fn row(
    token: &ActiveToken,
    previous_end: Option<SystemTime>,
    used: Option<&TokenUse>,
    now: SystemTime,
    viewer: &PageViewer,
) -> Vec<TableCell> {
    let previous_left = previous_end.and_then(|end| end.duration_since(now).ok());
    let left = token.expires_at.and_then(|end| Some((end, end.duration_since(now).ok()?)));
    let since = |at: u64| {
        let ago = now.duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(at)).unwrap_or_default();
        match ago.as_secs() {
            0..=5 => "now".to_owned(),
            seconds => format!("{} ago", format::span(seconds)),
        }
    };
    vec![
        cell(html! { strong { (token.name) } }).class("name"),
        cell(&token.role),
        cell(html! {
            @match left {
                None => "never",
                Some((end, left)) => {
                    span class=[(left < SOON).then_some("some")] { "in " (format::span(left.as_secs())) }
                    ", " (format::day_and_time(end)) " UTC"
                }
            }
            @if let Some(left) = previous_left {
                br;
                span class="faint" { "the secret before its rotation holds for " (format::span(left.as_secs())) " more" }
            }
        }),
        cell(html! {
            @match used {
                None => span class="faint" { "not known" },
                Some(used) => { (since(used.at)) " " span class="faint" { "from " (used.from) } }
            }
        }),
        cell(html! {
            @if token.roots.is_empty() { "all" }
            @for root in token.roots.iter() { code { (root.display()) } }
        })
        .class("what"),
        cell(format::day(token.created_at)).class("time"),
        cell(revoke_button(&token.name, viewer)),
    ]
}

/// Renders the button, behind a first one: a token that was revoked does not come back.
fn revoke_button(name: &str, viewer: &PageViewer) -> Markup {
    html! {
        details id={ "revoking-" (name) } {
            summary aria-label={ "Revoke the token of " (name) } { "Revoke" }
            form method="post" action="/ui/revoke" {
                input type="hidden" name="name" value=(name);
                (form_secret(viewer))
                button class="stop" id={ "revoke-" (name) } { "Revoke the token of " (name) " for good" }
            }
        }
    }
}
