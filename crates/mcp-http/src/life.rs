//! The server's life: up, reading again what changes, and down with everything it started.

use crate::address::{Address, Range};
use crate::archive::{Archive, Writer};
use crate::connection::{Listener, Terms};
use crate::gate::Gate;
use crate::governor::{Governor, Limits, Totals};
use crate::identity::Identity;
use crate::jwt::Jwts;
use crate::mcp::Protocol;
use crate::metrics::Metrics;
use crate::notify::Manager;
use crate::places::Places;
use crate::route::{App, Area, OAuth};
use crate::say;
use crate::sessions::Sessions;
use crate::telemetry::Spans;
use crate::tenants::Tenants;
use crate::tls::Tls;
use crate::tokens::Tokens;
use crate::ui::{Recent, Ui};
use core_tools::config::Http;
use core_tools::mcp::Observer;
use server_setup::identity::{self as policies, Stamp};
use server_setup::settings::Settings;
use server_setup::toolsets::traces_folder;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What commands get to end by themselves once the server has to.
const GRACE: Duration = Duration::from_millis(250);
/// What agents get to end by themselves.
#[cfg(feature = "sessions")]
const AGENTS_GRACE: Duration = Duration::from_secs(5);
/// What the last answers get to leave: what was told to end says what it had done. On an idle machine they have left at
/// once.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// What the last calls get to be recorded, once their programs are gone.
const LAST_RECORDS: Duration = Duration::from_secs(1);
/// How soon a change of a file counts.
const LOOK: Duration = Duration::from_millis(500);
/// How often a set of keys is asked for that has no file.
const KEYS: Duration = Duration::from_secs(600);

/// How the settings are read again.
type Again = Box<dyn Fn() -> Result<Settings, String> + Send + Sync>;

/// Serves until a signal comes. An error is one that kept the server from starting.
pub(crate) async fn serve(
    settings: Settings,
    again: Again,
    spans: Option<Spans>,
) -> Result<ExitCode, String> {
    check_secrets(&settings, &settings.config.http)?;
    let (archive, writer) = match audit_database(&settings.config.http)? {
        None => (None, None),
        Some(place) => Archive::open(&place).await.map(|(archive, writer)| (Some(archive), Some(writer)))?,
    };
    let served = match Server::new(settings, again, archive, spans) {
        Ok(server) => server.run().await,
        Err(error) => Err(error),
    };
    if let Some(writer) = writer {
        Writer::close(writer).await;
    }
    served
}

/// The database of the audit; what a variable says where one is named.
fn audit_database(http: &Http) -> Result<Option<String>, String> {
    let Some(place) = http.audit_database.as_ref() else { return Ok(None) };
    let Some(name) = place.strip_prefix('$') else { return Ok(Some(place.clone())) };
    let said = std::env::var(name).ok().filter(|said| !said.is_empty());
    said.map(Some).ok_or_else(|| format!("http.audit_database: the variable {name} is not set"))
}

struct Server {
    app: Arc<App>,
    listeners: Vec<Listener>,
    terms: Terms,
    files: Files,
    policy: Option<PathBuf>,
    drain: Duration,
    /// Cuts off every answer.
    cut: CancellationToken,
}

/// What is read again when it changes.
struct Files {
    /// As they were before they were read: a change that comes while the server starts counts as well.
    seen: [Option<Stamp>; 4],
    tokens: Option<PathBuf>,
    limits: Limits,
    tls: Option<Arc<Tls>>,
    jwts: Option<Arc<Jwts>>,
}

impl Server {
    fn new(
        settings: Settings,
        again: Again,
        archive: Option<Archive>,
        spans: Option<Spans>,
    ) -> Result<Self, String> {
        let http = settings.config.http.clone();
        let addresses = http.listen.iter().map(|text| Address::parse(text)).collect::<Result<Vec<_>, _>>();
        let addresses = addresses.map_err(|error| format!("http.listen: {error}"))?;
        if addresses.is_empty() {
            return Err(
                "http.listen names no place; expected such as 127.0.0.1:8717 or unix:/run/coretools/socket"
                    .to_owned(),
            );
        }
        let proxies = http.behind_proxy.iter().map(|text| Range::parse(text)).collect::<Result<Vec<_>, _>>();
        let proxies = proxies.map_err(|error| format!("http.behind_proxy: {error}"))?;
        let metrics_at = http.metrics_listen.as_ref().map(|text| Address::parse(text)).transpose()?;
        let seen = [
            http.tokens.value.as_deref(),
            http.tls_certificate.value.as_deref(),
            http.tls_key.value.as_deref(),
            http.jwt_keys.value.as_deref().map(Path::new),
        ]
        .map(|path| path.and_then(policies::stamp));
        let tls = match (http.tls_certificate.value.clone(), http.tls_key.value.clone()) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(Arc::new(Tls::load(certificate, key)?)),
            _ => return Err("TLS needs both, http.tls_certificate and http.tls_key".to_owned()),
        };
        let jwts = Jwts::new(&http)?.map(Arc::new);
        check_exposure(&http, &addresses, metrics_at.as_ref(), tls.is_some(), jwts.is_some())?;
        let limits = Limits::of(&http);
        let identity =
            Identity::new(&http.peers, http.anonymous_role.value.clone(), jwts.clone(), limits.clone())?;
        if let Some(path) = http.tokens.as_ref() {
            let tokens = Tokens::load(path, &limits, &Tokens::default())?;
            *identity.tokens.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tokens);
        }
        let oauth = match (&jwts, http.public_url.as_ref()) {
            (Some(jwts), Some(public)) => {
                Some(OAuth::new(public, jwts.issuer().to_owned(), http.jwt_scope.value.clone())?)
            }
            _ => None,
        };
        let mut hosts = http.hosts.value.clone();
        hosts.extend(http.public_url.as_ref().and_then(|url| url.split('/').nth(2)).map(str::to_owned));
        let metrics = Arc::new(Metrics::default());
        let recent = Arc::new(Recent::default());
        let ui = Ui::new(Arc::clone(&recent), traces_folder(&settings.config));
        let narrowing = settings.config.roles.iter().map(|role| role.value.clone()).collect();
        let policy = settings.config.policy.file.value.clone();
        let totals = Totals {
            calls_in_flight: *settings.config.limits.max_concurrent_calls,
            queue: *http.max_queue,
            bytes_per_second: *http.max_bytes_per_second,
            processes: *http.max_processes,
        };
        let observer = {
            let (metrics, archive, recent) = (Arc::clone(&metrics), archive.clone(), Arc::clone(&recent));
            Observer::new(move |record| {
                metrics.call(record);
                if let Some(archive) = &archive {
                    archive.record(record);
                }
                recent.ended(record);
            })
        };
        let program = settings.program;
        let tenants = Tenants::new(settings, again)?;
        declared(&tenants, &http)?;
        let all = addresses.iter().map(|address| (address, Area::All));
        let all = all.chain(metrics_at.as_ref().map(|address| (address, Area::Metrics)));
        let listeners =
            all.map(|(address, area)| Listener::bind(address, area)).collect::<Result<Vec<_>, _>>()?;
        let bound = listeners.iter().map(Listener::address).collect::<Result<Vec<_>, _>>()?;
        let gate = Gate::new(&bound, &hosts, &http.origins)?;
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let sessions = Sessions::new(size(*http.max_sessions), Duration::from_millis(*http.session_idle_ms));
        let cut = CancellationToken::new();
        let patience = Duration::from_millis(*http.body_timeout_ms);
        let protocol = Protocol::new(program, &sessions, size(*http.max_body_bytes), patience, cut.clone());
        let app = Arc::new(App {
            gate,
            identity,
            governor: Governor::new(totals),
            sessions,
            tenants,
            archive,
            metrics,
            observer,
            spans,
            protocol,
            oauth,
            narrowing,
            closing: CancellationToken::new(),
            ready: AtomicBool::new(true),
            strangers: crate::route::Strangers::default(),
            ui,
        });
        let terms = Terms {
            header_timeout: Duration::from_millis(*http.header_timeout_ms),
            places: Places::new(size(*http.max_connections)),
            proxies: proxies.into(),
            tls: tls.clone(),
        };
        let files = Files { seen, tokens: http.tokens.value.clone(), limits, tls, jwts };
        let scheme = if terms.tls.is_some() { "https" } else { "http" };
        for (listener, address) in listeners.iter().zip(&bound) {
            say(&match (listener.area(), address) {
                (Area::All, Address::Tcp(address)) => format!("mcp-http: serving {scheme}://{address}/mcp"),
                (Area::All, Address::Unix(_)) => format!("mcp-http: serving {address}"),
                (Area::Metrics, address) => format!("mcp-http: figures at {address}"),
            });
        }
        if app.tenants.confinement.starts_with("off") || app.tenants.confinement.starts_with("not available")
        {
            tracing::warn!(
                "programs that callers run are not confined ({}): they reach all that this user may, other callers' \
                 roots included",
                app.tenants.confinement
            );
        }
        Ok(Self { app, listeners, terms, files, policy, drain: Duration::from_millis(*http.drain_ms), cut })
    }

    async fn run(self) -> Result<ExitCode, String> {
        let failed = |error: std::io::Error| format!("cannot wait for signals: {error}");
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
        let app = self.app;
        let connections = TaskTracker::new();
        let listening = TaskTracker::new();
        for listener in self.listeners {
            listening.spawn(listener.serve(Arc::clone(&app), self.terms.clone(), connections.clone()));
        }
        let again = Arc::new(Notify::new());
        let manager = Manager::from_environment();
        let watching = tokio::spawn(watch(Arc::clone(&app), self.files, Arc::clone(&again), manager.clone()));
        let policies = self.policy.map(|path| tokio::spawn(watch_policy(Arc::clone(&app), path)));
        #[cfg(feature = "sessions")]
        let agents = app.tenants.agents.clone();
        #[cfg(feature = "sessions")]
        tokio::spawn(crate::agents::take_up(Arc::clone(&app)));
        manager.ready();
        let name = loop {
            tokio::select! {
                _ = terminate.recv() => break "SIGTERM",
                _ = interrupt.recv() => break "SIGINT",
                _ = hangup.recv() => again.notify_one(),
            }
        };
        tracing::info!(name, "ending");
        manager.stopping();
        app.ready.store(false, Ordering::Relaxed);
        // Nobody new; streams without an end say goodbye; what runs may end by itself.
        app.closing.cancel();
        listening.close();
        connections.close();
        listening.wait().await;
        tokio::select! {
            () = connections.wait() => {}
            () = tokio::time::sleep(self.drain) => {}
            // Whoever says it twice means now.
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        app.identity.end();
        tokio::select! {
            () = connections.wait() => {}
            () = tokio::time::sleep(LAST_ANSWERS) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        self.cut.cancel();
        app.tenants.runner.shutdown(GRACE).await;
        #[cfg(feature = "sessions")]
        agents.shutdown(AGENTS_GRACE).await;
        // A call may be without its client. What it did is recorded before the records are closed.
        let _ = tokio::time::timeout(LAST_RECORDS, app.governor.at_rest()).await;
        watching.abort();
        if let Some(policies) = policies {
            policies.abort();
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses what would let in who should not be: everybody without a name, or a name that others can read on its way.
fn check_exposure(
    http: &Http,
    addresses: &[Address],
    metrics: Option<&Address>,
    tls: bool,
    jwts: bool,
) -> Result<(), String> {
    let known = http.tokens.is_some() || jwts;
    if !known && http.anonymous_role.is_none() && http.peers.is_empty() {
        return Err("nobody could call this server: make a token (`mcp-http --tokens FILE token new --name NAME --role \
                    ROLE`) and name its file with --tokens"
            .to_owned());
    }
    if let Some(metrics) = metrics.filter(|metrics| !metrics.is_local()) {
        return Err(format!(
            "http.metrics_listen: {metrics} is not on loopback, and asks nobody who they are"
        ));
    }
    let public: Vec<String> =
        addresses.iter().filter(|address| !address.is_local()).map(ToString::to_string).collect();
    let proxied = !http.behind_proxy.is_empty();
    if http.anonymous_role.is_some() && (!public.is_empty() || proxied) {
        let place = if proxied { "a proxy".to_owned() } else { public.join(", ") };
        return Err(format!(
            "http.anonymous_role lets in everybody who can connect, which {place} opens to others"
        ));
    }
    if public.is_empty() {
        return Ok(());
    }
    let public = public.join(", ");
    if !known {
        return Err(format!(
            "{public} can be reached by others, and nothing tells who they are: give --tokens"
        ));
    }
    if !tls && !proxied {
        return Err(format!(
            "{public} can be reached by others, who could read tokens on their way: give --tls-certificate and --tls-key, \
             or the addresses of the proxies in front with --behind-proxy"
        ));
    }
    Ok(())
}

/// What a caller could read or write, and so become another, lies in no root.
fn check_secrets(settings: &Settings, http: &Http) -> Result<(), String> {
    let keys = http.jwt_keys.as_ref().filter(|place| !place.contains("://")).map(PathBuf::from);
    let database = audit_database(http)?;
    let database = database.as_deref().and_then(|place| place.strip_prefix("sqlite:")).map(PathBuf::from);
    let named = [
        ("http.audit_database", database),
        ("http.tokens", http.tokens.value.clone()),
        ("http.tls_key", http.tls_key.value.clone()),
        ("http.jwt_keys", keys),
        ("policy.file", settings.config.policy.file.value.clone()),
        ("policy.audit", settings.config.policy.audit.value.clone()),
    ];
    for (key, path) in named {
        let Some(path) = path else { continue };
        // One that is not there yet will be where its folder is.
        let folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        let real = path.canonicalize().ok().or_else(folder).unwrap_or(path);
        let inside = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
        if settings.roots.iter().any(inside) {
            return Err(format!(
                "{key} {} lies in a root, where programs of callers reach it",
                real.display()
            ));
        }
    }
    Ok(())
}

/// A role that is given to callers and not declared would be the minimal one, and nobody would know why.
fn declared(tenants: &Tenants, http: &Http) -> Result<(), String> {
    let policy = tenants.whole().policy();
    let peers = http.peers.iter().filter_map(|peer| Some(peer.split_once('=')?.1.trim()));
    let rules = http.jwt_roles.iter().filter_map(|rule| Some(rule.rsplit_once(':')?.1));
    let given = peers.chain(rules).chain(http.anonymous_role.as_deref());
    match given.into_iter().find(|role| !policy.declares(role)) {
        None => Ok(()),
        Some(role) => {
            let roles: Vec<&str> = policy.roles().collect();
            Err(format!("the policy declares no role `{role}`; it has {}", roles.join(", ")))
        }
    }
}

/// Looks at the files that may change, and ends what has no right to go on.
async fn watch(app: Arc<App>, files: Files, again: Arc<Notify>, manager: Manager) {
    let mut seen = files.seen;
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut keys = tokio::time::interval(KEYS);
    loop {
        let all = tokio::select! {
            _ = ticks.tick() => false,
            () = again.notified() => true,
            _ = keys.tick() => {
                if let Some(jwts) = files.jwts.clone().filter(|jwts| jwts.file().is_none()) {
                    tokio::task::spawn_blocking(move || tell("keys", jwts.reload()));
                }
                false
            }
        };
        if all {
            manager.reloading();
            #[cfg(feature = "sessions")]
            if let Err(error) = app.tenants.agents.reload().await {
                tracing::error!("agents' sessions: {error}");
            }
        }
        let tls = files.tls.as_ref();
        let now = [
            files.tokens.as_deref(),
            tls.map(|tls| &*tls.certificate),
            tls.map(|tls| &*tls.key),
            files.jwts.as_ref().and_then(|jwts| jwts.file().map(PathBuf::as_path)),
        ]
        .map(|path| path.and_then(policies::stamp));
        let changed = |place: usize| all || now.get(place) != seen.get(place);
        if changed(0)
            && let Some(path) = &files.tokens
        {
            let before = app.identity.tokens();
            match Tokens::load(path, &files.limits, &before) {
                Ok(tokens) => {
                    let tokens = Arc::new(tokens);
                    *app.identity.tokens.write().unwrap_or_else(PoisonError::into_inner) =
                        Arc::clone(&tokens);
                    gone(&app, before.end_others(&tokens));
                    app.tenants.keep(&tokens.roots().cloned().collect::<Vec<_>>());
                    tracing::warn!("the tokens {} were read again", path.display());
                }
                Err(error) => {
                    tracing::error!("the changed tokens are not used, and those before stay: {error}");
                }
            }
        }
        if (changed(1) || changed(2))
            && let Some(tls) = &files.tls
        {
            tell("certificate", tls.reload());
        }
        if changed(3)
            && let Some(jwts) = files.jwts.clone().filter(|jwts| jwts.file().is_some())
        {
            tokio::task::spawn_blocking(move || tell("keys", jwts.reload()));
        }
        seen = now;
        // Those whose time is over.
        let tokens = app.identity.tokens();
        gone(&app, tokens.end_others(&tokens));
        app.sessions.sweep().await;
        if all {
            manager.ready();
        }
    }
}

fn tell(what: &str, reloaded: Result<(), String>) {
    match reloaded {
        Ok(()) => tracing::info!("the {what} was read again"),
        Err(error) => tracing::error!("the changed {what} is not used, and the one before stays: {error}"),
    }
}

/// Ends what those left running who may call no more.
pub(crate) fn gone(app: &Arc<App>, names: Vec<Arc<str>>) {
    for name in names {
        tracing::warn!("{name} may call no more");
        let app = Arc::clone(app);
        tokio::spawn(async move {
            // A call that was about to start a program has ended by the second time.
            for _ in 0..2 {
                app.tenants.leave(&name);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
}

async fn watch_policy(app: Arc<App>, path: PathBuf) {
    let host = app.tenants.whole().clone();
    let facts = app.tenants.facts.clone();
    let check = {
        let app = Arc::clone(&app);
        move |policy: &role_policy::Policy| app.tenants.check(policy)
    };
    policies::watch(path, facts, check, move |policy| host.replace_policy(policy)).await;
}
