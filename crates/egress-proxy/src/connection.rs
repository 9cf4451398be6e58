//! One connection of a client: finds its protocol, the host it asks for, and carries what both send.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client_hello::{self, FirstBytes};
use crate::client_stream::ClientStream;
use crate::denial::{DenialReason, DeniedConnection};
use crate::http::{self, BodyFraming, HeadError};
use crate::proxy_answer::answer;
use crate::proxy_state::{ConnectError, Destination, ProxyState};
use crate::server_name::{UNRECOGNIZED_NAME, judge_server_name};
use crate::socks5::{self, SocksReply};
use crate::tunnel::{self, TunnelActivity};

/// The first byte of SOCKS5.
const SOCKS5: u8 = 5;

/// Serves a client to the end of its connection. Errors end only this connection.
pub(crate) async fn serve(state: &Arc<ProxyState>, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut client = BufReader::new(stream);
    let first = timeout(state.limits.head_timeout, client.fill_buf()).await??.first().copied();
    match first {
        None => Ok(()),
        Some(SOCKS5) => serve_socks(state, client).await,
        Some(_) => serve_http(state, client).await,
    }
}

async fn serve_socks(state: &Arc<ProxyState>, mut client: ClientStream) -> io::Result<()> {
    let request = timeout(state.limits.head_timeout, socks5::read_request(&mut client)).await??;
    let Ok(destination) = state.destination(request.host, request.port) else {
        return socks5::reply(&mut client, SocksReply::NotAllowed).await;
    };
    match state.connect(&destination).await {
        Ok(server) => {
            socks5::reply(&mut client, SocksReply::Succeeded).await?;
            carry(state, client, server, &destination).await
        }
        Err(ConnectError::Denied(_)) => socks5::reply(&mut client, SocksReply::NotAllowed).await,
        Err(ConnectError::Failed(_)) => socks5::reply(&mut client, SocksReply::HostUnreachable).await,
    }
}

async fn serve_http(state: &Arc<ProxyState>, mut client: ClientStream) -> io::Result<()> {
    let head =
        timeout(state.limits.head_timeout, http::read_head(&mut client, state.limits.max_head_bytes)).await?;
    let parsed = head.and_then(|head| {
        let target = head.target()?;
        Ok((head, target))
    });
    let (head, target) = match parsed {
        Ok(parsed) => parsed,
        Err(HeadError::Closed) => return Ok(()),
        Err(HeadError::Io(error)) => return Err(error),
        Err(error @ HeadError::TooLong(_)) => {
            return answer(client, "431 Request Header Fields Too Large", &error.to_string()).await;
        }
        Err(error @ HeadError::Malformed(_)) => {
            return answer(client, "400 Bad Request", &error.to_string()).await;
        }
    };
    let is_tunnel = head.method == "CONNECT";
    let framing = match head.body() {
        // A tunnel has no body: what follows would be read as one here and as the tunnel's first bytes there.
        Ok(framing) if is_tunnel && framing != BodyFraming::Length(0) => {
            return answer(client, "400 Bad Request", "a CONNECT request has no body").await;
        }
        Ok(framing) => framing,
        Err(error) => return answer(client, "400 Bad Request", &error.to_string()).await,
    };
    let destination = match state.destination(target.host.clone(), target.port) {
        Ok(destination) => destination,
        Err(denial) => return answer(client, "403 Forbidden", &denial.to_string()).await,
    };
    let server = match state.connect(&destination).await {
        Ok(server) => server,
        Err(ConnectError::Denied(denial)) => {
            return answer(client, "403 Forbidden", &denial.to_string()).await;
        }
        Err(ConnectError::Failed(error)) => {
            let text = format!("`{}:{}` cannot be reached: {error}", destination.host, destination.port);
            return answer(client, "502 Bad Gateway", &text).await;
        }
    };
    if is_tunnel {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        carry(state, client, server, &destination).await
    } else {
        let request = head.to_origin(&target, &destination.host);
        forward(state, client, server, &request, framing).await
    }
}

/// Carries one plain HTTP request and its response.
async fn forward(
    state: &Arc<ProxyState>,
    client: ClientStream,
    server: TcpStream,
    request: &[u8],
    framing: BodyFraming,
) -> io::Result<()> {
    let (mut client_reader, mut client_writer) = tokio::io::split(client);
    let (mut server_reader, mut server_writer) = server.into_split();
    let activity = TunnelActivity::new();
    let upload = async {
        server_writer.write_all(request).await?;
        let mut body = BufReader::new(&mut client_reader);
        http::copy_body(&mut body, &mut server_writer, framing, &activity).await?;
        // What the client sends after its request is not looked at: its next request needs a new connection.
        std::future::pending::<io::Result<()>>().await
    };
    tokio::select! {
        // The host's answer may be complete before it has read the whole request.
        result = tunnel::copy(&mut server_reader, &mut client_writer, &activity) => result,
        result = upload => result,
        () = activity.idle(state.limits.idle_timeout) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Carries a connection. What the client sends first is judged before the host gets it.
async fn carry(
    state: &Arc<ProxyState>,
    client: ClientStream,
    server: TcpStream,
    destination: &Destination,
) -> io::Result<()> {
    server.set_nodelay(true)?;
    #[cfg(feature = "credentials")]
    if let Some(host) = state.intercepted_host(destination) {
        return crate::interception::exchange::serve(state, client, server, destination, host).await;
    }
    let (mut client_reader, mut client_writer) = tokio::io::split(client);
    let (mut server_reader, mut server_writer) = server.into_split();
    let activity = TunnelActivity::new();
    let mut refused = false;
    let transfer = async {
        // The host may speak first (SSH), so both directions go on at once.
        let upload = async {
            let (bytes, reason) = first_bytes(state, &mut client_reader, destination).await?;
            if let Some(reason) = reason {
                state.deny(DeniedConnection::new(&destination.host, destination.port, reason));
                refused = true;
                return Err(io::Error::from(io::ErrorKind::PermissionDenied));
            }
            server_writer.write_all(&bytes).await?;
            tunnel::copy(&mut client_reader, &mut server_writer, &activity).await
        };
        let download = tunnel::copy(&mut server_reader, &mut client_writer, &activity);
        tokio::try_join!(upload, download).map(|_| ())
    };
    let result = tokio::select! {
        result = transfer => result,
        () = activity.idle(state.limits.idle_timeout) => Err(io::ErrorKind::TimedOut.into()),
    };
    if refused {
        client_writer.write_all(&UNRECOGNIZED_NAME).await?;
        client_writer.shutdown().await?;
    }
    result
}

/// Reads what a client sends first, as far as is needed to judge it. Returns it with the reason to refuse it.
async fn first_bytes(
    state: &ProxyState,
    reader: &mut (impl AsyncRead + Unpin),
    destination: &Destination,
) -> io::Result<(Vec<u8>, Option<DenialReason>)> {
    let mut bytes = Vec::new();
    if reader.read_buf(&mut bytes).await? == 0 {
        return Ok((bytes, None));
    }
    let judged = timeout(state.limits.head_timeout, async {
        loop {
            match client_hello::read(&bytes) {
                FirstBytes::Incomplete if bytes.len() < state.limits.max_head_bytes => {
                    if reader.read_buf(&mut bytes).await? == 0 {
                        return Ok(Some(DenialReason::NotTls));
                    }
                }
                FirstBytes::Incomplete | FirstBytes::Malformed => return Ok(Some(DenialReason::NotTls)),
                FirstBytes::NotTls => {
                    return Ok((destination.port == 443).then_some(DenialReason::NotTls));
                }
                FirstBytes::ClientHello { server_name } => {
                    return Ok(judge_server_name(state, destination, server_name.as_deref()));
                }
            }
        }
    });
    let reason = judged.await.unwrap_or_else(|elapsed| Err(io::Error::from(elapsed)))?;
    Ok((bytes, reason))
}
