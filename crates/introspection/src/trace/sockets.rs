//! The TCP connections of any process, by the kernel's statistics (`sock_diag(7)`): nothing is attached, and no content
//! is seen. The sockets are polled four times a second, so shorter connections may be missed.

use super::capture_run::{CaptureOutput, CaptureRun, CaptureWaitOutcome, millis};
use super::error::Error;
use super::network::{NetworkSummary, PeerSummary};
use super::profile::ProfileSummary;
use crate::inspect::proc;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto, socket_with, sockopt,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The interval between two polls of the sockets.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const FILE: &str = "json";
/// The maximum number of connections that are tracked.
const MAX_CONNECTIONS: usize = 100_000;

/// The state of a TCP socket at one poll.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TcpSocketSample {
    inode: u64,
    state: u8,
    local: SocketAddr,
    remote: SocketAddr,
    traffic: Option<TcpTraffic>,
}

/// The traffic of a socket since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct TcpTraffic {
    sent: u64,
    received: u64,
    rtt_us: u32,
}

/// The first and the last state of a connection.
#[derive(Clone, Copy, Debug)]
struct ObservedTcpConnection {
    first: TcpSocketSample,
    last: TcpSocketSample,
    /// True if it was open before the capture.
    preexisting: bool,
}

/// Tracks the connections of the target.
pub(super) async fn network(run: &CaptureRun<'_>, mut warnings: Vec<String>) -> Result<CaptureOutput, Error> {
    let pid = run.pid();
    // The kernel answers for the network namespace of the caller, so its statistics fit only a target in the same one.
    let namespace = |pid| proc::link(pid, "ns/net").ok();
    let is_same_namespace =
        namespace(pid).is_some_and(|target| Some(target) == namespace(std::process::id()));
    let sock_diag = if is_same_namespace { SockDiag::open().ok() } else { None };
    if sock_diag.is_none() {
        let note = "the target has a network of its own, or the kernel gives no statistics: connections are listed without bytes";
        warnings.push(note.to_owned());
    }
    let mut connections: HashMap<(SocketAddr, SocketAddr, u64), ObservedTcpConnection> = HashMap::new();
    let mut listening: HashSet<u16> = HashSet::new();
    let started = Instant::now();
    let mut ended = false;
    let mut polls = 0_u64;
    loop {
        let held = proc::sockets(pid);
        // A target without sockets is fine; one that is gone has no folder in /proc.
        if polls == 0 && held.is_empty() && std::fs::metadata(format!("/proc/{pid}")).is_err() {
            return Err(run.target_exited(Duration::ZERO));
        }
        let sockets = match &sock_diag {
            Some(sock_diag) => sock_diag.sockets().unwrap_or_default(),
            None => ["net/tcp", "net/tcp6"]
                .iter()
                .flat_map(|table| {
                    proc::text(pid, table)
                        .unwrap_or_default()
                        .lines()
                        .skip(1)
                        .filter_map(parse_table_row)
                        .collect::<Vec<_>>()
                })
                .collect(),
        };
        for socket in sockets.into_iter().filter(|socket| held.contains_key(&socket.inode)) {
            const LISTEN: u8 = 10;
            if socket.state == LISTEN {
                listening.insert(socket.local.port());
                continue;
            }
            // With the inode, since a pair of addresses may be used again within the capture.
            let key = (socket.local, socket.remote, socket.inode);
            if let Some(known) = connections.get_mut(&key) {
                known.last = socket;
            } else if connections.len() < MAX_CONNECTIONS {
                connections.insert(
                    key,
                    ObservedTcpConnection { first: socket, last: socket, preexisting: polls == 0 },
                );
            }
        }
        polls += 1;
        let remaining = run.duration.saturating_sub(started.elapsed());
        if remaining.is_zero() || ended {
            break;
        }
        if let CaptureWaitOutcome::TargetExited(after) = run.wait(remaining.min(POLL_INTERVAL)).await? {
            warnings.push(format!("the target ended after {} ms", millis(started.elapsed().max(after))));
            ended = true;
        }
    }
    let elapsed = started.elapsed();
    let samples = Some(connections.len() as u64);
    let peers = peers(&connections, &listening);
    let json = serde_json::json!({"duration_ms": millis(elapsed), "connections": peers});
    run.files.write(FILE, json.to_string().as_bytes()).map_err(|error| run.store_error(error))?;
    let summary = Some(ProfileSummary::Network(Box::new(NetworkSummary::from_peers(peers))));
    Ok(CaptureOutput {
        format: "json",
        extension: FILE,
        elapsed,
        samples,
        summary,
        warnings,
        ..CaptureOutput::default()
    })
}

/// Groups the connections by peer.
fn peers(
    connections: &HashMap<(SocketAddr, SocketAddr, u64), ObservedTcpConnection>,
    listening: &HashSet<u16>,
) -> Vec<PeerSummary> {
    let mut peers: BTreeMap<(bool, String, Option<u16>), PeerSummary> = BTreeMap::new();
    for connection in connections.values() {
        let TcpSocketSample { local, remote, .. } = connection.last;
        // The kernel does not record who connected. A local port on which the target listens was not chosen by its
        // side.
        let is_incoming = listening.contains(&local.port());
        // The remote port of an incoming connection is used once only, so it is left out.
        let (name, port) = match is_incoming {
            true => (remote.ip().to_canonical().to_string(), Some(local.port())),
            false => (SocketAddr::new(remote.ip().to_canonical(), remote.port()).to_string(), None),
        };
        let peer = peers.entry((is_incoming, name.clone(), port)).or_insert_with(|| PeerSummary {
            direction: if is_incoming { "in" } else { "out" },
            peer: name,
            port,
            connections: 0,
            opened: 0,
            bytes_sent: None,
            bytes_received: None,
            rtt_ms: None,
        });
        peer.connections += 1;
        peer.opened += u64::from(!connection.preexisting);
        if let (Some(first), Some(last)) = (connection.first.traffic, connection.last.traffic) {
            // All traffic of a connection that was opened during the capture counts.
            let since = if connection.preexisting { first } else { TcpTraffic::default() };
            let add = |sum: &mut Option<u64>, to: u64, from: u64| {
                *sum = Some(sum.unwrap_or_default().saturating_add(to.saturating_sub(from)));
            };
            add(&mut peer.bytes_sent, last.sent, since.sent);
            add(&mut peer.bytes_received, last.received, since.received);
            let rtt = (f64::from(last.rtt_us) / 100.0).round() / 10.0;
            peer.rtt_ms = Some(peer.rtt_ms.unwrap_or_default().max(rtt));
        }
    }
    peers.into_values().collect()
}

/// Parses a line of `/proc/net/tcp`: `sl local remote st tx:rx tr:when retrnsmt uid timeout inode`.
fn parse_table_row(line: &str) -> Option<TcpSocketSample> {
    let mut fields = line.split_ascii_whitespace();
    let (local, remote) = (fields.nth(1)?, fields.next()?);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(5)?.parse().ok()?;
    Some(TcpSocketSample {
        inode,
        state,
        local: parse_address(local)?,
        remote: parse_address(remote)?,
        traffic: None,
    })
}

/// Parses `0100007F:240D`: an address in network byte order, printed as words in the machine's byte order.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for start in (0..address.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(address.get(start..start + 8)?, 16).ok()?.to_ne_bytes());
    }
    Some(SocketAddr::new(ip(&bytes)?, port))
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
        _ => None,
    }
}

/// A netlink socket that lists the sockets of this network namespace. The layouts are those of `linux/inet_diag.h`, `linux/netlink.h`
/// and `linux/tcp.h`.
struct SockDiag(OwnedFd);

/// `AF_INET` and `AF_INET6`.
const ADDRESS_FAMILIES: [u8; 2] = [2, 10];
const TCP: u8 = 6;
/// `SOCK_DIAG_BY_FAMILY`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP_FLAGS: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSG_HEADER_BYTES: usize = 16;
const DIAG_MSG_BYTES: usize = 72;
/// `INET_DIAG_INFO`: a `tcp_info`.
const TCP_INFO: u16 = 2;

impl SockDiag {
    fn open() -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        // The kernel answers at once or never.
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_millis(500)))?;
        Ok(Self(socket))
    }

    /// Returns every TCP socket of this network namespace.
    fn sockets(&self) -> io::Result<Vec<TcpSocketSample>> {
        let mut found = Vec::new();
        for family in ADDRESS_FAMILIES {
            self.send_request(family)?;
            self.receive_answer(&mut found)?;
        }
        Ok(found)
    }

    fn send_request(&self, family: u8) -> io::Result<()> {
        const LENGTH: u32 = 16 + 56;
        let mut request = Vec::new();
        request.extend(LENGTH.to_ne_bytes());
        request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        request.extend(DUMP_FLAGS.to_ne_bytes());
        request.extend([0; 8]);
        // Family, protocol, extensions, then all states and no particular socket.
        request.extend([family, TCP, 1 << (TCP_INFO - 1), 0]);
        request.extend(u32::MAX.to_ne_bytes());
        request.extend([0; 48]);
        sendto(&self.0, &request, SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    fn receive_answer(&self, found: &mut Vec<TcpSocketSample>) -> io::Result<()> {
        let mut buffer = vec![0; 256 << 10];
        loop {
            let (length, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty())?;
            if length == 0 || !parse_messages(buffer.get(..length).unwrap_or_default(), found)? {
                return Ok(());
            }
        }
    }
}

fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes_at(bytes, offset).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes_at(bytes, offset).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes_at(bytes, offset).map(u64::from_ne_bytes)
}

/// Parses the messages of one datagram. Returns false after the last one of an answer.
fn parse_messages(mut bytes: &[u8], found: &mut Vec<TcpSocketSample>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(message) = bytes.get(NLMSG_HEADER_BYTES..length) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => return Err(io::ErrorKind::Unsupported.into()),
            SOCK_DIAG_BY_FAMILY => found.extend(parse_socket(message)),
            _ => {}
        }
        // Messages and attributes are aligned to 4 bytes, which their length does not include.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// Parses an `inet_diag_msg` and the attributes after it.
fn parse_socket(message: &[u8]) -> Option<TcpSocketSample> {
    let (family, state) = (*message.first()?, *message.get(1)?);
    let size = if family == ADDRESS_FAMILIES[0] { 4 } else { 16 };
    let port = |offset| bytes_at(message, offset).map(u16::from_be_bytes);
    let address = |offset: usize| ip(message.get(offset..offset + size)?);
    let local = SocketAddr::new(address(8)?, port(4)?);
    let remote = SocketAddr::new(address(24)?, port(6)?);
    let inode = u64::from(u32_at(message, 68)?);
    let mut traffic = None;
    let mut rest = message.get(DIAG_MSG_BYTES..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else { break };
        if kind == TCP_INFO {
            traffic = parse_tcp_info(value);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(TcpSocketSample { inode, state, local, remote, traffic })
}

/// Parses a `tcp_info`, whose length depends on the kernel.
fn parse_tcp_info(info: &[u8]) -> Option<TcpTraffic> {
    let received = u64_at(info, 128)?;
    // `tcpi_bytes_sent` is newer (Linux 4.19) than `tcpi_bytes_acked`, which older kernels have.
    let sent = u64_at(info, 200).or_else(|| u64_at(info, 120))?;
    Some(TcpTraffic { sent, received, rtt_us: u32_at(info, 68)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};

    #[test]
    fn the_kernel_tells_what_a_connection_carried() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 12_345]).unwrap();
        server.read_exact(&mut [0; 12_345]).unwrap();
        let sockets = SockDiag::open().unwrap().sockets().unwrap();
        let held = proc::sockets(std::process::id());
        let own = sockets.iter().find(|socket| socket.local == client.local_addr().unwrap()).unwrap();
        assert!(held.contains_key(&own.inode));
        assert_eq!(own.remote, listener.local_addr().unwrap());
        assert_eq!(own.traffic.unwrap().sent, 12_345);
        let other = sockets.iter().find(|socket| socket.remote == client.local_addr().unwrap()).unwrap();
        assert_eq!(other.traffic.unwrap().received, 12_345);
        // The table says the same, but for the bytes.
        let table = proc::text(std::process::id(), "net/tcp").unwrap();
        let row = table
            .lines()
            .skip(1)
            .filter_map(parse_table_row)
            .find(|socket| socket.inode == own.inode)
            .unwrap();
        assert_eq!((row.local, row.remote, row.state), (own.local, own.remote, own.state));
    }

    #[test]
    fn connections_are_told_by_peer_and_what_was_before_is_not_counted() {
        let socket = |local: &str, remote: &str, inode, sent| TcpSocketSample {
            inode,
            state: 1,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            traffic: Some(TcpTraffic { sent, received: 0, rtt_us: 1500 }),
        };
        let mut connections = HashMap::new();
        for (at, (first, last, old)) in [
            (
                socket("10.0.0.1:80", "10.0.0.9:5001", 1, 100),
                socket("10.0.0.1:80", "10.0.0.9:5001", 1, 150),
                true,
            ),
            (
                socket("10.0.0.1:80", "10.0.0.9:5002", 2, 7),
                socket("10.0.0.1:80", "10.0.0.9:5002", 2, 10),
                false,
            ),
            (
                socket("10.0.0.1:4000", "[::ffff:10.0.0.7]:5432", 3, 0),
                socket("10.0.0.1:4000", "[::ffff:10.0.0.7]:5432", 3, 5),
                false,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            connections.insert(
                (first.local, first.remote, at as u64),
                ObservedTcpConnection { first, last, preexisting: old },
            );
        }
        let peers = peers(&connections, &HashSet::from([80]));
        let listed: Vec<_> = peers
            .iter()
            .map(|peer| {
                (peer.direction, &*peer.peer, peer.port, peer.connections, peer.opened, peer.bytes_sent)
            })
            .collect();
        assert_eq!(
            listed,
            [("out", "10.0.0.7:5432", None, 1, 1, Some(5)), ("in", "10.0.0.9", Some(80), 2, 1, Some(60))]
        );
        assert_eq!(peers[0].rtt_ms, Some(1.5));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>, line in ".{0,100}") {
            let _ = parse_messages(&bytes, &mut Vec::new());
            let _ = parse_socket(&bytes);
            parse_table_row(&line);
        }
    }
}
