//! The handshake of SOCKS5 (RFC 1928): `CONNECT` with names and addresses, without authentication.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client_stream::ClientStream;
use crate::host::{NetworkHost, UnreadableHost};

/// A host and port as a SOCKS client names them.
pub(crate) struct SocksRequest {
    /// The host, or the text that is none.
    pub(crate) host: Result<NetworkHost, UnreadableHost>,
    pub(crate) port: u16,
}

/// The answers to a request (RFC 1928, 6).
#[derive(Clone, Copy)]
pub(crate) enum SocksReply {
    Succeeded = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Reads a client's greeting and its request.
///
/// # Errors
/// The client broke off, or asks for what is not supported. It has its answer then.
pub(crate) async fn read_request(client: &mut ClientStream) -> io::Result<SocksRequest> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let _version = client.read_u8().await?;
    let mut methods = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[5, NO_METHOD]).await?;
        return Err(invalid("the SOCKS client demands authentication"));
    }
    client.write_all(&[5, NO_AUTHENTICATION]).await?;
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != 5 {
        return Err(invalid("the SOCKS request is not of version 5"));
    }
    let host = match kind {
        1 => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await?;
            Ok(NetworkHost::address(Ipv4Addr::from(address).into()))
        }
        4 => {
            let mut address = [0; 16];
            client.read_exact(&mut address).await?;
            Ok(NetworkHost::address(Ipv6Addr::from(address).into()))
        }
        3 => {
            let mut name = vec![0; client.read_u8().await?.into()];
            client.read_exact(&mut name).await?;
            NetworkHost::parse_requested(&String::from_utf8_lossy(&name))
        }
        _ => {
            reply(client, SocksReply::AddressTypeNotSupported).await?;
            return Err(invalid("the SOCKS request has an address of an unknown type"));
        }
    };
    let port = client.read_u16().await?;
    // UDP and listening would need addresses that no list of names can judge.
    if command != CONNECT {
        reply(client, SocksReply::CommandNotSupported).await?;
        return Err(invalid("the SOCKS request is no CONNECT"));
    }
    Ok(SocksRequest { host, port })
}

/// Answers a request. The address of the answer is left at zero: it would tell where the proxy connects from.
pub(crate) async fn reply(client: &mut ClientStream, reply: SocksReply) -> io::Result<()> {
    client.write_all(&[5, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
