//! The question whether a port of this machine is listened on.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Returns true if a process of this machine listens on the TCP port `port`, where a loopback connection reaches it.
///
/// On Linux nothing connects: a server that serves one connection would take the question for its client.
pub(super) async fn is_listening(port: u16) -> bool {
    #[cfg(target_os = "linux")]
    if let Ok(Some(listens)) = tokio::task::spawn_blocking(move || listens_by_proc(port)).await {
        return listens;
    }
    accepts(port).await
}

/// Returns true if a connection is accepted.
async fn accepts(port: u16) -> bool {
    const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
    for address in
        [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))]
    {
        let connect = tokio::net::TcpStream::connect(address);
        if let Ok(Ok(_)) = tokio::time::timeout(CONNECT_TIMEOUT, connect).await {
            return true;
        }
    }
    false
}

/// Looks for a listening socket in the kernel's tables (`/proc/net/tcp`). `None` if they cannot be read.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "the kernel's tables, whose paths nobody requests")]
fn listens_by_proc(port: u16) -> Option<bool> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).ok());
    // A kernel without IPv6 has one table.
    tables[0].as_ref()?;
    Some(tables.iter().flatten().any(|table| table.lines().skip(1).any(|line| is_listener(line, port))))
}

/// Returns true for a line of the table that is a listening socket on `port` and on a local address.
#[cfg(any(target_os = "linux", test))]
fn is_listener(line: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (Some(local), Some(state)) = (fields.next(), fields.nth(1)) else { return false };
    let Some((address, local_port)) = local.split_once(':') else { return false };
    state == LISTEN && u16::from_str_radix(local_port, 16) == Ok(port) && is_local(address)
}

/// Returns true for a loopback address or the one that stands for all. Each group of four bytes is in host order.
#[cfg(any(target_os = "linux", test))]
fn is_local(address: &str) -> bool {
    let groups: Option<Vec<u8>> = (0..address.len() / 8)
        .map(|index| u32::from_str_radix(address.get(index * 8..index * 8 + 8)?, 16).ok())
        .map(|group| group.map(u32::to_ne_bytes))
        .collect::<Option<Vec<_>>>()
        .map(|groups| groups.concat());
    let Some(bytes) = groups else { return false };
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes.as_slice()) {
        let address = Ipv4Addr::from(bytes);
        return address.is_loopback() || address.is_unspecified();
    }
    <[u8; 16]>::try_from(bytes.as_slice()).is_ok_and(|bytes| {
        let address = Ipv6Addr::from(bytes);
        let mapped = address.to_ipv4_mapped().is_some_and(|address| address.is_loopback());
        address.is_loopback() || address.is_unspecified() || mapped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_is_seen_on_both_kinds_of_addresses_and_a_free_port_is_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listening(port).await && accepts(port).await);
        drop(listener);
        assert!(!is_listening(port).await && !accepts(port).await);
        if let Ok(listener) = tokio::net::TcpListener::bind("[::1]:0").await {
            let port = listener.local_addr().unwrap().port();
            assert!(is_listening(port).await && accepts(port).await);
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = |local: &str, state: &str| {
            format!(
                "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 1 1"
            )
        };
        for local in [
            "0100007F:0BB8",
            "00000000:0BB8",
            "00000000000000000000000001000000:0BB8",
            "00000000000000000000000000000000:0BB8",
            "0000000000000000FFFF00000100007F:0BB8",
        ] {
            assert!(is_listener(&line(local, "0A"), 3000), "{local}");
            assert!(!is_listener(&line(local, "0A"), 3001) && !is_listener(&line(local, "01"), 3000));
        }
        assert!(!is_listener(&line("0A00A8C0:0BB8", "0A"), 3000), "another interface");
        for broken in ["", "x", "0: 01:02 x 0A", "0: é0007F:0BB8 x 0A", "0: :0BB8 x 0A"] {
            assert!(!is_listener(broken, 3000), "{broken}");
        }
    }
}
