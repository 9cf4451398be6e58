//! The page of flame graphs, and the flame graphs.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::format;
use super::layout::{NavigationPage, page};
use super::query::PageQuery;
use crate::app_state::App;
use crate::flame_graphs;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use maud::html;

/// Answers with the flame graphs that were kept. They show the programs of all callers.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    if !viewer.sees_all {
        return html_response::nothing_here();
    }
    let graphs = flame_graphs::list(&app.traces_folder);
    let query = PageQuery::of(&uri);
    let shown = graphs.iter().find(|graph| graph.name == query.get("name")).or(graphs.first());
    let content = html! {
        p class="faint" { "CPU profiles that " code { "capture_trace" } " took, the latest first." }
        @match shown {
            None => p { "None." },
            Some(shown) => {
                @let description = format::flame_graph(&shown.name);
                h2 { (description) }
                p class="faint" {
                    "A bar that you click fills the width; the field finds functions. "
                    a href={ "/ui/trace/" (shown.name) } { "Open it alone" }
                }
                // In a sandbox: the names of functions come from the program that was profiled.
                iframe class="trace" src={ "/ui/trace/" (shown.name) } sandbox="allow-scripts" tabindex="0"
                    title={ "Flame graph of " (description) } {}
            }
        }
        @if graphs.len() > 1 {
            h2 { "All" }
            ul {
                @for graph in &graphs {
                    li {
                        a href={ "/ui/traces?name=" (graph.name) }
                            aria-current=[shown.is_some_and(|shown| shown.name == graph.name).then_some("true")] {
                            (format::flame_graph(&graph.name))
                        }
                    }
                }
            }
        }
    };
    html_response::html(StatusCode::OK, page(NavigationPage::Traces, &viewer, &content))
}

/// Answers with one flame graph.
pub(in super::super) async fn picture(State(app): State<App>, viewer: PageViewer, uri: Uri) -> Response {
    // As it was sent: the names of flame graphs need no encoding.
    let name = uri.path().strip_prefix("/ui/trace/").filter(|_| viewer.sees_all);
    match name.and_then(|name| flame_graphs::read(&app.traces_folder, name)) {
        Some(picture) => html_response::svg(picture),
        None => html_response::nothing_here(),
    }
}
