//! The proxy: its options, and the clients that it accepts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::allowed_hosts::AllowedHosts;
use crate::connection;
use crate::denial::DeniedConnection;
use crate::limits::ProxyLimits;
use crate::proxy_state::ProxyState;
use crate::resolver::{PinnedNames, Resolve, SystemResolver};

/// A proxy that connects clients to the hosts of a list, and to no other.
///
/// One port takes HTTP `CONNECT`, plain HTTP requests with a whole URL, and SOCKS5 without authentication. The server name
/// in a TLS handshake must be the name that the client connected to. Nothing is decrypted, except the connections to hosts
/// for which there is a credential (`EgressProxy::interception`, with the feature `credentials`).
pub struct EgressProxy {
    state: ProxyState,
}

/// The wait after an error of `accept(2)`, such as too many open files, which would come again at once.
const ACCEPT_ERROR_WAIT: Duration = Duration::from_millis(50);

impl fmt::Debug for EgressProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressProxy").field("hosts", &self.state.hosts).finish_non_exhaustive()
    }
}

impl EgressProxy {
    /// Returns a proxy for these hosts, with the default limits and the system's name resolution.
    pub fn new(hosts: AllowedHosts) -> Self {
        Self {
            state: ProxyState {
                hosts,
                limits: ProxyLimits::default(),
                resolver: Box::new(SystemResolver),
                pins: PinnedNames::default(),
                on_denied: None,
                #[cfg(feature = "credentials")]
                interception: None,
            },
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: ProxyLimits) -> Self {
        self.state.limits = limits;
        self
    }

    /// Sets what finds the addresses of names.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.state.resolver = Box::new(resolver);
        self
    }

    /// Sets a function that is called with each refused connection. The function must return soon.
    #[must_use]
    pub fn on_denied(mut self, callback: impl Fn(&DeniedConnection) + Send + Sync + 'static) -> Self {
        self.state.on_denied = Some(Box::new(callback));
        self
    }

    /// Sets the hosts whose requests get a credential. Connections to them end at the proxy, which makes its own.
    #[cfg(feature = "credentials")]
    #[must_use]
    pub fn interception(mut self, interception: crate::Interception) -> Self {
        self.state.interception = Some(interception);
        self
    }

    /// Serves the clients of `listener` until `shutdown` is cancelled or the future is dropped. All their connections
    /// end with it.
    ///
    /// The listener may be bound in another network namespace than the one in which this runs: hosts are reached from
    /// the namespace of the threads of this runtime.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        let permits =
            Arc::new(Semaphore::new(self.state.limits.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
        let state = Arc::new(self.state);
        let mut clients = JoinSet::new();
        let accept = async {
            loop {
                // Before the accept: those that are too many wait in the kernel's queue.
                let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(ACCEPT_ERROR_WAIT).await;
                    continue;
                };
                while clients.try_join_next().is_some() {}
                let state = Arc::clone(&state);
                clients.spawn(async move {
                    // An error is the end of a connection, of which the client knows as much.
                    let _ = connection::serve(&state, stream).await;
                    drop(permit);
                });
            }
        };
        tokio::select! {
            () = accept => {}
            () = shutdown.cancelled() => {}
        }
    }
}
