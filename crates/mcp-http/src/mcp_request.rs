//! A request of the protocol, as its layers pass it on.

use crate::auth::principal::Principal;
use crate::limits::account::{CallerAccount, CallerPermits};
use crate::net::address::ConnectionPeer;
use crate::recent_calls::{ActiveCall, RunningCallGuard};
use crate::sessions::ClientSessionGuard;
use crate::telemetry::RequestSpan;
use crate::telemetry::attributes::TraceParent;
use axum::extract::Request;
use core_tools::mcp::{Host, RequestedOffer};
use json_rpc::message::Id;
use role_policy::Caller;
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
    pub(crate) session: Option<Arc<ClientSessionGuard>>,
    /// The tools and the caller, once they are resolved.
    pub(crate) target: Option<McpCallTarget>,
    /// The span, if spans are sent to a collector.
    pub(crate) span: Option<RequestSpan>,
    /// The permits of a call, once it has them.
    pub(crate) permits: Option<Arc<CallerPermits>>,
    /// The call on the list for the page, until it has begun.
    pub(crate) running: Option<RunningCallGuard>,
    /// The call on that list, once it has begun.
    pub(crate) call: Option<Arc<ActiveCall>>,
    /// Cancels the call.
    pub(crate) cancellation: Option<CancellationToken>,
}

/// The parts of a message that the layers need. A request without a body has none of them.
#[derive(Debug, Default)]
pub(crate) struct RpcRequest {
    pub(crate) id: Option<Id>,
    pub(crate) method: String,
    /// The tool, prompt, resource or suggestions that the message asks for, where it asks for one.
    pub(crate) offer: Option<RequestedOffer>,
    /// The client's span.
    pub(crate) parent: Option<TraceParent>,
}

/// The tools that a request may reach, and the caller as the policy knows it.
#[derive(Clone, Debug)]
pub(crate) struct McpCallTarget {
    pub(crate) host: Host,
    pub(crate) caller: Caller,
}
