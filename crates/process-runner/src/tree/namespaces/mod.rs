//! Namespaces that are prepared once and entered by every program of a caller with the same confinement (namespaces(7)).
//!
//! To make them takes milliseconds, and to enter them microseconds. Programs of one caller with one confinement share them,
//! and with them `/tmp`, `/dev/shm` and the sight of each other's processes.

mod init;
mod kept;
mod masked;
mod mount_calls;
mod mounts;
mod namespace_set;

pub(crate) use self::kept::{FrozenNamespace, freeze_namespace, release_owner};
pub(super) use self::kept::{NamespaceOwner, prepared, remove_unused_in};
pub(super) use self::namespace_set::{FolderInside, Namespaces, map_user, may_write_proc, try_out};
