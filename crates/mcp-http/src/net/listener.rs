//! Listening sockets, and the loop that accepts connections.
#![allow(clippy::disallowed_methods, reason = "the operator names the socket")]

use super::address::{AddressRange, ConnectionPeer, ListenAddress};
use super::connection::{self, AcceptedStream, ConnectionSettings};
use crate::app_state::App;
use crate::refusal_reason::RefusalReason;
use crate::router::Routes;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_util::task::TaskTracker;

/// The time that a server which shuts down still accepts connections. The system completes them before they are accepted,
/// and a proxy that has sent a request on one cannot know whether it may send it again elsewhere.
const LAST_CONNECTIONS: Duration = Duration::from_millis(50);

/// The pause after a failed `accept`, such as one without a free descriptor: connections may end meanwhile.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The audience of a listener, which decides what is served there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerAudience {
    /// Everything, to callers who identify themselves.
    Callers,
    /// Metrics and health, to every client that can connect.
    Monitoring,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct HttpListener {
    socket: BoundSocket,
    audience: ListenerAudience,
}

#[derive(Debug)]
enum BoundSocket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket; dropping it removes the file, unless another server has replaced it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

/// The error of an address that cannot be listened at. The remedy follows the system's message, which is therefore a part
/// of this one and no source.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {problem}{}", remedy(.problem))]
pub(crate) struct BindError {
    address: ListenAddress,
    problem: io::Error,
}

fn remedy(problem: &io::Error) -> &'static str {
    match problem.kind() {
        io::ErrorKind::AddrInUse => "; end what listens there (`ss -ltnp` shows it), or choose another port",
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are root's, choose one above or use a proxy",
        _ => "",
    }
}

impl HttpListener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn bind(address: &ListenAddress, audience: ListenerAudience) -> Result<Self, BindError> {
        let failed = |problem| BindError { address: address.clone(), problem };
        let socket = match address {
            ListenAddress::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                BoundSocket::Tcp(TcpListener::from_std(listener).map_err(failed)?)
            }
            ListenAddress::Unix(path) => {
                remove_stale(path).map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                // The folder and the group decide who may connect; the kernel says who did.
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(failed)?;
                BoundSocket::Unix(listener, SocketFile { path: path.clone(), identity: identity(path) })
            }
        };
        Ok(Self { socket, audience })
    }

    /// Returns what is served here.
    pub(crate) fn audience(&self) -> ListenerAudience {
        self.audience
    }

    /// Returns the address that was bound: port 0 is replaced by the port that the system chose.
    pub(crate) fn address(&self) -> io::Result<ListenAddress> {
        match &self.socket {
            BoundSocket::Tcp(listener) => listener.local_addr().map(ListenAddress::Tcp),
            BoundSocket::Unix(_, file) => Ok(ListenAddress::Unix(file.path.clone())),
        }
    }

    /// Serves every connection, each in a task of `connections`, until the server shuts down.
    pub(crate) async fn serve(
        self,
        app: App,
        routes: Routes,
        settings: ConnectionSettings,
        connections: TaskTracker,
    ) {
        let settings = Arc::new(settings);
        let mut closed = std::pin::pin!(async {
            app.shutting_down.cancelled().await;
            tokio::time::sleep(LAST_CONNECTIONS).await;
        });
        loop {
            let accepted = tokio::select! {
                // Connections that the system has completed already come before the end.
                biased;
                accepted = self.accept() => accepted,
                () = &mut closed => return,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            let address = match peer {
                ConnectionPeer::Tcp(from) if settings.proxies.is_empty() => Some(from.ip()),
                // A proxy speaks for many callers.
                ConnectionPeer::Tcp(_) | ConnectionPeer::Unix { .. } => None,
            };
            let Some(permit) = settings.limit.try_acquire(address) else {
                app.metrics.turned_away(RefusalReason::Connections);
                continue;
            };
            if let ConnectionPeer::Tcp(from) = peer
                && self.audience == ListenerAudience::Callers
                && !is_allowed_proxy(&settings.proxies, from.ip())
            {
                app.metrics.turned_away(RefusalReason::NotAProxy);
                tracing::warn!("closed a connection from {}: http.behind_proxy does not list it", from.ip());
                continue;
            }
            let uses_tls = self.audience == ListenerAudience::Callers;
            let (routes, settings) = (routes.clone(), Arc::clone(&settings));
            connections.spawn(async move {
                app.metrics.connections.inc();
                let _count = OpenConnectionGuard(app);
                let served =
                    connection::serve(stream, peer, uses_tls, routes, app, &settings, permit.slot()).await;
                if let Err(error) = served {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        }
    }

    async fn accept(&self) -> io::Result<(AcceptedStream, ConnectionPeer)> {
        match &self.socket {
            BoundSocket::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                // An answer leaves in several small writes. With Nagle's algorithm each would wait for a client's delayed
                // acknowledgement, which takes 40 ms.
                stream.set_nodelay(true)?;
                enable_keep_alive(&stream)?;
                Ok((AcceptedStream::Tcp(stream), ConnectionPeer::Tcp(from)))
            }
            BoundSocket::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred()?.uid();
                Ok((AcceptedStream::Unix(stream), ConnectionPeer::Unix { uid }))
            }
        }
    }
}

/// One connection in the count of those that are open; dropping it takes the connection off.
struct OpenConnectionGuard(App);

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.0.metrics.connections.dec();
    }
}

/// Returns true if a client at `address` may connect: any may where no proxy is named.
fn is_allowed_proxy(proxies: &[AddressRange], address: IpAddr) -> bool {
    proxies.is_empty() || proxies.iter().any(|range| range.contains(address))
}

/// Makes the system find out within two minutes that a client is gone which could not say so. A call without progress
/// writes nothing, so that nothing else would notice.
fn enable_keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
    Ok(sockopt::set_tcp_keepcnt(stream, 4)?)
}

/// Removes the socket of a server that has ended. A socket that still answers is left alone, and so is any other file.
fn remove_stale(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.file_type().is_socket() => {
            match std::os::unix::net::UnixStream::connect(path) {
                // Only a refusal proves that nobody listens.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
                _ => Err(io::ErrorKind::AddrInUse.into()),
            }
        }
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

/// Returns the device and inode of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // A file that cannot be removed is removed by the next server.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
