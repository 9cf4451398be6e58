//! Lists of the hosts that a program may reach.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::address::{AddressBlock, ClosedAddressKind};
use crate::host::{InvalidHost, NetworkHost};

/// The ports of an entry that names none: those of HTTP and HTTPS.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// The most entries of one list. More are a mistake.
const MAX_ENTRIES: usize = 1024;

/// A list of hosts that may be reached.
///
/// An entry has one of these forms, each with `:PORT` or `:*` (all ports) behind it. Without a port, an entry allows 80
/// and 443.
///
/// | entry | allows |
/// |---|---|
/// | `git.example.com` | this name |
/// | `*.packages.example` | every name below it, at any depth, and not the name itself |
/// | `*` | every name on the public internet |
/// | `10.1.2.3`, `10.0.0.0/8`, `[fd00::1]`, `[fd00::/8]` | these addresses, by address, and by a name that another entry allows |
///
/// A name that leads to a private, link-local or loopback address, or to a metadata service, is refused unless an entry
/// names the address. `localhost` is the exception: an entry `localhost` allows the loopback addresses that it leads to.
///
/// Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllowedHosts {
    /// Every list must allow a host.
    lists: Vec<Arc<[HostRule]>>,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct HostRule {
    pattern: HostPattern,
    ports: PortRule,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum HostPattern {
    Name(String),
    /// Names that end in a dot and this name.
    Below(String),
    AnyName,
    Addresses(AddressBlock),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum PortRule {
    Web,
    All,
    One(u16),
}

/// The reason that a list of hosts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHostRule {
    /// An entry names no host.
    #[error(
        "`{entry}` is no host: {problem}; write a name, `*.NAME`, an address or a block such as `10.0.0.0/8`, with `:PORT` behind it for other ports than 80 and 443"
    )]
    Host {
        /// The entry.
        entry: String,
        /// The part that is wrong.
        problem: InvalidHost,
    },
    /// An entry has `*` at another place than its beginning.
    #[error("`{entry}` has a `*` that stands for a part of a label; only `*.NAME` and `*` are known")]
    Wildcard {
        /// The entry.
        entry: String,
    },
    /// An entry has something else than a port behind its colon.
    #[error("`{entry}` has no port from 1 to 65535 and no `*` behind its colon")]
    Port {
        /// The entry.
        entry: String,
    },
    /// An entry is a URL.
    #[error("`{entry}` is a URL; write only its host, and `:PORT` for another port than 80 and 443")]
    Url {
        /// The entry.
        entry: String,
    },
    /// The list is too long.
    #[error("the list has {0} hosts; at most {MAX_ENTRIES} are taken")]
    TooMany(usize),
}

/// The reason that a host may not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostRefusal {
    /// No entry names the host.
    NotListed,
    /// An entry names the host, and none this port of it.
    Port,
    /// The name leads only to an address that is closed unless an entry names it.
    ClosedAddress(IpAddr, ClosedAddressKind),
}

impl AllowedHosts {
    /// Parses the entries of a list. An empty list allows nothing.
    ///
    /// # Errors
    /// An entry cannot be read, or there are too many.
    pub fn parse<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, InvalidHostRule> {
        let mut rules = entries
            .into_iter()
            .map(|entry| HostRule::parse(entry.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        if rules.len() > MAX_ENTRIES {
            return Err(InvalidHostRule::TooMany(rules.len()));
        }
        // Lists that allow the same are equal, so that their callers can share one proxy.
        rules.sort_unstable();
        rules.dedup();
        Ok(Self { lists: vec![rules.into()] })
    }

    /// Returns the entries of the list, in one spelling and order. An intersection has the entries of every list.
    pub fn entries(&self) -> Vec<String> {
        self.lists.iter().flat_map(|rules| rules.iter()).map(ToString::to_string).collect()
    }

    /// Returns true if the list may allow other ports than the ports of HTTP and HTTPS.
    pub fn has_other_ports(&self) -> bool {
        let is_other = |rule: &HostRule| match rule.ports {
            PortRule::Web => false,
            PortRule::All => true,
            PortRule::One(port) => !DEFAULT_PORTS.contains(&port),
        };
        !self.lists.is_empty() && self.lists.iter().all(|rules| rules.iter().any(is_other))
    }

    /// Returns the hosts that both allow.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut lists = self.lists.clone();
        lists.extend(other.lists.iter().filter(|list| !self.lists.contains(list)).cloned());
        Self { lists }
    }

    /// Checks a host as a client names it, before its name is resolved.
    ///
    /// # Errors
    /// The host may not be reached, whatever its name leads to.
    pub fn check(&self, host: &NetworkHost, port: u16) -> Result<(), HostRefusal> {
        self.each_list(|rules| {
            let mut refusal = HostRefusal::NotListed;
            for rule in rules.iter().filter(|rule| rule.pattern.matches(host)) {
                if rule.ports.allows(port) {
                    return Ok(());
                }
                refusal = HostRefusal::Port;
            }
            Err(refusal)
        })
    }

    /// Checks an address to which the name `name` leads, which [`check`](Self::check) allowed.
    ///
    /// # Errors
    /// The address is closed, and no entry names it.
    pub fn check_resolved(&self, name: &str, address: IpAddr, port: u16) -> Result<(), HostRefusal> {
        let Some(kind) = ClosedAddressKind::of(address) else { return Ok(()) };
        // `check` found the entry `localhost` then, as no wildcard matches that name.
        if kind == ClosedAddressKind::Loopback && is_localhost(name) {
            return Ok(());
        }
        self.each_list(|rules| {
            let names_address = |rule: &HostRule| {
                matches!(&rule.pattern, HostPattern::Addresses(block) if block.contains(address))
                    && rule.ports.allows(port)
            };
            let refusal = HostRefusal::ClosedAddress(address, kind);
            if rules.iter().any(names_address) { Ok(()) } else { Err(refusal) }
        })
    }

    fn each_list(&self, check: impl Fn(&[HostRule]) -> Result<(), HostRefusal>) -> Result<(), HostRefusal> {
        if self.lists.is_empty() {
            return Err(HostRefusal::NotListed);
        }
        self.lists.iter().try_for_each(|rules| check(rules))
    }
}

impl fmt::Display for AllowedHosts {
    /// Writes "git.example.com, *.packages.example:443", and "no host" for an empty list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lists.iter().all(|rules| rules.is_empty()) {
            return f.write_str("no host");
        }
        for (at, rules) in self.lists.iter().enumerate() {
            if at > 0 {
                f.write_str(" that are also in ")?;
            }
            for (at, rule) in rules.iter().enumerate() {
                write!(f, "{}{rule}", if at > 0 { ", " } else { "" })?;
            }
        }
        Ok(())
    }
}

impl HostRule {
    fn parse(entry: &str) -> Result<Self, InvalidHostRule> {
        let owned = || entry.chars().take(300).collect::<String>();
        if entry.contains("//") {
            return Err(InvalidHostRule::Url { entry: owned() });
        }
        let (host, port) = split_port(entry);
        let ports = match port {
            None => PortRule::Web,
            Some("*") => PortRule::All,
            Some(port) => {
                parse_port(port).map(PortRule::One).ok_or_else(|| InvalidHostRule::Port { entry: owned() })?
            }
        };
        let invalid = |problem| InvalidHostRule::Host { entry: owned(), problem };
        let unbracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let pattern = if let Some(block) = AddressBlock::parse(unbracketed) {
            HostPattern::Addresses(block)
        } else if host == "*" {
            HostPattern::AnyName
        } else if let Some(rest) = host.strip_prefix("*.") {
            if rest.contains('*') {
                return Err(InvalidHostRule::Wildcard { entry: owned() });
            }
            match NetworkHost::parse(rest).map_err(invalid)? {
                NetworkHost::Name(name) => HostPattern::Below(name),
                NetworkHost::Address(_) => return Err(InvalidHostRule::Wildcard { entry: owned() }),
            }
        } else if host.contains('*') {
            return Err(InvalidHostRule::Wildcard { entry: owned() });
        } else {
            match NetworkHost::parse(host).map_err(invalid)? {
                NetworkHost::Name(name) => HostPattern::Name(name),
                NetworkHost::Address(address) => HostPattern::Addresses(
                    AddressBlock::parse(&address.to_string()).ok_or_else(|| invalid(InvalidHost::Empty))?,
                ),
            }
        };
        Ok(Self { pattern, ports })
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Below(name) => write!(f, "*.{name}")?,
            HostPattern::AnyName => f.write_str("*")?,
            HostPattern::Addresses(block) => write!(f, "{block}")?,
        }
        match self.ports {
            PortRule::Web => Ok(()),
            PortRule::All => f.write_str(":*"),
            PortRule::One(port) => write!(f, ":{port}"),
        }
    }
}

impl HostPattern {
    fn matches(&self, host: &NetworkHost) -> bool {
        match (self, host) {
            (Self::Name(own), NetworkHost::Name(name)) => own == name,
            (Self::Below(own), NetworkHost::Name(name)) => {
                name.strip_suffix(own.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                    && !is_localhost(name)
            }
            (Self::AnyName, NetworkHost::Name(name)) => !is_localhost(name),
            (Self::Addresses(block), NetworkHost::Address(address)) => block.contains(*address),
            (Self::Addresses(_), NetworkHost::Name(_)) | (_, NetworkHost::Address(_)) => false,
        }
    }
}

impl PortRule {
    fn allows(self, port: u16) -> bool {
        match self {
            Self::Web => DEFAULT_PORTS.contains(&port),
            Self::All => true,
            Self::One(one) => one == port,
        }
    }
}

/// Returns true for the names that lead to this machine (RFC 6761).
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Splits `host:port`. A text with several colons and without brackets is an IPv6 address without a port.
pub(crate) fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

/// Parses a port from 1 to 65535, without a sign.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits { text.parse().ok().filter(|port| *port != 0) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(entries: &[&str], host: &str, port: u16) -> bool {
        AllowedHosts::parse(entries).unwrap().check(&NetworkHost::parse(host).unwrap(), port).is_ok()
    }

    #[test]
    fn a_name_allows_itself_on_the_ports_of_the_web() {
        let list = ["Git.Example.com."];
        for (host, port, expected) in [
            ("git.example.com", 443, true),
            ("GIT.EXAMPLE.COM.", 80, true),
            ("git.example.com", 22, false),
            ("a.git.example.com", 443, false),
            ("example.com", 443, false),
            ("git.example.com.evil.example", 443, false),
            ("evilgit.example.com", 443, false),
        ] {
            assert_eq!(allows(&list, host, port), expected, "{host}:{port}");
        }
    }

    #[test]
    fn a_wildcard_allows_what_is_below_and_nothing_beside() {
        let list = ["*.packages.example:443"];
        for (host, port, expected) in [
            ("a.packages.example", 443, true),
            ("a.b.packages.example", 443, true),
            ("packages.example", 443, false),
            ("apackages.example", 443, false),
            ("a.packages.example", 80, false),
        ] {
            assert_eq!(allows(&list, host, port), expected, "{host}:{port}");
        }
        assert!(allows(&["*"], "anything.example", 443));
        assert!(!allows(&["*"], "localhost", 443));
        assert!(!allows(&["*"], "9.9.9.9", 443));
        assert!(!allows(&["*.localhost"], "a.localhost", 443));
        assert!(allows(&["localhost:5432"], "localhost", 5432));
    }

    #[test]
    fn addresses_are_allowed_only_by_addresses() {
        assert!(allows(&["10.0.0.0/8:*"], "10.1.2.3", 5432));
        assert!(allows(&["127.0.0.1:8080"], "::ffff:127.0.0.1", 8080));
        assert!(allows(&["[fd00::/8]:443"], "fd00::1", 443));
        assert!(allows(&["fd00::1"], "[fd00::1]", 443));
        assert!(!allows(&["10.0.0.0/8"], "11.0.0.1", 443));
        assert!(!allows(&["*"], "::1", 443));
    }

    #[test]
    fn a_name_may_lead_to_a_closed_address_only_if_that_is_named() {
        let address: IpAddr = "10.1.2.3".parse().unwrap();
        let check = |entries: &[&str], address, port| {
            AllowedHosts::parse(entries).unwrap().check_resolved("git.corp.example", address, port)
        };
        let refusal = HostRefusal::ClosedAddress(address, ClosedAddressKind::Private);
        assert_eq!(check(&["git.corp.example"], address, 443), Err(refusal));
        assert_eq!(check(&["*"], address, 443), Err(refusal));
        assert_eq!(check(&["git.corp.example", "10.0.0.0/8"], address, 443), Ok(()));
        assert_eq!(check(&["git.corp.example:*", "10.0.0.0/8:443"], address, 22), Err(refusal));
        assert_eq!(check(&["git.corp.example"], "9.9.9.9".parse().unwrap(), 443), Ok(()));
        let localhost = AllowedHosts::parse(["localhost"]).unwrap();
        assert_eq!(localhost.check_resolved("localhost", [127, 0, 0, 1].into(), 80), Ok(()));
        assert!(localhost.check_resolved("localhost", [10, 0, 0, 1].into(), 80).is_err());
        assert!(localhost.check_resolved("rebound.example", [127, 0, 0, 1].into(), 80).is_err());
    }

    #[test]
    fn an_intersection_allows_what_both_do() {
        let one = AllowedHosts::parse(["*.example"]).unwrap();
        let other = AllowedHosts::parse(["a.example", "b.test"]).unwrap();
        let both = one.intersection(&other);
        let check =
            |hosts: &AllowedHosts, host: &str| hosts.check(&NetworkHost::parse(host).unwrap(), 443).is_ok();
        assert!(check(&both, "a.example"));
        assert!(!check(&both, "b.example") && !check(&both, "b.test"));
        assert_eq!(one.intersection(&one), one);
        assert!(!check(&AllowedHosts::default(), "a.example"));
        assert!(!check(&AllowedHosts::parse::<&str>([]).unwrap(), "a.example"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_entry() {
        for (entry, part) in [
            ("https://git.example.com", "is a URL"),
            ("git.*.example", "`*.NAME`"),
            ("*.*.example", "`*.NAME`"),
            ("git*.example", "`*.NAME`"),
            ("*.10.0.0.1", "`*.NAME`"),
            ("git.example.com:0", "from 1 to 65535"),
            ("git.example.com:65536", "from 1 to 65535"),
            ("git.example.com:+1", "from 1 to 65535"),
            ("git.example.com:", "from 1 to 65535"),
            ("git.example.com/path", "no label"),
            ("10.0.0.1/8", "no label"),
            ("127.1", "ends in a number"),
            ("", "empty"),
        ] {
            let error = AllowedHosts::parse([entry]).unwrap_err().to_string();
            assert!(error.contains(part), "{entry}: {error}");
        }
    }

    #[test]
    fn a_list_has_other_ports_if_each_part_of_it_has() {
        let list = |entries: &[&str]| AllowedHosts::parse(entries).unwrap();
        assert!(list(&["a.example", "a.example:22"]).has_other_ports() && list(&["*:*"]).has_other_ports());
        assert!(!list(&["a.example", "b.example:443"]).has_other_ports());
        assert!(!list(&["*:*"]).intersection(&list(&["a.example"])).has_other_ports());
        assert!(!AllowedHosts::default().has_other_ports());
    }

    #[test]
    fn a_list_is_written_as_it_was_read() {
        let hosts =
            AllowedHosts::parse(["git.example.com", "*.a.example:443", "10.0.0.0/8:*", "git.example.com"])
                .unwrap();
        assert_eq!(hosts.to_string(), "git.example.com, *.a.example:443, 10.0.0.0/8:*");
    }
}
