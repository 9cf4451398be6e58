//! The paths, databases and hosts that an allowed call may reach.

use crate::access::Access;
use crate::path_rule::{PathRule, lies_in};
use crate::violation::PathViolation;
use egress_proxy::NetworkAccess;
use std::sync::Arc;

/// The paths, databases and hosts that a call may reach while it runs. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CallScope {
    /// The rules for paths, all of which must hold.
    pub(crate) paths: Vec<Arc<PathRule>>,
    /// True if a database may only be read.
    pub(crate) sql_read_only: bool,
    /// The network that programs of the call may reach.
    pub(crate) network: NetworkAccess,
}

impl CallScope {
    /// Adds the limits of `other`, each once.
    pub(crate) fn narrow(&mut self, other: &CallScope) {
        for rule in &other.paths {
            if !self.paths.iter().any(|own| Arc::ptr_eq(own, rule)) {
                self.paths.push(Arc::clone(rule));
            }
        }
        self.sql_read_only |= other.sql_read_only;
        self.narrow_network(&other.network);
    }

    /// Leaves only the part of the network that `other` grants too.
    pub(crate) fn narrow_network(&mut self, other: &NetworkAccess) {
        self.network = self.network.narrowed_by(other);
    }

    /// Returns the network that the programs of the call may reach.
    pub fn network(&self) -> &NetworkAccess {
        &self.network
    }

    /// Returns true if every path that the server serves may be reached.
    pub fn reaches_all_paths(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns true if a database may only be read. The connection must enforce it.
    pub fn sql_read_only(&self) -> bool {
        self.sql_read_only
    }

    /// Checks a path in the form that [`EffectResolver::resolve_path`](crate::EffectResolver::resolve_path) returns:
    /// where it leads, relative to its root.
    ///
    /// # Errors
    /// The path may not be reached. Holds what is allowed, in words for the caller.
    pub fn check_path(&self, access: Access, resolved: &str) -> Result<(), PathViolation> {
        self.paths.iter().try_for_each(|rule| rule.check(access, resolved))
    }

    /// Checks a folder with everything in it, as [`check_path`](Self::check_path) checks a path.
    ///
    /// # Errors
    /// The path may not be reached. Holds what is allowed, in words for the caller.
    pub fn check_folder(&self, access: Access, resolved: &str) -> Result<(), PathViolation> {
        self.check_path(access, resolved)?;
        self.paths.iter().try_for_each(|rule| rule.check_holds(resolved))
    }

    /// Returns the folders that may be reached for `access`, for a sandbox that takes only folders: every path that
    /// [`check_path`](Self::check_path) allows lies in one of them, though not everything in them is allowed. `None` if
    /// no rule limits the access.
    pub fn folders(&self, access: Access) -> Option<Vec<&str>> {
        let mut limits = self.paths.iter().filter_map(|rule| rule.folders(access));
        let first: Vec<&str> = limits.next()?.collect();
        // Two folders overlap only if one lies in the other, and the overlap is then the inner one.
        Some(limits.fold(first, |overlaps, next_limit| {
            let next_limit: Vec<&str> = next_limit.collect();
            let mut narrowed: Vec<&str> = Vec::new();
            let pairs = overlaps.iter().flat_map(|one| next_limit.iter().map(move |other| (*one, *other)));
            for (one, other) in pairs {
                let inner = if lies_in(one, other) {
                    one
                } else if lies_in(other, one) {
                    other
                } else {
                    continue;
                };
                if !narrowed.contains(&inner) {
                    narrowed.push(inner);
                }
            }
            narrowed
        }))
    }
}
