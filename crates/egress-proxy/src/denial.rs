//! Refused connections, with the reason.

use std::fmt;
use std::net::IpAddr;

use crate::address::ClosedAddressKind;
use crate::allowed_hosts::HostRefusal;
use crate::host::NetworkHost;

/// A connection that the proxy refused, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeniedConnection {
    /// The host that the client asked for. Text from a client that names no host is cut to 200 characters.
    pub host: String,
    /// The port that the client asked for.
    pub port: u16,
    /// The reason.
    pub reason: DenialReason,
}

/// The reason that a connection was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DenialReason {
    /// No entry of the list names the host.
    NotListed,
    /// An entry names the host, and none this port of it.
    Port,
    /// The host is no name and no address in a form that all programs read alike.
    InvalidHost,
    /// The name leads only to addresses that are closed unless an entry names them.
    ClosedAddress(IpAddr, ClosedAddressKind),
    /// The TLS handshake asks for another server than the one that the client connected to.
    ServerName(NetworkHost),
    /// The TLS handshake names no server.
    NoServerName,
    /// A request to a host with a credential names another host, or none, in its `Host` field.
    HostField,
    /// The connection to port 443, or to a host with a credential, does not begin with a TLS handshake that can be read.
    NotTls,
}

impl DeniedConnection {
    pub(crate) fn new(host: &NetworkHost, port: u16, reason: DenialReason) -> Self {
        Self { host: host.to_string(), port, reason }
    }

    /// Returns the reason as a sentence without its period. `list` names the list of hosts, such as "this role's hosts".
    pub fn message(&self, list: &str) -> String {
        let Self { host, port, reason } = self;
        match reason {
            DenialReason::NotListed => format!("`{host}:{port}` is not in {list}"),
            DenialReason::Port => format!("`{host}` is in {list}, but not with port {port}"),
            DenialReason::InvalidHost => format!("`{host}` is no name or address of a host"),
            DenialReason::ClosedAddress(address, kind) => {
                format!("`{host}:{port}` leads to {address}, {kind} that is not in {list}")
            }
            DenialReason::ServerName(name) => {
                format!("the TLS handshake with `{host}:{port}` asked for the server `{name}`")
            }
            DenialReason::NoServerName => format!("the TLS handshake with `{host}:{port}` named no server"),
            DenialReason::HostField => {
                format!("a request to `{host}:{port}` named another host in its `Host` field, or none")
            }
            DenialReason::NotTls => format!("what was sent to `{host}:{port}` is no TLS handshake"),
        }
    }
}

impl fmt::Display for DeniedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message("the allowed hosts"))
    }
}

impl From<HostRefusal> for DenialReason {
    fn from(refusal: HostRefusal) -> Self {
        match refusal {
            HostRefusal::NotListed => Self::NotListed,
            HostRefusal::Port => Self::Port,
            HostRefusal::ClosedAddress(address, kind) => Self::ClosedAddress(address, kind),
        }
    }
}
