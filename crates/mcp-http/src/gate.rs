//! By which names a server may be called, and from which web pages: against DNS rebinding, on every route.

use crate::address::Address;
use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

/// The names and origins that are let in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    hosts: Vec<Name>,
    origins: Vec<Origin>,
}

/// A name, and a port where it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    host: String,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    /// Any, where there is none.
    port: Option<u16>,
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It says by no name, or by several, whom it calls.
    Unclear,
    /// By a name that is not ours.
    Host,
    /// It comes from a page that may not call.
    Origin,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Gate {
    /// Lets in what calls the addresses `listen` by their own names, those on loopback by those of loopback, and
    /// `hosts` and `origins` beside these.
    pub(crate) fn new(listen: &[Address], hosts: &[String], origins: &[String]) -> Result<Self, String> {
        let mut gate = Self::default();
        let any_port = |host: &str| Name { host: host.to_owned(), port: None };
        if listen.iter().any(Address::is_local) {
            gate.hosts.extend(LOOPBACK.map(any_port));
            for host in LOOPBACK {
                gate.origins.push(Origin { scheme: "http".to_owned(), host: host.to_owned(), port: None });
            }
        }
        for address in listen {
            if let Address::Tcp(address) = address
                && !address.ip().is_unspecified()
            {
                gate.hosts.push(any_port(&address.ip().to_string()));
            }
        }
        for host in hosts {
            let wrong = || format!("http.hosts: `{host}` is no name; expected NAME or NAME:PORT");
            let authority: Authority = host.parse().map_err(|_| wrong())?;
            gate.hosts.push(name(&authority).ok_or_else(wrong)?);
        }
        for text in origins {
            let wrong =
                || format!("http.origins: `{text}` is no origin; expected SCHEME://NAME, :PORT or :*");
            let (text, any) = text.strip_suffix(":*").map_or((text.as_str(), false), |text| (text, true));
            let mut origin = origin(text).ok_or_else(wrong)?;
            if any {
                origin.port = None;
            }
            gate.origins.push(origin);
        }
        Ok(gate)
    }

    /// Whether a request may come in.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next().ok_or(Refused::Unclear)?;
        if named.next().is_some() {
            return Err(Refused::Unclear);
        }
        let host: Authority = host.as_bytes().try_into().map_err(|_| Refused::Unclear)?;
        let called = name(&host).ok_or(Refused::Unclear)?;
        // RFC 9112 §3.2.2: an absolute target overrides the header. Two names are one too many.
        if let Some(target) = uri.authority()
            && name(target).as_ref() != Some(&called)
        {
            return Err(Refused::Unclear);
        }
        let known =
            |name: &Name| name.host == called.host && name.port.is_none_or(|port| called.port == Some(port));
        if !self.hosts.iter().any(known) {
            return Err(Refused::Host);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(from) = origins.next() else { return Ok(()) };
        if origins.next().is_some() {
            return Err(Refused::Origin);
        }
        let from = from.to_str().ok().and_then(origin).ok_or(Refused::Origin)?;
        let known = |origin: &Origin| {
            origin.scheme == from.scheme
                && origin.host == from.host
                && origin.port.is_none_or(|port| from.port == Some(port))
        };
        if self.origins.iter().any(known) { Ok(()) } else { Err(Refused::Origin) }
    }
}

fn name(authority: &Authority) -> Option<Name> {
    // A name before an @ is whoever logs in; nothing here does so.
    if authority.as_str().contains('@') {
        return None;
    }
    let port = match authority.port() {
        Some(port) => Some(port.as_u16()),
        // `name:` with nothing behind it, or a port that is none.
        None if authority.as_str().len() != authority.host().len() => return None,
        None => None,
    };
    Some(Name { host: host(authority.host())?, port })
}

/// A name in the one form that is compared: small letters, addresses as they are usually written.
fn host(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').map_or(Some(text), |text| text.strip_suffix(']'))?;
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    if bare.is_empty() {
        return None;
    }
    Some(bare.parse::<IpAddr>().map_or_else(|_| bare.to_ascii_lowercase(), |address| address.to_string()))
}

/// An origin as RFC 6454 writes it, with the port that its scheme means.
fn origin(text: &str) -> Option<Origin> {
    let (scheme, authority) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let authority: Authority = authority.parse().ok()?;
    let Name { host, port } = name(&authority)?;
    let port = port.or(match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    });
    Some(Origin { scheme, host, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn gate() -> Gate {
        let listen = [Address::parse("127.0.0.1:8717").unwrap(), Address::parse("10.0.0.5:1").unwrap()];
        let hosts = ["tools.example".to_owned(), "other.example:444".to_owned()];
        Gate::new(&listen, &hosts, &["https://app.example".to_owned(), "https://any.example:*".to_owned()])
            .unwrap()
    }

    fn check(headers: &[(&'static str, &[u8])]) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        gate().check(&Uri::from_static("/mcp"), &map)
    }

    #[test]
    fn only_our_own_names_are_let_in() {
        for host in [
            "localhost",
            "LOCALHOST:8717",
            "127.0.0.1:1",
            "[::1]:80",
            "[0:0::1]",
            "10.0.0.5",
            "tools.example:99",
            "tools.example.",
            "other.example:444",
        ] {
            assert_eq!(check(&[("host", host.as_bytes())]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.6",
            "0.0.0.0",
            "other.example",
        ] {
            assert_eq!(check(&[("host", host.as_bytes())]), Err(Refused::Host), "{host}");
        }
        for host in
            ["", "localhost@evil.example", "evil@localhost", "localhost:", "localhost:x", "a b", "\u{e4}"]
        {
            assert_eq!(check(&[("host", host.as_bytes())]), Err(Refused::Unclear), "{host}");
        }
        assert_eq!(check(&[]), Err(Refused::Unclear));
        assert_eq!(check(&[("host", b"localhost"), ("host", b"evil")]), Err(Refused::Unclear));
    }

    #[test]
    fn a_target_and_a_header_that_disagree_are_refused() {
        let mut map = HeaderMap::new();
        map.append("host", HeaderValue::from_static("localhost"));
        assert_eq!(gate().check(&Uri::from_static("http://evil.example/mcp"), &map), Err(Refused::Unclear));
        assert_eq!(gate().check(&Uri::from_static("http://localhost/mcp"), &map), Ok(()));
    }

    #[test]
    fn only_pages_of_ours_may_call() {
        let from = |origin: &str| check(&[("host", b"localhost"), ("origin", origin.as_bytes())]);
        for origin in [
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:9",
            "https://app.example",
            "https://APP.example:443",
            "https://any.example:9",
        ] {
            assert_eq!(from(origin), Ok(()), "{origin}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "",
            "https://localhost",
            "http://app.example",
            "https://app.example:8443",
            "http://localhost.evil.example",
            "http://evil@localhost",
            "\u{ff}",
            "file://",
        ] {
            assert_eq!(from(origin), Err(Refused::Origin), "{origin}");
        }
        let twice: [(&str, &[u8]); 3] =
            [("host", b"localhost"), ("origin", b"http://localhost"), ("origin", b"http://evil.example")];
        assert_eq!(check(&twice), Err(Refused::Origin));
    }
}
