//! The proxy: accepts clients, judges the hosts that they ask for, and connects to them.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::allowed_hosts::AllowedHosts;
use crate::connection::{self, Destination};
use crate::denial::{Denial, DenialReason};
use crate::host::Host;
use crate::limits::ProxyLimits;
use crate::resolver::{PinnedNames, Resolve, SystemResolver};

/// A proxy that connects clients to the hosts of a list, and to no other.
///
/// One port takes HTTP `CONNECT`, plain HTTP requests with a whole URL, and SOCKS5 without authentication. Nothing is
/// decrypted: the server name in a TLS handshake must be the name that the client connected to.
pub struct EgressProxy {
    state: ProxyState,
}

type OnDenied = Box<dyn Fn(&Denial) + Send + Sync>;

pub(crate) struct ProxyState {
    pub(crate) hosts: AllowedHosts,
    pub(crate) limits: ProxyLimits,
    resolver: Box<dyn Resolve>,
    pins: PinnedNames,
    on_denied: Option<OnDenied>,
}

/// The reason that a host is not connected to.
#[derive(Debug)]
pub(crate) enum ConnectError {
    Denied(Denial),
    Failed(io::Error),
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

    /// Sets a function that is called with each refused connection. It must return soon.
    #[must_use]
    pub fn on_denied(mut self, callback: impl Fn(&Denial) + Send + Sync + 'static) -> Self {
        self.state.on_denied = Some(Box::new(callback));
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

impl ProxyState {
    /// Reports a refused connection.
    pub(crate) fn deny(&self, denial: Denial) -> Denial {
        if let Some(callback) = &self.on_denied {
            callback(&denial);
        }
        denial
    }

    /// Checks the host that a client asked for, before its name is resolved.
    pub(crate) fn destination(&self, host: Result<Host, String>, port: u16) -> Result<Destination, Denial> {
        let host = host.map_err(|text| {
            let host = text.chars().filter(|letter| !letter.is_control()).take(200).collect();
            self.deny(Denial { host, port, reason: DenialReason::InvalidHost })
        })?;
        match self.hosts.check(&host, port) {
            Ok(()) => Ok(Destination { host, port }),
            Err(refusal) => Err(self.deny(Denial::new(&host, port, refusal.into()))),
        }
    }

    /// Connects to a host, by the addresses to which its name leads and that are not closed.
    pub(crate) async fn connect(&self, destination: &Destination) -> Result<TcpStream, ConnectError> {
        match timeout(self.limits.connect_timeout, self.connect_to_any(destination)).await {
            Ok(result) => result,
            Err(elapsed) => Err(ConnectError::Failed(elapsed.into())),
        }
    }

    async fn connect_to_any(&self, destination: &Destination) -> Result<TcpStream, ConnectError> {
        let Destination { host, port } = destination;
        let name = match host {
            Host::Address(address) => return connect_to(*address, *port).await.map_err(ConnectError::Failed),
            Host::Name(name) => name,
        };
        let resolver = self.resolver.as_ref();
        let addresses = self
            .pins
            .resolve(resolver, name, self.limits.pin_duration)
            .await
            .map_err(ConnectError::Failed)?;
        let mut last =
            ConnectError::Failed(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        let mut closed = None;
        for address in addresses {
            // The very address that was checked is connected to: the name is not resolved again.
            match self.hosts.check_resolved(name, address, *port) {
                Err(refusal) => closed = Some(refusal),
                Ok(()) => match connect_to(address, *port).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => {
                        closed = None;
                        last = ConnectError::Failed(error);
                        // Perhaps the host moved; the next connection asks again.
                        self.pins.forget(name);
                    }
                },
            }
        }
        match closed {
            Some(refusal) => Err(ConnectError::Denied(self.deny(Denial::new(host, *port, refusal.into())))),
            None => Err(last),
        }
    }
}

async fn connect_to(address: IpAddr, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((address, port)).await
}
