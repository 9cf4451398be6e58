//! From a socket to requests.

use crate::address::{Address, Peer, Range};
use crate::answer::Body;
use crate::compress;
use crate::places::Places;
use crate::route::{App, Area};
use crate::tls::Tls;
use http::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{Instant, Sleep};
use tokio_util::task::TaskTracker;

/// A place that is listened on.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    area: Area,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, Unlink),
}

/// Removes a socket's file in the end, if it is still the one.
#[derive(Debug)]
struct Unlink(PathBuf, Option<(u64, u64)>);

/// What holds for every connection.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) header_timeout: Duration,
    pub(crate) places: Arc<Places>,
    pub(crate) proxies: Arc<[Range]>,
    pub(crate) tls: Option<Arc<Tls>>,
}

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may leave an answer unread.
const UNREAD: Duration = Duration::from_secs(60);
/// How long a server that ends still takes connections. The system completes them before they are accepted, and a proxy
/// that has sent a request on one cannot know whether it may send it again elsewhere.
const LAST_CONNECTIONS: Duration = Duration::from_millis(50);
/// How long a client that has connected may take to ask, once the server ends: for the same reason.
const FIRST_WORDS: Duration = Duration::from_millis(200);
/// Bytes of the head of a request.
const HEAD: usize = 32 * 1024;

impl Listener {
    /// Listens at `address`.
    pub(crate) fn bind(address: &Address, area: Area) -> Result<Self, String> {
        let failed = |error: io::Error| {
            let remedy = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "; end what listens there (`ss -ltnp` shows it), or choose another port"
                }
                io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
                io::ErrorKind::PermissionDenied => {
                    "; ports below 1024 are root's, choose one above or use a proxy"
                }
                _ => "",
            };
            format!("cannot listen on {address}: {error}{remedy}")
        };
        let socket = match address {
            Address::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                Socket::Tcp(TcpListener::from_std(listener).map_err(failed)?)
            }
            Address::Unix(path) => {
                remove_stale(path).map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                // Who may connect is the folder's and the group's affair; who that is, the kernel says.
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(failed)?;
                Socket::Unix(listener, Unlink(path.clone(), file(path)))
            }
        };
        Ok(Self { socket, area })
    }

    /// What is served there.
    pub(crate) fn area(&self) -> Area {
        self.area
    }

    /// Where that is: the port may have been the system's choice.
    pub(crate) fn address(&self) -> Result<Address, String> {
        match &self.socket {
            Socket::Tcp(listener) => {
                listener.local_addr().map(Address::Tcp).map_err(|error| error.to_string())
            }
            Socket::Unix(_, Unlink(path, _)) => Ok(Address::Unix(path.clone())),
        }
    }

    /// Serves everybody who connects, until the app closes, and who is connecting at that moment.
    pub(crate) async fn serve(self, app: Arc<App>, terms: Terms, connections: TaskTracker) {
        let mut closed = std::pin::pin!(async {
            app.closing.cancelled().await;
            tokio::time::sleep(LAST_CONNECTIONS).await;
        });
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = self.accept() => accepted,
                () = &mut closed => return,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, say: those that are there may end.
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let from = match peer {
                Peer::Tcp(from) if terms.proxies.is_empty() => Some(from.ip()),
                // A proxy speaks for many.
                Peer::Tcp(_) | Peer::Unix { .. } => None,
            };
            let Some(place) = terms.places.take(from) else {
                app.metrics.turned_away("connections");
                continue;
            };
            if let Peer::Tcp(from) = peer
                && self.area == Area::All
                && !terms.proxies.is_empty()
                && !terms.proxies.iter().any(|range| range.contains(from.ip()))
            {
                app.metrics.turned_away("not_a_proxy");
                tracing::warn!("a connection from {} was closed: it is none of http.behind_proxy", from.ip());
                continue;
            }
            let (app, terms, area) = (Arc::clone(&app), terms.clone(), self.area);
            connections.spawn(async move {
                app.metrics.connections.fetch_add(1, Ordering::Relaxed);
                let _counted = Counted(Arc::clone(&app));
                let _place = place;
                if let Err(error) = connection(stream, peer, area, app, terms).await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        }
    }

    async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                // An answer leaves in several small writes; held back for a client's delayed acknowledgement, each
                // would take 40 ms longer.
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                Ok((Stream::Tcp(stream), Peer::Tcp(from)))
            }
            Socket::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred()?.uid();
                Ok((Stream::Unix(stream), Peer::Unix { uid }))
            }
        }
    }
}

struct Counted(Arc<App>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

async fn connection(
    stream: Stream,
    peer: Peer,
    area: Area,
    app: Arc<App>,
    terms: Terms,
) -> Result<(), String> {
    match (stream, &terms.tls) {
        (Stream::Tcp(stream), Some(tls)) if area == Area::All => {
            let handshake = tokio::time::timeout(HANDSHAKE, tls.acceptor().accept(stream));
            let stream =
                handshake.await.map_err(|_| "no handshake".to_owned())?.map_err(|error| error.to_string())?;
            requests(stream, peer, area, app, &terms).await
        }
        (Stream::Tcp(stream), _) => requests(stream, peer, area, app, &terms).await,
        (Stream::Unix(stream), _) => requests(stream, peer, area, app, &terms).await,
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    area: Area,
    app: Arc<App>,
    terms: &Terms,
) -> Result<(), String> {
    let spoken = Arc::new(AtomicBool::new(false));
    let service = {
        let (app, spoken) = (Arc::clone(&app), Arc::clone(&spoken));
        service_fn(move |request| {
            let app = Arc::clone(&app);
            spoken.store(true, Ordering::Relaxed);
            async move {
                let asked = compress::is_asked_for(request.headers());
                let answer = app.answer(request, peer, area).await;
                Ok::<Response<Body>, Infallible>(compress::compress(asked, answer).await)
            }
        })
    };
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(terms.header_timeout)
            .max_buf_size(HEAD)
            .max_headers(64)
            .serve_connection(TokioIo::new(Impatient::new(stream)), service)
    );
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(|error| error.to_string()),
        () = app.closing.cancelled() => {}
    }
    if !spoken.load(Ordering::Relaxed) {
        if let Ok(ended) = tokio::time::timeout(FIRST_WORDS, connection.as_mut()).await {
            return ended.map_err(|error| error.to_string());
        }
        if !spoken.load(Ordering::Relaxed) {
            // It would be waited for until it says something.
            return Ok(());
        }
    }
    connection.as_mut().graceful_shutdown();
    connection.await.map_err(|error| error.to_string())
}

/// A stream whose other end must read what is written to it.
struct Impatient<S> {
    stream: S,
    unread_since: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    fn new(stream: S) -> Self {
        Self { stream, unread_since: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.unread_since = None;
            return written;
        }
        let sleep = self
            .unread_since
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + UNREAD)));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Finds out within two minutes that a client is gone which could not say so: a call without progress writes nothing.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
    Ok(sockopt::set_tcp_keepcnt(stream, 4)?)
}

/// Removes the socket of a server that is no more. One that still answers is left alone, and so is what is no socket.
fn remove_stale(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
            _ => Err(io::ErrorKind::AddrInUse.into()),
        },
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

fn file(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

impl Drop for Unlink {
    fn drop(&mut self) {
        if self.1.is_some() && file(&self.0) == self.1 {
            // One that stays is removed by the next server.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}
