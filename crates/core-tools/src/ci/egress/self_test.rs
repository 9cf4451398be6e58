//! The self-test of a gateway: attempts to get out of its namespace past the proxy, all of which must fail.

use super::error::EgressError;
use process_runner::NetworkNamespace;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket,
};
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
#[cfg(target_os = "linux")]
use std::os::unix::net::{SocketAddr as UnixSocketAddr, UnixListener, UnixStream};
use std::time::Duration;

/// An address for documentation (RFC 5737): where the self-test can send to it, anything can be sent.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The same for IPv6 (RFC 3849).
const OUTSIDE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

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
/// An attempt succeeded, or failed in another way than it does where there is no way out; an attempt cannot be made; or the
/// proxy does not answer.
pub(super) fn run(namespace: &NetworkNamespace, proxy: SocketAddr) -> Result<(), EgressError> {
    let outside = OutsideSockets::bind().map_err(EgressError::Proxy)?;
    let tcp = outside.tcp.local_addr().map_err(EgressError::Proxy)?;
    let udp = outside.udp.local_addr().map_err(EgressError::Proxy)?;
    let attempts = || -> Result<(), EgressError> {
        must_fail("a TCP port of this machine, by its address", &connect(tcp))?;
        must_fail("another machine, by its address", &connect((OUTSIDE, 443).into()))?;
        must_fail("another machine, by its IPv6 address", &connect((OUTSIDE_V6, 443).into()))?;
        // A name that is not found is no way out.
        let by_name = ("localhost", tcp.port()).to_socket_addrs().into_iter().flatten();
        for address in by_name {
            must_fail("a TCP port of this machine, by its name", &connect(address))?;
        }
        for address in [(Ipv4Addr::new(127, 0, 0, 2), proxy.port()), (OUTSIDE, proxy.port())] {
            must_fail("the proxy's port on another address", &connect(address.into()))?;
        }
        must_fail("another machine, over UDP", &send((OUTSIDE, 53).into()))?;
        must_fail("another machine, over UDP and IPv6", &send((OUTSIDE_V6, 53).into()))?;
        // Within the namespace the datagram may be taken; whether it came out is seen below.
        let _ = send(udp);
        #[cfg(target_os = "linux")]
        {
            let attempt = UnixStream::connect_addr(&outside.abstract_address).map(|_| ());
            must_fail("an abstract Unix socket of this machine", &attempt)?;
        }
        ask_proxy(proxy).map_err(EgressError::Proxy)
    };
    namespace.run(attempts).map_err(EgressError::Proxy)??;
    match outside.udp.recv(&mut [0; 8]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        _ => Err(EgressError::Leak("a UDP port of this machine".to_owned())),
    }
}

/// Returns an error unless an attempt failed as it does where there is no way out.
fn must_fail(what: &str, attempt: &io::Result<()>) -> Result<(), EgressError> {
    if is_closed(attempt) { Ok(()) } else { Err(EgressError::Leak(what.to_owned())) }
}

fn connect(address: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&address, ATTEMPT_TIMEOUT).map(|_| ())
}

fn send(address: SocketAddr) -> io::Result<()> {
    let own: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((own, 0))?;
    socket.connect(address)?;
    socket.send(b"egress-self-test").map(|_| ())
}

/// Returns true if an attempt failed because there is nothing to reach. Another error, such as a timeout or one of this
/// process, shows nothing and counts as a way out.
fn is_closed(attempt: &io::Result<()>) -> bool {
    let Err(error) = attempt else { return false };
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => true,
        // A system without IPv6 has no sockets, or no addresses, of its family.
        ErrorKind::AddrNotAvailable => true,
        _ => is_missing_family(error),
    }
}

#[cfg(unix)]
fn is_missing_family(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::AFNOSUPPORT)
}

#[cfg(not(unix))]
fn is_missing_family(_error: &io::Error) -> bool {
    false
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use skipped_tests::require;
    use std::path::Path;

    #[test]
    fn only_what_says_that_nothing_is_there_is_no_way_out() {
        use rustix::io::Errno;
        for closed in [Errno::CONNREFUSED, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::AFNOSUPPORT] {
            assert!(is_closed(&Err(closed.into())), "{closed}");
        }
        assert!(!is_closed(&Ok(())));
        // The time was up, a firewall, a signal, no descriptors or memory left, a peer that closed: nothing is shown by it.
        for unclear in [
            Errno::TIMEDOUT,
            Errno::PERM,
            Errno::ACCESS,
            Errno::INTR,
            Errno::AGAIN,
            Errno::INPROGRESS,
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::NOBUFS,
            Errno::CONNRESET,
            Errno::PIPE,
            Errno::INVAL,
            Errno::NETDOWN,
            Errno::ISCONN,
        ] {
            assert!(!is_closed(&Err(unclear.into())), "{unclear}");
        }
        assert!(!is_closed(&Err(ErrorKind::TimedOut.into())));
    }

    /// A proxy in a namespace of its own that answers each connection with `answer`.
    fn proxy_that_answers(answer: &'static [u8]) -> Option<(NetworkNamespace, SocketAddr)> {
        let namespace = NetworkNamespace::create();
        let missing = namespace.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let namespace = require(namespace.ok(), &missing)?;
        let listener = namespace.run(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.read(&mut [0; 64]);
                let _ = stream.write_all(answer);
            }
        });
        Some((namespace, address))
    }

    #[test]
    fn a_proxy_that_does_not_answer_as_ours_does_is_none() {
        for answer in ["", "HTTP/1.1 4", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 403 F", "SSH-2.0-other"] {
            let Some((namespace, proxy)) = proxy_that_answers(answer.as_bytes()) else { return };
            let error = run(&namespace, proxy).unwrap_err();
            assert!(matches!(error, EgressError::Proxy(_)), "{answer}: {error}");
        }
        let Some((namespace, proxy)) = proxy_that_answers(b"HTTP/1.1 400 Bad Request\r\n\r\n") else {
            return;
        };
        run(&namespace, proxy).unwrap();
    }

    /// Runs `ip` inside the namespace, as root.
    #[allow(clippy::disallowed_methods, reason = "the test changes a network as an operator would")]
    fn ip(namespace: &NetworkNamespace, arguments: &str) {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let output = || std::process::Command::new("ip").args(&arguments).output().unwrap();
        let output = namespace.run(output).unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn a_route_out_of_the_namespace_is_found_by_each_of_its_attempts() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let has_ip = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"].iter().any(|path| Path::new(path).exists());
        if require(has_ip.then_some(()), "no ip; apt install iproute2").is_none() {
            return;
        }
        // Routes that lead somewhere, where nothing answers.
        for (route, found) in [
            ("route add 192.0.2.0/24 dev lo", "another machine, by its address"),
            ("-6 route add 2001:db8::/64 dev lo", "IPv6"),
        ] {
            let Some((namespace, proxy)) = proxy_that_answers(b"HTTP/1.1 400 Bad Request\r\n\r\n") else {
                return;
            };
            ip(&namespace, route);
            let error = run(&namespace, proxy).unwrap_err();
            assert!(matches!(&error, EgressError::Leak(what) if what.contains(found)), "{route}: {error}");
        }
        // A machine out there that answers: its address on an interface of the namespace, with a listener.
        let Some((namespace, proxy)) = proxy_that_answers(b"HTTP/1.1 400 Bad Request\r\n\r\n") else {
            return;
        };
        ip(&namespace, "addr add 192.0.2.1/32 dev lo");
        let other = namespace.run(|| TcpListener::bind((OUTSIDE, proxy.port()))).unwrap().unwrap();
        let error = run(&namespace, proxy).unwrap_err();
        assert!(error.to_string().contains("the proxy's port on another address"), "{error}");
        drop(other);
        // Nothing listens any more, and a datagram would still be taken.
        let error = run(&namespace, proxy).unwrap_err();
        assert!(error.to_string().contains("another machine, over UDP"), "{error}");
    }
}
