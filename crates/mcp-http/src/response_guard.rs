//! Guards that last as long as an answer: until its body was sent, or its client has gone away.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A guard that a layer holds until an answer has been sent. It is dropped without [`complete`](Self::complete) if the
/// client goes away before.
pub(crate) trait ResponseGuard: Send + Unpin + 'static {
    /// Called for each piece of the body that is handed over.
    fn sent(&mut self, _bytes: usize) {}

    /// Called once, when the whole body was handed over. That is before it is sent: the client's next request must not
    /// come before the guard is gone.
    fn complete(self);
}

/// Holds `guard`, if there is one, until the body of `response` was sent.
pub(crate) fn hold<G: ResponseGuard>(response: Response, guard: Option<G>) -> Response {
    let Some(guard) = guard else { return response };
    if response.body().is_end_stream() {
        // An empty body is never polled.
        guard.complete();
        return response;
    }
    response.map(|body| Body::new(GuardedBody { body, guard: Some(guard) }))
}

struct GuardedBody<G> {
    body: Body,
    guard: Option<G>,
}

impl<G: ResponseGuard> http_body::Body for GuardedBody<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let (Some(guard), Some(data)) = (&mut self.guard, frame.data_ref())
        {
            guard.sent(data.len());
        }
        if (frame.is_none() || self.body.is_end_stream())
            && let Some(guard) = self.guard.take()
        {
            guard.complete();
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
