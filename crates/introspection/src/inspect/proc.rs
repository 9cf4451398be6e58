//! Facts about processes from `/proc` (`proc(5)`): owner, program, files, sockets.
#![allow(
    clippy::disallowed_methods,
    reason = "/proc is the system's account of processes and no file beneath a root; `target` decides which processes may be read"
)]

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The limit of what is read of one file of `/proc`, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Reads a file of a process, up to 4 MiB.
pub(crate) fn read(pid: u32, name: &str) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = fs::File::open(Path::new("/proc").join(pid.to_string()).join(name))?;
    // The length of such a file is only known at its end, and `maps` of a large process has megabytes.
    file.take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of a process as text.
pub(crate) fn text(pid: u32, name: &str) -> std::io::Result<String> {
    read(pid, name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a link of a process: `exe`, `cwd`, `root`.
pub(crate) fn link(pid: u32, name: &str) -> std::io::Result<PathBuf> {
    fs::read_link(Path::new("/proc").join(pid.to_string()).join(name))
}

/// Returns the ids of all processes, in ascending order.
pub(crate) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let mut pids: Vec<u32> =
        // Names that are numbers are processes; the others, such as `meminfo`, are facts about the system.
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The contents of `/proc/PID/status`.
#[derive(Clone, Debug)]
pub(crate) struct ProcessStatus(String);

impl ProcessStatus {
    /// Reads the status of a process.
    pub(crate) fn of(pid: u32) -> std::io::Result<Self> {
        text(pid, "status").map(Self)
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// Returns the real, effective, saved and file system user.
    pub(crate) fn users(&self) -> Vec<u32> {
        let users = self.field("Uid").unwrap_or_default();
        users.split_ascii_whitespace().filter_map(|user| user.parse().ok()).collect()
    }

    /// Returns the id of the process in its own PID namespace.
    pub(crate) fn own_pid(&self) -> Option<u32> {
        self.field("NSpid")?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// Returns true if the process is stopped, by a signal or by the one that traces it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.field("State").is_some_and(|state| state.starts_with(['T', 't']))
    }

    /// Returns true if the process has a handler for `signal`. Without one most signals end a process.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn catches(&self, signal: u32) -> bool {
        let caught = self.field("SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        caught.is_some_and(|mask| signal >= 1 && mask >> (signal - 1) & 1 == 1)
    }
}

/// Returns the start time of a process, in clock ticks since boot. It tells a process from a later one with the same id.
///
/// # Errors
/// There is no such process, or it has ended and only waits for its parent.
pub(crate) fn started(pid: u32) -> std::io::Result<u64> {
    let stat = text(pid, "stat")?;
    // The second field, the name, may hold blanks and parentheses; the others cannot.
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The state, the number of threads and the start time: fields 3, 20 and 22 (proc_pid_stat(5)).
    let (state, threads, started) = (fields.first(), fields.get(17), fields.get(19));
    // The first thread of a process may end before the others.
    if state == Some(&"Z") && threads.is_none_or(|threads| matches!(*threads, "0" | "1")) {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    started.and_then(|field| field.parse().ok()).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// Reads `cmdline` or `environ` as a list of strings.
pub(crate) fn strings(pid: u32, name: &str) -> std::io::Result<Vec<String>> {
    let bytes = read(pid, name)?;
    let strings = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    Ok(strings.map(|part| String::from_utf8_lossy(part).into_owned()).collect())
}

/// A listening TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListeningSocket {
    pub(crate) address: SocketAddr,
    /// The user that created it.
    pub(crate) user: u32,
    inode: u64,
}

/// Returns the listening sockets in the network namespace of `pid`.
pub(crate) fn listeners(pid: u32) -> Vec<ListeningSocket> {
    let tables = ["net/tcp", "net/tcp6"].map(|table| text(pid, table).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().skip(1).filter_map(parse_listener)).collect()
}

/// Parses one line of `/proc/net/tcp`: `sl local remote st tx:rx tr:when retrnsmt uid timeout inode`.
fn parse_listener(line: &str) -> Option<ListeningSocket> {
    /// `TCP_LISTEN`.
    const LISTEN_STATE: &str = "0A";
    let mut fields = line.split_ascii_whitespace();
    let local = fields.nth(1)?;
    if fields.nth(1)? != LISTEN_STATE {
        return None;
    }
    let user = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words of 32 bits, printed in the byte order of the machine; the address in them is in network order.
    let word = |index: usize| u32::from_str_radix(address.get(index * 8..index * 8 + 8)?, 16).ok();
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?.to_ne_bytes());
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(ListeningSocket { address: SocketAddr::new(address, port), user, inode })
}

/// Returns the sockets that a process holds: the file descriptor of each inode.
pub(crate) fn sockets(pid: u32) -> BTreeMap<u64, u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    let sockets = entries.filter_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((inode, entry.file_name().to_str()?.parse().ok()?))
    });
    sockets.collect()
}

/// Returns the number of open file descriptors of a process.
pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().count()
}

/// Returns the addresses at which a process listens, in the order of the file descriptors: mostly that in which the
/// sockets were made.
pub(crate) fn listens(pid: u32) -> Vec<SocketAddr> {
    let held = sockets(pid);
    // The tables list the sockets of all processes in the network namespace.
    let in_namespace = listeners(pid).into_iter();
    let mut of_process: Vec<(u32, SocketAddr)> =
        in_namespace.filter_map(|listener| Some((*held.get(&listener.inode)?, listener.address))).collect();
    of_process.sort_unstable_by_key(|(descriptor, _)| *descriptor);
    of_process.into_iter().map(|(_, address)| address).collect()
}

/// Returns the processes that hold one of the listeners, among those whose descriptors this process may read, by process
/// id. Several hold the same one where a server starts workers after it has begun to listen.
pub(crate) fn holders(listeners: &[ListeningSocket]) -> Vec<u32> {
    let holds = |pid: &u32| {
        let held = sockets(*pid);
        listeners.iter().any(|listener| held.contains_key(&listener.inode))
    };
    pids().into_iter().filter(holds).collect()
}

/// Returns the processor time that each thread of a process has used so far, by thread id.
pub(crate) fn thread_cpu_times(pid: u32) -> BTreeMap<u32, Duration> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    let times = entries.filter_map(|entry| {
        let thread: u32 = entry.file_name().to_str()?.parse().ok()?;
        // Nanoseconds on the processor, nanoseconds in the queue, time slices (sched-stats.rst of the kernel).
        let text = text(pid, &format!("task/{thread}/schedstat")).ok()?;
        let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
        Some((thread, Duration::from_nanos(nanoseconds)))
    });
    times.collect()
}

/// Returns true if the first 256 MiB of a file contain `needle`.
pub(crate) fn file_contains(path: &Path, needle: &[u8]) -> bool {
    use std::io::Read as _;
    const CHUNK: usize = 1 << 20;
    let Ok(file) = fs::File::open(path) else { return false };
    let mut file = file.take(256 << 20);
    let finder = memchr::memmem::Finder::new(needle);
    let mut buffer: Vec<u8> = Vec::with_capacity(CHUNK + needle.len());
    loop {
        // The end of the last chunk stays, for a needle that lies across two.
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
        let found = parse_listener(line).unwrap();
        #[cfg(target_endian = "little")]
        assert_eq!(found.address.to_string(), "127.0.0.1:9229");
        assert_eq!((found.user, found.inode), (1000, 82511));
        assert_eq!(parse_listener(&line.replace(" 0A ", " 01 ")), None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn an_address_of_sixteen_bytes_is_read_word_by_word() {
        let line = "0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 7 0 9";
        assert_eq!(parse_listener(line).unwrap().address.to_string(), "[::1]:8080");
    }

    #[test]
    fn a_signal_is_caught_where_its_bit_says_so() {
        let status = ProcessStatus("Name:\tx\nUid:\t0\t1\t2\t3\nSigCgt:\t0000000000000200\n".to_owned());
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
        assert!(holders(&[*listener]).contains(&own));
        // This thread has just worked, so it has used some time.
        assert!(thread_cpu_times(own).values().any(|used| !used.is_zero()));
        assert!(started(own).unwrap() > 0);
    }
}
