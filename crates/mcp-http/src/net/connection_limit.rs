//! The number of connections that are open at once, in all and from one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// The least share of one address, unless the whole limit is smaller: several agents behind one address, each with
/// several connections.
const MIN_PER_ADDRESS: usize = 64;

/// The limits on connections, and the connections that are open.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    max: usize,
    max_per_address: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A permit to keep one connection open; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limit: Arc<ConnectionLimit>,
    network: Option<IpAddr>,
}

impl ConnectionLimit {
    /// Allows `max` connections at once, and a quarter of them from one address.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let max_per_address = (max / 4).max(MIN_PER_ADDRESS).min(max);
        Arc::new(Self { max, max_per_address, open: Mutex::default() })
    }

    /// Takes a permit for a connection from `address`, or returns `None` where the limit is reached. A peer without an
    /// address, and a proxy that speaks for many, give no address: they count towards the total alone.
    pub(crate) fn try_acquire(self: &Arc<Self>, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        let network = address.map(network);
        // One lock for both counts: a connection must not take a slot of one and then find the other full.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.max {
            return None;
        }
        if let Some(network) = network {
            let count = open.by_address.entry(network).or_default();
            if *count >= self.max_per_address {
                return None;
            }
            *count += 1;
        }
        open.total += 1;
        Some(ConnectionPermit { limit: Arc::clone(self), network })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limit.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        if let Some(network) = self.network
            && let Some(count) = open.by_address.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                // Or the map would grow with every address that ever connected.
                open.by_address.remove(&network);
            }
        }
    }
}

/// Returns what is counted as one address. A client that has one IPv6 address can use all 2^64 of its network, so
/// that the first half of the address is counted.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn one_address_gets_a_quarter_of_the_connections() {
        let limit = ConnectionLimit::new(1000);
        let held: Vec<_> = (0..250).map(|_| limit.try_acquire(address("192.0.2.1")).unwrap()).collect();
        assert!(limit.try_acquire(address("192.0.2.1")).is_none());
        assert!(limit.try_acquire(address("::ffff:192.0.2.1")).is_none(), "the same, written for IPv6");
        let _other = limit.try_acquire(address("192.0.2.2")).unwrap();
        drop(held);
        assert!(limit.try_acquire(address("192.0.2.1")).is_some());
        assert!(
            limit.open.lock().unwrap().by_address.len() == 1,
            "an address without connections is forgotten"
        );
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let limit = ConnectionLimit::new(64 * 4);
        let _held: Vec<_> =
            (0..64).map(|n| limit.try_acquire(address(&format!("2001:db8:1:2::{n:x}"))).unwrap()).collect();
        assert!(limit.try_acquire(address("2001:db8:1:2:ffff::1")).is_none());
        assert!(limit.try_acquire(address("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn the_total_is_limited_whatever_the_addresses() {
        let limit = ConnectionLimit::new(3);
        let mut held: Vec<_> = (0..3).map(|_| limit.try_acquire(None).unwrap()).collect();
        assert!(limit.try_acquire(None).is_none() && limit.try_acquire(address("192.0.2.1")).is_none());
        held.pop();
        assert!(limit.try_acquire(address("192.0.2.1")).is_some());
    }
}
