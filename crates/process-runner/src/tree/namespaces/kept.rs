//! The sets of namespaces that are kept for the next program of the same caller with the same confinement.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::stat;
use rustix::process::{Pid, Signal};

use super::mounts;
use super::namespace_set::{Namespaces, may_write_proc};
use crate::confine::{AccessGrant, Confinement};
use crate::network_namespace::NetworkNamespace;
use crate::tree::NamespaceHandle;
use crate::tree::resource_control::NamespaceLimit;

/// The most sets that are kept of one owner. The oldest of the owner that are not in use make room, so that no owner takes
/// the files in `/tmp` from another one.
const MAX_OF_OWNER: usize = 16;

/// The most sets that are kept of all owners together. The oldest that are not in use make room.
const MAX_KEPT: usize = 256;

/// The caller who alone uses a set of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tree) struct NamespaceOwner {
    /// The name, if the callers are told apart.
    pub(in crate::tree) name: Option<Arc<str>>,
    /// The memory that the programs of the caller may use, if that is limited.
    pub(in crate::tree) memory_bytes: Option<u64>,
}

impl NamespaceOwner {
    /// Returns the most bytes that all file systems in memory of the caller may hold.
    fn budget(&self) -> u64 {
        let budget = mounts::memory_budget();
        self.memory_bytes.map_or(budget, |bytes| bytes.min(budget))
    }
}

/// A set of namespaces and the confinement that it was made for.
struct KeptNamespaces {
    grants: Vec<AccessGrant>,
    /// The files and folders that were granted. Another one under the same name needs another set.
    identities: Vec<Option<(u64, u64)>>,
    network: bool,
    writable_proc: bool,
    private_temp: bool,
    /// The most processes, if that is limited here.
    limit: Option<NamespaceLimit>,
    /// The network namespace with a user namespace in which these were made.
    outer: Option<NamespaceHandle>,
    owner: NamespaceOwner,
    /// The most bytes in the file systems in memory.
    memory_bytes: u64,
    made: Arc<Mutex<Option<Arc<Namespaces>>>>,
}

static KEPT: Mutex<Vec<KeptNamespaces>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<KeptNamespaces>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the namespaces of `confinement`, which are made if there are none. Programs in `network` get a set of their own
/// where only a process in its user namespace can enter it.
pub(in crate::tree) fn prepared(
    confinement: &Confinement,
    network_namespace: Option<&NetworkNamespace>,
    limit: Option<NamespaceLimit>,
    owner: &NamespaceOwner,
) -> io::Result<Arc<Namespaces>> {
    let outer = network_namespace.map(NetworkNamespace::handle).filter(|handle| handle.needs_process());
    let identity = |grant: &AccessGrant| stat(&grant.path).ok().map(|status| (status.st_dev, status.st_ino));
    // Before the lock: a file system that hangs must not stop the starts of others.
    let identities: Vec<_> = confinement.grants().iter().map(identity).collect();
    let (network, writable_proc) = (confinement.allows_network(), may_write_proc(confinement));
    let private_temp = confinement.has_private_temp();
    // Dropped outside the lock, because the end of a set takes a while.
    let mut removed = Vec::new();
    let (made, memory_bytes) = {
        let mut kept = kept();
        let found = kept.iter().position(|kept| {
            kept.network == network
                && kept.writable_proc == writable_proc
                && kept.private_temp == private_temp
                && kept.limit == limit
                && kept.owner == *owner
                && match (&kept.outer, outer) {
                    (None, None) => true,
                    (Some(one), Some(other)) => one.is_same(other),
                    _ => false,
                }
                && kept.identities == identities
                && kept.grants == confinement.grants()
        });
        // The last one is the one that was used last.
        let entry = match found {
            Some(index) => kept.remove(index),
            None => KeptNamespaces {
                grants: confinement.grants().to_vec(),
                identities,
                network,
                writable_proc,
                private_temp,
                limit: limit.clone(),
                outer: outer.cloned(),
                memory_bytes: memory_for(owner, &mut kept, &mut removed),
                owner: owner.clone(),
                made: Arc::default(),
            },
        };
        let made = (Arc::clone(&entry.made), entry.memory_bytes);
        kept.push(entry);
        made
    };
    drop(removed);
    let namespaces = {
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(namespaces) if namespaces.is_alive() => Arc::clone(namespaces),
            _ => {
                let processes = limit.map(|limit| limit.processes);
                let namespaces = Arc::new(Namespaces::new(confinement, outer, processes, memory_bytes)?);
                *made = Some(Arc::clone(&namespaces));
                namespaces
            }
        }
    };
    drop(made);
    let removed = excess(&mut kept(), owner.name.as_deref());
    // Outside the lock, because the end of a set takes a while.
    drop(removed);
    Ok(namespaces)
}

/// The smallest part of a caller's memory that a set of namespaces gets while other sets of the caller are not in use.
const SMALLEST_SHARE: u64 = 8;

/// Returns the memory for the file systems of another set of `owner`: half of what its other sets leave, so that all sets
/// together never get more than the whole. If that is little, sets that are not in use are put into `removed`.
fn memory_for(
    owner: &NamespaceOwner,
    kept: &mut Vec<KeptNamespaces>,
    removed: &mut Vec<KeptNamespaces>,
) -> u64 {
    let budget = owner.budget();
    loop {
        let of_owner = |kept: &&KeptNamespaces| kept.owner.name == owner.name;
        let used: u64 = kept.iter().filter(of_owner).map(|kept| kept.memory_bytes).sum();
        let share = budget.saturating_sub(used) / 2;
        if share >= budget / SMALLEST_SHARE {
            return share;
        }
        // A walk through all processes for each set.
        match kept.iter().position(|kept| kept.owner.name == owner.name && kept.is_unused()) {
            Some(index) => removed.push(kept.remove(index)),
            None => return share,
        }
    }
}

/// Drops the sets of namespaces of an owner whose programs have ended, with the files in their file systems in memory.
pub(crate) fn release_owner(name: &str) {
    let is_its = |kept: &mut KeptNamespaces| kept.owner.name.as_deref() == Some(name);
    let removed: Vec<_> = {
        let mut kept = kept();
        kept.extract_if(.., is_its).collect()
    };
    drop(removed);
}

/// A PID namespace in which nothing runs and nothing is forked, until this is dropped.
pub(crate) struct FrozenNamespace(Arc<Namespaces>);

impl Drop for FrozenNamespace {
    fn drop(&mut self) {
        // It fails if nothing is left there.
        let _ = self.0.signal_all(Signal::CONT);
    }
}

/// Stops every process in the PID namespace whose first process is `init`, so that a search finds all of them. `None` if that
/// cannot be done now.
pub(crate) fn freeze_namespace(init: Pid) -> Option<FrozenNamespace> {
    let made: Vec<_> = kept().iter().map(|kept| Arc::clone(&kept.made)).collect();
    let namespaces = made.iter().find_map(|made| {
        // One that is being made takes a while, and is none that is looked for.
        let made = made.try_lock().ok()?;
        made.as_ref().filter(|namespaces| namespaces.init_pid() == Some(init)).map(Arc::clone)
    })?;
    namespaces.signal_all(Signal::STOP).ok()?;
    Some(FrozenNamespace(namespaces))
}

/// Takes the oldest sets that nothing uses out of `kept`, if the owner `name` or all owners together have too many.
fn excess(kept: &mut Vec<KeptNamespaces>, name: Option<&str>) -> Vec<KeptNamespaces> {
    let mut removed = Vec::new();
    let is_its = |kept: &KeptNamespaces| kept.owner.name.as_deref() == name;
    while kept.iter().filter(|kept| is_its(kept)).count() > MAX_OF_OWNER {
        let Some(index) = kept.iter().position(|kept| is_its(kept) && kept.is_unused()) else { break };
        removed.push(kept.remove(index));
    }
    while kept.len() > MAX_KEPT {
        let Some(index) = kept.iter().position(KeptNamespaces::is_unused) else { break };
        removed.push(kept.remove(index));
    }
    removed
}

/// Drops the sets that were made inside `outer` and that nothing uses.
pub(in crate::tree) fn remove_unused_in(outer: &NamespaceHandle) {
    let is_inside = |kept: &KeptNamespaces| kept.outer.as_ref().is_some_and(|own| own.is_same(outer));
    let mut kept = kept();
    let removed: Vec<_> = kept.extract_if(.., |kept| is_inside(kept) && kept.is_unused()).collect();
    drop(kept);
    drop(removed);
}

impl KeptNamespaces {
    /// Returns true if no start uses the namespaces, and no process is in them.
    fn is_unused(&self) -> bool {
        if Arc::strong_count(&self.made) > 1 {
            return false;
        }
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.as_ref().is_none_or(|namespaces| Arc::strong_count(namespaces) == 1 && !namespaces.is_occupied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(name: &str) -> KeptNamespaces {
        let owner = NamespaceOwner { name: Some(name.into()), memory_bytes: None };
        KeptNamespaces {
            grants: Vec::new(),
            identities: Vec::new(),
            network: false,
            writable_proc: false,
            private_temp: true,
            limit: None,
            outer: None,
            owner,
            memory_bytes: 0,
            made: Arc::default(),
        }
    }

    #[test]
    fn a_caller_with_many_sets_takes_none_from_another() {
        let mut kept: Vec<_> = (0..100).map(|number| set_of(&format!("caller-{number}"))).collect();
        assert!(excess(&mut kept, Some("caller-99")).is_empty());
        kept.extend((0..MAX_OF_OWNER).map(|_| set_of("caller-0")));
        let in_use = Arc::clone(&kept[0].made);
        let removed = excess(&mut kept, Some("caller-0"));
        assert_eq!((removed.len(), kept.len()), (1, 99 + MAX_OF_OWNER));
        assert_eq!(removed[0].owner.name.as_deref(), Some("caller-0"));
        assert!(Arc::ptr_eq(&kept[0].made, &in_use));
        drop(in_use);
        kept.extend((100..=MAX_KEPT).map(|number| set_of(&format!("caller-{number}"))));
        let all = kept.len();
        let removed = excess(&mut kept, Some("caller-100"));
        assert_eq!((removed.len(), kept.len()), (all - MAX_KEPT, MAX_KEPT));
        assert_eq!(removed[0].owner.name.as_deref(), Some("caller-0"));
    }
}
