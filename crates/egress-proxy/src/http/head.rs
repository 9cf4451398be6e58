//! The head of a request, read strictly: what two readers could read differently is refused.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::allowed_hosts::{parse_port, split_port};
use crate::host::Host;

/// The most header fields of a request.
const MAX_FIELDS: usize = 200;

/// The head of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    /// The target as the client wrote it.
    target: String,
    fields: Vec<(String, Vec<u8>)>,
}

/// The host that a request goes to, and the rest of its target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    /// The host, or the text that is none.
    pub(crate) host: Result<Host, String>,
    pub(crate) port: u16,
    /// The path and query. Empty for `CONNECT`.
    pub(crate) path: String,
}

/// The place where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(u64),
    Chunked,
}

/// The reason that a head cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("the client ended the connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the head of the request has more than {0} bytes")]
    TooLong(usize),
    #[error("{0}")]
    Malformed(&'static str),
}

/// Reads a head up to its empty line.
pub(crate) async fn read_head(
    reader: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> Result<RequestHead, HeadError> {
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
        if bytes.ends_with(b"\r\n\r\n") {
            return RequestHead::parse(&bytes);
        }
    }
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

impl RequestHead {
    fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        use HeadError::Malformed;
        let text = bytes.strip_suffix(b"\r\n\r\n").ok_or(Malformed("the head has no end"))?;
        let mut lines = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
            lines.push(&rest[..at]);
            rest = &rest[at + 2..];
        }
        lines.push(rest);
        if lines.iter().any(|line| line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))) {
            return Err(Malformed("a line of the head does not end in CR LF, or has a NUL byte"));
        }
        let (first, lines) = lines.split_first().ok_or(Malformed("the head is empty"))?;
        let mut parts = first.split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Malformed("the first line is not METHOD TARGET VERSION"));
        };
        if !is_token(method) || !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
            return Err(Malformed("only requests of HTTP/1.0 and HTTP/1.1 are taken"));
        }
        if !target.iter().all(u8::is_ascii_graphic) {
            return Err(Malformed("the target has bytes that are not of printable ASCII"));
        }
        let ascii = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut fields = Vec::with_capacity(lines.len());
        if lines.len() > MAX_FIELDS {
            return Err(Malformed("the head has too many fields"));
        }
        for line in lines {
            let colon =
                line.iter().position(|byte| *byte == b':').ok_or(Malformed("a field has no colon"))?;
            // Also refuses a blank before the colon, and a field that goes on from the line before.
            if !is_token(&line[..colon]) {
                return Err(Malformed("the name of a field is no token"));
            }
            fields.push((ascii(&line[..colon]), line[colon + 1..].trim_ascii().to_vec()));
        }
        Ok(Self { method: ascii(method), target: ascii(target), fields })
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// Returns the host that the request goes to: by its authority for `CONNECT`, by its URL otherwise.
    pub(crate) fn target(&self) -> Result<RequestTarget, HeadError> {
        if self.method == "CONNECT" {
            let (host, port) = split_port(&self.target);
            let port = port.and_then(parse_port).ok_or(HeadError::Malformed("CONNECT needs HOST:PORT"))?;
            return Ok(RequestTarget { host: parse_host(host), port, path: String::new() });
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
        Ok(RequestTarget { host: parse_host(host), port, path })
    }

    /// Returns where the body ends.
    pub(crate) fn body(&self) -> Result<BodyFraming, HeadError> {
        let mut encodings = self.values("Transfer-Encoding");
        let mut lengths = self.values("Content-Length");
        match (encodings.next(), lengths.next()) {
            (None, None) => Ok(BodyFraming::Length(0)),
            (Some(encoding), None)
                if encodings.next().is_none() && encoding.eq_ignore_ascii_case(b"chunked") =>
            {
                Ok(BodyFraming::Chunked)
            }
            (Some(_), None) => {
                Err(HeadError::Malformed("the only Transfer-Encoding that is taken is `chunked`"))
            }
            (None, Some(length)) if lengths.next().is_none() && length.iter().all(u8::is_ascii_digit) => {
                std::str::from_utf8(length)
                    .ok()
                    .and_then(|digits| digits.parse().ok())
                    .map(BodyFraming::Length)
                    .ok_or(HeadError::Malformed("Content-Length is no number"))
            }
            _ => Err(HeadError::Malformed("the length of the body is given twice or not as a number")),
        }
    }

    /// Returns the head as it goes to the host: for one request, and without what is meant for the proxy.
    pub(crate) fn to_origin(&self, target: &RequestTarget, host: &Host) -> Vec<u8> {
        const HOP_BY_HOP: [&str; 9] = [
            "Connection",
            "Host",
            "Keep-Alive",
            "Proxy-Authenticate",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Upgrade",
        ];
        let named: Vec<String> = self
            .values("Connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned())
            // These two say where the body ends, and must not be lost on a client's word.
            .filter(|name| {
                !name.eq_ignore_ascii_case("Transfer-Encoding")
                    && !name.eq_ignore_ascii_case("Content-Length")
            })
            .collect();
        let is_left_out = |name: &str| {
            HOP_BY_HOP.iter().any(|other| name.eq_ignore_ascii_case(other))
                || named.iter().any(|other| name.eq_ignore_ascii_case(other))
        };
        let port = if target.port == 80 { String::new() } else { format!(":{}", target.port) };
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {host}{port}\r\nConnection: close\r\n",
            self.method, target.path
        )
        .into_bytes();
        for (name, value) in self.fields.iter().filter(|(name, _)| !is_left_out(name)) {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

fn parse_host(text: &str) -> Result<Host, String> {
    Host::parse(text).map_err(|_| text.to_owned())
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
            target.host.map_or_else(|text| format!("not {text}"), |host| host.to_string()),
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
