//! The self-test of a gateway: attempts to get out of its namespace past the proxy, all of which must fail.

use super::error::EgressError;
use process_runner::NetworkNamespace;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
#[cfg(target_os = "linux")]
use std::os::unix::net::{SocketAddr as UnixSocketAddr, UnixListener, UnixStream};
use std::time::Duration;

/// An address for documentation (RFC 5737): where the self-test can send to it, anything can be sent.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The time within which an attempt succeeds, or must have failed. All of them fail at once where there is no way out.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// Sockets of this machine, outside of the namespace.
struct OutsideSockets {
    tcp: TcpListener,
    udp: UdpSocket,
    #[cfg(target_os = "linux")]
    abstract_address: UnixSocketAddr,
    #[cfg(target_os = "linux")]
    _abstract_socket: UnixListener,
}

impl OutsideSockets {
    fn bind() -> io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        udp.set_nonblocking(true)?;
        #[cfg(target_os = "linux")]
        {
            // The kernel gave the port to this process alone, which makes the name unique.
            let name = format!("egress-self-test-{}-{}", std::process::id(), tcp.local_addr()?.port());
            let abstract_address = UnixSocketAddr::from_abstract_name(name)?;
            let _abstract_socket = UnixListener::bind_addr(&abstract_address)?;
            Ok(Self { tcp, udp, abstract_address, _abstract_socket })
        }
        #[cfg(not(target_os = "linux"))]
        Ok(Self { tcp, udp })
    }
}

/// Tries to get out of `namespace` past the proxy at `proxy`, by address, by name, over UDP, by the proxy's port on other
/// addresses, and by an abstract Unix socket; then makes sure that the proxy answers.
///
/// # Errors
/// An attempt succeeded, an attempt cannot be made, or the proxy does not answer.
pub(super) fn run(namespace: &NetworkNamespace, proxy: SocketAddr) -> Result<(), EgressError> {
    let outside = OutsideSockets::bind().map_err(EgressError::Proxy)?;
    let tcp = outside.tcp.local_addr().map_err(EgressError::Proxy)?;
    let udp = outside.udp.local_addr().map_err(EgressError::Proxy)?;
    let attempts = || -> Result<(), EgressError> {
        let leak = |what: &str| Err(EgressError::Leak(what.to_owned()));
        if !is_closed(&connect(tcp)) {
            return leak("a TCP port of this machine, by its address");
        }
        if !is_closed(&connect((OUTSIDE, 443).into())) {
            return leak("another machine, by its address");
        }
        let by_name = ("localhost", tcp.port()).to_socket_addrs().into_iter().flatten();
        if by_name.into_iter().any(|address| !is_closed(&connect(address))) {
            return leak("a TCP port of this machine, by its name");
        }
        for address in [(Ipv4Addr::new(127, 0, 0, 2), proxy.port()), (OUTSIDE, proxy.port())] {
            if !is_closed(&connect(address.into())) {
                return leak("the proxy's port on another address");
            }
        }
        if !is_closed(&send((OUTSIDE, 53).into())) {
            return leak("another machine, over UDP");
        }
        // Within the namespace the datagram may be taken; whether it came out is seen below.
        let _ = send(udp);
        #[cfg(target_os = "linux")]
        if !is_closed(&UnixStream::connect_addr(&outside.abstract_address).map(|_| ())) {
            return leak("an abstract Unix socket of this machine");
        }
        ask_proxy(proxy).map_err(EgressError::Proxy)
    };
    namespace.run(attempts).map_err(EgressError::Proxy)??;
    match outside.udp.recv(&mut [0; 8]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        _ => Err(EgressError::Leak("a UDP port of this machine".to_owned())),
    }
}

fn connect(address: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&address, ATTEMPT_TIMEOUT).map(|_| ())
}

fn send(address: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(address)?;
    socket.send(b"egress-self-test").map(|_| ())
}

/// Returns true if an attempt failed because there is nothing to reach. Another error, such as a timeout or one of this
/// process, shows nothing and counts as a way out.
fn is_closed(attempt: &io::Result<()>) -> bool {
    let kind = attempt.as_ref().err().map(io::Error::kind);
    matches!(
        kind,
        Some(ErrorKind::ConnectionRefused | ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable)
    )
}

/// Makes a request that the proxy refuses whatever its hosts are.
fn ask_proxy(proxy: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&proxy, ATTEMPT_TIMEOUT)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    match &answer {
        b"HTTP/1.1 400" => Ok(()),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "the proxy gave another answer than it must")),
    }
}
