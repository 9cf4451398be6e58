//! The TCP connections of any process, by the kernel's own statistics (`sock_diag(7)`): nothing is attached, and no
//! content is seen. Looked at four times a second, so what lives shorter than that may be missed.

use super::Error;
use super::network::{NetworkSummary, Peer};
use super::profile::Summary;
use super::run::{Run, Taken, Waited, millis};
use crate::inspect::proc;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto, socket_with, sockopt,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(250);
const FILE: &str = "json";
/// Connections that are told apart.
const MOST: usize = 100_000;

/// One TCP socket, at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Socket {
    inode: u64,
    state: u8,
    local: SocketAddr,
    remote: SocketAddr,
    traffic: Option<Traffic>,
}

/// What it has carried since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Traffic {
    sent: u64,
    received: u64,
    rtt_us: u32,
}

/// What was seen of one connection.
#[derive(Clone, Copy, Debug)]
struct Seen {
    first: Socket,
    last: Socket,
    /// It was there at the beginning.
    old: bool,
}

/// Whom `run`'s process talks to.
pub(super) async fn network(run: &Run<'_>, mut warnings: Vec<String>) -> Result<Taken, Error> {
    let pid = run.pid();
    // The kernel answers for the network of who asks.
    let namespace = |pid| proc::link(pid, "ns/net").ok();
    let same = namespace(pid).is_some_and(|target| Some(target) == namespace(std::process::id()));
    let diagnosis = if same { Diagnosis::open().ok() } else { None };
    if diagnosis.is_none() {
        let note = "the target has a network of its own, or the kernel gives no statistics: connections are told without bytes";
        warnings.push(note.to_owned());
    }
    let mut seen: HashMap<(SocketAddr, SocketAddr, u64), Seen> = HashMap::new();
    let mut listening: HashSet<u16> = HashSet::new();
    let started = Instant::now();
    let mut ended = false;
    let mut looks = 0_u64;
    loop {
        let held = proc::sockets(pid);
        if looks == 0 && held.is_empty() && std::fs::metadata(format!("/proc/{pid}")).is_err() {
            return Err(run.gone(Duration::ZERO));
        }
        let sockets = match &diagnosis {
            Some(diagnosis) => diagnosis.sockets().unwrap_or_default(),
            None => ["net/tcp", "net/tcp6"]
                .iter()
                .flat_map(|table| {
                    proc::text(pid, table)
                        .unwrap_or_default()
                        .lines()
                        .skip(1)
                        .filter_map(row)
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
            let key = (socket.local, socket.remote, socket.inode);
            if let Some(known) = seen.get_mut(&key) {
                known.last = socket;
            } else if seen.len() < MOST {
                seen.insert(key, Seen { first: socket, last: socket, old: looks == 0 });
            }
        }
        looks += 1;
        let left = run.duration.saturating_sub(started.elapsed());
        if left.is_zero() || ended {
            break;
        }
        if let Waited::Gone(after) = run.wait(left.min(LOOK_EVERY)).await? {
            warnings.push(format!("the target ended after {} ms", millis(started.elapsed().max(after))));
            ended = true;
        }
    }
    let lasted = started.elapsed();
    let samples = Some(seen.len() as u64);
    let peers = peers(&seen, &listening);
    let json = serde_json::json!({"duration_ms": millis(lasted), "connections": peers});
    run.files.write(FILE, json.to_string().as_bytes()).map_err(|error| run.unkept(error))?;
    let summary = Some(Summary::Network(Box::new(NetworkSummary::of_peers(peers))));
    Ok(Taken { format: "json", extension: FILE, lasted, samples, summary, warnings, ..Taken::default() })
}

/// What was seen, by peer.
fn peers(seen: &HashMap<(SocketAddr, SocketAddr, u64), Seen>, listening: &HashSet<u16>) -> Vec<Peer> {
    let mut peers: BTreeMap<(bool, String, Option<u16>), Peer> = BTreeMap::new();
    for seen in seen.values() {
        let Socket { local, remote, .. } = seen.last;
        let comes_in = listening.contains(&local.port());
        // Ports of who connects are of one connection only.
        let (name, port) = match comes_in {
            true => (remote.ip().to_canonical().to_string(), Some(local.port())),
            false => (SocketAddr::new(remote.ip().to_canonical(), remote.port()).to_string(), None),
        };
        let peer = peers.entry((comes_in, name.clone(), port)).or_insert_with(|| Peer {
            direction: if comes_in { "in" } else { "out" },
            peer: name,
            port,
            connections: 0,
            opened: 0,
            bytes_sent: None,
            bytes_received: None,
            rtt_ms: None,
        });
        peer.connections += 1;
        peer.opened += u64::from(!seen.old);
        if let (Some(first), Some(last)) = (seen.first.traffic, seen.last.traffic) {
            // Of one that was made meanwhile all of it counts.
            let since = if seen.old { first } else { Traffic::default() };
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

/// One line of `/proc/net/tcp`: `sl local remote st tx:rx tr:when retrnsmt uid timeout inode`.
fn row(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace();
    let (local, remote) = (fields.nth(1)?, fields.next()?);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(5)?.parse().ok()?;
    Some(Socket { inode, state, local: address(local)?, remote: address(remote)?, traffic: None })
}

/// `0100007F:240D`: words in the machine's byte order, of an address in the network's.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..address.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
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

/// A connection to the kernel that tells of sockets. The layouts are those of `linux/inet_diag.h`, `linux/netlink.h`
/// and `linux/tcp.h`.
struct Diagnosis(OwnedFd);

/// `AF_INET` and `AF_INET6`.
const FAMILIES: [u8; 2] = [2, 10];
const TCP: u8 = 6;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// `INET_DIAG_INFO`: a `tcp_info`.
const INFO: u16 = 2;

impl Diagnosis {
    fn open() -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        // The kernel answers at once, or not at all.
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_millis(500)))?;
        Ok(Self(socket))
    }

    /// Every TCP socket of this network.
    fn sockets(&self) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        for family in FAMILIES {
            self.ask(family)?;
            self.read(&mut found)?;
        }
        Ok(found)
    }

    fn ask(&self, family: u8) -> io::Result<()> {
        const LENGTH: u32 = 16 + 56;
        let mut request = Vec::new();
        request.extend(LENGTH.to_ne_bytes());
        request.extend(BY_FAMILY.to_ne_bytes());
        request.extend(DUMP.to_ne_bytes());
        request.extend([0; 8]);
        // Family, protocol, what is wanted beside, all states, no socket in particular.
        request.extend([family, TCP, 1 << (INFO - 1), 0]);
        request.extend(u32::MAX.to_ne_bytes());
        request.extend([0; 48]);
        sendto(&self.0, &request, SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    fn read(&self, found: &mut Vec<Socket>) -> io::Result<()> {
        let mut buffer = vec![0; 256 << 10];
        loop {
            let (length, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty())?;
            if length == 0 || !messages(buffer.get(..length).unwrap_or_default(), found)? {
                return Ok(());
            }
        }
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    number(bytes, at).map(u16::from_ne_bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_ne_bytes)
}

/// Reads the messages of one datagram. False after the last of an answer.
fn messages(mut bytes: &[u8], found: &mut Vec<Socket>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (word(bytes, 0), short(bytes, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(message) = bytes.get(HEADER..length) else { return Err(io::ErrorKind::InvalidData.into()) };
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => return Err(io::ErrorKind::Unsupported.into()),
            BY_FAMILY => found.extend(socket(message)),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// An `inet_diag_msg` and what follows it.
fn socket(message: &[u8]) -> Option<Socket> {
    let (family, state) = (*message.first()?, *message.get(1)?);
    let size = if family == FAMILIES[0] { 4 } else { 16 };
    let port = |at| number(message, at).map(u16::from_be_bytes);
    let address = |at: usize| ip(message.get(at..at + size)?);
    let local = SocketAddr::new(address(8)?, port(4)?);
    let remote = SocketAddr::new(address(24)?, port(6)?);
    let inode = u64::from(word(message, 68)?);
    let mut traffic = None;
    let mut rest = message.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (short(rest, 0), short(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else { break };
        if kind == INFO {
            traffic = info(value);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Socket { inode, state, local, remote, traffic })
}

/// A `tcp_info`, of a kernel that is old or new.
fn info(info: &[u8]) -> Option<Traffic> {
    let received = long(info, 128)?;
    // Bytes sent came later than bytes acknowledged.
    let sent = long(info, 200).or_else(|| long(info, 120))?;
    Some(Traffic { sent, received, rtt_us: word(info, 68)? })
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
        let sockets = Diagnosis::open().unwrap().sockets().unwrap();
        let held = proc::sockets(std::process::id());
        let own = sockets.iter().find(|socket| socket.local == client.local_addr().unwrap()).unwrap();
        assert!(held.contains_key(&own.inode));
        assert_eq!(own.remote, listener.local_addr().unwrap());
        assert_eq!(own.traffic.unwrap().sent, 12_345);
        let other = sockets.iter().find(|socket| socket.remote == client.local_addr().unwrap()).unwrap();
        assert_eq!(other.traffic.unwrap().received, 12_345);
        // The table says the same, but for the bytes.
        let table = proc::text(std::process::id(), "net/tcp").unwrap();
        let row = table.lines().skip(1).filter_map(row).find(|socket| socket.inode == own.inode).unwrap();
        assert_eq!((row.local, row.remote, row.state), (own.local, own.remote, own.state));
    }

    #[test]
    fn connections_are_told_by_peer_and_what_was_before_is_not_counted() {
        let socket = |local: &str, remote: &str, inode, sent| Socket {
            inode,
            state: 1,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            traffic: Some(Traffic { sent, received: 0, rtt_us: 1500 }),
        };
        let mut seen = HashMap::new();
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
            seen.insert((first.local, first.remote, at as u64), Seen { first, last, old });
        }
        let peers = peers(&seen, &HashSet::from([80]));
        let told: Vec<_> = peers
            .iter()
            .map(|peer| {
                (peer.direction, &*peer.peer, peer.port, peer.connections, peer.opened, peer.bytes_sent)
            })
            .collect();
        assert_eq!(
            told,
            [("out", "10.0.0.7:5432", None, 1, 1, Some(5)), ("in", "10.0.0.9", Some(80), 2, 1, Some(60))]
        );
        assert_eq!(peers[0].rtt_ms, Some(1.5));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>, line in ".{0,100}") {
            let _ = messages(&bytes, &mut Vec::new());
            let _ = socket(&bytes);
            row(&line);
        }
    }
}
