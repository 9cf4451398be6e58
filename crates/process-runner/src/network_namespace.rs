//! Network namespaces: programs that are started in one reach only what listens in it.

use std::fmt;
use std::io;

use crate::network_namespace_error::NetworkNamespaceError;
use crate::tree::NamespaceHandle;

/// A network namespace with a loopback interface and nothing else (`network_namespaces(7)`).
///
/// A program that [`Command::network_namespace`](crate::Command::network_namespace) starts in it has no route to any
/// host, no port of this machine, and no abstract Unix socket of another namespace. The program reaches only the
/// listeners in the namespace. With [`run`](Self::run), this process can bind a listener in the namespace and serve it
/// from outside. Clones stand for the same namespace, which lasts as long as a clone or a process in it.
///
/// Network namespaces work on Linux, for root, and for users who may make user namespaces (`user_namespaces(7)`). A
/// network namespace does not limit Unix sockets that have a path. Only file permissions do.
#[derive(Clone)]
pub struct NetworkNamespace(NamespaceHandle);

impl NetworkNamespace {
    /// Makes a namespace and brings its loopback interface up. The call blocks for some milliseconds.
    ///
    /// # Errors
    /// The system has no network namespaces, or this process may not make one.
    pub fn create() -> Result<Self, NetworkNamespaceError> {
        NamespaceHandle::create().map(Self)
    }

    /// Calls `work` inside the namespace, and returns its result. Sockets that `work` makes stay in the namespace, whichever
    /// thread uses them later.
    ///
    /// `work` runs on a new thread if this process has the privileges of root. Otherwise only a process without other
    /// threads can enter the namespace: `work` then runs in a child process that shares the memory and the descriptors
    /// of this one (`CLONE_VM` and `CLONE_FILES`), while the calling thread waits. `work` must not depend on the number
    /// of its thread or process, must not start threads or processes, and must not panic.
    ///
    /// # Errors
    /// The thread or the process cannot be made, cannot enter the namespace, or died.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.0.run(work)
    }

    /// Returns true if no other clone of this value exists, no program waits to start in the namespace, and none runs in it.
    /// Namespaces that were prepared for programs in it are given up.
    pub fn is_unused(&self) -> bool {
        self.0.is_unused()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn handle(&self) -> &NamespaceHandle {
        &self.0
    }
}

impl fmt::Debug for NetworkNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkNamespace").finish_non_exhaustive()
    }
}
