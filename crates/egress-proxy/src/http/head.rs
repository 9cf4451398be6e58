//! The head of a request, read strictly: what two readers could read differently is refused.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use super::fields::{HeaderFields, NOT_CR_LF, head_lines, is_token};
use super::message::{BodyFraming, HeadError};
use crate::allowed_hosts::{parse_port, split_port};
use crate::host::{NetworkHost, UnreadableHost};

/// The head of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    /// The target as the client wrote it.
    target: String,
    #[cfg_attr(not(feature = "credentials"), allow(dead_code, reason = "asked for inside TLS alone"))]
    pub(crate) version: HttpVersion,
    pub(crate) fields: HeaderFields,
}

/// The version of a request or a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http10,
    Http11,
}

/// The host that a request goes to, and the rest of its target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    /// The host, or the text that is none.
    pub(crate) host: Result<NetworkHost, UnreadableHost>,
    pub(crate) port: u16,
    /// The path and query. Empty for `CONNECT`.
    pub(crate) path: String,
}

/// Returns text that is known to be ASCII.
fn ascii(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads the head of a request up to its empty line.
pub(crate) async fn read_head(
    reader: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> Result<RequestHead, HeadError> {
    RequestHead::parse(&read_head_bytes(reader, max_bytes).await?)
}

/// Reads a head up to and with its empty line.
pub(crate) async fn read_head_bytes(
    reader: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> Result<Vec<u8>, HeadError> {
    let mut bytes = Vec::new();
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Err(if bytes.is_empty() {
                HeadError::Closed
            } else {
                HeadError::Malformed("the head is cut off")
            });
        }
        // Up to and with the next line feed, so that nothing of the body is taken.
        let taken = available.iter().position(|byte| *byte == b'\n').map_or(available.len(), |at| at + 1);
        bytes.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        if bytes.len() > max_bytes {
            return Err(HeadError::TooLong(max_bytes));
        }
        // Some readers take a bare LF for the end of a line: nothing is waited for behind one.
        if bytes.ends_with(b"\n") && !bytes.ends_with(b"\r\n") {
            return Err(HeadError::Malformed(NOT_CR_LF));
        }
        if bytes.ends_with(b"\r\n\r\n") {
            return Ok(bytes);
        }
    }
}

impl RequestHead {
    fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        use HeadError::Malformed;
        let lines = head_lines(bytes)?;
        let (first, lines) = lines.split_first().ok_or(Malformed("the head is empty"))?;
        let mut parts = first.split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Malformed("the first line is not METHOD TARGET VERSION"));
        };
        let version = match version {
            b"HTTP/1.1" => HttpVersion::Http11,
            b"HTTP/1.0" => HttpVersion::Http10,
            _ => return Err(Malformed("only requests of HTTP/1.0 and HTTP/1.1 are taken")),
        };
        if !is_token(method) {
            return Err(Malformed("the method is no token"));
        }
        if !target.iter().all(u8::is_ascii_graphic) {
            return Err(Malformed("the target has bytes that are not of printable ASCII"));
        }
        Ok(Self {
            method: ascii(method),
            target: ascii(target),
            version,
            fields: HeaderFields::parse(lines)?,
        })
    }

    /// Returns the host that the request goes to: by its authority for `CONNECT`, by its URL otherwise.
    pub(crate) fn target(&self) -> Result<RequestTarget, HeadError> {
        if self.method == "CONNECT" {
            let (host, port) = split_port(&self.target);
            let port = port.and_then(parse_port).ok_or(HeadError::Malformed("CONNECT needs HOST:PORT"))?;
            return Ok(RequestTarget { host: NetworkHost::parse_requested(host), port, path: String::new() });
        }
        let scheme = self.target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
        let Some(rest) = scheme.and_then(|_| self.target.get(7..)) else {
            return Err(HeadError::Malformed(
                "this is a proxy: it takes CONNECT, and requests with a whole `http://` URL",
            ));
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(HeadError::Malformed("the URL has a user name"));
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None => 80,
            Some(port) => parse_port(port).ok_or(HeadError::Malformed("the URL has no valid port"))?,
        };
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(RequestTarget { host: NetworkHost::parse_requested(host), port, path })
    }

    /// Returns the path and query of a request that goes straight to a host, as one inside TLS does.
    #[cfg(feature = "credentials")]
    pub(crate) fn origin_path(&self) -> Result<&str, HeadError> {
        let is_path = self.target.starts_with('/') || (self.target == "*" && self.method == "OPTIONS");
        if is_path && !self.target.contains('#') {
            Ok(&self.target)
        } else {
            Err(HeadError::Malformed("the target of a request inside TLS is a path"))
        }
    }

    /// Returns the host and port that the one `Host` field names, or `None` if it names none.
    #[cfg(feature = "credentials")]
    pub(crate) fn named_host(&self, default_port: u16) -> Option<(NetworkHost, u16)> {
        let mut values = self.fields.values("Host");
        let value = std::str::from_utf8(values.next()?).ok().filter(|_| values.next().is_none())?;
        let (host, port) = split_port(value);
        let port = port.map_or(Some(default_port), parse_port)?;
        Some((NetworkHost::parse(host).ok()?, port))
    }

    /// Returns where the body ends.
    pub(crate) fn body(&self) -> Result<BodyFraming, HeadError> {
        Ok(self.fields.framing()?.unwrap_or(BodyFraming::Length(0)))
    }

    /// Returns the head as it goes to the host: for one request, and without what is meant for the proxy.
    pub(crate) fn to_origin(&self, target: &RequestTarget, host: &NetworkHost) -> Vec<u8> {
        let port = if target.port == 80 { String::new() } else { format!(":{}", target.port) };
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {host}{port}\r\nConnection: close\r\n",
            self.method, target.path
        )
        .into_bytes();
        let hop_by_hop = self.fields.hop_by_hop();
        self.fields
            .write_without(&mut head, |name| name.eq_ignore_ascii_case("Host") || hop_by_hop.contains(name));
        head.extend_from_slice(b"\r\n");
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<RequestHead, HeadError> {
        RequestHead::parse(text.as_bytes())
    }

    fn target(line: &str) -> Result<(String, u16, String), String> {
        let head = parse(&format!("{line} HTTP/1.1\r\n\r\n")).map_err(|error| error.to_string())?;
        let target = head.target().map_err(|error| error.to_string())?;
        Ok((
            target.host.map_or_else(|error| format!("not {}", error.text), |host| host.to_string()),
            target.port,
            target.path,
        ))
    }

    #[test]
    fn the_target_is_the_host_of_the_url_or_of_connect() {
        let found = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(target("CONNECT Git.Example.com.:443"), found("git.example.com", 443, ""));
        assert_eq!(target("CONNECT [::1]:443"), found("[::1]", 443, ""));
        assert_eq!(target("GET http://a.example/x?y#z"), found("a.example", 80, "/x?y"));
        assert_eq!(target("GET HTTP://a.example:8080"), found("a.example", 8080, "/"));
        assert_eq!(
            target("GET http://a.example?q=http://b.example/"),
            found("a.example", 80, "/?q=http://b.example/")
        );
        assert_eq!(target("GET http://a.example\\@b.example/"), Err("the URL has a user name".to_owned()));
        assert_eq!(target("GET http://127.1/"), found("not 127.1", 80, "/"));
        for wrong in [
            "CONNECT a.example",
            "CONNECT a.example:0",
            "CONNECT a.example:443:80",
            "GET https://a.example/",
            "GET /",
            "GET http://u@a.example/",
            "GET http://a.example:99999/",
            "GET  http://a.example/",
            "GET http://a.example/\u{e9}",
        ] {
            let target = target(wrong);
            assert!(target.is_err() || target.as_ref().unwrap().0.starts_with("not"), "{wrong}: {target:?}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for fields in [
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Content-Length: +1",
            "Content-Length: ",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Host : a.example",
            "A: 1\r\n B: 2",
            "A: 1\nB: 2",
            "A: \0",
            "no colon",
        ] {
            let head = parse(&format!("POST http://a.example/ HTTP/1.1\r\n{fields}\r\n\r\n"));
            assert!(head.is_err() || head.as_ref().unwrap().body().is_err(), "{fields:?}");
        }
    }

    #[test]
    fn the_host_gets_a_head_for_one_request_to_itself() {
        let head = parse(
            "POST http://a.example:8080/x HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic x\r\n\
             Connection: keep-alive, X-Hop, Content-Length\r\nX-Hop: 1\r\nContent-Length: 3\r\nAccept: */*\r\n\r\n",
        )
        .unwrap();
        let target = head.target().unwrap();
        let host = target.host.clone().unwrap();
        let text = String::from_utf8(head.to_origin(&target, &host)).unwrap();
        assert_eq!(
            text,
            "POST /x HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\nContent-Length: 3\r\nAccept: */*\r\n\r\n"
        );
        assert_eq!(head.body().unwrap(), BodyFraming::Length(3));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for text in [bytes.clone(), [b"GET ".as_slice(), &bytes, b" HTTP/1.1\r\n\r\n"].concat()] {
                if let Ok(head) = RequestHead::parse(&text) {
                    let _ = (head.target(), head.body());
                }
            }
        }
    }
}
