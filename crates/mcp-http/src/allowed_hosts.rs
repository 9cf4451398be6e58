//! The names by which the server may be called, and the web pages that may call it. The check protects against DNS
//! rebinding.

use crate::net::address::ListenAddress;
use http::uri::Authority;
use http::{HeaderMap, Uri, Version, header};
use std::net::IpAddr;

/// The names and origins that are allowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedHostHeaders {
    hosts: Vec<HostName>,
    origins: Vec<WebOrigin>,
}

/// A host name in its one form, and the port if only that one is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostName {
    host: String,
    port: Option<u16>,
}

/// The origin of a web page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WebOrigin {
    scheme: String,
    host: String,
    /// The port; `None` for any.
    port: Option<u16>,
}

/// The error of a configured name or origin that cannot be read. Each has its text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AllowedHostHeadersError {
    #[error("http.hosts: `{0}` is not a name; expected NAME or NAME:PORT")]
    Host(String),
    #[error("http.origins: `{0}` is not an origin; expected SCHEME://NAME, :PORT or :*")]
    Origin(String),
}

/// A request that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostCheckError {
    /// The request names no host, or several.
    Ambiguous,
    /// The request names a host that is not this server's.
    Host,
    /// The request comes from a page that may not call.
    Origin,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl AllowedHostHeaders {
    /// Allows the addresses `listen` as names, the names of loopback if one of them is local, and `hosts` and `origins`.
    pub(crate) fn new(
        listen: &[ListenAddress],
        hosts: &[String],
        origins: &[String],
    ) -> Result<Self, AllowedHostHeadersError> {
        let mut allowed = Self::default();
        let any_port = |host: &str| HostName { host: host.to_owned(), port: None };
        // A page that rebinds its own name to 127.0.0.1 still sends that name in `Host`, so the names of loopback are
        // safe to allow.
        if listen.iter().any(ListenAddress::is_local) {
            allowed.hosts.extend(LOOPBACK.map(any_port));
            for host in LOOPBACK {
                allowed.origins.push(WebOrigin {
                    scheme: "http".to_owned(),
                    host: host.to_owned(),
                    port: None,
                });
            }
        }
        // A server that listens on 0.0.0.0 or [::] is never called by that address; its names come from `hosts`.
        for address in listen {
            if let ListenAddress::Tcp(address) = address
                && !address.ip().is_unspecified()
            {
                allowed.hosts.push(any_port(&address.ip().to_string()));
            }
        }
        for host in hosts {
            let wrong = || AllowedHostHeadersError::Host(host.clone());
            let authority: Authority = host.parse().map_err(|_| wrong())?;
            allowed.hosts.push(host_name(&authority).ok_or_else(wrong)?);
        }
        for text in origins {
            let wrong = || AllowedHostHeadersError::Origin(text.clone());
            let (text, any_port) =
                text.strip_suffix(":*").map_or((text.as_str(), false), |text| (text, true));
            let mut origin = parse_origin(text).ok_or_else(wrong)?;
            if any_port {
                origin.port = None;
            }
            allowed.origins.push(origin);
        }
        Ok(allowed)
    }

    /// Checks the names that a request gives to the server, and the page that it comes from.
    pub(crate) fn check(
        &self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), HostCheckError> {
        let called = requested_host(version, uri, headers).ok_or(HostCheckError::Ambiguous)?;
        let is_called = |name: &HostName| {
            name.host == called.host && name.port.is_none_or(|port| called.port == Some(port))
        };
        if !self.hosts.iter().any(is_called) {
            return Err(HostCheckError::Host);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        // Browsers send `Origin` with every request that a page makes to another origin. Other clients send none.
        let Some(from) = origins.next() else { return Ok(()) };
        if origins.next().is_some() {
            return Err(HostCheckError::Origin);
        }
        let from = from.to_str().ok().and_then(parse_origin).ok_or(HostCheckError::Origin)?;
        let is_from = |origin: &WebOrigin| {
            origin.scheme == from.scheme
                && origin.host == from.host
                && origin.port.is_none_or(|port| from.port == Some(port))
        };
        if self.origins.iter().any(is_from) { Ok(()) } else { Err(HostCheckError::Origin) }
    }
}

/// Returns the host that a request names. Returns `None` where it names none, or where two parts of it could be read as
/// naming different hosts.
fn requested_host(version: Version, uri: &Uri, headers: &HeaderMap) -> Option<HostName> {
    let mut named = headers.get_all(header::HOST).iter();
    let in_header = match named.next() {
        None => None,
        Some(host) => Some(host_name(&Authority::try_from(host.as_bytes()).ok()?)?),
    };
    if named.next().is_some() {
        return None;
    }
    match (in_header, uri.authority()) {
        // RFC 9113 §8.3.1: the pseudo-header `:authority` takes the place of Host, which may still be there.
        (None, Some(target)) if version == Version::HTTP_2 => host_name(target),
        // RFC 9112 §3.2: a request over HTTP/1.1 has the header.
        (None, _) => None,
        (Some(host), None) => Some(host),
        // RFC 9112 §3.2.2: an absolute target overrides the header, and not everybody on the way does that.
        (Some(host), Some(target)) => host_name(target).filter(|target| *target == host),
    }
}

fn host_name(authority: &Authority) -> Option<HostName> {
    // What stands before an `@` is a user, and no client of this server has one.
    if authority.as_str().contains('@') {
        return None;
    }
    let port = match authority.port() {
        Some(port) => Some(port.as_u16()),
        // `name:` with nothing behind it, or with a port that is not a number.
        None if authority.as_str().len() != authority.host().len() => return None,
        None => None,
    };
    Some(HostName { host: normalized(authority.host())?, port })
}

/// Returns a host in the one form that is compared: lower case, and addresses as they are usually written.
fn normalized(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').map_or(Some(text), |text| text.strip_suffix(']'))?;
    // A final dot marks a name as fully qualified; the host is the same.
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    if bare.is_empty() {
        return None;
    }
    Some(bare.parse::<IpAddr>().map_or_else(|_| bare.to_ascii_lowercase(), |address| address.to_string()))
}

/// Parses an origin (RFC 6454); one without a port has that of its scheme.
fn parse_origin(text: &str) -> Option<WebOrigin> {
    let (scheme, authority) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let authority: Authority = authority.parse().ok()?;
    let HostName { host, port } = host_name(&authority)?;
    let port = port.or(match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    });
    Some(WebOrigin { scheme, host, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn allowed() -> AllowedHostHeaders {
        let listen =
            [ListenAddress::parse("127.0.0.1:8717").unwrap(), ListenAddress::parse("10.0.0.5:1").unwrap()];
        let hosts = ["tools.example".to_owned(), "other.example:444".to_owned()];
        AllowedHostHeaders::new(
            &listen,
            &hosts,
            &["https://app.example".to_owned(), "https://any.example:*".to_owned()],
        )
        .unwrap()
    }

    fn check(headers: &[(&'static str, &[u8])]) -> Result<(), HostCheckError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        allowed().check(Version::HTTP_11, &Uri::from_static("/mcp"), &map)
    }

    #[test]
    fn only_the_servers_own_names_are_allowed() {
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
            assert_eq!(check(&[("host", host.as_bytes())]), Err(HostCheckError::Host), "{host}");
        }
        for host in
            ["", "localhost@evil.example", "evil@localhost", "localhost:", "localhost:x", "a b", "\u{e4}"]
        {
            assert_eq!(check(&[("host", host.as_bytes())]), Err(HostCheckError::Ambiguous), "{host}");
        }
        assert_eq!(check(&[]), Err(HostCheckError::Ambiguous));
        assert_eq!(check(&[("host", b"localhost"), ("host", b"evil")]), Err(HostCheckError::Ambiguous));
    }

    #[test]
    fn a_target_and_a_header_that_disagree_are_refused() {
        let mut map = HeaderMap::new();
        map.append("host", HeaderValue::from_static("localhost"));
        assert_eq!(
            allowed().check(Version::HTTP_11, &Uri::from_static("http://evil.example/mcp"), &map),
            Err(HostCheckError::Ambiguous)
        );
        assert_eq!(
            allowed().check(Version::HTTP_11, &Uri::from_static("http://localhost/mcp"), &map),
            Ok(())
        );
    }

    #[test]
    fn over_http2_the_authority_names_the_host() {
        let check = |uri: &'static str, host: Option<&'static str>| {
            let map = host.map(|host| (header::HOST, HeaderValue::from_static(host)));
            allowed().check(Version::HTTP_2, &Uri::from_static(uri), &HeaderMap::from_iter(map))
        };
        assert_eq!(check("http://localhost/mcp", None), Ok(()));
        assert_eq!(check("http://localhost/mcp", Some("localhost")), Ok(()));
        assert_eq!(check("http://evil.example/mcp", None), Err(HostCheckError::Host));
        assert_eq!(check("http://localhost/mcp", Some("evil.example")), Err(HostCheckError::Ambiguous));
        assert_eq!(check("/mcp", None), Err(HostCheckError::Ambiguous));
    }

    #[test]
    fn only_allowed_pages_may_call() {
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
            assert_eq!(from(origin), Err(HostCheckError::Origin), "{origin}");
        }
        let twice: [(&str, &[u8]); 3] =
            [("host", b"localhost"), ("origin", b"http://localhost"), ("origin", b"http://evil.example")];
        assert_eq!(check(&twice), Err(HostCheckError::Origin));
    }
}
