//! One GET, for a document of the application or of its inspector.
//!
//! It is HTTP/1.0, so that a body ends at its `Content-Length` or with the connection and is never chunked. The inspector
//! of Node.js keeps the connection open in spite of `Connection: close`, so the length is used where there is one.

use super::target::TargetUrl;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The default time limit.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The default limit of a document, in bytes.
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// The limit of the head of a response, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// A request without a document. No message shows the URL, which may be a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpGetError {
    /// Nothing listens at the address.
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] std::io::Error),
    /// The response is not valid HTTP. Holds the fault.
    #[error("the answer is no HTTP: {0}")]
    NotHttp(&'static str),
    /// The response has another status than 200.
    #[error("it answers HTTP {0}")]
    Status(u16),
    /// The document is too long.
    #[error("the document has more than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// There was no response in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Connects to the first of `addresses` that answers.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, HttpGetError> {
    let mut last_error = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Each small request is waited for; collecting them (Nagle) would cost 40 ms.
                stream.set_nodelay(true).map_err(HttpGetError::Io)?;
                return Ok(stream);
            }
            Err(error) => last_error = error,
        }
    }
    Err(HttpGetError::Connect(last_error))
}

/// Fetches the document at `url` from one of `addresses`. The time limit is [`TIME_LIMIT`].
pub(crate) async fn get(
    url: &TargetUrl,
    addresses: &[SocketAddr],
    max_bytes: usize,
) -> Result<Vec<u8>, HttpGetError> {
    get_within(url, addresses, max_bytes, TIME_LIMIT).await
}

/// Fetches a document with a time limit of its own.
pub(crate) async fn get_within(
    url: &TargetUrl,
    addresses: &[SocketAddr],
    max_bytes: usize,
    limit: Duration,
) -> Result<Vec<u8>, HttpGetError> {
    match tokio::time::timeout(limit, request(url, addresses, max_bytes)).await {
        Ok(result) => result,
        Err(_) => Err(HttpGetError::TimedOut(limit)),
    }
}

async fn request(
    url: &TargetUrl,
    addresses: &[SocketAddr],
    max_bytes: usize,
) -> Result<Vec<u8>, HttpGetError> {
    let mut stream = connect(addresses).await?;
    let head = format!(
        "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: application/json\r\nConnection: close\r\n\r\n",
        url.path(),
        url.authority()
    );
    stream.write_all(head.as_bytes()).await.map_err(HttpGetError::Io)?;
    let mut bytes = Vec::with_capacity(8 << 10);
    let body_start = loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Err(HttpGetError::NotHttp("its head does not end"));
        }
        if stream.read_buf(&mut bytes).await.map_err(HttpGetError::Io)? == 0 {
            return Err(HttpGetError::NotHttp("it ends in its head"));
        }
    };
    let (status, length) = parse_head(bytes.get(..body_start).unwrap_or_default())?;
    bytes.drain(..body_start);
    if length.is_some_and(|length| length > max_bytes) {
        return Err(HttpGetError::TooLong { limit: max_bytes });
    }
    while length.is_none_or(|length| bytes.len() < length) {
        if bytes.len() > max_bytes {
            return Err(HttpGetError::TooLong { limit: max_bytes });
        }
        if stream.read_buf(&mut bytes).await.map_err(HttpGetError::Io)? == 0 {
            break;
        }
    }
    match (status, length) {
        // A document that ends early could still be valid JSON, such as a shorter number.
        (200, Some(length)) if bytes.len() < length => {
            Err(HttpGetError::NotHttp("it ends before its length"))
        }
        (200, length) => {
            bytes.truncate(length.unwrap_or(usize::MAX));
            Ok(bytes)
        }
        (status, _) => Err(HttpGetError::Status(status)),
    }
}

/// Returns the status, and the length of the body if the head has it.
fn parse_head(bytes: &[u8]) -> Result<(u16, Option<usize>), HttpGetError> {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let status = lines.next().and_then(|line| {
        let mut words = line.strip_prefix(b"HTTP/1.")?.splitn(3, |byte| *byte == b' ').skip(1);
        std::str::from_utf8(words.next()?).ok()?.parse().ok()
    });
    let status = status.ok_or(HttpGetError::NotHttp("it has no status"))?;
    let mut length = None;
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"content-length") {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let value = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            length = Some(value.ok_or(HttpGetError::NotHttp("its length is no number"))?);
        }
        // A server that ignores the version may send chunks, whose lengths would be read as part of the document.
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err(HttpGetError::NotHttp("it comes in chunks, though HTTP/1.0 was asked for"));
        }
    }
    Ok((status, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    /// Answers one request with `bytes` and then stays open or does not.
    async fn answered(bytes: &'static [u8], stays: bool) -> Result<String, HttpGetError> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(bytes);
            if stays {
                // Until the client has gone.
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        let body = get(&TargetUrl::local("http", address, "/"), &[address], 1000).await;
        thread.join().unwrap();
        body.map(|body| String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn a_body_ends_where_its_length_says_though_the_connection_stays() {
        let bytes = b"HTTP/1.0 200 OK\r\ncontent-LENGTH: 2\r\n\r\n[]";
        assert_eq!(answered(bytes, true).await.unwrap(), "[]");
    }

    #[tokio::test]
    async fn a_body_without_a_length_ends_with_the_connection() {
        assert_eq!(answered(b"HTTP/1.1 200 OK\r\n\r\n{\"a\":1}", false).await.unwrap(), "{\"a\":1}");
    }

    #[tokio::test]
    async fn what_is_no_answer_is_said_to_be_none() {
        for (bytes, said) in [
            (&b"SSH-2.0-x\r\n\r\n"[..], "no status"),
            (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "HTTP 404"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "more than 1000 bytes"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no number"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "ends before"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunks"),
            (b"HTTP/1.1 200", "ends in its head"),
        ] {
            let error = answered(bytes, false).await.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[tokio::test]
    async fn a_body_without_end_is_left() {
        const ENDLESS: &[u8] = &[b' '; 3000];
        let whole: &'static [u8] =
            Box::leak([&b"HTTP/1.1 200 OK\r\n\r\n"[..], ENDLESS].concat().into_boxed_slice());
        assert!(matches!(answered(whole, true).await, Err(HttpGetError::TooLong { limit: 1000 })));
    }
}
