//! `/mcp`: what a request has to be before rmcp sees it, and what becomes of its answer.

use crate::address::Peer;
use crate::answer::{self, Body};
use crate::begun::{Begun, Parent};
use crate::governor::{Account, Place};
use crate::identity::Principal;
use crate::metrics::Metrics;
use crate::route::App;
use crate::sessions::{Claim, Return, Sessions, Visit};
use crate::telemetry::Span;
use crate::ui::Seen;
use bytes::Bytes;
use core_tools::mcp::{Connection, Needs, Observer, Programs, Visitor};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use role_policy::RoleLimits;
use role_policy::proxy::json::Json;
use role_policy::proxy::message::{Kind, Message};
use server_setup::{Program, setup};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const ROLE: &str = "x-coretools-role";

/// The first revision without sessions.
const STATELESS: &str = "2026-07-28";

/// Headers of which there is one, or none. Two could be read differently by who stands between.
const ONCE: [&str; 8] =
    [SESSION, VERSION, ROLE, "mcp-method", "mcp-name", "last-event-id", "content-type", "content-length"];

/// The protocol, over HTTP.
pub(crate) struct Protocol {
    service: StreamableHttpService<Connection, LocalSessionManager>,
    most: usize,
    patience: Duration,
}

impl Protocol {
    /// Takes requests of at most `most` bytes, which come within `patience`. What `cut` cancels cuts off every answer.
    pub(crate) fn new(
        program: Program,
        sessions: &Sessions,
        most: usize,
        patience: Duration,
        cut: CancellationToken,
    ) -> Self {
        // Names and origins are checked on every route, before this.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_max_request_body_bytes(most)
            .with_cancellation_token(cut);
        let connection = Connection::shared(
            |extensions| extensions.get::<http::request::Parts>()?.extensions.get::<Visitor>().cloned(),
            program.name,
            program.version,
            setup::instructions,
        );
        let manager = Arc::clone(&sessions.manager);
        let service = StreamableHttpService::new(move || Ok(connection.fresh()), manager, config);
        Self { service, most, patience }
    }

    /// Answers a request of `principal`.
    pub(crate) async fn answer(
        &self,
        app: &Arc<App>,
        request: Request<Incoming>,
        peer: Peer,
        principal: Principal,
        account: Arc<Account>,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        if let Some(name) = ONCE.into_iter().find(|name| parts.headers.get_all(*name).iter().nth(1).is_some())
        {
            return answer::error(
                StatusCode::BAD_REQUEST,
                None,
                -32600,
                &format!("the header {name} is there twice"),
            );
        }
        let narrowed_by = narrowing(&parts.headers, app);
        let body = match parts.method {
            Method::POST => match self.read(&parts.headers, body).await {
                Ok(body) => body,
                Err(refusal) => return *refusal,
            },
            _ => Bytes::new(),
        };
        account.spend(body.len());
        app.metrics.bytes_in.fetch_add(body.len() as u64, Ordering::Relaxed);
        let asked = match parts.method {
            Method::POST => match Asked::read(&body) {
                Ok(asked) => asked,
                Err(refusal) => return *refusal,
            },
            _ => Asked::default(),
        };
        // Nothing that stands before this server can take one for the other: with 2026-07-28 there are no sessions, and
        // the first request of one is in none.
        if is_stateless(&parts.headers) || asked.method == "initialize" {
            parts.headers.remove(SESSION);
        }
        let visit = match parts.headers.get(SESSION) {
            None => None,
            Some(id) => match id.to_str().ok().and_then(|id| app.sessions.visit(id, &principal.name)) {
                Some(visit) => Some(visit),
                None => {
                    return answer::error(
                        StatusCode::NOT_FOUND,
                        asked.id.as_ref(),
                        -32600,
                        "no such session",
                    );
                }
            },
        };
        if parts.method == Method::DELETE
            && let Some(visit) = &visit
        {
            app.sessions.end(&visit.id).await;
            return answer::text(StatusCode::ACCEPTED, "");
        }
        let claim = match (&visit, &asked.id) {
            (Some(visit), Some(id)) => match visit.claim(id) {
                Some(claim) => Some(claim),
                None => {
                    let why = format!("the request {id} of this session is open; each has an id of its own");
                    return answer::error(StatusCode::BAD_REQUEST, Some(id), -32600, &why);
                }
            },
            _ => None,
        };
        let room = match asked.method == "initialize" {
            false => None,
            true => match app.sessions.room(&principal.name).await {
                Some(room) => Some(room),
                None => {
                    app.metrics.turned_away("sessions");
                    let (message, wait) = (
                        "there are as many sessions as there may be (http.max_sessions); end some, or try again later",
                        Duration::from_secs(5),
                    );
                    return answer::later(StatusCode::SERVICE_UNAVAILABLE, asked.id.as_ref(), message, wait);
                }
            },
        };
        let host = match app.tenants.host(&principal.roots) {
            Ok(host) => host,
            Err(error) => {
                tracing::error!("{} cannot be served: {error}", principal.name);
                let message = "the roots of this caller cannot be served; ask the server's operator";
                return answer::error(StatusCode::FORBIDDEN, asked.id.as_ref(), -32600, message);
            }
        };
        let mut caller = app.caller(&principal, narrowed_by.as_deref());
        if let Some(visit) = &visit {
            caller = caller.with_session(&*visit.id);
        }
        let span = app.spans.as_ref().map(|spans| {
            let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
            let in_headers = || {
                let tracestate = header("tracestate").map(str::to_owned);
                Some(Parent { traceparent: header("traceparent")?.to_owned(), tracestate })
            };
            spans.begin(Begun {
                method: &asked.method,
                id: asked.id.as_ref().map(ToString::to_string),
                parent: asked.parent.clone().or_else(in_headers).as_ref(),
                version: header(VERSION),
                principal: &principal.name,
                role: &principal.role,
                from: peer.place(),
            })
        });
        let needs = asked.tool.as_deref().map_or(Needs::default(), |tool| host.needs(&caller, tool));
        let place = match account.place(needs).await {
            Ok(place) => Arc::new(place),
            Err(not_now) => return app.not_now(&principal, asked.id.as_ref(), &not_now),
        };
        let life = visit.as_ref().map_or(&principal.live, |visit| &visit.live).clone();
        if life.is_cancelled() {
            return answer::error(
                StatusCode::UNAUTHORIZED,
                asked.id.as_ref(),
                -32600,
                "the token of this caller was revoked or has expired; ask the server's operator for another",
            );
        }
        let call = life.child_token();
        let returning = parts.method == Method::GET && parts.headers.contains_key("last-event-id");
        let returned = visit.as_ref().filter(|_| returning).map(Visit::come_back);
        if asked.tool.is_some() {
            app.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
        }
        let seen =
            asked.tool.as_deref().map(|tool| app.ui.recent.begin(&caller, &host.redactor().redact(tool)));
        let mut guard = Guard {
            call: call.clone(),
            visit,
            _returned: returned,
            claim,
            account: Arc::clone(&account),
            metrics: Arc::clone(&app.metrics),
            counted: asked.tool.is_some(),
            span,
            finished: false,
            _place: Arc::clone(&place),
            _seen: seen,
        };
        tracing::debug!(principal = %principal.name, from = peer.place(), method = %asked.method, "a request");
        let ends = match (&parts.method, asked.method.as_str()) {
            (&Method::GET, _) => Some(Ends::with(&app.closing, &life, principal.until, None)),
            (_, "subscriptions/listen") => {
                Some(Ends::with(&app.closing, &life, principal.until, Some(call.clone())))
            }
            _ => None,
        };
        let (limits, programs) = (RoleLimits::default(), Some(Programs::new(move || account.program())));
        let observer = match guard.span.clone() {
            None => app.observer.clone(),
            Some(span) => {
                let all = app.observer.clone();
                Observer::new(move |record| {
                    all.tell(record);
                    span.came_out(record);
                })
            }
        };
        let visitor = Visitor { host, caller, limits, programs, observer: Some(observer), cancel: call };
        parts.extensions.insert(visitor);
        // A call in a session may go on without its client: until it has ended the place is taken.
        parts.extensions.insert(place);
        // Inline it would be in every future around it, twice and more, and each is moved on its way.
        let handled = Box::pin(self.service.handle(Request::from_parts(parts, Full::new(body))));
        let response = match &guard.span {
            None => handled.await,
            Some(span) => span.around(handled).await,
        };
        if let Some(span) = &guard.span {
            span.answered(response.status());
        }
        if let (Some(room), Some(id)) =
            (&room, response.headers().get(SESSION).and_then(|id| id.to_str().ok()))
        {
            app.sessions.begin(room, id, &principal.name, &principal.live);
        }
        response.map(|body| {
            // What is empty is never asked for.
            guard.finished = body.is_end_stream();
            Guarded { body, guard, ends }.boxed()
        })
    }

    async fn read(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, Refusal> {
        let refuse = |status, code, why: &str| Err(Box::new(answer::error(status, None, code, why)));
        let too_large = || {
            let why = format!("a request may have {} bytes", self.most);
            refuse(StatusCode::PAYLOAD_TOO_LARGE, -32600, &why)
        };
        let length =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.most as u64) {
            return too_large();
        }
        match tokio::time::timeout(self.patience, Limited::new(body, self.most).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => too_large(),
            Ok(Err(_)) => refuse(StatusCode::BAD_REQUEST, -32700, "the request broke off"),
            Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, -32700, "the request did not come to its end"),
        }
    }
}

/// The answer to a request that goes no further.
type Refusal = Box<Response<Body>>;

/// What is asked.
#[derive(Debug, Default)]
struct Asked {
    id: Option<role_policy::proxy::message::Id>,
    method: String,
    /// The tool, where it is a call of one.
    tool: Option<String>,
    /// The client's span.
    parent: Option<Parent>,
}

impl Asked {
    /// Reads a message strictly: what two parsers could read differently is refused, and then rmcp reads the same.
    fn read(body: &[u8]) -> Result<Self, Refusal> {
        let message = Message::parse(body).map_err(|invalid| {
            let (id, code) = (invalid.id.as_ref(), invalid.code);
            Box::new(answer::error(StatusCode::BAD_REQUEST, id, code, &invalid.problem))
        })?;
        let tool =
            message.params().and_then(|params| params.get("name")).and_then(Json::as_str).unwrap_or_default();
        let tool = tool.to_owned();
        let text = |name: &str| message.meta()?.get(name)?.as_str().map(str::to_owned);
        let parent =
            text("traceparent").map(|traceparent| Parent { traceparent, tracestate: text("tracestate") });
        Ok(match message.kind {
            Kind::Request { id, method } => {
                let tool = (method == "tools/call").then_some(tool);
                Self { id: Some(id), method, tool, parent }
            }
            Kind::Notification { method } => Self { id: None, method, tool: None, parent },
            Kind::Response { .. } => Self::default(),
        })
    }
}

/// Whether the client speaks a revision without sessions.
fn is_stateless(headers: &HeaderMap) -> bool {
    headers.get(VERSION).and_then(|version| version.to_str().ok()).is_some_and(|version| version >= STATELESS)
}

/// The role that a client asks to be narrowed to. One that there is not takes away as much as can be.
fn narrowing(headers: &HeaderMap, app: &App) -> Option<String> {
    let role = headers.get(ROLE)?;
    let policy = app.tenants.whole().policy();
    let role = role.to_str().ok().filter(|role| policy.declares(role));
    Some(role.map_or_else(|| policy.minimal_role().to_owned(), str::to_owned))
}

/// When a stream without an end of its own ends: with the server, with its caller's life, or when what the caller
/// presented is over.
struct Ends {
    either: [Pin<Box<WaitForCancellationFutureOwned>>; 2],
    over: Option<Pin<Box<Sleep>>>,
    /// The call that is told then, and says goodbye. Without one the stream ends there.
    call: Option<CancellationToken>,
}

impl Ends {
    fn with(
        closing: &CancellationToken,
        life: &CancellationToken,
        until: Option<SystemTime>,
        call: Option<CancellationToken>,
    ) -> Self {
        let over = until.map(|until| {
            let left = until.duration_since(SystemTime::now()).unwrap_or_default();
            Box::pin(tokio::time::sleep(left))
        });
        Self { either: [closing, life].map(|token| Box::pin(token.clone().cancelled_owned())), over, call }
    }

    fn have_come(&mut self, cx: &mut Context<'_>) -> bool {
        self.either.iter_mut().any(|token| token.as_mut().poll(cx).is_ready())
            || self.over.as_mut().is_some_and(|over| over.as_mut().poll(cx).is_ready())
    }
}

/// What a request holds until its answer has been sent, or its client has gone away.
struct Guard {
    call: CancellationToken,
    visit: Option<Visit>,
    _returned: Option<Return>,
    claim: Option<Claim>,
    account: Arc<Account>,
    metrics: Arc<Metrics>,
    counted: bool,
    span: Option<Span>,
    finished: bool,
    _place: Arc<Place>,
    _seen: Option<Seen>,
}

impl Guard {
    /// The answer is whole. Before it is sent, or the next request could come before its id is free.
    fn finish(&mut self) {
        self.finished = true;
        self.claim = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.counted {
            self.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(span) = &self.span {
            if !self.finished {
                span.abandoned();
            }
            span.end();
        }
        if self.finished {
            return;
        }
        match &self.visit {
            Some(visit) => visit.abandon(self.call.clone()),
            None => self.call.cancel(),
        }
    }
}

/// An answer that is counted, and ends its call when nobody waits for it any more.
struct Guarded {
    body: Body,
    guard: Guard,
    ends: Option<Ends>,
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.ends.as_mut().is_some_and(|ends| ends.have_come(cx)) {
            match this.ends.take().and_then(|ends| ends.call) {
                Some(call) => call.cancel(),
                None => {
                    this.guard.finish();
                    return Poll::Ready(None);
                }
            }
        }
        let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            None => this.guard.finish(),
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                this.guard.account.spend(bytes);
                this.guard.metrics.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
                if this.body.is_end_stream() {
                    this.guard.finish();
                }
            }
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
