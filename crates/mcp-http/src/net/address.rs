//! Addresses: those that the server listens at, those of its peers, and ranges of them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The error of a text that is not the address it should be. Each has the text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("`{0}` names no path; expected a path such as unix:/run/coretools/socket")]
    NoPath(String),
    #[error("`{0}` is not an address to listen on; expected ADDRESS:PORT or unix:PATH")]
    Listen(String),
    #[error("`{0}` is neither an address nor a range; expected ADDRESS or ADDRESS/BITS")]
    Range(String),
}

/// An address to listen at: a TCP socket, or the path of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl ListenAddress {
    /// Parses `ADDRESS:PORT`, `localhost:PORT` or `unix:PATH`.
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.is_empty() {
                true => Err(AddressError::NoPath(text.to_owned())),
                false => Ok(Self::Unix(path.into())),
            };
        }
        // `localhost` is the one name that is taken: any other could be resolved to an address of somebody else.
        let text = text
            .strip_prefix("localhost:")
            .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        text.parse().map(Self::Tcp).map_err(|_| AddressError::Listen(text))
    }

    /// Returns true if only this machine can reach the address.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionPeer {
    /// A client on the network, at this address.
    Tcp(SocketAddr),
    /// A process on this machine that runs as this user, as the kernel reports it.
    Unix { uid: u32 },
}

impl ConnectionPeer {
    /// Returns the peer that the connection has put into a request.
    pub(crate) fn of<B>(request: &http::Request<B>) -> Option<Self> {
        request.extensions().get().copied()
    }

    /// Returns the peer as the audit and the log write it: its address without the port, or its user.
    pub(crate) fn label(self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().to_string(),
            Self::Unix { uid } => format!("uid {uid}"),
        }
    }
}

/// A range of IP addresses, such as `10.0.0.0/8`; one address is a range of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressRange {
    first: IpAddr,
    prefix_bits: u8,
}

impl AddressRange {
    /// Parses `ADDRESS` or `ADDRESS/BITS`.
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Range(text.to_owned());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let address_bits = if first.is_ipv4() { 32 } else { 128 };
        let prefix_bits = bits.map_or(Ok(address_bits), str::parse).map_err(|_| wrong())?;
        if prefix_bits > address_bits { Err(wrong()) } else { Ok(Self { first, prefix_bits }) }
    }

    /// Returns true if `address` is in the range. An IPv4 address that is written as IPv6 counts as IPv4.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        // A shift by all bits, for a prefix of none, is not allowed: every address is in that range.
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let rest = 32 - u32::from(self.prefix_bits);
                (u32::from(first) ^ u32::from(address)).checked_shr(rest).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let rest = 128 - u32::from(self.prefix_bits);
                (u128::from(first) ^ u128::from(address)).checked_shr(rest).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_unix_sockets_are_local() {
        for (text, local) in [
            ("127.0.0.1:80", true),
            ("127.9.9.9:80", true),
            ("localhost:80", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("unix:/run/x", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("10.0.0.1:80", false),
        ] {
            assert_eq!(ListenAddress::parse(text).unwrap().is_local(), local, "{text}");
        }
        for text in ["", "80", "host:80", "127.0.0.1", "unix:"] {
            assert!(ListenAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_holds_what_shares_its_bits() {
        let within = |range: &str, address: &str| {
            AddressRange::parse(range).unwrap().contains(address.parse().unwrap())
        };
        assert!(within("10.0.0.0/8", "10.255.1.2") && !within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("10.0.0.7", "10.0.0.7") && !within("10.0.0.7", "10.0.0.6"));
        assert!(within("10.0.0.7", "::ffff:10.0.0.7"));
        assert!(within("0.0.0.0/0", "1.2.3.4") && !within("0.0.0.0/0", "::1"));
        assert!(within("fd00::/8", "fd12::1") && !within("fd00::/8", "fe80::1"));
        assert!(within("::/0", "fe80::1"));
        for text in ["10.0.0.0/33", "::/129", "x", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(AddressRange::parse(text).is_err(), "{text}");
        }
    }
}
