//! `mcp-http health`: asks the server how it is, for containers without curl.

use crate::address::Address;
use crate::cli::Health;
use core_tools::config::Http;
use server_setup::settings::Settings;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the server that `settings` describe. The exit code is 0 where it is well, and 1 where it is not.
///
/// # Errors
/// It is nowhere where it can be asked.
pub(crate) fn run(settings: &Settings, asked: &Health) -> Result<ExitCode, String> {
    let (path, address) = (if asked.alive { "/healthz" } else { "/readyz" }, place(&settings.config.http)?);
    let why = match ask(&address, path) {
        Ok(200) => return Ok(ExitCode::SUCCESS),
        Ok(status) => format!("{path} answers {status}"),
        Err(error) => format!("no answer: {error}"),
    };
    crate::say(&format!("mcp-http: {address}: {why}"));
    Ok(ExitCode::from(1))
}

/// Where to ask: where figures are served, which is on this machine and without TLS; else where everything is.
fn place(http: &Http) -> Result<Address, String> {
    let listen = http.metrics_listen.as_ref().or_else(|| {
        let tls = http.tls_certificate.is_some();
        http.listen.iter().find(|text| !tls || text.starts_with("unix:"))
    });
    let listen = listen.ok_or("with TLS, health is asked at http.metrics_listen, which is not set")?;
    Ok(match Address::parse(listen)? {
        Address::Tcp(address) => Address::Tcp(SocketAddr::new(reachable(address.ip()), address.port())),
        unix @ Address::Unix(_) => unix,
    })
}

/// What listens everywhere is asked on loopback.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

fn ask(address: &Address, path: &str) -> io::Result<u16> {
    let host = match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(_) => "localhost".to_owned(),
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            exchange(stream, &request)
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            exchange(stream, &request)
        }
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<u16> {
    stream.write_all(request.as_bytes())?;
    // `HTTP/1.1 200`; what follows is not needed.
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let status =
        std::str::from_utf8(&head).ok().and_then(|head| head.strip_prefix("HTTP/1.1 ")?.parse().ok());
    status.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "what answers there does not speak HTTP/1.1: is it the address of mcp-http, and not of TLS?",
        )
    })
}
