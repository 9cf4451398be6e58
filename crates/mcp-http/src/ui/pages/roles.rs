//! The page of roles: all of them for a viewer who sees everything, the viewer's own for others.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::layout::{NavigationPage, page};
use crate::app_state::App;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use role_policy::{Policy, ToolAccess, ToolFacts};

/// Answers with the page.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer) -> Response {
    let host = app.workspaces.full_host();
    let (policy, mut tools) = (host.policy(), host.facts());
    let mut roles: Vec<&str> = match viewer.sees_all {
        true => policy.roles().collect(),
        false => viewer.caller.roles().collect(),
    };
    roles.dedup();
    if !viewer.sees_all {
        // A tool that is hidden from a caller is hidden here too.
        tools.retain(|tool| policy.sees(&viewer.caller, tool));
    }
    let content = html! {
        p class="faint" {
            "A role may call a tool (yes), call it with arguments that its rules allow (rules), call it if a person approves (ask), or "
            "does not know of it (no)."
        }
        div class="scroll" tabindex="0" role="group" aria-label="Roles and tools" {
            table class="held" {
                thead {
                    tr {
                        th scope="col" { "Tool" }
                        @for role in &roles { th scope="col" { (role) } }
                    }
                }
                @for toolset in tools.chunk_by(|one, next| one.toolset == next.toolset) {
                    (toolset_rows(&policy, &roles, toolset))
                }
            }
        }
        @if !viewer.sees_all {
            (rules(&policy, &roles, &tools))
        }
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Roles, &viewer, &content))
}

/// Renders the tools of one toolset.
fn toolset_rows(policy: &Policy, roles: &[&str], tools: &[ToolFacts<'_>]) -> Markup {
    html! {
        tbody {
            tr {
                th scope="rowgroup" colspan=(roles.len() + 1) { (tools.first().map_or("", |tool| tool.toolset)) }
            }
            @for tool in tools {
                tr {
                    th scope="row" { code { (tool.name) } }
                    @for role in roles {
                        @match policy.access(role, tool) {
                            ToolAccess::Hidden => td class="faint" { "no" },
                            ToolAccess::Allowed => td class="good" { "yes" },
                            ToolAccess::Ask => td class="some" { "ask" },
                            _ => td class="some" { "rules" },
                        }
                    }
                }
            }
        }
    }
}

/// Renders the rules of the viewer's own roles, in words.
fn rules(policy: &Policy, roles: &[&str], tools: &[ToolFacts<'_>]) -> Markup {
    let rules: Vec<_> = tools
        .iter()
        .flat_map(|tool| {
            roles.iter().flat_map(|role| policy.requirements(role, tool)).map(|rule| (tool.name, rule))
        })
        .collect();
    html! {
        @if !rules.is_empty() {
            h2 { "Rules" }
            ul {
                @for (tool, rule) in &rules {
                    li { code { (tool) } ": " (rule) }
                }
            }
        }
    }
}
