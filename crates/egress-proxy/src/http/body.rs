//! Copies the body of one request, and not a byte more.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::head::BodyFraming;

/// The most bytes of a line between chunks, or of all trailers together.
const MAX_LINE: u64 = 8 << 10;

/// Copies a body to its end, which the framing gives.
pub(crate) async fn copy_body(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    framing: BodyFraming,
) -> io::Result<()> {
    match framing {
        BodyFraming::Length(length) => copy_bytes(reader, writer, length).await?,
        BodyFraming::Chunked => loop {
            let line = read_line(reader, MAX_LINE).await?;
            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            let is_hex = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
            let size = std::str::from_utf8(digits).ok().filter(|_| is_hex);
            let size = size.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let size = size.ok_or_else(|| invalid("the size of a chunk is no number"))?;
            // Without extensions, which no program needs and which parsers read differently.
            writer.write_all(format!("{size:x}\r\n").as_bytes()).await?;
            if size == 0 {
                skip_trailers(reader).await?;
                writer.write_all(b"\r\n").await?;
                break;
            }
            copy_bytes(reader, writer, size).await?;
            if !read_line(reader, 2).await?.is_empty() {
                return Err(invalid("a chunk is longer than its size"));
            }
            writer.write_all(b"\r\n").await?;
        },
    }
    writer.flush().await
}

async fn copy_bytes(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    length: u64,
) -> io::Result<()> {
    let copied = tokio::io::copy_buf(&mut reader.take(length), writer).await?;
    if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
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
        let result = copy_body(&mut reader, &mut writer, framing).await;
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
