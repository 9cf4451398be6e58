//! One connection: TLS, the version of HTTP, its limits, and its end.

use super::activity::{ConnectionState, OpenBody, UNREAD_TIMEOUT};
use super::address::{AddressRange, ConnectionPeer};
use super::connection_limit::{ConnectionLimit, ConnectionSlot};
use super::strict_lines::StrictLines;
use super::tls::ReloadableTls;
use super::write_timeout::WriteTimeout;
use crate::app_state::App;
use crate::router::Routes;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

/// The settings of every connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionSettings {
    /// The time that a client has to send the head of its next request.
    pub(crate) header_timeout: Duration,
    /// The number of connections.
    pub(crate) limit: Arc<ConnectionLimit>,
    /// The proxies that alone may connect over the network; empty for everybody.
    pub(crate) proxies: Arc<[AddressRange]>,
    /// The certificate, where the server ends TLS itself.
    pub(crate) tls: Option<Arc<ReloadableTls>>,
}

/// The reason why a connection ended other than by its client.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("the TLS handshake took too long")]
    HandshakeTimeout,
    #[error(transparent)]
    Handshake(std::io::Error),
    #[error(transparent)]
    Http(Box<dyn std::error::Error + Send + Sync>),
    #[error("the client does not read an answer")]
    UnreadAnswer,
    #[error("the client sent no request in time")]
    NoRequest,
    #[error("it was idle, and another client needed its place")]
    Replaced,
}

/// An accepted socket.
pub(super) enum AcceptedStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The time that a client has for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time from its connection that a client has for its first request, once the server shuts down: a proxy that connects
/// for each request sends it at once, and cannot know whether it may send it again elsewhere.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// The time that it has at least: it may have sent the request already.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(200);

/// The size of the head of a request, in bytes: the buffer of HTTP/1, and the decoded fields of HTTP/2.
const MAX_HEAD_BYTES: u32 = 32 * 1024;
/// The number of header fields in HTTP/1. HTTP/2 counts 32 bytes for each towards the size.
const MAX_HEADERS: usize = 64;

/// The requests that one HTTP/2 connection has open at once. RFC 9113 §6.5.2 recommends no fewer than 100: a proxy sends the
/// requests of many callers over one connection. What one caller may do is limited by its account, over any number of
/// connections.
const MAX_STREAMS: u32 = 100;
/// The bytes of request bodies that a client may send ahead of the server's reading, on one stream and on a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The bytes of answers that wait for their client, on one stream.
const MAX_SEND_BUFFER: usize = 64 * 1024;
/// The requests that a client may reset before the server has taken them up, and the errors of a client that are answered
/// with a reset. The connection is closed beyond (CVE-2023-44487, CVE-2025-8671).
const MAX_RESET_STREAMS: usize = 20;
const MAX_ERROR_RESETS: usize = 100;

/// The limits of both versions, the same for every connection.
static HTTP: LazyLock<auto::Builder<TokioExecutor>> = LazyLock::new(|| {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // `ConnectionActivity` bounds the head, of both versions and before the version is known.
        .header_read_timeout(None)
        .max_buf_size(MAX_HEAD_BYTES as usize)
        .max_headers(MAX_HEADERS)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEAD_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS);
    builder
});

/// Serves the requests of one connection with `routes`, until the client or the server ends it.
pub(super) async fn serve(
    stream: AcceptedStream,
    peer: ConnectionPeer,
    uses_tls: bool,
    routes: Routes,
    app: App,
    settings: &ConnectionSettings,
    slot: &ConnectionSlot,
) -> Result<(), ConnectionError> {
    tokio::select! {
        served = serve_stream(stream, peer, uses_tls, routes, app, settings, slot) => served,
        () = slot.replaced.cancelled() => Err(ConnectionError::Replaced),
    }
}

async fn serve_stream(
    stream: AcceptedStream,
    peer: ConnectionPeer,
    uses_tls: bool,
    routes: Routes,
    app: App,
    settings: &ConnectionSettings,
    slot: &ConnectionSlot,
) -> Result<(), ConnectionError> {
    let timeout = settings.header_timeout;
    match (stream, &settings.tls) {
        (AcceptedStream::Tcp(stream), Some(tls)) if uses_tls => {
            let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.acceptor().accept(stream)).await;
            let stream = handshake
                .map_err(|_| ConnectionError::HandshakeTimeout)?
                .map_err(ConnectionError::Handshake)?;
            serve_requests(stream, peer, routes, app, timeout, slot).await
        }
        (AcceptedStream::Tcp(stream), _) => serve_requests(stream, peer, routes, app, timeout, slot).await,
        (AcceptedStream::Unix(stream), _) => serve_requests(stream, peer, routes, app, timeout, slot).await,
    }
}

async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: ConnectionPeer,
    routes: Routes,
    app: App,
    header_timeout: Duration,
    slot: &ConnectionSlot,
) -> Result<(), ConnectionError> {
    let activity = Arc::clone(&slot.activity);
    let service = {
        let (activity, standing) = (Arc::clone(&activity), slot.standing.clone());
        service_fn(move |mut request: Request<Incoming>| {
            let open = activity.start_request();
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(standing.clone());
            let response = routes.answer(request.map(Body::new));
            async move {
                Ok::<_, std::convert::Infallible>(response.await.map(|body| OpenBody { body, request: open }))
            }
        })
    };
    let stream = TokioIo::new(StrictLines::new(WriteTimeout::new(stream, Arc::clone(&activity))));
    let mut connection = std::pin::pin!(HTTP.serve_connection(stream, service));
    let mut next_check = std::pin::pin!(tokio::time::sleep(header_timeout));
    let accepted_at = Instant::now();
    let mut is_ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(ConnectionError::Http),
            () = app.shutting_down.cancelled(), if !is_ending => {
                let grace = FIRST_REQUEST_TIMEOUT.saturating_sub(accepted_at.elapsed()).max(FIRST_REQUEST_GRACE);
                let deadline = Instant::now() + grace;
                while !activity.has_requests() {
                    let pause = deadline.min(Instant::now() + FIRST_REQUEST_GRACE);
                    if let Ok(ended) = tokio::time::timeout_at(pause, connection.as_mut()).await {
                        return ended.map_err(ConnectionError::Http);
                    }
                    if Instant::now() >= deadline {
                        break;
                    }
                }
                if !activity.has_requests() {
                    // hyper would wait until it sends something.
                    return Ok(());
                }
                connection.as_mut().graceful_shutdown();
                is_ending = true;
            }
            () = next_check.as_mut() => match activity.state(Instant::now(), header_timeout) {
                ConnectionState::Active(next) => next_check.as_mut().reset(next),
                ConnectionState::Stalled => return Err(ConnectionError::UnreadAnswer),
                // HTTP/1 would go on to wait for the rest of a first head.
                ConnectionState::Idle if is_ending || !activity.has_requests() => {
                    return Err(ConnectionError::NoRequest);
                }
                // An answer over HTTP/2 may still wait for its client, and gets the time that it has over HTTP/1.
                ConnectionState::Idle => {
                    connection.as_mut().graceful_shutdown();
                    is_ending = true;
                    next_check.as_mut().reset(Instant::now() + UNREAD_TIMEOUT);
                }
            }
        }
    }
}
