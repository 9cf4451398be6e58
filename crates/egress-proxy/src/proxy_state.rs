//! [`ProxyState`]: the hosts and limits that the connections of a proxy share, the judgement of hosts, and the way to them.

use std::io;
use std::net::IpAddr;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::allowed_hosts::AllowedHosts;
use crate::denial::{DenialReason, DeniedConnection};
use crate::host::{NetworkHost, UnreadableHost};
use crate::limits::ProxyLimits;
use crate::resolver::{PinnedNames, Resolve};

pub(crate) type OnDenied = Box<dyn Fn(&DeniedConnection) + Send + Sync>;

/// The parts of a proxy that all its connections share.
pub(crate) struct ProxyState {
    pub(crate) hosts: AllowedHosts,
    pub(crate) limits: ProxyLimits,
    pub(crate) resolver: Box<dyn Resolve>,
    pub(crate) pins: PinnedNames,
    pub(crate) on_denied: Option<OnDenied>,
    /// The hosts whose requests get a credential.
    #[cfg(feature = "credentials")]
    pub(crate) interception: Option<crate::interception::Interception>,
}

/// The reason that a host is not connected to.
#[derive(Debug)]
pub(crate) enum ConnectError {
    Denied(DeniedConnection),
    Failed(io::Error),
}

/// The host that a client asked for.
pub(crate) struct Destination {
    pub(crate) host: NetworkHost,
    pub(crate) port: u16,
}

impl ProxyState {
    /// Returns the host of this destination if its requests get a credential.
    #[cfg(feature = "credentials")]
    pub(crate) fn intercepted_host(
        &self,
        destination: &Destination,
    ) -> Option<&crate::interception::InterceptedHost> {
        self.interception.as_ref()?.host(&destination.host, destination.port)
    }

    /// Reports a refused connection.
    pub(crate) fn deny(&self, denial: DeniedConnection) -> DeniedConnection {
        if let Some(callback) = &self.on_denied {
            callback(&denial);
        }
        denial
    }

    /// Checks the host that a client asked for, before its name is resolved.
    pub(crate) fn destination(
        &self,
        host: Result<NetworkHost, UnreadableHost>,
        port: u16,
    ) -> Result<Destination, DeniedConnection> {
        let host = host.map_err(|unreadable| {
            let host = unreadable.text.chars().filter(|letter| !letter.is_control()).take(200).collect();
            self.deny(DeniedConnection { host, port, reason: DenialReason::InvalidHost })
        })?;
        match self.hosts.check(&host, port) {
            Ok(()) => Ok(Destination { host, port }),
            Err(refusal) => Err(self.deny(DeniedConnection::new(&host, port, refusal.into()))),
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
            NetworkHost::Address(address) => {
                return connect_to(*address, *port).await.map_err(ConnectError::Failed);
            }
            NetworkHost::Name(name) => name,
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
            Some(refusal) => {
                Err(ConnectError::Denied(self.deny(DeniedConnection::new(host, *port, refusal.into()))))
            }
            None => Err(last),
        }
    }
}

async fn connect_to(address: IpAddr, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((address, port)).await
}
