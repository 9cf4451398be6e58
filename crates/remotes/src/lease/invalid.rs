//! [`InvalidLease`]: the reasons why a lease is of no use.

use crate::settings::RemoteNameError;

/// The reason why what a lease names cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLease {
    /// The id or the caller is none that this program gives.
    #[error("its id or its caller is none that this program gives")]
    Name,
    /// The kind destroys nothing.
    #[error("its kind destroys nothing")]
    NoDestroy,
    /// The remote is none of this server.
    #[error(transparent)]
    Remote(#[from] RemoteNameError),
    /// A newer program wrote the lease.
    #[error("it has format {found}, and this program knows {known}: a newer version wrote it")]
    Newer {
        /// The format of the lease.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
}
