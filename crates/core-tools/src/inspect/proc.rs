//! What `/proc` says of processes: who they belong to, what they run, where they listen (`proc(5)`).
#![allow(
    clippy::disallowed_methods,
    reason = "/proc is the system's account of processes and no file beneath a root; what may be asked of it is judged in `target`"
)]

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The most that is read of one file of `/proc`.
const MOST_BYTES: usize = 4 << 20;

/// A file of a process, as far as it goes.
pub(crate) fn read(pid: u32, name: &str) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = fs::File::open(Path::new("/proc").join(pid.to_string()).join(name))?;
    file.take(MOST_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as text.
pub(crate) fn text(pid: u32, name: &str) -> std::io::Result<String> {
    read(pid, name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Where a link of a process leads: `exe`, `cwd`, `root`.
pub(crate) fn link(pid: u32, name: &str) -> std::io::Result<PathBuf> {
    fs::read_link(Path::new("/proc").join(pid.to_string()).join(name))
}

/// Every process there is.
pub(crate) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The fields of `/proc/PID/status`, by name.
#[derive(Clone, Debug)]
pub(crate) struct Status(String);

impl Status {
    pub(crate) fn of(pid: u32) -> std::io::Result<Self> {
        text(pid, "status").map(Self)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// Real, effective, saved and file system user.
    pub(crate) fn users(&self) -> Vec<u32> {
        let users = self.field("Uid").unwrap_or_default();
        users.split_ascii_whitespace().filter_map(|user| user.parse().ok()).collect()
    }

    /// The process's id in its own namespace.
    pub(crate) fn own_pid(&self) -> Option<u32> {
        self.field("NSpid")?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// Whether it has a handler of its own for a signal: without one most signals end a process.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn catches(&self, signal: u32) -> bool {
        let caught = self.field("SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        caught.is_some_and(|mask| signal >= 1 && mask >> (signal - 1) & 1 == 1)
    }
}

/// When a process was started, in ticks since the system was: tells it from a later one with the same id.
pub(crate) fn started(pid: u32) -> std::io::Result<u64> {
    let stat = text(pid, "stat")?;
    // The name may hold blanks and parentheses.
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let field = rest.split_ascii_whitespace().nth(19).and_then(|field| field.parse().ok());
    field.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// The strings of `cmdline` or `environ`.
pub(crate) fn strings(pid: u32, name: &str) -> std::io::Result<Vec<String>> {
    let bytes = read(pid, name)?;
    let strings = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    Ok(strings.map(|part| String::from_utf8_lossy(part).into_owned()).collect())
}

/// A TCP socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    /// The user it was made by.
    pub(crate) user: u32,
    inode: u64,
}

/// Those of the network that `pid` sees.
pub(crate) fn listeners(pid: u32) -> Vec<Listener> {
    let tables = ["net/tcp", "net/tcp6"].map(|table| text(pid, table).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().skip(1).filter_map(listener)).collect()
}

/// One line of `/proc/net/tcp`: `sl local remote st tx:rx tr:when retrnsmt uid timeout inode`.
fn listener(line: &str) -> Option<Listener> {
    const LISTENS: &str = "0A";
    let mut fields = line.split_ascii_whitespace();
    let local = fields.nth(1)?;
    if fields.nth(1)? != LISTENS {
        return None;
    }
    let user = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words in the machine's byte order, of an address in the network's.
    let word = |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok();
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(Listener { address: SocketAddr::new(address, port), user, inode })
}

/// The sockets that a process holds: the descriptor of each inode.
pub(crate) fn sockets(pid: u32) -> BTreeMap<u64, u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    let sockets = entries.filter_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((inode, entry.file_name().to_str()?.parse().ok()?))
    });
    sockets.collect()
}

/// How many files and sockets a process has open.
pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().count()
}

/// Where a process itself listens, in the order of the descriptors: mostly that in which the sockets were made.
pub(crate) fn listens(pid: u32) -> Vec<SocketAddr> {
    let held = sockets(pid);
    let all = listeners(pid).into_iter();
    let mut own: Vec<(u32, SocketAddr)> =
        all.filter_map(|listener| Some((*held.get(&listener.inode)?, listener.address))).collect();
    own.sort_unstable_by_key(|(descriptor, _)| *descriptor);
    own.into_iter().map(|(_, address)| address).collect()
}

/// The process that holds a listener, among those whose descriptors may be seen.
pub(crate) fn holder(listener: &Listener) -> Option<u32> {
    pids().into_iter().find(|pid| sockets(*pid).contains_key(&listener.inode))
}

/// Whether a file holds `needle`, looked for in its first 256 MiB.
pub(crate) fn file_contains(path: &Path, needle: &[u8]) -> bool {
    use std::io::Read as _;
    const CHUNK: usize = 1 << 20;
    let Ok(file) = fs::File::open(path) else { return false };
    let mut file = file.take(256 << 20);
    let finder = memchr::memmem::Finder::new(needle);
    let mut buffer: Vec<u8> = Vec::with_capacity(CHUNK + needle.len());
    loop {
        let kept = buffer.len().min(needle.len().saturating_sub(1));
        buffer.drain(..buffer.len() - kept);
        match (&mut file).take(CHUNK as u64).read_to_end(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(_) if finder.find(&buffer).is_some() => return true,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_a_listener_with_its_user() {
        let line = "   0: 0100007F:240D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 82511 1";
        let found = listener(line).unwrap();
        #[cfg(target_endian = "little")]
        assert_eq!(found.address.to_string(), "127.0.0.1:9229");
        assert_eq!((found.user, found.inode), (1000, 82511));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn an_address_of_sixteen_bytes_is_read_word_by_word() {
        let line = "0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 7 0 9";
        assert_eq!(listener(line).unwrap().address.to_string(), "[::1]:8080");
    }

    #[test]
    fn a_signal_is_caught_where_its_bit_says_so() {
        let status = Status("Name:\tx\nUid:\t0\t1\t2\t3\nSigCgt:\t0000000000000200\n".to_owned());
        assert!(status.catches(10));
        assert!(!status.catches(9) && !status.catches(3) && !status.catches(0));
        assert_eq!(status.users(), [0, 1, 2, 3]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_listens_where_it_does() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = std::process::id();
        assert!(listens(own).contains(&socket.local_addr().unwrap()));
        let all = listeners(own);
        let listener = all.iter().find(|listener| listener.address == socket.local_addr().unwrap()).unwrap();
        assert_eq!(holder(listener), Some(own));
        assert!(started(own).unwrap() > 0);
    }
}
