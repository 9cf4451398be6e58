//! The reason that there is no network namespace.

use std::io;

/// The reason that there is no network namespace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkNamespaceError {
    /// The system is not Linux.
    #[error("network namespaces are part of Linux")]
    NotLinux,
    /// This process may not make one.
    #[error("this process may not make a network namespace, which needs CAP_SYS_ADMIN or user namespaces")]
    NotPermitted,
    /// The system refused for another reason.
    #[error("the system made no network namespace: {0}")]
    System(#[from] io::Error),
}
