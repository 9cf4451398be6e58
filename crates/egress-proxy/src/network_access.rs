//! The network that a program may reach: none, all of it, or named hosts.

use std::fmt;

use crate::allowed_hosts::AllowedHosts;

/// The network that a program may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkAccess {
    /// No host.
    None,
    /// Every host.
    #[default]
    Allow,
    /// The hosts of a list.
    Hosts(AllowedHosts),
}

impl NetworkAccess {
    /// Returns the network that both let a program reach.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Allow, access) | (access, Self::Allow) => access.clone(),
            (Self::Hosts(one), Self::Hosts(other)) => Self::Hosts(one.intersection(other)),
        }
    }

    /// Returns true if a program may reach every host.
    pub fn is_unrestricted(&self) -> bool {
        *self == Self::Allow
    }
}

impl fmt::Display for NetworkAccess {
    /// Writes "none", "allow", or "only git.example.com, *.packages.example:443".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Allow => f.write_str("allow"),
            Self::Hosts(hosts) => write!(f, "only {hosts}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrower_access_holds() {
        let hosts = |entries: &[&str]| NetworkAccess::Hosts(AllowedHosts::parse(entries).unwrap());
        let (allow, none) = (NetworkAccess::Allow, NetworkAccess::None);
        assert_eq!(allow.narrowed_by(&hosts(&["a.example"])), hosts(&["a.example"]));
        assert_eq!(hosts(&["a.example"]).narrowed_by(&allow), hosts(&["a.example"]));
        assert_eq!(hosts(&["a.example"]).narrowed_by(&none), none);
        assert_eq!(none.narrowed_by(&allow), none);
        let both = hosts(&["*.example"]).narrowed_by(&hosts(&["a.example"]));
        assert_eq!(both.to_string(), "only *.example that are also in a.example");
    }
}
