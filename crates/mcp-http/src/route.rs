//! Every request, from its first look to its answer.

use crate::address::Peer;
use crate::answer::{self, Body};
use crate::archive::Archive;
use crate::gate::{Gate, Refused};
use crate::governor::{Governor, NotNow};
use crate::identity::{Denied, Identity, Principal};
use crate::mcp::Protocol;
use crate::metrics::{Metrics, Now};
use crate::sessions::Sessions;
use crate::telemetry::Spans;
use crate::tenants::Tenants;
use crate::ui::{self, Ui};
use core_tools::mcp::{Observer, Outcome, Record};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use role_policy::Caller;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Everything that answers requests.
pub(crate) struct App {
    pub(crate) gate: Gate,
    pub(crate) identity: Identity,
    pub(crate) governor: Governor,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) tenants: Tenants,
    /// Where the audit goes too.
    pub(crate) archive: Option<Archive>,
    pub(crate) metrics: Arc<Metrics>,
    /// Hears of every call.
    pub(crate) observer: Observer,
    pub(crate) spans: Option<Spans>,
    pub(crate) protocol: Protocol,
    pub(crate) oauth: Option<OAuth>,
    /// Roles that narrow whoever calls.
    pub(crate) narrowing: Vec<String>,
    /// The server ends: nothing new is begun.
    pub(crate) closing: CancellationToken,
    pub(crate) ready: AtomicBool,
    pub(crate) strangers: Strangers,
    pub(crate) ui: Ui,
}

/// What clients are told of the authorization server.
#[derive(Clone, Debug)]
pub(crate) struct OAuth {
    pub(crate) resource: String,
    pub(crate) issuer: String,
    pub(crate) scope: Option<String>,
    /// Where the metadata is (RFC 9728 §3.1).
    pub(crate) metadata: String,
}

/// What is served where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// Everything.
    All,
    /// Metrics and health, to whoever can connect.
    Metrics,
}

const METADATA: &str = "/.well-known/oauth-protected-resource";

impl App {
    /// Answers one request.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        peer: Peer,
        area: Area,
    ) -> Response<Body> {
        if let Err(refused) = self.gate.check(request.uri(), request.headers()) {
            let (status, reason) = match refused {
                Refused::Unclear => (StatusCode::BAD_REQUEST, "host_unclear"),
                Refused::Host => (StatusCode::FORBIDDEN, "host"),
                Refused::Origin => (StatusCode::FORBIDDEN, "origin"),
            };
            self.metrics.turned_away(reason);
            self.stranger(peer, reason);
            return answer::text(
                status,
                "this server is not called by that name (http.hosts), or not from that page (http.origins)\n",
            );
        }
        let read = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            "/healthz" if read => answer::text(StatusCode::OK, "ok\n"),
            "/readyz" if read => self.ready(),
            "/metrics" if read && area == Area::Metrics => self.figures(),
            _ if area == Area::Metrics => not_found(),
            "/metrics" if read => match self.who(&request, peer).await {
                Ok(_) => self.figures(),
                Err(denied) => self.deny(&denied, peer),
            },
            "/mcp" => match self.who(&request, peer).await {
                Ok(principal) => self.admit(request, peer, principal).await,
                Err(denied) => self.deny(&denied, peer),
            },
            path if path == "/ui" || path.starts_with("/ui/") => {
                Box::pin(ui::answer(self, request, peer)).await
            }
            path if read && path.strip_prefix(METADATA).is_some_and(|rest| matches!(rest, "" | "/mcp")) => {
                match &self.oauth {
                    Some(oauth) => answer::with(StatusCode::OK, "application/json", oauth.document()),
                    None => not_found(),
                }
            }
            _ => not_found(),
        }
    }

    async fn who(&self, request: &Request<Incoming>, peer: Peer) -> Result<Principal, Denied> {
        self.identity.who(request.headers(), peer).await
    }

    async fn admit(
        self: &Arc<Self>,
        request: Request<Incoming>,
        peer: Peer,
        principal: Principal,
    ) -> Response<Body> {
        let account = self.governor.account(&principal.name, &principal.limits);
        if let Err(not_now) = self.governor.admit(&account) {
            return self.not_now(&principal, None, &not_now);
        }
        // A connection has room for the future of a request all the time, also while it is idle: it is to be small.
        Box::pin(self.protocol.answer(self, request, peer, principal, account)).await
    }

    /// Not now; the caller is told when.
    pub(crate) fn not_now(
        &self,
        principal: &Principal,
        id: Option<&role_policy::proxy::message::Id>,
        not_now: &NotNow,
    ) -> Response<Body> {
        self.metrics.turned_away("rate");
        self.refused(&self.caller(principal, None), "http: rate");
        let message = format!("{}; try again in {} ms", not_now.why, not_now.wait.as_millis());
        answer::later(StatusCode::TOO_MANY_REQUESTS, id, &message, not_now.wait)
    }

    /// The caller that `principal` is, in all its roles.
    pub(crate) fn caller(&self, principal: &Principal, narrowed_by: Option<&str>) -> Caller {
        let mut caller = Caller::new(&principal.role).with_principal(&*principal.name);
        for role in self.narrowing.iter().map(String::as_str).chain(narrowed_by) {
            caller = caller.narrowed_by(role);
        }
        caller
    }

    /// Records that a known caller was turned away.
    pub(crate) fn refused(&self, caller: &Caller, rule: &str) {
        let record = Record {
            caller,
            tool: "",
            decision: "refused",
            rule,
            outcome: Outcome::NotRun,
            duration: Duration::ZERO,
            arguments: "",
            bytes_in: 0,
            bytes_out: 0,
        };
        if let Some(audit) = self.tenants.whole().audit() {
            audit.end(&record);
        }
        if let Some(archive) = &self.archive {
            archive.record(&record);
        }
        self.ui.recent.ended(&record);
    }

    /// Records that somebody unknown was turned away: of many who come at once, how many.
    fn stranger(&self, peer: Peer, reason: &'static str) {
        if let Some(before) = self.strangers.tell(reason) {
            let more = if before > 0 { format!(", and {before} before") } else { String::new() };
            let caller = Caller::new("none").with_principal(format!("stranger:{}", peer.place()));
            self.refused(&caller, &format!("http: {reason}{more}"));
        }
    }

    fn ready(&self) -> Response<Body> {
        match self.ready.load(Ordering::Relaxed) && !self.closing.is_cancelled() {
            true => answer::text(StatusCode::OK, "ready\n"),
            false => answer::text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        }
    }

    fn figures(&self) -> Response<Body> {
        let now = Now {
            sessions: self.sessions.count(),
            waiting: self.governor.waiting(),
            archived: self.archive.as_ref().map(Archive::counts),
            children: self.tenants.runner.running(),
            draining: self.closing.is_cancelled(),
        };
        answer::with(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics.render(now))
    }

    /// RFC 6750 §3 and RFC 9728 §5.1: why not, and where to get what is missing.
    pub(crate) fn deny(&self, denied: &Denied, peer: Peer) -> Response<Body> {
        let (status, reason, error) = match denied {
            Denied::Missing => (StatusCode::UNAUTHORIZED, "no_token", None),
            Denied::Invalid(why) => {
                tracing::info!("a token from {} was refused: {why}", peer.place());
                (StatusCode::UNAUTHORIZED, "bad_token", Some("invalid_token"))
            }
            Denied::Insufficient(_) => (StatusCode::FORBIDDEN, "insufficient", Some("insufficient_scope")),
        };
        self.metrics.turned_away(reason);
        self.stranger(peer, reason);
        let mut challenge = "Bearer realm=\"coretools\"".to_owned();
        let mut say = |name: &str, value: &str| challenge.push_str(&format!(", {name}=\"{value}\""));
        if let Some(error) = error {
            say("error", error);
        }
        if let Some(oauth) = &self.oauth {
            let scope = match denied {
                Denied::Insufficient(scope) => scope.as_ref(),
                _ => oauth.scope.as_ref(),
            };
            if let Some(scope) = scope {
                say("scope", scope);
            }
            say("resource_metadata", &oauth.metadata);
        }
        let mut response = answer::text(
            status,
            "a bearer token is needed that is good here: none was given, or it is unknown, revoked or expired. Its operator \
             makes one with `mcp-http token new`\n",
        );
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl OAuth {
    /// `public` is what clients call the server by: `https://name/mcp`.
    pub(crate) fn new(public: &str, issuer: String, scope: Option<String>) -> Result<Self, String> {
        let wrong = || format!("http.public_url: `{public}` is no URL; expected https://NAME/mcp");
        let (scheme, rest) = public.split_once("://").ok_or_else(wrong)?;
        let (name, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if !matches!(scheme, "https" | "http")
            || name.is_empty()
            || public.contains(['"', '\\', ' ', '?', '#'])
        {
            return Err(wrong());
        }
        let path = if path == "/" { "" } else { path };
        let metadata = format!("{scheme}://{name}{METADATA}{path}");
        Ok(Self { resource: public.to_owned(), issuer, scope, metadata })
    }

    fn document(&self) -> String {
        let mut document = serde_json::json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
        });
        if let (Some(scope), Some(document)) = (&self.scope, document.as_object_mut()) {
            document.insert("scopes_supported".to_owned(), serde_json::json!([scope]));
        }
        document.to_string()
    }
}

fn not_found() -> Response<Body> {
    answer::text(StatusCode::NOT_FOUND, "there is nothing here; the protocol is at /mcp, the page at /ui\n")
}

/// Keeps those who were turned away unknown from filling the audit: of each reason ten lines in a second, and a number.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<HashMap<&'static str, Told>>);

/// How often one reason was told.
#[derive(Debug)]
struct Told {
    since: Instant,
    lines: u32,
    untold: u64,
}

impl Strangers {
    /// Whether to tell of one, and of how many that were not told.
    fn tell(&self, reason: &'static str) -> Option<u64> {
        let mut reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told =
            reasons.entry(reason).or_insert_with(|| Told { since: Instant::now(), lines: 0, untold: 0 });
        if told.since.elapsed() >= Duration::from_secs(1) {
            (told.since, told.lines) = (Instant::now(), 0);
        }
        if told.lines >= 10 {
            told.untold += 1;
            return None;
        }
        told.lines += 1;
        Some(std::mem::take(&mut told.untold))
    }
}
