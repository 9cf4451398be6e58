//! Setting up the server: the configuration is checked, the listeners are bound, and what requests share is made.

use super::exposure;
use super::reload::{FileStamps, WatchedFiles};
use crate::activity::ActivityHistory;
use crate::allowed_hosts::AllowedHostHeaders;
use crate::app_state::{App, AppState};
use crate::audit_source::AuditSource;
use crate::audit_store::AuditStore;
use crate::auth::authenticator::Authenticator;
use crate::auth::jwt::JwtVerifier;
use crate::auth::token_usage::TokenUsageWriter;
use crate::auth::tracked_tokens::TrackedTokens;
use crate::console_output::{name, say};
use crate::error::Error;
use crate::limits::admission::AdmissionControl;
use crate::limits::caller_limits::{CallerLimits, ServerLimits};
use crate::login_store::BrowserLoginStore;
use crate::mcp_endpoint::McpEndpoint;
use crate::metrics::Metrics;
use crate::net::address::{AddressRange, ListenAddress};
use crate::net::connection::ConnectionSettings;
use crate::net::connection_limit::ConnectionLimit;
use crate::net::listener::{BindError, HttpListener, ListenerAudience};
use crate::net::tls::ReloadableTls;
use crate::oauth::ProtectedResource;
use crate::recent_calls::RecentCalls;
use crate::router::Routes;
use crate::sessions::ClientSessions;
use crate::telemetry::RequestTracer;
use crate::unauthenticated_peers::UnauthenticatedPeers;
use crate::workspaces::Workspaces;
use core_tools::mcp::CallObserver;
use server_setup::config::HttpTable;
use server_setup::settings::Settings;
use server_setup::toolsets::traces_folder;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Reads the settings again.
pub(super) type SettingsReader = Box<dyn Fn() -> Result<Settings, server_setup::Error> + Send + Sync>;

/// A server that is set up and listens, and has accepted no connection yet.
pub(super) struct BoundServer {
    pub(super) app: App,
    pub(super) listeners: Vec<(HttpListener, Routes)>,
    pub(super) connection_settings: ConnectionSettings,
    pub(super) files: WatchedFiles,
    /// The file of the policy.
    pub(super) policy: Option<PathBuf>,
    /// The time that running calls have when the server shuts down.
    pub(super) drain_timeout: Duration,
    /// Cancelled to end every answer.
    pub(super) cut_off: CancellationToken,
}

impl BoundServer {
    /// Sets up the server that `settings` describe.
    pub(super) fn new(
        settings: Settings,
        reread: SettingsReader,
        audit_store: Option<AuditStore>,
        tracer: Option<RequestTracer>,
    ) -> Result<Self, Error> {
        let http = settings.config.http.clone();
        let addresses = listen_addresses(&http)?;
        let metrics_address =
            http.metrics_listen.as_ref().map(|text| ListenAddress::parse(text)).transpose()?;
        let proxies = http.behind_proxy.iter().map(|text| AddressRange::parse(text));
        let proxies = proxies
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| Error::AddressList { key: "http.behind_proxy", source })?;
        // Before the files are read: one that changes in between is then read again.
        let stamps = FileStamps::of_config(&http);
        let tls = load_tls(&http)?;
        let jwts = JwtVerifier::new(&http)?.map(Arc::new);
        exposure::check_listeners(
            &http,
            &addresses,
            metrics_address.as_ref(),
            tls.is_some(),
            jwts.is_some(),
        )?;
        let limits = CallerLimits::from_config(&http);
        let authenticator =
            Authenticator::new(&http.peers, http.anonymous_role.value.clone(), jwts.clone(), limits.clone())?;
        let mut token_file = None;
        if let Some(path) = http.tokens.value.clone() {
            let (file, tokens) = TrackedTokens::open(path, &limits)?;
            authenticator.replace_tokens(Arc::new(tokens));
            token_file = Some(file);
        }
        let token_usage =
            http.token_usage.value.clone().map(TokenUsageWriter::open).transpose()?.map(Mutex::new);
        let oauth = match (&jwts, http.public_url.as_ref()) {
            (Some(jwts), Some(public_url)) => {
                let scope = http.jwt_scope.value.clone();
                Some(ProtectedResource::new(public_url, jwts.issuer().to_owned(), scope)?)
            }
            _ => None,
        };
        let metrics = Arc::new(Metrics::default());
        let recent_calls = Arc::new(RecentCalls::default());
        let activity = Arc::new(ActivityHistory::default());
        let observer = observer(
            Arc::clone(&metrics),
            audit_store.clone(),
            Arc::clone(&recent_calls),
            Arc::clone(&activity),
        );
        // The database, whose rows nobody rotates away, where there are both.
        let audit_source =
            AuditSource::database(&settings.config)?.or_else(|| AuditSource::file(&settings.config));
        let narrowing_roles = settings.config.roles.iter().map(|role| role.value.clone()).collect();
        let traces_folder = traces_folder(&settings.config);
        let policy = settings.config.policy.file.value.clone();
        let audit_file = settings.config.policy.audit.value.clone();
        let program = settings.program;
        let workspaces = Workspaces::new(settings, reread)?;
        exposure::check_roles(&workspaces, &http)?;
        let audit_folder = audit_file.as_deref().and_then(Path::parent).map(Path::to_owned);
        let disk_paths = workspaces.full_host().roots().iter().cloned().chain(audit_folder).collect();
        let totals = ServerLimits {
            queue: *http.max_queue,
            bytes_per_second: *http.max_bytes_per_second,
            processes: *http.max_processes,
            reserved_calls: *http.reserved_calls,
        };
        let admission = AdmissionControl::new(totals, workspaces.full_host().call_permits().clone());
        // Bound after everything else was checked: a wrong setting ends the start before a client could connect.
        let listeners = bind(&addresses, metrics_address.as_ref())?;
        let bound = listeners.iter().map(HttpListener::address).collect::<Result<Vec<_>, _>>();
        let bound = bound.map_err(Error::BoundAddress)?;
        let sessions =
            ClientSessions::new(size(*http.max_sessions), Duration::from_millis(*http.session_idle_ms));
        let cut_off = CancellationToken::new();
        let max_body_bytes = size(*http.max_body_bytes);
        let endpoint =
            McpEndpoint::new(program, workspaces.full_host(), &sessions, max_body_bytes, cut_off.clone());
        let app = AppState {
            version: program.version,
            allowed_hosts: AllowedHostHeaders::new(&bound, &host_names(&http), &http.origins)?,
            authenticator,
            token_usage,
            admission,
            sessions,
            workspaces,
            audit_store,
            metrics,
            observer,
            tracer,
            oauth,
            narrowing_roles,
            max_body_bytes,
            body_timeout: Duration::from_millis(*http.body_timeout_ms),
            shutting_down: CancellationToken::new(),
            ready: AtomicBool::new(true),
            unauthenticated_peers: UnauthenticatedPeers::default(),
            recent_calls,
            activity,
            audit_source,
            token_file: http.tokens.value.clone(),
            disk_paths,
            max_connections: size(*http.max_connections),
            max_sessions: size(*http.max_sessions),
            logins: BrowserLoginStore::default(),
            traces_folder,
        };
        // Both live as long as the process. Leaked, they need no counter that every request would write to.
        let (app, endpoint): (App, &'static McpEndpoint) =
            (Box::leak(Box::new(app)), Box::leak(Box::new(endpoint)));
        announce(&listeners, &bound, tls.is_some());
        warn_if_unconfined(app);
        // Listeners of one audience share their routes. The port for metrics has no route to the tools.
        let routers = [Routes::for_callers(app, endpoint), Routes::for_monitoring(app)];
        let listeners = listeners.into_iter().map(|listener| {
            let [callers, monitoring] = &routers;
            let router = match listener.audience() {
                ListenerAudience::Callers => callers,
                ListenerAudience::Monitoring => monitoring,
            };
            (listener, router.clone())
        });
        Ok(Self {
            app,
            listeners: listeners.collect(),
            connection_settings: ConnectionSettings {
                header_timeout: Duration::from_millis(*http.header_timeout_ms),
                limit: ConnectionLimit::new(size(*http.max_connections)),
                proxies: proxies.into(),
                tls: tls.clone(),
            },
            files: WatchedFiles { stamps, tokens: token_file, limits, tls, jwts },
            policy,
            drain_timeout: Duration::from_millis(*http.drain_ms),
            cut_off,
        })
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn listen_addresses(http: &HttpTable) -> Result<Vec<ListenAddress>, Error> {
    let addresses = http.listen.iter().map(|text| ListenAddress::parse(text)).collect::<Result<Vec<_>, _>>();
    let addresses = addresses.map_err(|source| Error::AddressList { key: "http.listen", source })?;
    match addresses.is_empty() {
        false => Ok(addresses),
        true => Err(Error::NoAddress),
    }
}

fn load_tls(http: &HttpTable) -> Result<Option<Arc<ReloadableTls>>, Error> {
    match (http.tls_certificate.value.clone(), http.tls_key.value.clone()) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(Arc::new(ReloadableTls::load(certificate, key)?))),
        _ => Err(Error::HalfTls),
    }
}

/// Returns the names of the server: those that are configured, and the one in its public URL.
fn host_names(http: &HttpTable) -> Vec<String> {
    let mut names = http.hosts.value.clone();
    names.extend(http.public_url.as_ref().and_then(|url| url.split('/').nth(2)).map(str::to_owned));
    names
}

/// Makes the observer that records each call that has ended.
fn observer(
    metrics: Arc<Metrics>,
    audit_store: Option<AuditStore>,
    recent_calls: Arc<RecentCalls>,
    activity: Arc<ActivityHistory>,
) -> CallObserver {
    CallObserver::new(move |record| {
        metrics.record_call(record);
        activity.record(record);
        if let Some(store) = &audit_store {
            store.record(record);
        }
        recent_calls.record(record);
    })
}

fn bind(
    addresses: &[ListenAddress],
    metrics: Option<&ListenAddress>,
) -> Result<Vec<HttpListener>, BindError> {
    let callers = addresses.iter().map(|address| HttpListener::bind(address, ListenerAudience::Callers));
    let monitoring = metrics.map(|address| HttpListener::bind(address, ListenerAudience::Monitoring));
    callers.chain(monitoring).collect()
}

/// Says on standard error where the server is.
fn announce(listeners: &[HttpListener], bound: &[ListenAddress], has_tls: bool) {
    let scheme = if has_tls { "https" } else { "http" };
    for (listener, address) in listeners.iter().zip(bound) {
        say(&match (listener.audience(), address) {
            (ListenerAudience::Callers, ListenAddress::Tcp(address)) => {
                format!("{}: serving {scheme}://{address}/mcp", name())
            }
            (ListenerAudience::Callers, ListenAddress::Unix(_)) => format!("{}: serving {address}", name()),
            (ListenerAudience::Monitoring, address) => format!("{}: metrics at {address}", name()),
        });
    }
}

fn warn_if_unconfined(app: App) {
    if !app.workspaces.is_confined {
        let confinement = &app.workspaces.confinement;
        tracing::warn!(
            "programs that callers run are not confined ({confinement}): they reach all that this user may, other callers' \
             roots included"
        );
    }
}
