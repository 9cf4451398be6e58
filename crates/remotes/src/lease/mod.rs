//! Leases: what a kind has created, written down before it is made, so that it is destroyed whatever happens.
//!
//! A lease names a remote, and no command: the commands that destroy are those of its kind. So nothing is gained by writing
//! one. Its owner gives a sign of life in the [registry](LeaseRegistry), and whoever finds a lease without an owner destroys
//! what it names. If its owner died while it created, an engine may still go on creating: such a lease stays written down,
//! and is destroyed again, until that must be over.
//!
//! - `record` has the lease itself, `owned` a lease of this process, `destroying` the commands that end one.
//! - `registry` is what all registries do; `folder` has files, `database` the table of several servers.

#[cfg(feature = "database")]
mod database;
mod destroying;
mod folder;
mod invalid;
mod owned;
mod record;
mod registry;
#[cfg(test)]
mod tests;

#[cfg(feature = "database")]
pub use database::{LeaseDatabase, LeaseDatabaseError};
pub use folder::LeaseFolder;
pub use invalid::InvalidLease;
pub(crate) use owned::Lease;
pub use record::{FoundLease, LeaseRecord, Reaped};
pub use registry::LeaseRegistry;
