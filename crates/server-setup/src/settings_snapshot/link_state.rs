//! [`LinkStates`]: the links on the way to the files of clients, as they are before a command runs.

use super::put_back::{UndoneChanges, not_put_back, remove};
use core_tools::workspace::ConfinedPath;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The links among the paths of clients and the folders above them. A folder comes before what lies in that folder.
#[derive(Debug, Default)]
pub(super) struct LinkStates(BTreeMap<PathBuf, LinkState>);

/// A path, and the target of the link there if the path was one.
#[derive(Debug)]
struct LinkState {
    path: ConfinedPath,
    target: Option<PathBuf>,
}

impl LinkStates {
    /// Notes the path and the folders above it, up to the root.
    pub(super) fn note(&mut self, path: &ConfinedPath) {
        let mut next = Some(path.clone());
        while let Some(path) = next {
            next = path.parent();
            if next.is_some() {
                self.0.entry(path.to_absolute()).or_insert_with(|| {
                    let target = target(&path);
                    LinkState { path, target }
                });
            }
        }
    }

    /// Removes the links that were not there before. Only the link itself is removed.
    pub(super) fn restore(&self, changes: &mut UndoneChanges) {
        for LinkState { path, target: before } in self.0.values() {
            let Some(now) = target(path) else { continue };
            match before {
                Some(before) if *before == now => {}
                None => changes.push(path, path.remove_file()),
                Some(before) => {
                    let problem = format!("it was a link to {}, and was removed", before.display());
                    let undone = remove(path).and(Err(not_put_back(path, problem)));
                    changes.push(path, undone);
                }
            }
        }
    }
}

fn target(path: &ConfinedPath) -> Option<PathBuf> {
    // Asked first, because the error of a missing path looks for names like it.
    path.is_there().then(|| path.read_link().ok().flatten()).flatten()
}
