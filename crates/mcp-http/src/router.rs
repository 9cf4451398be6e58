//! The routes, and the layers that a request meets on its way, from the outermost to the innermost.

use crate::app_state::App;
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
use crate::middleware::layers;
use crate::monitoring::{healthz, metrics, readyz};
use crate::oauth::METADATA_PATH;
use crate::response;
use crate::ui;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{MethodRouter, any, get};
use http::{Method, StatusCode, Uri};
use std::pin::Pin;
use tower::ServiceExt;

/// The path of the protocol.
const PROTOCOL_PATH: &str = "/mcp";

/// The future of an answer.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The routes of a listener, with their layers.
#[derive(Clone)]
pub(crate) struct Routes {
    app: App,
    /// The protocol, where callers are served.
    endpoint: Option<&'static McpEndpoint>,
    router: Router,
}

impl Routes {
    /// Makes the routes of the listeners for callers.
    pub(crate) fn for_callers(app: App, endpoint: &'static McpEndpoint) -> Self {
        let identified =
            from_fn(move |request: Request, next: Next| layers!(app, request => identify; next.run(request)));
        let router = Router::new()
            .route(PROTOCOL_PATH, any(move |request: Request| answer_protocol(app, endpoint, request)))
            .route("/metrics", read_only(get(metrics).route_layer(identified)))
            .route("/healthz", read_only(get(healthz)))
            .route("/readyz", read_only(get(readyz)))
            .route(METADATA_PATH, read_only(get(oauth_metadata)))
            // RFC 9728 §3.1: the path of the resource follows the well-known part.
            .route("/.well-known/oauth-protected-resource/mcp", read_only(get(oauth_metadata)))
            .merge(ui::routes());
        Self { app, endpoint: Some(endpoint), router: finish(app, router) }
    }

    /// Makes the routes of the listener for monitoring, where nobody is identified.
    pub(crate) fn for_monitoring(app: App) -> Self {
        let router = Router::new()
            .route("/metrics", read_only(get(metrics)))
            .route("/healthz", read_only(get(healthz)))
            .route("/readyz", read_only(get(readyz)));
        Self { app, endpoint: None, router: finish(app, router) }
    }

    /// Answers a request.
    pub(crate) fn answer(&self, request: Request) -> ResponseFuture {
        let app = self.app;
        match self.endpoint {
            // Calls take the short way: the router would box the layers at each step, which is a twentieth of a small call.
            Some(endpoint) if request.method() == Method::POST && request.uri().path() == PROTOCOL_PATH => {
                Box::pin(
                    layers!(app, request => compress, check_host; answer_protocol(app, endpoint, request)),
                )
            }
            _ => {
                let router = self.router.clone();
                Box::pin(async move {
                    match router.oneshot(request).await {
                        Ok(response) => response,
                        Err(impossible) => match impossible {},
                    }
                })
            }
        }
    }
}

/// Answers a request of the protocol.
fn answer_protocol(
    app: App,
    endpoint: &'static McpEndpoint,
    request: Request,
) -> impl Future<Output = Response> + Send {
    layers!(
        app, request =>
            identify,
            admit,
            read_message,
            enter_session,
            resolve_workspace,
            trace,
            acquire_permits,
            limit_lifetime,
            count_call;
        endpoint.answer(app, request)
    )
}

/// Adds the layers that every request meets first, also one for a path that does not exist.
fn finish(app: App, routes: Router<App>) -> Router {
    // Inside the router, which takes the body off the answer to a HEAD: its length is that of the compressed answer.
    let first = from_fn(
        move |request: Request, next: Next| layers!(app, request => compress, check_host; next.run(request)),
    );
    routes.fallback(not_found).with_state(app).layer(first)
}

/// Answers other methods than GET and HEAD as if there were nothing.
fn read_only(route: MethodRouter<App>) -> MethodRouter<App> {
    route.fallback(not_found)
}

/// Answers that there is nothing. Clients look for an authorization server at fixed paths, and read the answer as JSON
/// (RFC 6749 §5.2, RFC 8414 §3.2).
async fn not_found(uri: Uri) -> Response {
    let path = uri.path();
    match path.contains("/.well-known/") || matches!(path, "/register" | "/authorize" | "/token") {
        true => response::no_authorization_server(),
        false => response::not_found(),
    }
}

/// Answers where a client gets a token (RFC 9728).
async fn oauth_metadata(State(app): State<App>) -> Response {
    match &app.oauth {
        Some(oauth) => response::document(StatusCode::OK, "application/json", oauth.metadata()),
        None => response::no_authorization_server(),
    }
}
