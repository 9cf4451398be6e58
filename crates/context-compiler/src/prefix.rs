//! What the stable half is made of: the documents of a role, in the order in which they change.

use crate::catalogue::{Layout, Role};
use crate::load::{Loader, Refusal};
use crate::manifest::{Kind, LeftOut};
use crate::phase::join;
use crate::pieces;
use crate::section::Section;

/// The documents of a role.
#[derive(Default)]
pub(crate) struct Documents {
    pub(crate) sections: Vec<Section>,
    /// Their names, for the reader.
    pub(crate) names: Vec<String>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// The documents of `role`, each the first of its name that `layout` leads to.
pub(crate) fn documents(loader: &Loader<'_>, layout: &Layout, role: &Role) -> Documents {
    let mut found = Documents::default();
    for name in layout.ordered(&role.documents) {
        let mut candidates: Vec<String> = layout.folders.iter().map(|folder| join(folder, name)).collect();
        if name == "CONVENTIONS.md" {
            candidates.extend(layout.conventions.iter().cloned());
        }
        if !found.take(loader, role, name, &candidates) {
            found.left_out.push(LeftOut::told(name, "missing"));
        }
    }
    found
}

impl Documents {
    /// Takes the first of `candidates` that is there. One that cannot be read is told, and the next is tried.
    fn take(&mut self, loader: &Loader<'_>, role: &Role, name: &str, candidates: &[String]) -> bool {
        let mut candidates = candidates.iter();
        let mut any = false;
        while let Some(path) = candidates.next() {
            let loaded = match loader.load_document(path) {
                Ok(loaded) => loaded,
                Err(Refusal::NotFound) => continue,
                Err(Refusal::Because(reason)) => {
                    self.left_out.push(LeftOut::told(path, reason));
                    any = true;
                    continue;
                }
            };
            let twin = self.sections.iter().find(|other| other.source.sha256 == loaded.source.sha256);
            if let Some(twin) = twin {
                self.left_out.push(LeftOut::told(path, format!("the same as {}", twin.path)));
                return true;
            }
            for other in candidates {
                // Only of the documents themselves: AGENTS.md is not in the way of anything.
                if other.ends_with(name) && loader.tree.stamp(other).is_ok() {
                    self.left_out.push(LeftOut::untold(other, format!("{path} comes first")));
                }
            }
            self.names.push(path.rsplit('/').next().unwrap_or(path).to_owned());
            self.sections.push(Section {
                path: path.clone(),
                kind: Kind::Document,
                why: format!("document {name} of the role"),
                language: language(path),
                pieces: pieces::markdown(&loaded.text, role.completed_phases),
                text: loaded.text,
                source: loaded.source,
            });
            return true;
        }
        any
    }
}

/// What Markdown calls the language of a document.
pub(crate) fn language(path: &str) -> &'static str {
    if path.ends_with(".md") { "markdown" } else { "text" }
}
