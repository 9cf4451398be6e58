//! The number of connections that are open at once, in all and from one address.

use super::activity::ConnectionActivity;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The least share of one address, unless the whole limit is smaller: several agents behind one address, each with
/// several connections.
const MIN_PER_ADDRESS: usize = 64;

/// The most connections that were replaced and have not ended yet.
const MAX_ENDING: usize = 64;

/// The limits on connections, and the connections that are open.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    max: usize,
    max_per_address: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    by_address: HashMap<IpAddr, usize>,
    /// Those that count, in the order in which they came.
    slots: BTreeMap<u64, (Option<IpAddr>, ConnectionSlot)>,
    last_number: u64,
    /// Those that were replaced and have not ended yet.
    ending: usize,
}

/// One connection, as the limit knows it.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlot {
    pub(super) activity: Arc<ConnectionActivity>,
    pub(super) standing: ConnectionStanding,
    /// Cancelled when another client gets the place of this one.
    pub(super) replaced: CancellationToken,
}

/// Tells whether a caller has identified itself on a connection. Such a connection keeps its place.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionStanding(Arc<AtomicBool>);

impl ConnectionStanding {
    /// Notes that a request on the connection came from a known caller.
    pub(crate) fn set_identified(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_identified(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A permit to keep one connection open; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limit: Arc<ConnectionLimit>,
    number: u64,
    slot: ConnectionSlot,
}

impl ConnectionPermit {
    /// Returns the connection.
    pub(super) fn slot(&self) -> &ConnectionSlot {
        &self.slot
    }
}

impl ConnectionLimit {
    /// Allows `max` connections at once, and a quarter of them from one address.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let max_per_address = (max / 4).max(MIN_PER_ADDRESS).min(max);
        Arc::new(Self { max, max_per_address, open: Mutex::default() })
    }

    /// Takes a permit for a connection from `address`. A peer without an address, and a proxy that speaks for many, give no
    /// address: they count towards the total alone.
    ///
    /// Where the limit is reached, the new connection gets the place of one on which nobody has identified itself and no
    /// request is being answered: one that has sent no whole head before one that has, and of these the one that has been
    /// idle longest. So idle connections keep no place from a client that sends its request at once. Returns `None` if there
    /// is no such connection.
    pub(crate) fn try_acquire(self: &Arc<Self>, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        let network = address.map(network);
        // One lock for both counts: a connection must not take a slot of one and then find the other full.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_network = network.and_then(|network| open.by_address.get(&network)).copied();
        if of_network.is_some_and(|count| count >= self.max_per_address) {
            open.replace_idle(|other| other == network)?;
        } else if open.slots.len() >= self.max {
            open.replace_idle(|_| true)?;
        }
        if let Some(network) = network {
            *open.by_address.entry(network).or_default() += 1;
        }
        open.last_number += 1;
        let number = open.last_number;
        let slot = ConnectionSlot {
            activity: ConnectionActivity::new(),
            standing: ConnectionStanding::default(),
            replaced: CancellationToken::new(),
        };
        open.slots.insert(number, (network, slot.clone()));
        Some(ConnectionPermit { limit: Arc::clone(self), number, slot })
    }
}

impl OpenConnections {
    /// Ends the connection that can best be spared among those of `is_eligible` networks.
    fn replace_idle(&mut self, is_eligible: impl Fn(Option<IpAddr>) -> bool) -> Option<()> {
        if self.ending >= MAX_ENDING {
            return None;
        }
        let spare = self
            .slots
            .iter()
            .filter(|(_, (network, slot))| is_eligible(*network) && !slot.standing.is_identified());
        let mut longest_idle = None;
        let mut silent = None;
        for (number, (_, slot)) in spare {
            let Some((has_asked, since)) = slot.activity.idle_since() else { continue };
            if !has_asked {
                // They came in order, so the first is the one that has been silent longest.
                silent = Some(*number);
                break;
            }
            if longest_idle.is_none_or(|(earliest, _)| since < earliest) {
                longest_idle = Some((since, *number));
            }
        }
        let number = silent.or(longest_idle.map(|(_, number)| number))?;
        let slot = self.remove(number)?;
        self.ending += 1;
        slot.replaced.cancel();
        Some(())
    }

    fn remove(&mut self, number: u64) -> Option<ConnectionSlot> {
        let (network, slot) = self.slots.remove(&number)?;
        if let Some(network) = network
            && let Some(count) = self.by_address.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                // Or the map would grow with every address that ever connected.
                self.by_address.remove(&network);
            }
        }
        Some(slot)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limit.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.remove(self.number).is_none() {
            // It was replaced before.
            open.ending -= 1;
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

    /// A connection on which a caller has identified itself.
    fn identified(limit: &Arc<ConnectionLimit>, from: Option<IpAddr>) -> Option<ConnectionPermit> {
        limit.try_acquire(from).inspect(|permit| permit.slot.standing.set_identified())
    }

    #[test]
    fn an_idle_stranger_gives_its_place_to_a_new_client_the_longest_idle_first() {
        let limit = ConnectionLimit::new(3);
        let first = limit.try_acquire(address("192.0.2.1")).unwrap();
        let has_asked = limit.try_acquire(address("192.0.2.2")).unwrap();
        drop(has_asked.slot.activity.start_request());
        let known = identified(&limit, address("192.0.2.3")).unwrap();
        let is_replaced = |permit: &ConnectionPermit| permit.slot.replaced.is_cancelled();
        let new = limit.try_acquire(address("192.0.2.4")).unwrap();
        assert!(is_replaced(&first) && !is_replaced(&has_asked));
        // One that asks is not ended, whoever asks.
        let _answered = new.slot.activity.start_request();
        let newer = limit.try_acquire(address("192.0.2.5")).unwrap();
        assert!(is_replaced(&has_asked) && !is_replaced(&new));
        newer.slot.standing.set_identified();
        assert!(limit.try_acquire(address("192.0.2.6")).is_none() && !is_replaced(&known));
        assert_eq!(limit.open.lock().unwrap().ending, 2);
        drop((first, has_asked, known, new, newer));
        let open = limit.open.lock().unwrap();
        assert!(open.slots.is_empty() && open.by_address.is_empty() && open.ending == 0, "{open:?}");
    }

    #[test]
    fn an_address_at_its_limit_replaces_its_own_connections_alone() {
        let limit = ConnectionLimit::new(64 * 4);
        let other = limit.try_acquire(address("192.0.2.2")).unwrap();
        let held: Vec<_> = (0..64).map(|_| limit.try_acquire(address("192.0.2.1")).unwrap()).collect();
        let _new = limit.try_acquire(address("192.0.2.1")).unwrap();
        let replaced = held.iter().filter(|permit| permit.slot.replaced.is_cancelled()).count();
        assert!(replaced == 1 && !other.slot.replaced.is_cancelled());
    }

    #[test]
    fn one_address_gets_a_quarter_of_the_connections() {
        let limit = ConnectionLimit::new(1000);
        let held: Vec<_> = (0..250).map(|_| identified(&limit, address("192.0.2.1")).unwrap()).collect();
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
            (0..64).map(|n| identified(&limit, address(&format!("2001:db8:1:2::{n:x}"))).unwrap()).collect();
        assert!(limit.try_acquire(address("2001:db8:1:2:ffff::1")).is_none());
        assert!(limit.try_acquire(address("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn the_total_is_limited_whatever_the_addresses() {
        let limit = ConnectionLimit::new(3);
        let mut held: Vec<_> = (0..3).map(|_| identified(&limit, None).unwrap()).collect();
        assert!(limit.try_acquire(None).is_none() && limit.try_acquire(address("192.0.2.1")).is_none());
        held.pop();
        assert!(limit.try_acquire(address("192.0.2.1")).is_some());
    }
}
