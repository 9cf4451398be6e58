//! `mcp-http health`: asks the server for its health, for containers without curl.

use crate::cli::HealthArgs;
use crate::console_output::{name, say};
use crate::net::address::{AddressError, ListenAddress};
use server_setup::config::HttpTable;
use server_setup::settings::Settings;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// The time that the server has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The error of a server that cannot be asked, as nothing says where.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HealthError {
    #[error("with TLS, `health` asks at http.metrics_listen, which is not set")]
    NoAddress,
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// Asks the server that `settings` describe. The exit code is 0 if it is healthy, and else 1.
///
/// # Errors
/// The server listens nowhere where it can be asked.
pub(crate) fn run(settings: &Settings, arguments: &HealthArgs) -> Result<ExitCode, HealthError> {
    let (path, address) =
        (if arguments.alive { "/healthz" } else { "/readyz" }, health_address(&settings.config.http)?);
    let why = match ask(&address, path) {
        Ok(200) => return Ok(ExitCode::SUCCESS),
        Ok(status) => format!("{path} answers {status}"),
        Err(error) => format!("no answer: {error}"),
    };
    say(&format!("{}: {address}: {why}", name()));
    Ok(ExitCode::from(1))
}

/// Returns true if the server that `settings` describe answers that it is ready.
pub(crate) fn answers(settings: &Settings) -> bool {
    health_address(&settings.config.http)
        .is_ok_and(|address| ask(&address, "/readyz").is_ok_and(|status| status == 200))
}

/// Returns the address to ask: that of the metrics, which is on this machine and without TLS, or else that of everything.
fn health_address(http: &HttpTable) -> Result<ListenAddress, HealthError> {
    // With TLS, the check would need a name and an authority for the certificate. A Unix socket never uses TLS.
    let listen = http.metrics_listen.as_ref().or_else(|| {
        let tls = http.tls_certificate.is_some();
        http.listen.iter().find(|text| !tls || text.starts_with("unix:"))
    });
    let listen = listen.ok_or(HealthError::NoAddress)?;
    Ok(match ListenAddress::parse(listen)? {
        ListenAddress::Tcp(address) => {
            ListenAddress::Tcp(SocketAddr::new(reachable(address.ip()), address.port()))
        }
        unix @ ListenAddress::Unix(_) => unix,
    })
}

/// Returns the address by which a server on this machine is reached: one that listens everywhere is asked on loopback.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

fn ask(address: &ListenAddress, path: &str) -> io::Result<u16> {
    let host = match address {
        ListenAddress::Tcp(address) => address.to_string(),
        ListenAddress::Unix(_) => "localhost".to_owned(),
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    match address {
        ListenAddress::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, ANSWER_TIMEOUT)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            exchange(stream, &request)
        }
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            exchange(stream, &request)
        }
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<u16> {
    stream.write_all(request.as_bytes())?;
    // `HTTP/1.1 200`; the rest is not needed.
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let status =
        std::str::from_utf8(&head).ok().and_then(|head| head.strip_prefix("HTTP/1.1 ")?.parse().ok());
    status.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer is not HTTP/1.1: is this the address of mcp-http, and without TLS?",
        )
    })
}
