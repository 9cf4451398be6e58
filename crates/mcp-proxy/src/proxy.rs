//! The proxy: one client, one server and the policy between them.

use super::authorizer::{Authorizer, PolicyHandle, ToolFilter};
use super::error::Error;
use super::limits::McpProxyLimits;
use super::line_reader::BoundedLineReader;
use super::observer::ProxyObserver;
use super::output_queue::{MAX_QUEUE_BYTES, OutputQueue};
use super::pinned_tools::{PinMode, PinnedTools};
use super::proxy_approvals::ProxyApprovals;
use super::reader_thread::ReaderThread;
use super::server::Upstream;
use super::session::ProxySession;
#[cfg(feature = "url")]
use super::upstream_http;
use super::upstream_process;
use process_runner::CancellationToken;
use role_policy::{Caller, EffectResolver, LexicalResolver};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A proxy for one client and one server, with the policy between them.
pub struct Proxy {
    policy: PolicyHandle,
    caller: Caller,
    filter: ToolFilter,
    effects: Arc<dyn EffectResolver + Send + Sync>,
    limits: McpProxyLimits,
    pins: Option<(PathBuf, PinMode)>,
    observer: Option<Arc<dyn ProxyObserver>>,
    approvals: Option<ProxyApprovals>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("caller", &self.caller)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Creates a proxy for `caller` under `policy`.
    pub fn new(policy: PolicyHandle, caller: Caller) -> Self {
        Self {
            policy,
            caller,
            filter: ToolFilter::default(),
            effects: Arc::new(LexicalResolver),
            limits: McpProxyLimits::default(),
            pins: None,
            observer: None,
            approvals: None,
        }
    }

    /// Sets how paths and programs in the arguments are resolved, for a server that runs on this machine. By default
    /// their text alone is judged ([`LexicalResolver`]), and no absolute path passes a rule for paths.
    #[must_use]
    pub fn effects(mut self, effects: Arc<dyn EffectResolver + Send + Sync>) -> Self {
        self.effects = effects;
        self
    }

    /// Hides more tools than the policy does. None by default.
    #[must_use]
    pub fn filter(mut self, filter: ToolFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Replaces the default limits.
    #[must_use]
    pub fn limits(mut self, limits: McpProxyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Records the definitions of the tools in `file`, and compares later ones with it. Off by default.
    #[must_use]
    pub fn pins(mut self, file: PathBuf, mode: PinMode) -> Self {
        self.pins = Some((file, mode));
        self
    }

    /// Reports every call, and every refusal of one, to `observer`. None by default.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn ProxyObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Asks a person about the calls that the policy allows only with an approval. Such calls are refused by default.
    #[must_use]
    pub fn approvals(mut self, approvals: ProxyApprovals) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Serves the client that writes to `input` and reads from `output`, until it closes `input` or `end` is
    /// cancelled. The future of `reload` resolves whenever another policy was put in force.
    ///
    /// # Errors
    ///
    /// The session cannot begin. A server that cannot be started is no such error: the client is told, and the
    /// server is started again.
    pub async fn run<R: Future<Output = ()>>(
        self,
        server: Upstream,
        (input, output): (OwnedFd, OwnedFd),
        end: CancellationToken,
        mut reload: impl FnMut() -> R,
    ) -> Result<(), Error> {
        // Before anything is started: a session whose pins cannot be read must not begin.
        let pinned_tools = match self.pins {
            Some((file, mode)) => Some(PinnedTools::open(&file, mode)?),
            None => None,
        };
        let client = OutputQueue::new(output, MAX_QUEUE_BYTES, "to-client")?;
        let authorizer = Authorizer::new(self.policy, self.caller, self.filter, self.effects);
        // A request over HTTP may take a moment longer than its limit here, so that the session gives it up and not the
        // connection.
        #[cfg(feature = "url")]
        let max_timeout = self.limits.max_timeout() + super::limits::LAST_ANSWERS_TIMEOUT;
        let session =
            ProxySession::new(authorizer, self.limits, pinned_tools, self.observer, self.approvals, client);
        let reader_thread = ReaderThread::start(
            session.clone(),
            BoundedLineReader::new(input, json_rpc::message::MAX_MESSAGE_BYTES),
        )?;
        let reloads = async {
            loop {
                reload().await;
                session.policy_has_changed();
            }
        };
        let served = async {
            match &server {
                Upstream::Child(child, runner) => {
                    upstream_process::supervise(&session, &reader_thread, child, runner, &end).await;
                }
                #[cfg(feature = "url")]
                Upstream::Remote(remote) => {
                    upstream_http::supervise(&session, remote, max_timeout, &end).await;
                }
            }
        };
        tokio::select! {
            () = served => {}
            () = reloads => {}
        }
        // The last answers may still be in the queue. A client that does not read them gets no more time.
        session.client().flush(Duration::from_millis(100));
        Ok(())
    }
}
