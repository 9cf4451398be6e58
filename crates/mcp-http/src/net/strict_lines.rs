//! A stream whose HTTP/1 heads have no bare line feed.
//!
//! RFC 9112 §2.2 lets a recipient take a single LF for the end of a line, and hyper does. A proxy that does not would see
//! other fields than this server, or another end of the request. Here the bytes are followed from request to request, and
//! a LF without a CR before it is replaced by a NUL, for which hyper answers 400 and closes the connection. What is behind
//! the head of a request is found by its length, so that bodies stay as they are.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest line of a head that is kept to be read; hyper refuses a head that is longer.
const MAX_LINE_BYTES: usize = 32 * 1024;
/// The end of a head that has a bare LF.
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// The first bytes of a connection over HTTP/2 (RFC 9113 §3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that is read through [`StrictLineCheck`].
#[derive(Debug)]
pub(super) struct StrictLines<S> {
    stream: S,
    check: StrictLineCheck,
}

impl<S> StrictLines<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, check: StrictLineCheck::default() }
    }
}

/// The place in the requests of one connection.
#[derive(Debug, Default)]
struct StrictLineCheck {
    place: RequestPosition,
    /// The line that is being read, without its end.
    line: Vec<u8>,
    framing: BodyLength,
    /// The bytes of the connection so far, until it is known to be no HTTP/2.
    preface: Option<usize>,
    /// True from a bare LF on, until the head was ended.
    must_end: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RequestPosition {
    /// Before the first line of a request, where empty lines are skipped.
    #[default]
    Start,
    Head,
    /// So many bytes of a body are left.
    Body(u64),
    /// In the line with the size of a chunk.
    ChunkSize,
    /// So many bytes of a chunk are left, with the line end behind them.
    Chunk(u64),
    Trailers,
    /// Bytes that are no more looked at: HTTP/2, or a request that hyper refuses.
    Rest,
}

/// The length of a body as the head gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BodyLength {
    #[default]
    None,
    Length(u64),
    Chunked,
    /// No length that hyper would accept.
    Invalid,
}

impl StrictLineCheck {
    /// Follows the next bytes, and replaces each bare LF in a head by NUL.
    fn follow(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            match self.place {
                RequestPosition::Rest => return,
                RequestPosition::Body(left) | RequestPosition::Chunk(left) => {
                    let rest = bytes.len() - at;
                    let used = usize::try_from(left).unwrap_or(usize::MAX).min(rest);
                    at += used;
                    let left = left - used as u64;
                    self.place = match (self.place, left) {
                        (RequestPosition::Body(_), 0) => RequestPosition::Start,
                        (RequestPosition::Body(_), left) => RequestPosition::Body(left),
                        (_, 0) => RequestPosition::ChunkSize,
                        (_, left) => RequestPosition::Chunk(left),
                    };
                }
                _ => {
                    let byte = &mut bytes[at];
                    at += 1;
                    self.line_byte(byte);
                }
            }
        }
    }

    /// Follows one byte of a line.
    fn line_byte(&mut self, byte: &mut u8) {
        if self.is_preface(*byte) {
            self.place = RequestPosition::Rest;
            return;
        }
        if *byte != b'\n' {
            if self.line.len() >= MAX_LINE_BYTES {
                self.place = RequestPosition::Rest;
                return;
            }
            self.line.push(*byte);
            return;
        }
        if self.line.pop() != Some(b'\r') {
            *byte = 0;
            self.place = RequestPosition::Rest;
            self.must_end = true;
            return;
        }
        let line = std::mem::take(&mut self.line);
        self.end_line(&line);
        // The buffer is used again.
        self.line = line;
        self.line.clear();
    }

    /// Returns true if the connection has begun with the whole preface of HTTP/2.
    fn is_preface(&mut self, byte: u8) -> bool {
        let matched = self.preface.get_or_insert(0);
        // Beyond its length the connection has been found to be none.
        if *matched >= HTTP2_PREFACE.len() || HTTP2_PREFACE.get(*matched) != Some(&byte) {
            *matched = usize::MAX;
            return false;
        }
        *matched += 1;
        *matched == HTTP2_PREFACE.len()
    }

    fn end_line(&mut self, line: &[u8]) {
        self.place = match self.place {
            RequestPosition::Start if line.is_empty() => RequestPosition::Start,
            RequestPosition::Start => {
                self.framing = BodyLength::None;
                RequestPosition::Head
            }
            RequestPosition::Head if line.is_empty() => match self.framing {
                BodyLength::None | BodyLength::Length(0) => RequestPosition::Start,
                BodyLength::Length(length) => RequestPosition::Body(length),
                BodyLength::Chunked => RequestPosition::ChunkSize,
                BodyLength::Invalid => RequestPosition::Rest,
            },
            RequestPosition::Head => {
                self.framing = framing(self.framing, line);
                RequestPosition::Head
            }
            RequestPosition::ChunkSize => match chunk_size(line) {
                Some(0) => RequestPosition::Trailers,
                // With the CRLF behind the data.
                Some(size) => size.checked_add(2).map_or(RequestPosition::Rest, RequestPosition::Chunk),
                None => RequestPosition::Rest,
            },
            RequestPosition::Trailers if line.is_empty() => RequestPosition::Start,
            place => place,
        };
    }
}

/// Returns the framing after a line of the head.
fn framing(known: BodyLength, line: &[u8]) -> BodyLength {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return known };
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if name.eq_ignore_ascii_case(b"transfer-encoding") {
        let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
        return if last.eq_ignore_ascii_case(b"chunked") { BodyLength::Chunked } else { BodyLength::Invalid };
    }
    if !name.eq_ignore_ascii_case(b"content-length") || known == BodyLength::Chunked {
        return known;
    }
    let digits = value.iter().all(u8::is_ascii_digit).then_some(value);
    let length = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    match (length, known) {
        (Some(length), BodyLength::None) => BodyLength::Length(length),
        (Some(length), BodyLength::Length(other)) if length == other => known,
        _ => BodyLength::Invalid,
    }
}

/// Returns the size in the line before a chunk, which may have extensions behind it.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictLines<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // hyper judges a head when it is complete, which this one may never be.
        if self.check.must_end && buf.remaining() >= END_OF_HEAD.len() {
            self.check.must_end = false;
            buf.put_slice(END_OF_HEAD);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let filled = buf.filled_mut();
        self.check.follow(&mut filled[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictLines<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns what hyper gets to see of `bytes`, which come in pieces of these sizes.
    fn followed(bytes: &[u8], sizes: &[usize]) -> Vec<u8> {
        let mut check = StrictLineCheck::default();
        let mut bytes = bytes.to_vec();
        let mut rest = bytes.as_mut_slice();
        for size in sizes.iter().cycle() {
            let (piece, behind) = rest.split_at_mut((*size).clamp(1, rest.len().max(1)).min(rest.len()));
            if piece.is_empty() {
                break;
            }
            check.follow(piece);
            rest = behind;
        }
        bytes
    }

    const WELL_FORMED: &[&str] = &[
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 7\r\n\r\na\nb\n\n\nc",
        "POST / HTTP/1.1\r\ncontent-length:5\r\nContent-Length: 5\r\n\r\n\n\n\n\n\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3;x=y\r\n\na\n\r\nA\r\n\n\n\n\n\n\n\n\n\n\n\r\n0\r\nT: 1\r\n\r\n",
    ];

    #[test]
    fn a_bare_line_feed_in_a_head_or_trailer_is_replaced() {
        for bare in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\nZ: 1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
        ] {
            for before in ["", WELL_FORMED[2], WELL_FORMED[4]] {
                let text = format!("{before}{bare}");
                assert!(followed(text.as_bytes(), &[usize::MAX]).contains(&0), "{text:?}");
            }
        }
    }

    #[test]
    fn http2_is_left_alone() {
        let text = [HTTP2_PREFACE, b"\n\n\n\0\0\n"].concat();
        assert_eq!(followed(&text, &[usize::MAX]), text);
        assert_eq!(followed(&text, &[5, 1]), text);
    }

    proptest! {
        #[test]
        fn well_formed_requests_pass_in_any_pieces(
            requests in prop::collection::vec(prop::sample::select(WELL_FORMED), 1..6),
            sizes in prop::collection::vec(1..40_usize, 1..6),
        ) {
            let text = requests.concat();
            prop_assert_eq!(followed(text.as_bytes(), &sizes), text.as_bytes());
        }

        #[test]
        fn what_is_replaced_does_not_depend_on_the_pieces(
            text in "(GET / HTTP/1.1|POST /|Content-Length: 3|Transfer-Encoding: chunked|3|0|\r\n|\n|\r|a){0,40}",
            sizes in prop::collection::vec(1..9_usize, 1..6),
        ) {
            prop_assert_eq!(followed(text.as_bytes(), &sizes), followed(text.as_bytes(), &[usize::MAX]));
        }
    }
}
