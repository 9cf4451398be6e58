//! Reads and copies the body of one request or response, and not a byte more.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::message::BodyFraming;
use crate::tunnel::TunnelActivity;

/// The most bytes of a line between chunks, or of all trailers together.
const MAX_LINE: u64 = 8 << 10;

/// The most bytes of a body that are read at once.
const PIECE_BYTES: usize = 16 << 10;

/// The way through a body: what comes next in it.
#[derive(Debug)]
pub(crate) struct BodyReader {
    framing: BodyFraming,
    /// The bytes that are left of a body of known length, or of a chunk.
    left: u64,
    /// True between two chunks.
    is_between_chunks: bool,
    is_at_end: bool,
}

impl BodyReader {
    pub(crate) fn new(framing: BodyFraming) -> Self {
        let left = match framing {
            BodyFraming::Length(length) => length,
            BodyFraming::Chunked => 0,
            BodyFraming::UntilEnd => u64::MAX,
        };
        Self { framing, left, is_between_chunks: true, is_at_end: false }
    }

    /// Reads the next bytes of the body into `piece`, without what frames them. It is empty at the end of the body.
    pub(crate) async fn read(
        &mut self,
        reader: &mut (impl AsyncBufRead + Unpin),
        piece: &mut Vec<u8>,
    ) -> io::Result<()> {
        piece.clear();
        if self.framing == BodyFraming::Chunked && self.left == 0 {
            self.begin_chunk(reader).await?;
        }
        if self.is_at_end || self.left == 0 {
            return Ok(());
        }
        let available = reader.fill_buf().await?;
        let length = available.len().min(PIECE_BYTES).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        piece.extend_from_slice(&available[..length]);
        reader.consume(length);
        match (length, self.framing) {
            (0, BodyFraming::UntilEnd) => self.is_at_end = true,
            (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
            (_, BodyFraming::UntilEnd) => {}
            (length, _) => self.left -= length as u64,
        }
        Ok(())
    }

    /// Reads up to the content of the next chunk, or to the end of the body behind the last one.
    async fn begin_chunk(&mut self, reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
        if self.is_at_end {
            return Ok(());
        }
        if !self.is_between_chunks && !read_line(reader, 2).await?.is_empty() {
            return Err(invalid("a chunk is longer than its size"));
        }
        self.is_between_chunks = false;
        let line = read_line(reader, MAX_LINE).await?;
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is_hex = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
        let size = std::str::from_utf8(digits).ok().filter(|_| is_hex);
        let size = size.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        self.left = size.ok_or_else(|| invalid("the size of a chunk is no number"))?;
        if self.left == 0 {
            skip_trailers(reader).await?;
            self.is_at_end = true;
        }
        Ok(())
    }
}

/// Writes a piece of a body as its framing has it. An empty piece is the end. Chunks have no extensions, which no program
/// needs and which parsers read differently.
pub(crate) async fn write_piece(
    writer: &mut (impl AsyncWrite + Unpin),
    framing: BodyFraming,
    piece: &[u8],
) -> io::Result<()> {
    match framing {
        BodyFraming::Length(_) | BodyFraming::UntilEnd => writer.write_all(piece).await,
        BodyFraming::Chunked => {
            writer.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
            writer.write_all(piece).await?;
            writer.write_all(b"\r\n").await
        }
    }
}

/// Copies a body to its end, which the framing gives.
pub(crate) async fn copy_body(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    framing: BodyFraming,
    activity: &TunnelActivity,
) -> io::Result<()> {
    let mut body = BodyReader::new(framing);
    let mut piece = Vec::new();
    loop {
        body.read(reader, &mut piece).await?;
        activity.touch();
        write_piece(writer, framing, &piece).await?;
        if piece.is_empty() {
            return writer.flush().await;
        }
        writer.flush().await?;
    }
}

/// Reads a line without its CR LF.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin), max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(max_bytes).read_until(b'\n', &mut line).await?;
    match line.strip_suffix(b"\r\n") {
        Some(text) if !text.contains(&b'\r') => Ok(text.to_vec()),
        _ => Err(invalid("a line between chunks is too long or does not end in CR LF")),
    }
}

async fn skip_trailers(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    let mut left = MAX_LINE;
    loop {
        let line = read_line(reader, left).await?;
        if line.is_empty() {
            return Ok(());
        }
        left = left.saturating_sub(line.len() as u64 + 2);
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn copied(input: &str, framing: BodyFraming) -> (io::Result<()>, String, String) {
        let (mut reader, mut writer) = (input.as_bytes(), Vec::new());
        let result = copy_body(&mut reader, &mut writer, framing, &TunnelActivity::new()).await;
        (result, String::from_utf8(writer).unwrap(), String::from_utf8(reader.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_body_ends_where_its_framing_says() {
        let (result, body, rest) = copied("abcGET /", BodyFraming::Length(3)).await;
        assert_eq!((result.is_ok(), body.as_str(), rest.as_str()), (true, "abc", "GET /"));
        let chunked = "3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\nGET /";
        let (result, body, rest) = copied(chunked, BodyFraming::Chunked).await;
        assert_eq!((result.is_ok(), body.as_str(), rest.as_str()), (true, "3\r\nabc\r\n0\r\n\r\n", "GET /"));
    }

    #[tokio::test]
    async fn chunks_that_two_readers_could_read_differently_are_refused() {
        for input in [
            "3\nabc\r\n0\r\n\r\n",
            "0x3\r\nabc\r\n",
            "3\r\nabcd\r\n",
            "\r\n",
            "3\r\nabc\n0",
            "-1\r\n",
            "3\r\nab",
        ] {
            let (result, ..) = copied(input, BodyFraming::Chunked).await;
            assert!(result.is_err(), "{input:?}");
        }
    }
}
