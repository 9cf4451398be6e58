//! The protocol itself: rmcp's service, which answers what the layers have let through.

use crate::app_state::App;
use crate::auth::principal::Principal;
use crate::limits::account::CallerAccount;
use crate::mcp_request::McpRequest;
use crate::refusal;
use crate::response;
use crate::sessions::ClientSessions;
use axum::body::Body;
use axum::response::Response;
use core_tools::mcp::{
    CallAdmission, CallObserver, Connection, Host, InnerCallPermits, NoPermit, PermitRelease, ProcessPermits,
    RequestContext,
};
use http::StatusCode;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use server_setup::{Program, instructions};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The innermost service of the router, which hands a request of the protocol to rmcp.
pub(crate) struct McpEndpoint {
    service: StreamableHttpService<Connection, LocalSessionManager>,
}

impl McpEndpoint {
    /// Serves the protocol as `program`, for callers of `host` and of hosts over other workspaces. Cancelling `cut_off` ends every answer.
    pub(crate) fn new(
        program: Program,
        host: &Host,
        sessions: &ClientSessions,
        max_body_bytes: usize,
        cut_off: CancellationToken,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            // The outermost layer checks names and origins, on every route.
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_max_request_body_bytes(max_body_bytes)
            .with_cancellation_token(cut_off);
        let connection = Connection::shared(
            |extensions| {
                extensions.get::<http::request::Parts>()?.extensions.get::<RequestContext>().cloned()
            },
            program.name,
            program.version,
            |context| instructions::instructions(&context.host, &context.caller),
        )
        .serving(host);
        let manager = Arc::clone(&sessions.manager);
        Self { service: StreamableHttpService::new(move || Ok(connection.new_session()), manager, config) }
    }

    /// Answers a request that has met all layers.
    pub(crate) async fn answer(&self, app: App, request: Box<McpRequest>) -> Response {
        let McpRequest {
            http: mut request,
            principal,
            account,
            target,
            span,
            permits,
            call,
            cancellation,
            ..
        } = *request;
        let (Some(target), Some(cancellation)) = (target, cancellation) else {
            // A layer is missing in the router.
            return response::text(StatusCode::INTERNAL_SERVER_ERROR, "the server is set up wrongly\n");
        };
        let observer = match span {
            None => app.observer.clone(),
            Some(span) => CallObserver::new(move |record| {
                app.observer.observe(record);
                span.record_call(record);
            }),
        };
        let observer = match call {
            Some(call) => observer.on_start(move |record| call.note_start(record)),
            None => observer,
        };
        let mut context = RequestContext::new(target.host, target.caller, cancellation);
        context.call_permit = permits.as_ref().and_then(|permits| permits.call_permit());
        context.permit_release = permits.clone().map(|permits| PermitRelease::new(move || permits.release()));
        context.call_admission = Some(inner_call_admission(app, principal, Arc::clone(&account)));
        context.process_permits = Some(ProcessPermits::new(move || account.acquire_program()));
        context.observer = Some(observer);
        let extensions = request.extensions_mut();
        extensions.insert(context);
        if let Some(permits) = permits {
            extensions.insert(permits);
        }
        // Boxed: inline, it would be in the future of every layer, and be moved with each of them.
        Box::pin(self.service.handle(request)).await.map(Body::new)
    }
}

/// Admits the calls that a tool makes by the limits of its caller, as the layers admit those that come alone.
fn inner_call_admission(app: App, principal: Arc<Principal>, account: Arc<CallerAccount>) -> CallAdmission {
    CallAdmission::new(move |class| {
        let (principal, account) = (Arc::clone(&principal), Arc::clone(&account));
        async move {
            match account.admit_inner_call(class).await {
                Ok(permits) => {
                    Ok(InnerCallPermits { call_permit: permits.call_permit(), held: Box::new(permits) })
                }
                Err(rejection) => Err(NoPermit::new(refusal::note_over_limit(app, &principal, &rejection))),
            }
        }
    })
}
