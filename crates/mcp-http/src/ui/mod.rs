//! `/ui`: what runs, what ran, and who was refused what, for people. Server-rendered: it can be read without JavaScript,
//! which only keeps it up to date. A caller sees its own; whose role keeps nothing from it sees everybody's.

#[cfg(feature = "sessions")]
mod agents;
#[cfg(not(feature = "sessions"))]
#[path = "no_agents.rs"]
mod agents;
mod html;
mod login;
mod page;
mod recent;
mod traces;

pub(crate) use recent::{Recent, Seen};

use crate::address::Peer;
use crate::answer::{self, Body};
use crate::identity::{Denied, Principal};
use crate::route::App;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use core_tools::mcp::{Context, Host};
use html::Html;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use login::{Login, Logins};
use role_policy::Caller;
use serde_json::Map;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// What the page is made of.
#[derive(Debug)]
pub(crate) struct Ui {
    pub(crate) recent: Arc<Recent>,
    logins: Logins,
    /// Where flame graphs are.
    traces: PathBuf,
}

/// Who looks at it.
struct Viewer {
    principal: Principal,
    caller: Caller,
    /// Everybody's calls are shown.
    sees_all: bool,
    /// None for who presents a token with each request.
    login: Option<Login>,
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("live.js");

/// A form has a token or a few words.
const MOST_FORM: usize = 16 * 1024;
/// How long a form may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Nothing but our own style and script, nothing inline but that style, and in nobody's frame.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
});

impl Ui {
    /// A page on what `recent` hears of, with the flame graphs in `traces`.
    pub(crate) fn new(recent: Arc<Recent>, traces: PathBuf) -> Self {
        Self { recent, logins: Logins::default(), traces }
    }
}

/// Answers a request for `/ui` or anything below.
pub(crate) async fn answer(app: &Arc<App>, request: Request<Incoming>, peer: Peer) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if parts.method == Method::POST && !is_from_here(&parts.headers) {
        return answer::text(StatusCode::FORBIDDEN, "this is not done from another page\n");
    }
    if parts.method == Method::POST && path == "/ui/sign-in" {
        return sign_in(app, &parts.headers, body, peer).await;
    }
    let viewer = match viewer(app, &parts.headers, peer).await {
        Ok(viewer) => viewer,
        Err(denied) => return sign_in_page(app, &denied, peer, None),
    };
    let account = app.governor.account(&viewer.principal.name, &viewer.principal.limits);
    if let Err(not_now) = app.governor.admit(&account) {
        return app.not_now(&viewer.principal, None, &not_now);
    }
    match (&parts.method, path) {
        (&Method::GET | &Method::HEAD, _) => look(app, &viewer, path, parts.uri.query()).await,
        (&Method::POST, "/ui/stop") => stop(app, &viewer, body).await,
        (&Method::POST, "/ui/sign-out") => {
            let mut response = see("/ui");
            set(&mut response, header::SET_COOKIE, &app.ui.logins.end(&parts.headers));
            response
        }
        _ => answer::text(StatusCode::METHOD_NOT_ALLOWED, "that cannot be done here\n"),
    }
}

/// Answers what changes nothing.
async fn look(app: &App, viewer: &Viewer, path: &str, query: Option<&str>) -> Response<Body> {
    match path {
        "/ui" => {
            let agents = agents::section(app, viewer).await;
            shown(StatusCode::OK, page::calls(app, viewer, &agents, query.unwrap_or_default()))
        }
        "/ui/roles" => shown(StatusCode::OK, page::roles(app, viewer)),
        "/ui/traces" if viewer.sees_all => shown(StatusCode::OK, page::traces(app, viewer)),
        "/ui/live.js" => {
            guarded(answer::with(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.to_owned()))
        }
        _ => match path.strip_prefix("/ui/trace/").filter(|_| viewer.sees_all) {
            Some(name) => picture(app, name),
            None => None,
        }
        .unwrap_or_else(|| answer::text(StatusCode::NOT_FOUND, "there is nothing here\n")),
    }
}

/// A flame graph, which can do nothing in a browser but be looked at.
fn picture(app: &App, name: &str) -> Option<Response<Body>> {
    let svg = traces::read(&app.ui.traces, name)?;
    let mut response = guarded(answer::with(StatusCode::OK, "image/svg+xml", svg));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    Some(response)
}

/// Who looks: by the token of the request, or by the one they signed in with. Somebody who presents nothing is nobody here,
/// whatever the server gives to them elsewhere.
async fn viewer(app: &App, headers: &HeaderMap, peer: Peer) -> Result<Viewer, Denied> {
    let (principal, login) = if headers.contains_key(header::AUTHORIZATION) {
        (app.identity.who(headers, peer).await?, None)
    } else {
        let login = app.ui.logins.find(headers).ok_or(Denied::Missing)?;
        match who(app, &login.bearer, peer).await {
            Ok(principal) => (principal, Some(login)),
            Err(denied) => {
                app.ui.logins.end(headers);
                return Err(denied);
            }
        }
    };
    let caller = app.caller(&principal, None);
    let sees_all = sees_all(app, &principal, &caller);
    Ok(Viewer { principal, caller, sees_all, login })
}

/// Who has the token `bearer`.
async fn who(app: &App, bearer: &str, peer: Peer) -> Result<Principal, Denied> {
    let value =
        HeaderValue::from_str(&format!("Bearer {bearer}")).map_err(|_| Denied::Invalid("no token"))?;
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
    app.identity.who(&headers, peer).await
}

/// Whether nothing is kept from `principal`: no root, no tool (also none of other servers, which tell whoever directs
/// others from whoever works), no argument, and no role that it may not act as.
fn sees_all(app: &App, principal: &Principal, caller: &Caller) -> bool {
    let host = app.tenants.whole();
    let (policy, facts) = (host.policy(), host.facts());
    principal.roots.is_empty()
        && caller.roles().all(|role| {
            policy.excluded_tools(role).is_empty()
                && facts.iter().all(|tool| policy.requirements(role, tool).is_empty())
                && policy.roles().all(|other| policy.may_use(role, other))
        })
}

async fn sign_in(app: &App, headers: &HeaderMap, body: Incoming, peer: Peer) -> Response<Body> {
    let form = match form(body).await {
        Ok(form) => form,
        Err(refusal) => return *refusal,
    };
    let bearer = form.get("token").map(|token| token.trim()).unwrap_or_default();
    if let Err(denied) = who(app, bearer, peer).await {
        return sign_in_page(app, &denied, peer, Some("That is no token that is good here."));
    }
    // By TLS to whatever stands in front: the page itself is where the form was.
    let secure = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    match app.ui.logins.begin(bearer, secure) {
        Ok(cookie) => {
            let mut response = see("/ui");
            set(&mut response, header::SET_COOKIE, &cookie);
            response
        }
        Err(error) => {
            tracing::error!("nobody can sign in: {error}");
            answer::text(StatusCode::SERVICE_UNAVAILABLE, "nobody can sign in now\n")
        }
    }
}

/// The form to sign in, with the status and the challenge of a refusal.
fn sign_in_page(app: &App, denied: &Denied, peer: Peer, said: Option<&'static str>) -> Response<Body> {
    let refusal = app.deny(denied, peer);
    let mut response = shown(refusal.status(), page::sign_in(said));
    if let Some(challenge) = refusal.headers().get(header::WWW_AUTHENTICATE) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.clone());
    }
    response
}

/// Ends a background program or an agent's session, as a call of `stop_command` or `end_session` by the viewer: judged
/// and recorded as any other.
async fn stop(app: &App, viewer: &Viewer, body: Incoming) -> Response<Body> {
    let form = match form(body).await {
        Ok(form) => form,
        Err(refusal) => return *refusal,
    };
    // A header is not sent by a browser on its own; a cookie is.
    let secret = form.get("secret").map(String::as_str).unwrap_or_default();
    if viewer.login.as_ref().is_some_and(|login| !login.allows(secret)) {
        return answer::text(
            StatusCode::FORBIDDEN,
            "this form is not from this page, or too old; load it again\n",
        );
    }
    let own = &*viewer.principal.name;
    let owner = form.get("owner").map_or(own, String::as_str);
    let mut context = Context::new(viewer.caller.clone(), viewer.principal.live.child_token());
    context.owner = Some(owner.to_owned());
    context.observer = Some(app.observer.clone());
    if let Some(session) = form.get("session") {
        if owner != own && !viewer.sees_all {
            return see("/ui?said=gone#agents");
        }
        if owner != own {
            tracing::warn!("{own} ends the session {session:?} of {owner}");
        }
        let arguments = Map::from_iter([("session_id".to_owned(), session.as_str().into())]);
        return match app.tenants.whole().call("end_session", arguments, context).await {
            Ok(answer) if !answer.is_failed() => see("/ui?said=ended#agents"),
            _ => see("/ui?said=not-ended#agents"),
        };
    }
    let Some(id) = form.get("id").and_then(|id| id.parse::<u32>().ok()) else {
        return answer::text(StatusCode::BAD_REQUEST, "which program?\n");
    };
    if owner != own && !viewer.sees_all {
        return see("/ui?said=gone#programs");
    }
    let has = |host: &Host| host.left().iter().any(|left| left.id == id && left.principal == owner);
    let Some(host) = app.tenants.hosts().into_iter().find(has) else {
        return see("/ui?said=gone#programs");
    };
    if owner != own {
        tracing::warn!("{own} stops the program {id} of {owner}");
    }
    let arguments = Map::from_iter([("id".to_owned(), id.into())]);
    match host.call("stop_command", arguments, context).await {
        Ok(answer) if !answer.is_failed() => see("/ui?said=stopped#programs"),
        _ => see("/ui?said=refused#programs"),
    }
}

/// Whether a page of ours sends this. Browsers say so; what says nothing is no browser. Cookies do not tell ports of one
/// machine apart, so that another server's page could send ours.
fn is_from_here(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.all(|site| site == "same-origin")
}

/// The fields of a form (`application/x-www-form-urlencoded`).
async fn form(body: Incoming) -> Result<HashMap<String, String>, Box<Response<Body>>> {
    let refuse = |status| Err(Box::new(answer::text(status, "that is no form of this page\n")));
    let bytes = match tokio::time::timeout(PATIENCE, Limited::new(body, MOST_FORM).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return refuse(StatusCode::BAD_REQUEST),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT),
    };
    let mut fields = HashMap::new();
    for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let mut next = || decoded(halves.next().unwrap_or_default());
        match (next(), next()) {
            (Some(name), Some(value)) if !fields.contains_key(&name) => fields.insert(name, value),
            _ => return refuse(StatusCode::BAD_REQUEST),
        };
    }
    Ok(fields)
}

/// Percent-decoded, as the URL Standard reads forms. None where that is no text.
fn decoded(bytes: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (byte, tail) {
            (b'+', _) => decoded.push(b' '),
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                decoded.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            _ => decoded.push(*byte),
        }
    }
    String::from_utf8(decoded).ok()
}

fn shown(status: StatusCode, html: Html) -> Response<Body> {
    let mut response = guarded(answer::with(status, "text/html; charset=utf-8", html.into_string()));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    response
}

/// What others may do with it: nothing. An origin is told to ourselves, or forms would come from nowhere.
fn guarded(mut response: Response<Body>) -> Response<Body> {
    for (name, value) in [
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// It is done; what came of it is there.
fn see(place: &'static str) -> Response<Body> {
    let mut response = answer::text(StatusCode::SEE_OTHER, "");
    set(&mut response, header::LOCATION, place);
    response
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_as_browsers_write_them() {
        for (written, read) in [
            ("a+b%20c", Some("a b c")),
            ("%C3%A4%26", Some("ä&")),
            ("", Some("")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%+1", None),
            ("%FF", None),
        ] {
            assert_eq!(decoded(written.as_bytes()).as_deref(), read, "{written}");
        }
    }
}
