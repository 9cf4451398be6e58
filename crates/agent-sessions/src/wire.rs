//! The wire format of the supervisor's socket: lines of JSON, after a line from either side with its version.

use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::protocol::PROTOCOL_VERSION;

/// The name of the socket in the state directory.
const SOCKET_NAME: &str = "socket";
/// The longest line, in bytes. Answers with logs are the longest.
const MAX_LINE_BYTES: u64 = 8 << 20;

/// Returns the path of the socket in a state directory.
pub(crate) fn socket_path(state: &Path) -> PathBuf {
    state.join(SOCKET_NAME)
}

/// Returns the first line of either side.
pub(crate) fn hello() -> Value {
    json!({"coretools_sessions": PROTOCOL_VERSION})
}

/// Reads the version from the first line of the other side.
pub(crate) fn parse_hello(line: &str) -> Option<u32> {
    let hello: Value = serde_json::from_str(line).ok()?;
    u32::try_from(hello.get("coretools_sessions")?.as_u64()?).ok()
}

/// Reads a line, without its end. Returns nothing at the end of the connection.
pub(crate) async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    // The other side may be any process of this user, and must not fill the memory of this one.
    let mut limited = reader.take(MAX_LINE_BYTES);
    limited.read_until(b'\n', &mut bytes).await?;
    match bytes.pop() {
        None => Ok(None),
        Some(b'\n') => String::from_utf8(bytes).map(Some).map_err(|_| io::ErrorKind::InvalidData.into()),
        // The connection ended within the line, or the line is too long.
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes a value as a line.
pub(crate) async fn write_json(writer: &mut (impl AsyncWrite + Unpin), value: &Value) -> io::Result<()> {
    write_text(writer, &value.to_string()).await
}

/// Writes a text as a line.
pub(crate) async fn write_text(writer: &mut (impl AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    writer.write_all(format!("{text}\n").as_bytes()).await?;
    writer.flush().await
}
