//! Kinds of addresses: which of them lie on the public internet, and blocks of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kinds of addresses that are closed unless a list of hosts names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClosedAddressKind {
    /// This machine: 127.0.0.0/8, `::1`, and the unspecified addresses, which connect to it too.
    Loopback,
    /// Networks of an organisation: RFC 1918, RFC 6598 and unique local addresses.
    Private,
    /// The link: 169.254.0.0/16 and `fe80::/10`, where the metadata services of clouds are.
    LinkLocal,
    /// A metadata service of a cloud at an address outside the other kinds.
    Metadata,
    /// Multicast, broadcast, documentation, benchmarks, and what is reserved.
    Reserved,
}

impl fmt::Display for ClosedAddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a metadata service",
            Self::Reserved => "a reserved address",
        })
    }
}

impl ClosedAddressKind {
    /// Returns the kind of an address, or `None` for one of the public internet.
    ///
    /// An IPv6 address that holds an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo) is also judged by the IPv4
    /// address, because a gateway would send the packets to the IPv4 address.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Option<Self> {
        // Azure's agent, beside 169.254.169.254 on an address of its public range.
        const AZURE_WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
        if address == AZURE_WIRE_SERVER {
            return Some(Self::Metadata);
        }
        match address.octets() {
            [127, ..] | [0, 0, 0, 0] => Some(Self::Loopback),
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Some(Self::Private),
            [169, 254, ..] => Some(Self::LinkLocal),
            [0, ..] | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => Some(Self::Reserved),
            [198, 51, 100, _] | [203, 0, 113, _] | [224..=255, ..] => Some(Self::Reserved),
            _ => None,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Option<Self> {
        let segments = address.segments();
        let embedded = |high: u16, low: u16| {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Self::of_v4(Ipv4Addr::new(a, b, c, d))
        };
        match segments {
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some(Self::Loopback),
            // Compatible with IPv4, and translated by SIIT: deprecated, and never on the public internet.
            [0, 0, 0, 0, 0, 0, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => Some(Self::Reserved),
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
            [0x64, 0xff9b, 1, ..] => Some(Self::Private),
            [0x100, 0, 0, ..] => Some(Self::Reserved),
            [0x2001, 0, .., high, low] => embedded(!high, !low).or(Some(Self::Reserved)),
            [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => Some(Self::Reserved),
            [0x2002, high, low, ..] => embedded(high, low),
            [0x3fff, second, ..] if second < 0x1000 => Some(Self::Reserved),
            [first, ..] if first & 0xfe00 == 0xfc00 => Some(Self::Private),
            [first, ..] if first & 0xffc0 == 0xfe80 => Some(Self::LinkLocal),
            [first, ..] if first & 0xffc0 == 0xfec0 => Some(Self::Private),
            // The public internet is 2000::/3 so far.
            [first, ..] if first & 0xe000 == 0x2000 => None,
            _ => Some(Self::Reserved),
        }
    }
}

/// A block of addresses in CIDR notation; one address is a block of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AddressBlock {
    address: IpAddr,
    prefix: u8,
}

impl AddressBlock {
    /// Parses `10.1.2.3`, `10.0.0.0/8`, `fd00::1` or `fd00::/8`. `None` if it is neither, or has bits beyond the prefix.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => prefix.parse().ok()?,
            Some(_) => return None,
            None => bits,
        };
        // A block of mapped addresses would never match, since hosts hold these as IPv4.
        let block = Self { address, prefix };
        let is_valid = prefix <= bits
            && block.network(address) == number(address)
            && (address.to_canonical() == address || prefix == bits);
        is_valid.then(|| match prefix == bits && address.to_canonical() != address {
            true => Self { address: address.to_canonical(), prefix: 32 },
            false => block,
        })
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && self.network(address) == self.network(self.address)
    }

    /// Returns the bits of an address that lie in the prefix.
    fn network(&self, address: IpAddr) -> u128 {
        let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
        let host_bits = bits.saturating_sub(self.prefix.into());
        number(address).checked_shr(host_bits).unwrap_or(0).checked_shl(host_bits).unwrap_or(0)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        match (self.address, self.prefix) {
            (IpAddr::V4(_), 32) | (IpAddr::V6(_), 128) => Ok(()),
            (_, prefix) => write!(f, "/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_that_is_not_public_has_a_kind() {
        use ClosedAddressKind::{LinkLocal, Loopback, Metadata, Private, Reserved};
        for (address, kind) in [
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.254", Some(Loopback)),
            ("0.0.0.0", Some(Loopback)),
            ("::1", Some(Loopback)),
            ("::", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("64:ff9b::7f00:1", Some(Loopback)),
            ("2002:7f00:1::", Some(Loopback)),
            ("10.0.0.1", Some(Private)),
            ("172.16.0.1", Some(Private)),
            ("172.32.0.1", None),
            ("192.168.1.1", Some(Private)),
            ("100.100.100.200", Some(Private)), // Alibaba's metadata service
            ("100.128.0.1", None),
            ("fd00:ec2::254", Some(Private)), // Amazon's, over IPv6
            ("fec0::1", Some(Private)),
            ("64:ff9b::a00:1", Some(Private)),
            ("64:ff9b:1::1", Some(Private)),
            ("169.254.169.254", Some(LinkLocal)),
            ("::ffff:169.254.169.254", Some(LinkLocal)),
            ("fe80::1", Some(LinkLocal)),
            ("2001:0:4136:e378:8000:63bf:5601:5601", Some(LinkLocal)), // Teredo of 169.254.169.254
            ("168.63.129.16", Some(Metadata)),
            ("192.0.0.192", Some(Reserved)), // Oracle's metadata service
            ("192.0.2.1", Some(Reserved)),
            ("198.18.0.1", Some(Reserved)),
            ("224.0.0.1", Some(Reserved)),
            ("255.255.255.255", Some(Reserved)),
            ("0.1.2.3", Some(Reserved)),
            ("ff02::1", Some(Reserved)),
            ("2001:db8::1", Some(Reserved)),
            ("::7f00:1", Some(Reserved)),
            ("9.9.9.9", None),
            ("2600::1", None),
            ("64:ff9b::909:909", None),
        ] {
            assert_eq!(ClosedAddressKind::of(address.parse().unwrap()), kind, "{address}");
        }
    }

    #[test]
    fn a_block_holds_its_addresses() {
        let block = |text: &str| AddressBlock::parse(text);
        assert!(block("10.0.0.0/8").unwrap().contains("10.255.0.1".parse().unwrap()));
        assert!(block("10.0.0.0/8").unwrap().contains("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!block("10.0.0.0/8").unwrap().contains("11.0.0.1".parse().unwrap()));
        assert!(!block("0.0.0.0/0").unwrap().contains("::1".parse().unwrap()));
        assert!(block("::/0").unwrap().contains("2600::1".parse().unwrap()));
        assert!(block("127.0.0.1").unwrap().contains("127.0.0.1".parse().unwrap()));
        assert!(!block("127.0.0.1").unwrap().contains("127.0.0.2".parse().unwrap()));
        assert!(block("::ffff:127.0.0.1").unwrap().contains("127.0.0.1".parse().unwrap()));
        for wrong in ["10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "a/8", "::ffff:0:0/96"] {
            assert_eq!(block(wrong), None, "{wrong}");
        }
    }
}
