//! Connections at a time: so many in all, and of one address no more than leaves room for others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// What one address may have in any case: a few agents behind one, each with several connections.
const LEAST: usize = 64;

#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by: HashMap<IpAddr, usize>,
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    from: Option<IpAddr>,
}

impl Places {
    /// `most` in all, a quarter of them for one address.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let most_of_one = (most / 4).max(LEAST).min(most);
        Arc::new(Self { most, most_of_one, taken: Mutex::default() })
    }

    /// A place for a connection from there, if one is left. Who has no address, or speaks for many, is counted in the whole
    /// alone.
    pub(crate) fn take(self: &Arc<Self>, from: Option<IpAddr>) -> Option<Place> {
        let from = from.map(network);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.all >= self.most {
            return None;
        }
        if let Some(from) = from {
            let of_it = taken.by.entry(from).or_default();
            if *of_it >= self.most_of_one {
                return None;
            }
            *of_it += 1;
        }
        taken.all += 1;
        Some(Place { places: Arc::clone(self), from })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(from) = self.from
            && let Some(of_it) = taken.by.get_mut(&from)
        {
            *of_it -= 1;
            if *of_it == 0 {
                taken.by.remove(&from);
            }
        }
    }
}

/// Whoever has one address of IPv6 has the 2^64 of its network too.
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
    fn one_address_has_a_quarter_and_leaves_the_rest_to_others() {
        let places = Places::new(1000);
        let held: Vec<_> = (0..250).map(|_| places.take(address("192.0.2.1")).unwrap()).collect();
        assert!(places.take(address("192.0.2.1")).is_none());
        assert!(places.take(address("::ffff:192.0.2.1")).is_none(), "the same, written for IPv6");
        let _other = places.take(address("192.0.2.2")).unwrap();
        drop(held);
        assert!(places.take(address("192.0.2.1")).is_some());
        assert!(places.taken.lock().unwrap().by.len() == 1, "who has none is forgotten");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let places = Places::new(64 * 4);
        let _held: Vec<_> =
            (0..64).map(|n| places.take(address(&format!("2001:db8:1:2::{n:x}"))).unwrap()).collect();
        assert!(places.take(address("2001:db8:1:2:ffff::1")).is_none());
        assert!(places.take(address("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn there_are_so_many_in_all_whoever_has_them() {
        let places = Places::new(3);
        let mut held: Vec<_> = (0..3).map(|_| places.take(None).unwrap()).collect();
        assert!(places.take(None).is_none() && places.take(address("192.0.2.1")).is_none());
        held.pop();
        assert!(places.take(address("192.0.2.1")).is_some());
    }
}
