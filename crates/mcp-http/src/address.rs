//! Where the server listens, and whom that lets in.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    /// Reads `ADDRESS:PORT`, `localhost:PORT` or `unix:PATH`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.is_empty() {
                true => Err(format!("`{text}` names no path; expected such as unix:/run/coretools/socket")),
                false => Ok(Self::Unix(path.into())),
            };
        }
        // A name could be resolved to anywhere.
        let text = text
            .strip_prefix("localhost:")
            .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        let wrong = |_| format!("`{text}` is no place to listen; expected ADDRESS:PORT or unix:PATH");
        text.parse().map(Self::Tcp).map_err(wrong)
    }

    /// Whether only this machine can reach it.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Over the network, from here.
    Tcp(SocketAddr),
    /// A process of this user, as the kernel says.
    Unix { uid: u32 },
}

impl Peer {
    /// In words, for the audit and the log.
    pub(crate) fn place(self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().to_string(),
            Self::Unix { uid } => format!("uid {uid}"),
        }
    }
}

/// A range of addresses: `10.0.0.0/8`, or one alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    first: IpAddr,
    bits: u8,
}

impl Range {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no address and no range; expected ADDRESS or ADDRESS/BITS");
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most { Err(wrong()) } else { Ok(Self { first, bits }) }
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let rest = 32 - u32::from(self.bits);
                (u32::from(first) ^ u32::from(address)).checked_shr(rest).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let rest = 128 - u32::from(self.bits);
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
            assert_eq!(Address::parse(text).unwrap().is_local(), local, "{text}");
        }
        for text in ["", "80", "host:80", "127.0.0.1", "unix:"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_holds_what_shares_its_bits() {
        let within =
            |range: &str, address: &str| Range::parse(range).unwrap().contains(address.parse().unwrap());
        assert!(within("10.0.0.0/8", "10.255.1.2") && !within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("10.0.0.7", "10.0.0.7") && !within("10.0.0.7", "10.0.0.6"));
        assert!(within("10.0.0.7", "::ffff:10.0.0.7"));
        assert!(within("0.0.0.0/0", "1.2.3.4") && !within("0.0.0.0/0", "::1"));
        assert!(within("fd00::/8", "fd12::1") && !within("fd00::/8", "fe80::1"));
        assert!(within("::/0", "fe80::1"));
        for text in ["10.0.0.0/33", "::/129", "x", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(Range::parse(text).is_err(), "{text}");
        }
    }
}
