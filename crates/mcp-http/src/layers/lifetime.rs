//! Ends a call whose client has gone away, and a stream whose caller may call no more.

use super::rpc_body::INVALID_REQUEST;
use crate::app_state::App;
use crate::mcp_request::McpRequest;
use crate::middleware::Next;
use crate::response;
use crate::response_guard::{self, ResponseGuard};
use crate::sessions::{ClientSessionGuard, ReconnectGuard};
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Refuses a caller that was revoked while its call waited, and cancels the call when it is over for another reason than
/// that it has been answered.
pub(crate) async fn limit_lifetime(
    app: App,
    mut request: Box<McpRequest>,
    next: impl Next<Box<McpRequest>>,
) -> Response {
    let McpRequest { principal, message, session, .. } = &*request;
    let session = session.clone();
    // The end of a session is a child of its caller's revocation, so one token covers both.
    let ended = session.as_ref().map_or(&principal.revoked, |session| &session.ended).clone();
    if ended.is_cancelled() {
        return response::rpc_error(
            StatusCode::UNAUTHORIZED,
            message.id.as_ref(),
            INVALID_REQUEST,
            "the token of this caller was revoked or has expired; ask the server's operator for another",
        );
    }
    let call = ended.child_token();
    let is_get = request.http.method() == Method::GET;
    let reconnects = is_get && request.http.headers().contains_key("last-event-id");
    let reconnect = session.as_ref().filter(|_| reconnects).map(|session| session.reconnect());
    let guard = CancellableCall { call: call.clone(), session, _reconnect: reconnect, is_complete: false };
    // A token with an expiry outlives its request in a stream, so the stream has to look at the clock itself.
    let deadline = || StreamDeadline::new([&app.shutting_down, &ended], principal.expires_at);
    // Streams have no end of their own.
    let end = match &*message.method {
        _ if is_get => Some(StreamEnd { deadline: deadline(), call: None }),
        "subscriptions/listen" => Some(StreamEnd { deadline: deadline(), call: Some(call.clone()) }),
        _ => None,
    };
    request.cancellation = Some(call);
    let response = next(request).await;
    let response = match end {
        None => response,
        Some(end) => response.map(|body| Body::new(LimitedStream { body, end: Some(end) })),
    };
    response_guard::hold(response, Some(guard))
}

/// A call that is cancelled when this is dropped before its answer was sent. In a session its client may come back for the
/// answer, and has a moment to do so.
struct CancellableCall {
    call: CancellationToken,
    session: Option<Arc<ClientSessionGuard>>,
    _reconnect: Option<ReconnectGuard>,
    is_complete: bool,
}

impl ResponseGuard for CancellableCall {
    fn complete(mut self) {
        self.is_complete = true;
    }
}

impl Drop for CancellableCall {
    fn drop(&mut self) {
        match &self.session {
            _ if self.is_complete => {}
            Some(session) => session.abandon(self.call.clone()),
            None => self.call.cancel(),
        }
    }
}

/// The moment at which a stream must end: when the server shuts down, its caller is revoked, or what the caller presented
/// expires.
struct StreamDeadline {
    cancelled: [Pin<Box<WaitForCancellationFutureOwned>>; 2],
    expiry: Option<Pin<Box<Sleep>>>,
}

impl StreamDeadline {
    fn new(tokens: [&CancellationToken; 2], expires_at: Option<SystemTime>) -> Self {
        let expiry = expires_at.map(|expires_at| {
            let remaining = expires_at.duration_since(SystemTime::now()).unwrap_or_default();
            Box::pin(tokio::time::sleep(remaining))
        });
        Self { cancelled: tokens.map(|token| Box::pin(token.clone().cancelled_owned())), expiry }
    }

    /// Returns true once the deadline has expired, and otherwise wakes the task when it does.
    fn expired(&mut self, cx: &mut Context<'_>) -> bool {
        self.cancelled.iter_mut().any(|token| token.as_mut().poll(cx).is_ready())
            || self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready())
    }
}

/// The end of a stream.
struct StreamEnd {
    deadline: StreamDeadline,
    /// The call that is cancelled at the deadline and ends the stream with an answer. Without one the stream ends at once.
    call: Option<CancellationToken>,
}

/// The body of a stream that ends at its deadline.
struct LimitedStream {
    body: Body,
    end: Option<StreamEnd>,
}

impl http_body::Body for LimitedStream {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.end.as_mut().is_some_and(|end| end.deadline.expired(cx)) {
            match self.end.take().and_then(|end| end.call) {
                Some(call) => call.cancel(),
                None => return Poll::Ready(None),
            }
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
