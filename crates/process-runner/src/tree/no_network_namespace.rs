//! Systems without network namespaces.

use std::convert::Infallible;
use std::io;

use crate::network_namespace_error::NetworkNamespaceError;

/// A namespace, of which there is none on this system.
#[derive(Clone)]
pub(crate) struct NamespaceHandle(Infallible);

impl NamespaceHandle {
    pub(crate) fn create() -> Result<Self, NetworkNamespaceError> {
        Err(NetworkNamespaceError::NotLinux)
    }

    pub(crate) fn run<T: Send>(&self, _work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match self.0 {}
    }

    pub(crate) fn is_unused(&self) -> bool {
        match self.0 {}
    }
}
