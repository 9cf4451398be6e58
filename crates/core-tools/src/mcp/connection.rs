//! A connection: a host, and who calls it.

use super::client_log::SessionLogLevel;
use super::client_roots::ClientRoots;
use super::errors;
use super::found_tools::FoundTools;
use super::host::Host;
use super::observer::CallObserver;
use super::permits::{CallAdmission, CallPermit, PermitRelease, ProcessPermits};
use super::watch_start::PendingWatches;
use rmcp::ErrorData;
use rmcp::model::{Extensions, Icon, Implementation, ServerCapabilities};
use role_policy::{Caller, RoleLimits};
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// A connection to a [`Host`], which rmcp serves. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Connection {
    source: ContextSource,
    pub(super) server: Implementation,
    /// True if a task already tells the client of a changed list.
    watches_list: Arc<AtomicBool>,
    /// The roots of the one client, where they narrow those of the server.
    client_roots: Option<Arc<ClientRoots>>,
    /// The tools that the client has found beyond its list.
    pub(super) found: FoundTools,
    /// The capabilities that are declared to every client.
    pub(super) capabilities: ServerCapabilities,
    /// The level of log messages that a client of the `initialize` era has set.
    pub(super) log_level: Arc<SessionLogLevel>,
    /// The resources that a client of the `initialize` era has subscribed to.
    pub(super) watched: Arc<Mutex<HashSet<String>>>,
    /// The watches of subscriptions that are being acknowledged.
    pub(super) pending_watches: Arc<PendingWatches>,
    /// The host whose changes concern all callers of a shared connection.
    shared_host: Option<Host>,
}

/// The context of one request: its caller, the host it is for, and the caller's limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestContext {
    /// The host that answers it.
    pub host: Host,
    /// The caller.
    pub caller: Caller,
    /// The caller's own limits, in addition to the limits of its role. None by default.
    pub limits: RoleLimits,
    /// A permit that the transport has acquired for the call ([`Host::call_permits`]); without it the host waits for one.
    pub call_permit: Option<CallPermit>,
    /// Admits the calls that a tool makes in the name of the caller ([`CallContext::call_admission`](super::CallContext)).
    pub call_admission: Option<CallAdmission>,
    /// Gives back what the transport holds for the call ([`CallContext::permit_release`](super::CallContext)).
    pub permit_release: Option<PermitRelease>,
    /// Permits for programs that outlive a call; without them the tool's own number bounds them.
    pub process_permits: Option<ProcessPermits>,
    /// Notified of the end of the call.
    pub observer: Option<CallObserver>,
    /// Ends the request, as the transport does when the client cancels or goes away.
    pub cancel: CancellationToken,
}

impl RequestContext {
    /// The context of a request by `caller` to `host`, with no limits except the limits of `caller` and `host`.
    pub fn new(host: Host, caller: Caller, cancel: CancellationToken) -> Self {
        let limits = RoleLimits::default();
        Self {
            host,
            caller,
            limits,
            call_permit: None,
            call_admission: None,
            permit_release: None,
            process_permits: None,
            observer: None,
            cancel,
        }
    }
}

/// Looks up the context that a transport has put beside a request.
type ContextLookup = Arc<dyn Fn(&Extensions) -> Option<RequestContext> + Send + Sync>;

/// Writes the instructions for the caller of a request.
type WriteInstructions = Arc<dyn Fn(&RequestContext) -> String + Send + Sync>;

/// The picture that clients show beside the name: a prompt. Not compressed, as it is short either way and scanners take
/// compressed text for a secret.
const ICON: &str = "data:image/png;base64,\
    iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQAAAAA3iMLMAAAAO0lEQVR4AQEwAM//AAAAAAAAAAAAAGAAADAAABgAAAwAAAYAAAwAABgAADAAAGD8\
    AAD8AAAAAAAAAAAAPAADZ2Qstg0AAAAASUVORK5CYII=";

#[derive(Clone)]
enum ContextSource {
    /// One caller makes every request.
    Fixed { context: Box<RequestContext>, instructions: String },
    /// Each request has a caller of its own.
    PerRequest { lookup: ContextLookup, instructions: WriteInstructions },
}

impl fmt::Debug for ContextSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { context, .. } => f.debug_tuple("Fixed").field(&context.caller).finish(),
            Self::PerRequest { .. } => f.write_str("PerRequest"),
        }
    }
}

impl Connection {
    /// A connection on which every call is made by `caller`. `name` and `version` are the server's in the answer to
    /// `initialize`; `instructions` tell a model in under 2 KB how to use it, the most important words first.
    #[allow(clippy::needless_pass_by_value, reason = "the connection owns its host, as it owns its caller")]
    pub fn new(
        host: Host,
        caller: Caller,
        name: &str,
        version: &str,
        instructions: impl Into<String>,
    ) -> Self {
        let context = Box::new(RequestContext::new(host.clone(), caller, CancellationToken::new()));
        let source = ContextSource::Fixed { context, instructions: instructions.into() };
        Self::from_source(source, name, version).serving(&host)
    }

    /// A connection that carries the requests of many callers. `lookup` returns the context of each, by what the
    /// transport has put beside it; a request without one is refused. `instructions` are written for each caller.
    pub fn shared(
        lookup: impl Fn(&Extensions) -> Option<RequestContext> + Send + Sync + 'static,
        name: &str,
        version: &str,
        instructions: impl Fn(&RequestContext) -> String + Send + Sync + 'static,
    ) -> Self {
        let (lookup, instructions) = (Arc::new(lookup), Arc::new(instructions));
        Self::from_source(ContextSource::PerRequest { lookup, instructions }, name, version)
    }

    fn from_source(source: ContextSource, name: &str, version: &str) -> Self {
        let mut server = Implementation::new(name, version);
        server.title = Some("CoreTools".to_owned());
        // Known to a build on GitHub alone: its repository has the documentation.
        server.website_url =
            option_env!("GITHUB_REPOSITORY").map(|repository| format!("https://github.com/{repository}"));
        let mut icon = Icon::new(ICON);
        (icon.mime_type, icon.sizes) = (Some("image/png".to_owned()), Some(vec!["16x16".to_owned()]));
        server.icons = Some(vec![icon]);
        Self {
            source,
            server,
            watches_list: Arc::default(),
            client_roots: None,
            found: FoundTools::default(),
            capabilities: ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build(),
            log_level: Arc::default(),
            watched: Arc::default(),
            pending_watches: Arc::default(),
            shared_host: None,
        }
    }

    /// Declares the capabilities of `host` to clients, and watches its changes. For a [shared](Self::shared) connection,
    /// whose requests reach `host` and hosts [over other workspaces](Host::for_workspace); by default it declares tools
    /// alone.
    #[must_use]
    pub fn serving(mut self, host: &Host) -> Self {
        self.capabilities = host.capabilities();
        self.shared_host = Some(host.clone());
        self
    }

    /// Names the server's product and its page, which clients show beside the name. `CoreTools` by default, without a page.
    #[must_use]
    pub fn presented_as(mut self, title: impl Into<String>, website_url: Option<String>) -> Self {
        self.server.title = Some(title.into());
        self.server.website_url = website_url;
        self
    }

    /// Lets the roots that the client offers narrow the roots of the server. `narrow` returns the host over the common
    /// part of both, or nothing if the common part is all roots of the server. Off by default, because only a
    /// connection with a single client may narrow the roots.
    #[must_use]
    pub fn narrowed_by_client(
        mut self,
        narrow: impl Fn(&[PathBuf]) -> Option<Host> + Send + Sync + 'static,
    ) -> Self {
        self.client_roots = Some(Arc::new(ClientRoots::new(narrow)));
        self
    }

    pub(super) fn client_roots(&self) -> Option<&Arc<ClientRoots>> {
        self.client_roots.as_ref()
    }

    /// Returns a connection for another session, with the same host and callers.
    #[must_use]
    pub fn new_session(&self) -> Self {
        Self {
            // The tools that one client found, its log level and its subscriptions must not reach another client.
            watches_list: Arc::default(),
            found: FoundTools::default(),
            log_level: Arc::default(),
            watched: Arc::default(),
            pending_watches: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns the host whose changes a subscription is told of, before its caller is known.
    pub(super) fn watched_host(&self) -> Option<Host> {
        match &self.source {
            ContextSource::Fixed { .. } => {
                self.request_context(&Extensions::new()).ok().map(|context| context.host)
            }
            ContextSource::PerRequest { .. } => self.shared_host.clone(),
        }
    }

    pub(super) fn request_context(&self, extensions: &Extensions) -> Result<RequestContext, ErrorData> {
        match &self.source {
            ContextSource::Fixed { context, .. } => {
                let mut context = RequestContext::clone(context);
                if let Some(host) = self.client_roots.as_ref().and_then(|roots| roots.host()) {
                    context.host = host;
                }
                Ok(context)
            }
            ContextSource::PerRequest { lookup, .. } => {
                lookup(extensions).ok_or_else(errors::not_authenticated)
            }
        }
    }

    /// Returns the instructions for the caller of a request.
    pub(super) fn instructions(&self, extensions: &Extensions) -> Result<String, ErrorData> {
        match &self.source {
            ContextSource::Fixed { instructions, .. } => Ok(instructions.clone()),
            ContextSource::PerRequest { instructions, .. } => {
                Ok(instructions(&self.request_context(extensions)?))
            }
        }
    }

    /// Returns true if this is the first call. A client may send `notifications/initialized` as often as it likes, and one task
    /// for each would be a way to use up the server.
    pub(super) fn starts_list_watch(&self) -> bool {
        // The flag guards no other memory, so that no ordering is needed.
        !self.watches_list.swap(true, Ordering::Relaxed)
    }
}
