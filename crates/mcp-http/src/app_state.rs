//! The state that all requests share.

use crate::activity::ActivityHistory;
use crate::allowed_hosts::AllowedHostHeaders;
use crate::audit_source::AuditSource;
use crate::audit_store::AuditStore;
use crate::auth::authenticator::Authenticator;
use crate::auth::principal::Principal;
use crate::auth::token_usage::TokenUsageWriter;
use crate::limits::admission::AdmissionControl;
use crate::login_store::BrowserLoginStore;
use crate::metrics::Metrics;
use crate::oauth::ProtectedResource;
use crate::recent_calls::RecentCalls;
use crate::sessions::ClientSessions;
use crate::telemetry::RequestTracer;
use crate::unauthenticated_peers::UnauthenticatedPeers;
use crate::workspaces::Workspaces;
use core_tools::mcp::CallObserver;
use role_policy::Caller;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The state of the server. It lives as long as the process, so that a reference is enough. With an `Arc`, all threads
/// would write to its counter for every layer of every request.
pub(crate) type App = &'static AppState;

/// The state of the server.
pub(crate) struct AppState {
    /// The version of the program.
    pub(crate) version: &'static str,
    pub(crate) allowed_hosts: AllowedHostHeaders,
    pub(crate) authenticator: Authenticator,
    /// The file of the last uses of tokens, if there is one.
    pub(crate) token_usage: Option<Mutex<TokenUsageWriter>>,
    pub(crate) admission: AdmissionControl,
    pub(crate) sessions: Arc<ClientSessions>,
    pub(crate) workspaces: Workspaces,
    /// The audit's database, if there is one.
    pub(crate) audit_store: Option<AuditStore>,
    pub(crate) metrics: Arc<Metrics>,
    /// Notified of every call that has ended.
    pub(crate) observer: CallObserver,
    /// The source of spans, if they are sent to a collector.
    pub(crate) tracer: Option<RequestTracer>,
    /// The metadata for clients that get a token from an authorization server.
    pub(crate) oauth: Option<ProtectedResource>,
    /// The roles that narrow those of every caller.
    pub(crate) narrowing_roles: Vec<String>,
    /// The size of a request's body, in bytes.
    pub(crate) max_body_bytes: usize,
    /// The time that a client has to send a request's body.
    pub(crate) body_timeout: Duration,
    /// Cancelled when the server begins to shut down. Nothing new is begun then.
    pub(crate) shutting_down: CancellationToken,
    /// The server takes calls.
    pub(crate) ready: AtomicBool,
    pub(crate) unauthenticated_peers: UnauthenticatedPeers,
    pub(crate) recent_calls: Arc<RecentCalls>,
    /// The activity of the last hour and day.
    pub(crate) activity: Arc<ActivityHistory>,
    /// The place from which the page reads the audit.
    pub(crate) audit_source: Option<AuditSource>,
    /// The file of tokens.
    pub(crate) token_file: Option<PathBuf>,
    /// The folders in which this server writes, whose space is watched.
    pub(crate) disk_paths: Vec<PathBuf>,
    /// The connections and sessions that there may be.
    pub(crate) max_connections: usize,
    pub(crate) max_sessions: usize,
    /// The browsers that are signed in at the page.
    pub(crate) logins: BrowserLoginStore,
    /// The folder of flame graphs.
    pub(crate) traces_folder: PathBuf,
}

impl AppState {
    /// Returns the caller that the policy knows `principal` as, narrowed by the server's roles and by `narrowed_by`.
    pub(crate) fn caller(&self, principal: &Principal, narrowed_by: Option<&str>) -> Caller {
        let mut caller = Caller::new(&principal.role).with_principal(&*principal.name);
        for role in self.narrowing_roles.iter().map(String::as_str).chain(narrowed_by) {
            caller = caller.narrowed_by(role);
        }
        caller
    }
}
