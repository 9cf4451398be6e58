//! The activity of a connection: the requests that are being answered on it, and the answers that its client leaves unread.
//!
//! hyper has a timeout for the head of a request over HTTP/1, none over HTTP/2, and none before the version is known. With
//! one account of all of them, one timer bounds each.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// The time that a client may leave an answer unread.
pub(super) const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The requests and writes of one connection.
#[derive(Debug)]
pub(super) struct ConnectionActivity(Mutex<ConnectionCounters>);

#[derive(Debug)]
struct ConnectionCounters {
    /// Requests since the connection was opened.
    requests: u64,
    /// Requests that are not answered completely.
    open: usize,
    /// The time at which the last request was answered, or the last byte was written.
    idle_since: Instant,
    /// True while the socket takes no more bytes.
    is_write_blocked: bool,
    /// The time at which a frame of an answer was handed over, until the next frame is asked for; by the request's number.
    unread: HashMap<u64, Instant>,
}

/// The state of a connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// In use; to be looked at again at this time.
    Active(Instant),
    /// No request is being answered, and none has been for as long as it may take to send one.
    Idle,
    /// An answer waits for its client for longer than [`UNREAD_TIMEOUT`].
    Stalled,
}

impl ConnectionActivity {
    /// Begins the account of a connection that was opened now.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(ConnectionCounters {
            requests: 0,
            open: 0,
            idle_since: Instant::now(),
            is_write_blocked: false,
            unread: HashMap::new(),
        })))
    }

    fn counters(&self) -> MutexGuard<'_, ConnectionCounters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true once a request has arrived.
    pub(super) fn has_requests(&self) -> bool {
        self.counters().requests > 0
    }

    /// Returns whether a request has arrived, and the time since which none is being answered; `None` while one is.
    pub(super) fn idle_since(&self) -> Option<(bool, Instant)> {
        let counters = self.counters();
        let is_idle = counters.open == 0 && !counters.is_write_blocked;
        is_idle.then_some((counters.requests > 0, counters.idle_since))
    }

    /// Enters a request whose head has arrived.
    pub(super) fn start_request(self: &Arc<Self>) -> ConnectionRequest {
        let mut counters = self.counters();
        counters.requests += 1;
        counters.open += 1;
        ConnectionRequest { activity: Arc::clone(self), number: counters.requests, is_unread: false }
    }

    /// Notes what became of an attempt to write to the socket.
    pub(super) fn note_write(&self, is_blocked: bool) {
        let mut counters = self.counters();
        counters.is_write_blocked = is_blocked;
        if !is_blocked {
            counters.idle_since = Instant::now();
        }
    }

    /// Returns the state at `now`, where a client has `idle_timeout` to send the head of its next request.
    pub(super) fn state(&self, now: Instant, idle_timeout: Duration) -> ConnectionState {
        let counters = self.counters();
        if counters.unread.values().any(|since| now - *since >= UNREAD_TIMEOUT) {
            return ConnectionState::Stalled;
        }
        // A socket that takes no bytes has a timeout of its own, in `write_timeout`.
        if counters.open > 0 || counters.is_write_blocked {
            return ConnectionState::Active(now + idle_timeout.min(UNREAD_TIMEOUT));
        }
        match counters.idle_since + idle_timeout {
            end if end > now => ConnectionState::Active(end),
            _ => ConnectionState::Idle,
        }
    }
}

/// A request that is being answered; dropping it ends it.
#[derive(Debug)]
pub(super) struct ConnectionRequest {
    activity: Arc<ConnectionActivity>,
    number: u64,
    is_unread: bool,
}

impl ConnectionRequest {
    fn set_unread(&mut self, is_unread: bool) {
        // Most frames follow each other at once, and the lock is taken only for a change.
        if self.is_unread != is_unread {
            self.is_unread = is_unread;
            let mut counters = self.activity.counters();
            match is_unread {
                true => counters.unread.insert(self.number, Instant::now()),
                false => counters.unread.remove(&self.number),
            };
        }
    }
}

impl Drop for ConnectionRequest {
    fn drop(&mut self) {
        let mut counters = self.activity.counters();
        counters.open -= 1;
        counters.idle_since = Instant::now();
        counters.unread.remove(&self.number);
    }
}

/// The body of an answer that keeps its request open until it was handed over.
///
/// HTTP/2 asks a body for its next frame when the client has made room for one. A client that never does keeps the
/// answer, and all that belongs to its call, without keeping the socket from taking other bytes.
#[derive(Debug)]
pub(super) struct OpenBody<B> {
    pub(super) body: B,
    pub(super) request: ConnectionRequest,
}

impl<B: Body<Data = Bytes> + Unpin> Body for OpenBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // hyper polls for the next frame only when the client has taken the one before.
        self.request.set_unread(false);
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        let is_last = frame.is_none() || self.body.is_end_stream();
        self.request.set_unread(!is_last);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};
    use std::convert::Infallible;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_nothing_was_asked_for_in_time() {
        let activity = ConnectionActivity::new();
        let state = || activity.state(Instant::now(), TIMEOUT);
        assert_eq!(state(), ConnectionState::Active(Instant::now() + TIMEOUT));
        tokio::time::advance(TIMEOUT).await;
        assert_eq!(state(), ConnectionState::Idle);
        let request = activity.start_request();
        tokio::time::advance(TIMEOUT * 100).await;
        assert!(matches!(state(), ConnectionState::Active(_)), "a call may take any time");
        drop(request);
        tokio::time::advance(TIMEOUT / 2).await;
        assert!(matches!(state(), ConnectionState::Active(_)));
        tokio::time::advance(TIMEOUT / 2).await;
        assert_eq!(state(), ConnectionState::Idle);
        activity.note_write(true);
        assert!(matches!(state(), ConnectionState::Active(_)), "the socket's own timeout counts");
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_is_not_followed_by_the_next_stalls_its_connection() {
        let activity = ConnectionActivity::new();
        let mut body = OpenBody { body: FrameBody(2), request: activity.start_request() };
        tokio::time::advance(UNREAD_TIMEOUT * 2).await;
        assert!(
            matches!(activity.state(Instant::now(), TIMEOUT), ConnectionState::Active(_)),
            "not its fault"
        );
        body.frame().await.unwrap().unwrap();
        tokio::time::advance(UNREAD_TIMEOUT).await;
        assert_eq!(activity.state(Instant::now(), TIMEOUT), ConnectionState::Stalled);
        body.frame().await.unwrap().unwrap();
        assert!(body.frame().await.is_none());
        assert!(matches!(activity.state(Instant::now(), TIMEOUT), ConnectionState::Active(_)));
        let mut whole = OpenBody { body: Full::new(Bytes::from("a")), request: activity.start_request() };
        whole.frame().await.unwrap().unwrap();
        drop(whole);
        assert!(activity.counters().unread.is_empty());
    }

    /// A body of so many frames.
    struct FrameBody(u32);

    impl Body for FrameBody {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some(left) = self.0.checked_sub(1) else { return Poll::Ready(None) };
            self.0 = left;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from("a")))))
        }
    }
}
