//! Every method of MCP, in both eras, and what becomes of it. What is not in these tables is not forwarded.

/// What a client's request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRequest {
    /// The handshake of the eras before 2026-07-28.
    Initialize,
    /// What a server can do, without a handshake.
    Discover,
    /// Answered here: the connection that is asked about is this one.
    Ping,
    /// Answered from the catalogue, filtered.
    ListTools,
    /// Judged.
    CallTool,
    /// Passed, and said again to a server that was started again.
    SetLevel,
    /// A stream of notifications that stays open.
    Listen,
    /// Passed where the policy grants the area.
    Of(Area),
}

/// What a server offers beside tools. A role has an area, or does not: see [`Area::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
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
}

impl Area {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Prompts, Self::Resources, Self::Completions, Self::Tasks, Self::Skills];

    /// The name under which a policy is asked for it, as if it were a tool. No tool can have that name: a
    /// slash is not taken in one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompts => "mcp/prompts",
            Self::Resources => "mcp/resources",
            Self::Completions => "mcp/completions",
            Self::Tasks => "mcp/tasks",
            Self::Skills => "mcp/skills",
        }
    }

    /// The member of a server's `capabilities` that declares it.
    pub(super) fn capability(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Completions => "completions",
            Self::Tasks => "tasks",
            Self::Skills => "skills",
        }
    }
}

/// The class of a request of a client; `None` is answered with -32601 and not forwarded.
pub(super) fn client_request(method: &str) -> Option<ClientRequest> {
    Some(match method {
        "initialize" => ClientRequest::Initialize,
        "server/discover" => ClientRequest::Discover,
        "ping" => ClientRequest::Ping,
        "tools/list" => ClientRequest::ListTools,
        "tools/call" => ClientRequest::CallTool,
        "logging/setLevel" => ClientRequest::SetLevel,
        "subscriptions/listen" => ClientRequest::Listen,
        "prompts/list" | "prompts/get" => ClientRequest::Of(Area::Prompts),
        "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "resources/directory/read"
        | "resources/subscribe"
        | "resources/unsubscribe" => ClientRequest::Of(Area::Resources),
        "completion/complete" => ClientRequest::Of(Area::Completions),
        "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" | "tasks/update" => {
            ClientRequest::Of(Area::Tasks)
        }
        "skills/list" | "skills/get" => ClientRequest::Of(Area::Skills),
        _ => return None,
    })
}

/// What a client's notification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientNotification {
    /// The end of the handshake.
    Initialized,
    /// Passed under the id that the server knows.
    Cancelled,
    /// Passed: progress of a request of the server, roots that have changed.
    Passed,
}

/// The class of a notification of a client; `None` is dropped.
pub(super) fn client_notification(method: &str) -> Option<ClientNotification> {
    Some(match method {
        "notifications/initialized" => ClientNotification::Initialized,
        "notifications/cancelled" => ClientNotification::Cancelled,
        "notifications/progress" | "notifications/roots/list_changed" => ClientNotification::Passed,
        _ => return None,
    })
}

/// What a server's request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerRequest {
    /// Answered here.
    Ping,
    /// Passed under an id of ours.
    Passed,
}

/// The class of a request of a server; `None` is answered with -32601.
pub(super) fn server_request(method: &str) -> Option<ServerRequest> {
    Some(match method {
        "ping" => ServerRequest::Ping,
        "sampling/createMessage" | "elicitation/create" | "roots/list" => ServerRequest::Passed,
        _ => return None,
    })
}

/// What a server's notification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerNotification {
    /// Passed while the request it belongs to is open.
    Progress,
    /// Passed under the id that the client knows.
    Cancelled,
    /// The catalogue is read again, and the client is told where *its* list has changed.
    ToolsChanged,
    /// The beginning of a stream of notifications.
    Acknowledged,
    /// Passed.
    Passed,
    /// Passed where the policy grants the area.
    Of(Area),
}

/// The class of a notification of a server; `None` is dropped.
pub(super) fn server_notification(method: &str) -> Option<ServerNotification> {
    Some(match method {
        "notifications/progress" => ServerNotification::Progress,
        "notifications/cancelled" => ServerNotification::Cancelled,
        "notifications/tools/list_changed" => ServerNotification::ToolsChanged,
        "notifications/subscriptions/acknowledged" => ServerNotification::Acknowledged,
        "notifications/message" | "notifications/elicitation/complete" => ServerNotification::Passed,
        "notifications/prompts/list_changed" => ServerNotification::Of(Area::Prompts),
        "notifications/resources/list_changed" | "notifications/resources/updated" => {
            ServerNotification::Of(Area::Resources)
        }
        "notifications/tasks" | "notifications/tasks/status" => ServerNotification::Of(Area::Tasks),
        _ => return None,
    })
}
