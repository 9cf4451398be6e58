//! The state of a session: open requests, waiting ones, the server's tools.

use crate::authorizer::Authorizer;
use crate::limits::McpProxyLimits;
use crate::observer::{ObservedArguments, ObservedCall, ProxyDecision, ProxyObserver};
use crate::output_queue::OutputQueue;
use crate::pinned_tools::PinnedTools;
use crate::proxy_approvals::ProxyApprovals;
use crate::server_tool::{ServerTool, WithheldTool};
use approvals::{ApprovalQuestion, PendingApproval};
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, Message};
use role_policy::{ApprovalRequest, Caller, TokenBucket};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The longest time a server may take for the proxy's own requests: one page of a list, a handshake.
pub(super) const OWN_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The member of `_meta` that names the stream a notification belongs to.
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The work that a session leaves to the task that runs the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SupervisorWork {
    /// True once the client is gone and no request is open whose answer it might read.
    pub(crate) is_over: bool,
    /// The generation of a server that is to be ended, because it is of no use any more.
    pub(crate) condemned: Option<u64>,
    /// The time at which to ask again.
    pub(crate) next_check: Option<Instant>,
}

/// The state of one session, behind its lock.
pub(super) struct ProxySessionState {
    pub(super) authorizer: Authorizer,
    pub(super) limits: McpProxyLimits,
    pub(super) pinned_tools: Option<PinnedTools>,
    pub(super) observer: Option<Arc<dyn ProxyObserver>>,
    pub(super) approvals: Option<ProxyApprovals>,
    /// The questions of the parked calls that wait for a person, by the client's id.
    pub(super) waiting_approvals: HashMap<Id, WaitingApproval>,
    /// The questions to the client that it has not answered: our id of the request, and the id of its call.
    pub(super) client_questions: HashMap<u64, Id>,
    /// The calls of a client without a handshake that wait until it sends them again with the answer of its user, by the state
    /// that it sends with them.
    pub(super) paused_calls: HashMap<String, ProxyPausedCall>,
    /// True if the client shows forms to its user.
    pub(super) client_shows_forms: bool,
    /// The calls that may be made now, if the role has had a limit of calls in a minute.
    pub(super) calls_per_minute: Option<TokenBucket>,
    pub(super) client: OutputQueue,
    pub(super) wake: Arc<Notify>,
    /// The time at which the supervising task looks for expired deadlines, unless it is woken before.
    pub(super) next_wake: Option<Instant>,

    pub(super) server: UpstreamState,
    pub(super) generation: u64,
    pub(super) condemned: Option<u64>,
    /// The time at which the client closed its end.
    pub(super) client_gone_at: Option<Instant>,
    pub(super) last_id: u64,
    pub(super) handshake: Option<Handshake>,
    /// The `_meta` of the client's requests without a handshake, for the proxy's own requests.
    pub(super) meta: JsonObject<'static>,
    /// The client's unanswered requests, by the client's id.
    pub(super) client_requests: HashMap<Id, ClientRequestState>,
    /// The requests that the server has not answered yet, by the proxy's id.
    pub(super) pending_requests: HashMap<u64, ProxyPendingRequest>,
    /// The server's requests that the client has not answered yet: the proxy's id, and the server's.
    pub(super) server_requests: HashMap<u64, Id>,
    pub(super) parked_requests: VecDeque<ParkedRequest>,
    /// The settings that are repeated to a server that was started again, by their subject.
    pub(super) replayed_settings: BTreeMap<String, Message<'static>>,

    pub(super) tool_list: Option<ToolList>,
    /// True if the server has said that its list has changed, or is not the process that gave it.
    pub(super) is_stale: bool,
    pub(super) refresh: Option<ListRefresh>,
    /// The tools that were withheld last, so that each is logged once.
    pub(super) withheld: Vec<WithheldTool>,
    /// True once the log says that the role has none of the server's tools.
    pub(super) has_told_of_no_tools: bool,
}

/// The question about a parked call.
#[derive(Debug)]
pub(super) struct WaitingApproval {
    pub(super) asked: AskedPerson,
    pub(super) request: ApprovalRequest,
}

/// The person who was asked about a parked call.
#[derive(Debug)]
pub(super) enum AskedPerson {
    Operator(PendingApproval),
    /// The client's user, about this question.
    Client(ApprovalQuestion),
}

/// A call that is not open any more, until its client sends it again.
#[derive(Debug)]
pub(super) struct ProxyPausedCall {
    pub(super) message: Message<'static>,
    pub(super) question: ApprovalQuestion,
    pub(super) request: ApprovalRequest,
    pub(super) deadline: Instant,
}

impl std::fmt::Debug for ProxySessionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxySessionState")
            .field("authorizer", &self.authorizer)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) enum UpstreamState {
    Down {
        reason: String,
    },
    /// The proxy repeats the client's handshake.
    Initializing(OutputQueue),
    Ready(OutputQueue),
}

#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) params: JsonObject<'static>,
    /// The protocol version that the server has chosen, once it has answered.
    pub(super) version: Option<String>,
    /// True once the client has sent `notifications/initialized`.
    pub(super) is_complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRequestState {
    PendingRequest(u64),
    ParkedRequest,
}

#[derive(Debug)]
pub(super) struct ProxyPendingRequest {
    /// The client's id of the request; `None` for the proxy's own requests.
    pub(super) client: Option<Id>,
    pub(super) request_kind: UpstreamRequestKind,
    pub(super) deadline: Option<(Instant, Duration)>,
    pub(super) progress: Option<Json<'static>>,
    pub(super) call: Option<ProxyPendingCall>,
}

/// A call of a tool that was allowed, until it ends.
#[derive(Debug)]
pub(super) struct ProxyPendingCall {
    pub(super) tool: String,
    pub(super) rule: Arc<str>,
    pub(super) arguments: ObservedArguments,
    pub(super) started_at: Instant,
    /// The time limit of the call, narrowed by the role's limits.
    pub(super) limit: Duration,
}

/// The kind of a request to the server, which decides what its answer means.
#[derive(Debug)]
pub(super) enum UpstreamRequestKind {
    Initialize,
    Discover,
    /// The answer goes to the client unchanged.
    Forwarded,
    /// A stream, opened again at a server that was started again.
    Listen {
        request: Box<Message<'static>>,
        is_acknowledged: bool,
    },
    /// The proxy's own: the handshake, repeated.
    ReplayHandshake,
    /// The proxy's own: a setting, repeated.
    ReplaySetting,
    /// The proxy's own: one page of the list of tools.
    Page,
}

#[derive(Debug)]
pub(super) struct ParkedRequest {
    pub(super) id: Id,
    pub(super) message: Message<'static>,
    pub(super) waits_for: ParkedRequestReason,
    pub(super) deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParkedRequestReason {
    /// The list of tools.
    List,
    /// The list, to be judged by.
    Call,
    /// The answer of a person.
    Approval,
    /// A server that is ready.
    Server(ForwardedRequestKind),
}

/// The kind of a request that a client sends: a subset of [`UpstreamRequestKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardedRequestKind {
    Initialize,
    Discover,
    Plain,
    /// The stream was opened before.
    Listen {
        is_acknowledged: bool,
    },
}

#[derive(Debug)]
pub(super) struct ToolList {
    pub(super) tools: Vec<ServerTool>,
    /// The index of each tool in `tools`, by its name.
    pub(super) names: HashMap<String, usize>,
    /// The other members of the list's result.
    pub(super) rest: JsonObject<'static>,
    /// The definitions that the client was told last, or would have been.
    pub(super) announced: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(super) struct ListRefresh {
    pub(super) entries: Vec<Json<'static>>,
    pub(super) rest: Option<JsonObject<'static>>,
    pub(super) pages: usize,
    /// True if the list has changed while it was read.
    pub(super) is_stale: bool,
    /// The time by which all pages must have come.
    pub(super) deadline: Option<Instant>,
}

impl ProxyPendingCall {
    pub(super) fn observed_call<'a>(&'a self, caller: &'a Caller) -> ObservedCall<'a> {
        ObservedCall::new(caller, &self.tool, ProxyDecision::Allowed, &self.rule, &self.arguments)
    }
}

impl ProxyPendingRequest {
    /// Returns the client's id of a stream that was opened to hear of changed tools.
    pub(super) fn wants_tools(&self) -> Option<&Id> {
        let UpstreamRequestKind::Listen { request, .. } = &self.request_kind else { return None };
        let wanted = request.params()?.get("notifications")?.as_object()?.get("toolsListChanged")?;
        (*wanted == Json::Bool(true)).then_some(self.client.as_ref()?)
    }
}
