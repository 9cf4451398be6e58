//! Serving the session of a remote: one channel after another, and an end when none comes for a while.

use crate::far_session::FarSession;
use crate::serve::{COMMAND_GRACE, cancel_on_signal};
use crate::transport::{CloseLine, StdioTransport};
use remotes::{CLOSE_LINE, MAX_OPENING_BYTES, OpenRequest, Opening};
use rmcp::ServiceExt;
use server_setup::remote::open_answer;
use server_setup::setup::LocalServer;
use std::io;
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

/// The time that a new channel has for its first line.
const OPENING_TIME: Duration = Duration::from_secs(10);

/// The time that the calls of a lost channel have to end before the next channel is served.
const CHANNEL_END: Duration = Duration::from_secs(2);

/// A session, and what its channels must agree on.
pub(crate) struct SessionServer {
    pub(crate) server: LocalServer,
    pub(crate) session: FarSession,
    /// The first message of the first channel.
    pub(crate) request: OpenRequest,
    /// The version of this program.
    pub(crate) version: String,
    /// The time without a channel after which the session ends.
    pub(crate) grace: Duration,
}

/// The reason why a channel is not served.
#[derive(Debug, thiserror::Error)]
enum NotServed {
    #[error("the first line cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("no first line came in time")]
    TooLate,
    #[error("it comes from another user")]
    OtherUser,
    #[error("its first line is none: {0}")]
    Invalid(String),
    #[error("the settings of the session are others")]
    OtherSettings,
    #[error("its answer cannot be written: {0}")]
    Answer(String),
}

/// Serves the channel of the standard streams and those that come after it, until one of them ends the session, a signal
/// comes, or the grace is over.
pub(crate) async fn serve_session(served: SessionServer) -> ExitCode {
    let ending = CancellationToken::new();
    let signals = tokio::spawn(cancel_on_signal(ending.clone()));
    let mut channel = Some(None);
    while let Some(stream) = channel.take() {
        let gone = ending.child_token();
        let close = CloseLine { line: CLOSE_LINE, closed: ending.clone() };
        let transport = match stream {
            None => StdioTransport::closed_by(gone.clone(), close),
            Some(stream) => StdioTransport::over_socket(stream, gone.clone(), close),
        };
        let serving = serve_channel(&served.server, transport, gone.clone());
        let next = next_channel(&served);
        tokio::pin!(serving, next);
        let mut has_ended = false;
        let found = tokio::select! {
            () = &mut serving => {
                has_ended = true;
                None
            }
            // The next channel may come before the loss of this one is seen here.
            found = &mut next => Some(found),
            () = ending.cancelled() => None,
        };
        gone.cancel();
        if !has_ended && tokio::time::timeout(CHANNEL_END, &mut serving).await.is_err() {
            tracing::warn!("the calls of a channel did not end in time");
        }
        channel = match found {
            Some(found) => Some(Some(found)),
            None => tokio::select! {
                found = &mut next => Some(Some(found)),
                () = tokio::time::sleep(served.grace) => None,
                () = ending.cancelled() => None,
            },
        };
    }
    let SessionServer { server, session, .. } = served;
    drop(session);
    #[cfg(feature = "sessions")]
    tokio::join!(server.runner.shutdown(COMMAND_GRACE), server.sessions.shutdown(COMMAND_GRACE));
    #[cfg(not(feature = "sessions"))]
    server.runner.shutdown(COMMAND_GRACE).await;
    signals.abort();
    ExitCode::SUCCESS
}

/// Serves one channel until it ends. Its calls are cancelled then; what they have started in the background goes on.
async fn serve_channel(server: &LocalServer, transport: StdioTransport, gone: CancellationToken) {
    match server.connection().serve_with_ct(transport, gone).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "a channel ended by an error");
            }
        }
        // It was lost before its first call.
        Err(error) => tracing::debug!(%error, "a channel ended before it was used"),
    }
}

/// Waits for the next channel that may go on with the session, and answers it.
async fn next_channel(served: &SessionServer) -> UnixStream {
    loop {
        match served.session.listener.accept().await {
            Ok((stream, _)) => match opened(stream, served).await {
                Ok(stream) => return stream,
                Err(not_served) => tracing::warn!("a channel is not served: {not_served}"),
            },
            Err(error) => {
                tracing::error!(%error, "no channel can be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn opened(stream: UnixStream, served: &SessionServer) -> Result<UnixStream, NotServed> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(NotServed::OtherUser);
    }
    let limit = u64::try_from(MAX_OPENING_BYTES).unwrap_or(u64::MAX);
    let mut reader = BufReader::new(stream.take(limit));
    let mut line = Vec::new();
    let reading = tokio::time::timeout(OPENING_TIME, reader.read_until(b'\n', &mut line));
    reading.await.map_err(|_| NotServed::TooLate)??;
    // Nothing follows the line before it is answered.
    let mut stream = reader.into_inner().into_inner();
    let opening = match Opening::read(&line, &served.version) {
        Ok(opening) => opening,
        Err(invalid) => {
            stream.write_all(&invalid.refusal()).await?;
            return Err(NotServed::Invalid(invalid.to_string()));
        }
    };
    let is_same = |request: &OpenRequest| {
        let mut first = served.request.clone();
        first.session.clone_from(&request.session);
        first == *request
    };
    if !is_same(&opening.request) {
        stream.write_all(&opening.refusal(&NotServed::OtherSettings.to_string())).await?;
        return Err(NotServed::OtherSettings);
    }
    let answer = open_answer(&served.server, served.version.clone());
    let answer = opening.answer(&answer).map_err(|error| NotServed::Answer(error.to_string()))?;
    stream.write_all(&answer).await?;
    Ok(stream)
}
