//! The routes, and the layers that a request meets on its way, from the outermost to the innermost.

use crate::layers::admission::admit;
use crate::layers::call_metrics::count_call;
use crate::layers::call_permits::acquire_permits;
use crate::layers::compression::compress;
use crate::layers::host_check::check_host;
use crate::layers::identification::identify;
use crate::layers::lifetime::limit_lifetime;
use crate::layers::rpc_body::read_message;
use crate::layers::session::enter_session;
use crate::layers::tracing::trace;
use crate::layers::workspace::resolve_workspace;
use crate::mcp_endpoint::McpEndpoint;
use crate::middleware::{Next, ResponseFuture, boxed, layer_fn};
use crate::monitoring::{healthz, metrics, readyz};
use crate::oauth::METADATA_PATH;
use crate::response;
use crate::state::App;
use crate::ui;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use http::StatusCode;
use tower::{ServiceBuilder, service_fn};

/// Makes the router of the listeners for callers.
pub(crate) fn for_callers(app: App, endpoint: &'static McpEndpoint) -> Next {
    let protocol = ServiceBuilder::new()
        .layer(layer_fn(app, identify))
        .layer(layer_fn(app, admit))
        .layer(layer_fn(app, read_message))
        .layer(layer_fn(app, enter_session))
        .layer(layer_fn(app, resolve_workspace))
        .layer(layer_fn(app, trace))
        .layer(layer_fn(app, acquire_permits))
        .layer(layer_fn(app, limit_lifetime))
        .layer(layer_fn(app, count_call))
        .service(service_fn(move |request: Request| -> ResponseFuture {
            Box::pin(async move { Ok(endpoint.answer(app, request).await) })
        }));
    let identified = ServiceBuilder::new().layer(layer_fn(app, identify)).map_future(boxed);
    let routes = Router::new()
        .route_service("/mcp", protocol)
        .route("/metrics", read_only(get(metrics).route_layer(identified)))
        .route("/healthz", read_only(get(healthz)))
        .route("/readyz", read_only(get(readyz)))
        .route(METADATA_PATH, read_only(get(oauth_metadata)))
        // RFC 9728 §3.1: the path of the resource follows the well-known part.
        .route("/.well-known/oauth-protected-resource/mcp", read_only(get(oauth_metadata)))
        .merge(ui::routes());
    finish(app, routes)
}

/// Makes the router of the listener for monitoring, where nobody is identified.
pub(crate) fn for_monitoring(app: App) -> Next {
    let routes = Router::new()
        .route("/metrics", read_only(get(metrics)))
        .route("/healthz", read_only(get(healthz)))
        .route("/readyz", read_only(get(readyz)));
    finish(app, routes)
}

/// Adds the layers that every request meets first, also one for a path that does not exist.
fn finish(app: App, routes: Router<App>) -> Next {
    // Inside the router, which takes the body off the answer to a HEAD: its length is that of the compressed answer.
    let first = ServiceBuilder::new()
        .layer(layer_fn(app, compress))
        .layer(layer_fn(app, check_host))
        .map_future(boxed);
    let routes = routes.fallback(not_found).with_state(app).layer(first);
    Next::new(ServiceBuilder::new().map_future(boxed).service(routes))
}

/// Answers other methods than GET and HEAD as if there were nothing.
fn read_only(route: MethodRouter<App>) -> MethodRouter<App> {
    route.fallback(not_found)
}

async fn not_found() -> Response {
    response::not_found()
}

/// Answers where a client gets a token (RFC 9728).
async fn oauth_metadata(State(app): State<App>) -> Response {
    match &app.oauth {
        Some(oauth) => response::document(StatusCode::OK, "application/json", oauth.metadata()),
        None => response::not_found(),
    }
}
