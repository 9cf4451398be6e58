//! The page of flame graphs, and the flame graphs.

use super::super::html_response;
use super::super::viewer::PageViewer;
use super::format;
use super::layout::{NavigationPage, page};
use crate::flame_graphs;
use crate::state::App;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use maud::html;

/// Answers with the flame graphs that were kept. They show the programs of all callers.
pub(in super::super) async fn show(State(app): State<App>, viewer: PageViewer) -> Response {
    if !viewer.sees_all {
        return html_response::nothing_here();
    }
    let graphs = flame_graphs::list(&app.traces_folder);
    let content = html! {
        p class="faint" { "CPU profiles that " code { "capture_trace" } " took, the latest first." }
        @match graphs.first() {
            None => p { "None." },
            Some(latest) => {
                @let description = format::flame_graph(&latest.name);
                h2 { (description) }
                a href={ "/ui/trace/" (latest.name) } {
                    img src={ "/ui/trace/" (latest.name) } alt={ "Flame graph of " (description) "; opens alone" };
                }
            }
        }
        @if graphs.len() > 1 {
            h2 { "Before" }
            ul {
                @for graph in graphs.iter().skip(1) {
                    li { a href={ "/ui/trace/" (graph.name) } { (format::flame_graph(&graph.name)) } }
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
