//! The requests of one client to a host, with the credential put into each, and their answers without it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::server::Acceptor;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

use super::intercepted_host::InterceptedHost;
use super::mask::{MaskedStream, SecretForms};
use super::upstream::UpstreamConnection;
use crate::client_stream::ClientStream;
use crate::denial::{DenialReason, DeniedConnection};
use crate::http::{self, BodyFraming, BodyReader, HeadError, HttpVersion, RequestHead};
use crate::proxy_answer::answer;
use crate::proxy_state::{ConnectError, Destination, ProxyState};
use crate::server_name::{UNRECOGNIZED_NAME, judge_server_name};
use crate::tunnel::TunnelActivity;

/// Serves a client that connected to `host`, to which `server` is a connection.
pub(crate) async fn serve(
    state: &Arc<ProxyState>,
    client: ClientStream,
    server: TcpStream,
    destination: &Destination,
    host: &InterceptedHost,
) -> io::Result<()> {
    let deny = |reason| state.deny(DeniedConnection::new(&destination.host, destination.port, reason));
    let limit = state.limits.head_timeout;
    let mut start = match timeout(limit, LazyConfigAcceptor::new(Acceptor::default(), client)).await? {
        Ok(start) => start,
        Err(error) => {
            if error.kind() == io::ErrorKind::InvalidData {
                deny(DenialReason::NotTls);
            }
            return Err(error);
        }
    };
    let reason = judge_server_name(state, destination, start.client_hello().server_name());
    if let Some(reason) = reason {
        deny(reason);
        start.io.write_all(&UNRECOGNIZED_NAME).await?;
        return start.io.shutdown().await;
    }
    let stream = timeout(limit, start.into_stream(Arc::clone(&host.server_config))).await??;
    let (reader, writer) = tokio::io::split(stream);
    let exchanges = ClientExchanges { state, destination, host };
    exchanges.serve(BufReader::new(reader), writer, server).await
}

/// The requests of one client.
struct ClientExchanges<'a> {
    state: &'a Arc<ProxyState>,
    destination: &'a Destination,
    host: &'a InterceptedHost,
}

/// A request that is ready to be sent.
struct PreparedRequest {
    method: String,
    head: Vec<u8>,
    framing: BodyFraming,
    forms: SecretForms,
    keeps_alive: bool,
}

/// The refusal of a request: a status line without its version, and a text.
struct RequestRefusal(&'static str, String);

/// The reason that a request has no whole answer.
enum ExchangeError {
    /// The host closed the connection before it answered.
    NoAnswer,
    /// The answer may not be passed on, and nothing of it was.
    Refused(String),
    /// A connection broke.
    Io(io::Error),
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The connections that another exchange can use.
struct ReusableConnections {
    client: bool,
    upstream: bool,
}

impl ClientExchanges<'_> {
    async fn serve(
        &self,
        mut reader: impl AsyncBufRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
        server: TcpStream,
    ) -> io::Result<()> {
        let limits = &self.state.limits;
        let mut server = Some(server);
        let mut kept: Option<UpstreamConnection> = None;
        loop {
            // Silence between two requests is that of a connection; a request that began must come whole soon.
            if timeout(limits.idle_timeout, reader.fill_buf()).await??.is_empty() {
                return writer.shutdown().await;
            }
            let head =
                timeout(limits.head_timeout, http::read_head(&mut reader, limits.max_head_bytes)).await?;
            let request = match head {
                Err(HeadError::Closed) => return writer.shutdown().await,
                Err(HeadError::Io(error)) => return Err(error),
                head => head.map_err(|error| refusal_of_head(&error)).and_then(|head| self.prepare(&head)),
            };
            let request = match request {
                Ok(request) => request,
                Err(RequestRefusal(status, text)) => {
                    return answer(tokio::io::join(reader, writer), status, &text).await;
                }
            };
            let mut upstream = match kept.take() {
                Some(kept) => kept.reuse().await,
                None => None,
            };
            let exchanged = loop {
                let connected = match upstream.take() {
                    Some(upstream) => Ok(upstream),
                    None => self.connect(server.take()).await,
                };
                let mut connection = match connected {
                    Ok(connection) => connection,
                    Err(error) => break Err(error),
                };
                let exchanged = self.exchange(&mut reader, &mut writer, &mut connection, &request).await;
                // The host may close a kept connection while a request is on its way. One without a body can be sent again.
                let is_repeatable = connection.is_reused && request.framing == BodyFraming::Length(0);
                match exchanged {
                    Err(ExchangeError::NoAnswer) if is_repeatable => {}
                    Err(error) => break Err(error),
                    Ok(reusable) => {
                        kept = reusable.upstream.then_some(connection);
                        break Ok(reusable);
                    }
                }
            };
            let text = match exchanged {
                Ok(ReusableConnections { client: true, .. }) => continue,
                Ok(ReusableConnections { client: false, .. }) => return writer.shutdown().await,
                // Without the end of TLS: the client must not take a cut answer for a whole one.
                Err(ExchangeError::Io(error)) => return Err(error),
                Err(ExchangeError::Refused(text)) => text,
                Err(ExchangeError::NoAnswer) => "closed the connection without an answer".to_owned(),
            };
            let Destination { host, port } = self.destination;
            let mut text = format!("`{host}:{port}` {text}").into_bytes();
            request.forms.mask(&mut text);
            let text = String::from_utf8_lossy(&text);
            return answer(tokio::io::join(reader, writer), "502 Bad Gateway", &text).await;
        }
    }

    /// Checks a request, and puts the credential into it.
    fn prepare(&self, head: &RequestHead) -> Result<PreparedRequest, RequestRefusal> {
        let Destination { host, port } = self.destination;
        if head.version == HttpVersion::Http10 {
            let text = "only HTTP/1.1 is taken to a host with a credential".to_owned();
            return Err(RequestRefusal("505 HTTP Version Not Supported", text));
        }
        let framing = head.body().map_err(|error| refusal_of_head(&error))?;
        let path = head.origin_path().map_err(|error| refusal_of_head(&error))?;
        // A server with several names would give the credential to another one of them.
        if head.named_host(443) != Some((host.clone(), *port)) {
            let denial = self.state.deny(DeniedConnection::new(host, *port, DenialReason::HostField));
            return Err(RequestRefusal("403 Forbidden", denial.to_string()));
        }
        let (value, forms) = self.host.credential.header().map_err(|error| {
            let text = format!("the secret of the credential for `{host}:{port}` cannot be used: {error}");
            RequestRefusal("502 Bad Gateway", text)
        })?;
        let own_name = self.host.credential.rule.header.name();
        let place = if *port == 443 { host.to_string() } else { format!("{host}:{port}") };
        let mut bytes = format!("{} {path} HTTP/1.1\r\nHost: {place}\r\n", head.method).into_bytes();
        let hop_by_hop = head.fields.hop_by_hop();
        head.fields.write_without(&mut bytes, |name| {
            // Parts of an answer, and compressed answers, could show a secret in a form that is not found.
            const WITHHELD: [&str; 4] = ["Host", "Accept-Encoding", "Range", "If-Range"];
            hop_by_hop.contains(name)
                || name.eq_ignore_ascii_case(own_name)
                || WITHHELD.iter().any(|other| name.eq_ignore_ascii_case(other))
        });
        let own = format!("Accept-Encoding: identity\r\n{own_name}: {value}\r\n\r\n");
        bytes.extend_from_slice(own.as_bytes());
        Ok(PreparedRequest {
            method: head.method.clone(),
            head: bytes,
            framing,
            forms,
            keeps_alive: !head.fields.closes_connection(),
        })
    }

    /// Connects to the host, on `stream` if there is one.
    async fn connect(&self, stream: Option<TcpStream>) -> Result<UpstreamConnection, ExchangeError> {
        let stream = match stream {
            Some(stream) => stream,
            None => self.state.connect(self.destination).await.map_err(|error| {
                ExchangeError::Refused(match error {
                    ConnectError::Denied(denial) => format!("cannot be reached: {denial}"),
                    ConnectError::Failed(error) => format!("cannot be reached: {error}"),
                })
            })?,
        };
        let started = UpstreamConnection::start(stream, self.host, &self.state.limits).await;
        started.map_err(|error| {
            ExchangeError::Refused(format!("made no TLS connection that the proxy accepts: {error}"))
        })
    }

    async fn exchange(
        &self,
        reader: &mut (impl AsyncBufRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
        upstream: &mut UpstreamConnection,
        request: &PreparedRequest,
    ) -> Result<ReusableConnections, ExchangeError> {
        let activity = TunnelActivity::new();
        let is_sent = AtomicBool::new(false);
        let UpstreamConnection { reader: upstream_reader, writer: upstream_writer, .. } = upstream;
        let upload = async {
            let sent = async {
                upstream_writer.write_all(&request.head).await?;
                upstream_writer.flush().await?;
                http::copy_body(reader, upstream_writer, request.framing, &activity).await
            };
            // A host that takes no more may still answer.
            is_sent.store(sent.await.is_ok(), Ordering::Relaxed);
            match reader.fill_buf().await {
                // The next request, which waits.
                Ok(bytes) if !bytes.is_empty() => std::future::pending().await,
                _ => ExchangeError::Io(io::ErrorKind::ConnectionAborted.into()),
            }
        };
        let download = self.relay_answer(upstream_reader, writer, request, &activity);
        let (client, upstream) = tokio::select! {
            answered = download => answered?,
            error = upload => return Err(error),
            () = activity.idle(self.state.limits.idle_timeout) => {
                return Err(ExchangeError::Io(io::ErrorKind::TimedOut.into()));
            }
        };
        let is_sent = is_sent.load(Ordering::Relaxed);
        Ok(ReusableConnections { client: client && is_sent, upstream: upstream && is_sent })
    }

    /// Passes an answer on. Returns if the client's connection and that to the host can be used again.
    async fn relay_answer(
        &self,
        reader: &mut (impl AsyncBufRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
        request: &PreparedRequest,
        activity: &TunnelActivity,
    ) -> Result<(bool, bool), ExchangeError> {
        let refused =
            |error: HeadError| ExchangeError::Refused(format!("gave an answer that cannot be read: {error}"));
        let mut has_interim = false;
        let head = loop {
            let head = match http::read_response_head(reader, self.state.limits.max_head_bytes).await {
                Ok(head) => head,
                Err(HeadError::Closed | HeadError::Io(_)) if !has_interim => {
                    return Err(ExchangeError::NoAnswer);
                }
                Err(HeadError::Io(error)) => return Err(ExchangeError::Io(error)),
                Err(error) => return Err(refused(error)),
            };
            activity.touch();
            // No upgrade was asked for.
            if head.status == 101 {
                return Err(ExchangeError::Refused("changed to another protocol".to_owned()));
            }
            if !head.is_interim() {
                break head;
            }
            has_interim = true;
            let interim = head.to_client(|bytes| request.forms.mask(bytes), true).map_err(refused)?;
            writer.write_all(&interim).await?;
            writer.flush().await?;
        };
        if let Some(coding) = head.content_encoding() {
            return Err(ExchangeError::Refused(format!(
                "answered with the content coding `{coding}`, in which its credential could not be found; it was asked for \
                 `identity`"
            )));
        }
        if head.status == 206 {
            return Err(ExchangeError::Refused("answered with a part that nobody asked for".to_owned()));
        }
        let framing = head.body(&request.method).map_err(refused)?;
        let keeps_client = request.keeps_alive && framing != BodyFraming::UntilEnd;
        let bytes = head.to_client(|bytes| request.forms.mask(bytes), keeps_client).map_err(refused)?;
        writer.write_all(&bytes).await?;
        let mut body = BodyReader::new(framing);
        let mut masked = MaskedStream::new(&request.forms);
        let mut piece = Vec::new();
        loop {
            body.read(reader, &mut piece).await?;
            activity.touch();
            if piece.is_empty() {
                break;
            }
            write_masked(writer, framing, &masked.push(&piece)).await?;
            activity.touch();
        }
        write_masked(writer, framing, &masked.finish()).await?;
        http::write_piece(writer, framing, &[]).await?;
        writer.flush().await?;
        Ok((keeps_client, head.keeps_alive() && framing != BodyFraming::UntilEnd))
    }
}

/// Writes a piece of a masked body. One of which all is held back is nothing yet.
async fn write_masked(
    writer: &mut (impl AsyncWrite + Unpin),
    framing: BodyFraming,
    piece: &[u8],
) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    http::write_piece(writer, framing, piece).await?;
    writer.flush().await
}

fn refusal_of_head(error: &HeadError) -> RequestRefusal {
    let status = match error {
        HeadError::TooLong(_) => "431 Request Header Fields Too Large",
        _ => "400 Bad Request",
    };
    RequestRefusal(status, error.to_string())
}
