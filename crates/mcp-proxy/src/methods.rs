//! Every method of MCP, in both eras, and what becomes of it. What is not in these tables is not forwarded.

/// The class of a request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRequestKind {
    /// The handshake of the protocol versions before 2026-07-28.
    Initialize,
    /// The question for the capabilities of a server, without a handshake.
    Discover,
    /// Answered here: the connection that is asked about is this one.
    Ping,
    /// Answered from the catalogue, filtered.
    ListTools,
    /// Judged.
    CallTool,
    /// Forwarded, and repeated to a server that was started again.
    SetLevel,
    /// A stream of notifications that stays open.
    Listen,
    /// Forwarded where the policy grants the area.
    InArea(ProtocolArea),
}

/// A part of MCP beside tools. A role has an area as a whole or not at all: see [`ProtocolArea::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolArea {
    /// `prompts/*`.
    Prompts,
    /// `resources/*`.
    Resources,
    /// `completion/complete`.
    Completions,
    /// `tasks/*`.
    Tasks,
    /// `skills/*`.
    Skills,
    /// `sampling/createMessage`, by which a server has the client's model answer.
    Sampling,
    /// `elicitation/create`, by which a server asks the user.
    Elicitation,
    /// `roots/list`, by which a server learns which folders the client works in.
    Roots,
}

impl ProtocolArea {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Prompts,
        Self::Resources,
        Self::Completions,
        Self::Tasks,
        Self::Skills,
        Self::Sampling,
        Self::Elicitation,
        Self::Roots,
    ];

    /// Those by which a server asks the client.
    pub(super) const OF_CLIENT: [Self; 3] = [Self::Sampling, Self::Elicitation, Self::Roots];

    /// The name by which the policy judges the method, as if it were a tool. No tool has such a name, because tools
    /// with a slash in their names are not offered.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompts => "mcp/prompts",
            Self::Resources => "mcp/resources",
            Self::Completions => "mcp/completions",
            Self::Tasks => "mcp/tasks",
            Self::Skills => "mcp/skills",
            Self::Sampling => "mcp/sampling",
            Self::Elicitation => "mcp/elicitation",
            Self::Roots => "mcp/roots",
        }
    }

    /// The member of a server's `capabilities` that declares it, or of a client's.
    pub(super) fn capability(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Completions => "completions",
            Self::Tasks => "tasks",
            Self::Skills => "skills",
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
            Self::Roots => "roots",
        }
    }
}

/// The class of a request of a client; `None` is answered with -32601 and not forwarded.
pub(super) fn client_request(method: &str) -> Option<ClientRequestKind> {
    Some(match method {
        "initialize" => ClientRequestKind::Initialize,
        "server/discover" => ClientRequestKind::Discover,
        "ping" => ClientRequestKind::Ping,
        "tools/list" => ClientRequestKind::ListTools,
        "tools/call" => ClientRequestKind::CallTool,
        "logging/setLevel" => ClientRequestKind::SetLevel,
        "subscriptions/listen" => ClientRequestKind::Listen,
        "prompts/list" | "prompts/get" => ClientRequestKind::InArea(ProtocolArea::Prompts),
        "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "resources/directory/read"
        | "resources/subscribe"
        | "resources/unsubscribe" => ClientRequestKind::InArea(ProtocolArea::Resources),
        "completion/complete" => ClientRequestKind::InArea(ProtocolArea::Completions),
        "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" | "tasks/update" => {
            ClientRequestKind::InArea(ProtocolArea::Tasks)
        }
        "skills/list" | "skills/get" => ClientRequestKind::InArea(ProtocolArea::Skills),
        // Not forwarded, although the server may know it: nobody has decided yet what it may reveal.
        _ => return None,
    })
}

/// The class of a notification of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientNotification {
    /// The end of the handshake.
    Initialized,
    /// Forwarded under the id that the server knows.
    Cancelled,
    /// Forwarded: progress of a request of the server.
    Forwarded,
    /// Forwarded where the policy grants the area: roots that have changed.
    InArea(ProtocolArea),
}

/// The class of a notification of a client; `None` is dropped.
pub(super) fn client_notification(method: &str) -> Option<ClientNotification> {
    Some(match method {
        "notifications/initialized" => ClientNotification::Initialized,
        "notifications/cancelled" => ClientNotification::Cancelled,
        "notifications/progress" => ClientNotification::Forwarded,
        "notifications/roots/list_changed" => ClientNotification::InArea(ProtocolArea::Roots),
        _ => return None,
    })
}

/// The class of a request of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerRequest {
    /// Answered here.
    Ping,
    /// Forwarded under an id of ours, where the policy grants the area.
    InArea(ProtocolArea),
}

/// The class of a request of a server; `None` is answered with -32601.
pub(super) fn server_request(method: &str) -> Option<ServerRequest> {
    Some(match method {
        "ping" => ServerRequest::Ping,
        "sampling/createMessage" => ServerRequest::InArea(ProtocolArea::Sampling),
        "elicitation/create" => ServerRequest::InArea(ProtocolArea::Elicitation),
        "roots/list" => ServerRequest::InArea(ProtocolArea::Roots),
        _ => return None,
    })
}

/// The class of a notification of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerNotification {
    /// Forwarded while the request it belongs to is open.
    Progress,
    /// Forwarded under the id that the client knows.
    Cancelled,
    /// The catalogue is read again, and the client is told where *its* list has changed.
    ToolsChanged,
    /// The beginning of a stream of notifications.
    Acknowledged,
    /// Forwarded.
    Forwarded,
    /// Forwarded where the policy grants the area.
    InArea(ProtocolArea),
}

/// The class of a notification of a server; `None` is dropped.
pub(super) fn server_notification(method: &str) -> Option<ServerNotification> {
    Some(match method {
        "notifications/progress" => ServerNotification::Progress,
        "notifications/cancelled" => ServerNotification::Cancelled,
        "notifications/tools/list_changed" => ServerNotification::ToolsChanged,
        "notifications/subscriptions/acknowledged" => ServerNotification::Acknowledged,
        "notifications/message" | "notifications/elicitation/complete" => ServerNotification::Forwarded,
        "notifications/prompts/list_changed" => ServerNotification::InArea(ProtocolArea::Prompts),
        "notifications/resources/list_changed" | "notifications/resources/updated" => {
            ServerNotification::InArea(ProtocolArea::Resources)
        }
        "notifications/tasks" | "notifications/tasks/status" => {
            ServerNotification::InArea(ProtocolArea::Tasks)
        }
        _ => return None,
    })
}
