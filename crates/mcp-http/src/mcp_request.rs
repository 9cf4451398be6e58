//! A request of the protocol, as its layers pass it on.

use crate::auth::principal::Principal;
use crate::layers::rpc_body::RpcRequest;
use crate::layers::workspace::CallTarget;
use crate::limits::account::{CallerAccount, CallerPermits};
use crate::net::address::ConnectionPeer;
use crate::sessions::SessionGuard;
use crate::telemetry::RequestSpan;
use axum::extract::Request;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A request of the protocol, and what the layers have found out about it. Boxed, because each layer moves it into the
/// future of the next.
pub(crate) struct McpRequest {
    pub(crate) http: Request,
    pub(crate) peer: ConnectionPeer,
    pub(crate) principal: Arc<Principal>,
    pub(crate) account: Arc<CallerAccount>,
    /// The parts of the message that the layers need, once it was read.
    pub(crate) message: Arc<RpcRequest>,
    /// The session, if the request is in one.
    pub(crate) session: Option<Arc<SessionGuard>>,
    /// The tools and the caller, once they are resolved.
    pub(crate) target: Option<CallTarget>,
    /// The span, if spans are sent to a collector.
    pub(crate) span: Option<RequestSpan>,
    /// The permits of a call, once it has them.
    pub(crate) permits: Option<Arc<CallerPermits>>,
    /// Cancels the call.
    pub(crate) cancellation: Option<CancellationToken>,
}
