//! [`answer`]: the proxy's own answers to requests that it does not carry out.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The most that is read of a client that was answered and goes on sending, and the time for it.
const MAX_DISCARDED: u64 = 256 << 10;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers a request that is not carried out, and closes the connection.
pub(crate) async fn answer(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    status: &str,
    text: &str,
) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}\n",
        text.len() + 1
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await?;
    // Closed with bytes that nobody read, the connection would be reset, and the answer lost.
    let mut rest = client.take(MAX_DISCARDED);
    let mut nowhere = tokio::io::sink();
    let _ = timeout(DISCARD_TIMEOUT, tokio::io::copy(&mut rest, &mut nowhere)).await;
    Ok(())
}
