//! Copies between a client and a host until one of them ends, with a limit on silence.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The time of the last bytes in either direction of a connection.
pub(crate) struct TunnelActivity(Mutex<Instant>);

impl TunnelActivity {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(crate) fn touch(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until nothing has moved for `limit`.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let silent = last.elapsed();
            if silent >= limit {
                return;
            }
            tokio::time::sleep(limit - silent).await;
        }
    }
}

const BUFFER_BYTES: usize = 16 << 10;

/// Copies until the reader ends, and passes its end on.
pub(crate) async fn copy(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    activity: &TunnelActivity,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = reader.read(&mut buffer).await?;
        activity.touch();
        if length == 0 {
            return writer.shutdown().await;
        }
        writer.write_all(&buffer[..length]).await?;
        activity.touch();
    }
}
