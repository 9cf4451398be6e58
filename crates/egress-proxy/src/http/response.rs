//! The head of a response, read as strictly as that of a request.

use tokio::io::AsyncBufRead;

use super::fields::{HeaderFields, head_lines};
use super::head::{HttpVersion, read_head_bytes};
use super::message::{BodyFraming, HeadError};

/// The head of a response.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    version: HttpVersion,
    pub(crate) status: u16,
    reason: Vec<u8>,
    pub(crate) fields: HeaderFields,
}

/// Reads the head of a response up to its empty line.
pub(crate) async fn read_response_head(
    reader: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> Result<ResponseHead, HeadError> {
    ResponseHead::parse(&read_head_bytes(reader, max_bytes).await?)
}

impl ResponseHead {
    fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        use HeadError::Malformed;
        let lines = head_lines(bytes)?;
        let (first, lines) = lines.split_first().ok_or(Malformed("the head is empty"))?;
        let (version, rest) = match first.split_at_checked(9) {
            Some((b"HTTP/1.1 ", rest)) => (HttpVersion::Http11, rest),
            Some((b"HTTP/1.0 ", rest)) => (HttpVersion::Http10, rest),
            _ => return Err(Malformed("the answer is not of HTTP/1.0 or HTTP/1.1")),
        };
        let (status, reason) = rest.split_at_checked(3).ok_or(Malformed("the answer has no status"))?;
        let status = std::str::from_utf8(status).ok().and_then(|digits| digits.parse().ok());
        let status = status.filter(|status| (100..=999).contains(status));
        let reason = match reason {
            [] => &[],
            [b' ', reason @ ..] => reason,
            _ => return Err(Malformed("the status of the answer is no number of three digits")),
        };
        Ok(Self {
            version,
            status: status.ok_or(Malformed("the status of the answer is no number of three digits"))?,
            reason: reason.to_vec(),
            fields: HeaderFields::parse(lines)?,
        })
    }

    /// Returns true for an answer that another one follows, such as `100 Continue`.
    pub(crate) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }

    /// Returns where the body ends, for the answer to a request with this method.
    pub(crate) fn body(&self, method: &str) -> Result<BodyFraming, HeadError> {
        let framing = self.fields.framing()?;
        let has_no_body = method == "HEAD" || self.is_interim() || matches!(self.status, 204 | 304);
        Ok(if has_no_body { BodyFraming::Length(0) } else { framing.unwrap_or(BodyFraming::UntilEnd) })
    }

    /// Returns true if another request may follow on the connection, as far as this head says so.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.version == HttpVersion::Http11 && !self.fields.closes_connection()
    }

    /// Returns the coding of the body, unless it is that of no coding.
    pub(crate) fn content_encoding(&self) -> Option<String> {
        let mut codings = self.fields.values("Content-Encoding").filter(|value| !value.is_empty());
        codings
            .find(|value| !value.eq_ignore_ascii_case(b"identity"))
            .map(|value| String::from_utf8_lossy(value).chars().take(40).collect())
    }

    /// Returns the head as it goes to the client. `mask` hides what it must not show; the fields that frame the body are
    /// written after it.
    pub(crate) fn to_client(
        &self,
        mask: impl FnOnce(&mut [u8]),
        keeps_alive: bool,
    ) -> Result<Vec<u8>, HeadError> {
        let mut rest = self.reason.clone();
        rest.extend_from_slice(b"\r\n");
        let hop_by_hop = self.fields.hop_by_hop();
        self.fields.write_without(&mut rest, |name| {
            hop_by_hop.contains(name)
                || name.eq_ignore_ascii_case("Content-Length")
                || name.eq_ignore_ascii_case("Transfer-Encoding")
        });
        mask(&mut rest);
        let mut head = format!("HTTP/1.1 {} ", self.status).into_bytes();
        head.append(&mut rest);
        if !self.is_interim() {
            match self.fields.framing()? {
                Some(BodyFraming::Length(length)) => {
                    head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
                }
                Some(BodyFraming::Chunked) => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
                Some(BodyFraming::UntilEnd) | None => {}
            }
            if !keeps_alive {
                head.extend_from_slice(b"Connection: close\r\n");
            }
        }
        head.extend_from_slice(b"\r\n");
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<ResponseHead, HeadError> {
        ResponseHead::parse(text.as_bytes())
    }

    #[test]
    fn the_body_ends_where_the_head_says() {
        let body =
            |method: &str, text: &str| parse(&format!("HTTP/1.1 {text}\r\n\r\n")).unwrap().body(method);
        assert_eq!(body("GET", "200 OK\r\nContent-Length: 3").unwrap(), BodyFraming::Length(3));
        assert_eq!(body("HEAD", "200 OK\r\nContent-Length: 3").unwrap(), BodyFraming::Length(0));
        assert_eq!(body("GET", "304 Not Modified\r\nContent-Length: 3").unwrap(), BodyFraming::Length(0));
        assert_eq!(body("GET", "200\r\nTransfer-Encoding: chunked").unwrap(), BodyFraming::Chunked);
        assert_eq!(body("GET", "200 OK").unwrap(), BodyFraming::UntilEnd);
        assert!(body("GET", "200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked").is_err());
        assert!(body("GET", "200 OK\r\nTransfer-Encoding: gzip, chunked").is_err());
    }

    #[test]
    fn what_is_no_answer_of_http_1_is_refused() {
        for text in ["HTTP/2 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000", "HTTP/1.1 +20 OK", "200 OK", ""] {
            assert!(parse(&format!("{text}\r\n\r\n")).is_err(), "{text}");
        }
    }

    #[test]
    fn the_client_gets_the_head_without_what_is_for_the_proxy() {
        let head = parse(
            "HTTP/1.1 200 OK 1234\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nContent-Length: 1234\r\nA: 1234\r\n\r\n",
        )
        .unwrap();
        let mask = |bytes: &mut [u8]| {
            bytes.iter_mut().filter(|byte| byte.is_ascii_digit()).for_each(|byte| *byte = b'*');
        };
        let text = String::from_utf8(head.to_client(mask, false).unwrap()).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 200 OK ****\r\nA: ****\r\nContent-Length: 1234\r\nConnection: close\r\n\r\n"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for text in [bytes.clone(), [b"HTTP/1.1 200 ".as_slice(), &bytes, b"\r\n\r\n"].concat()] {
                if let Ok(head) = ResponseHead::parse(&text) {
                    let _ = (head.body("GET"), head.to_client(|_| {}, true));
                }
            }
        }
    }
}
