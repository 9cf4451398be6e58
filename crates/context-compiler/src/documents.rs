//! The content of the stable prefix: the planning documents of a role.

use crate::catalogue::{Layout, RoleProfile};
use crate::load::{FileLoadError, Loader};
use crate::manifest::{Omission, SectionKind};
use crate::pieces;
use crate::section::{Section, document_language};
use crate::source::path::join;

/// The documents of a role, in the order of the prefix.
#[derive(Default)]
pub(crate) struct Documents {
    pub(crate) sections: Vec<Section>,
    /// The file names, for the summary.
    pub(crate) names: Vec<String>,
    pub(crate) omissions: Vec<Omission>,
}

/// Returns the documents of `role`. Each is the first file of its name in the folders of `layout`.
pub(crate) fn collect_documents(loader: &Loader<'_>, layout: &Layout, role: &RoleProfile) -> Documents {
    let mut documents = Documents::default();
    for name in layout.sort_documents(&role.documents) {
        let mut candidates: Vec<String> = layout.folders.iter().map(|folder| join(folder, name)).collect();
        // The instruction files of agents take its place last, after every folder.
        if name == "CONVENTIONS.md" {
            candidates.extend(layout.conventions.iter().cloned());
        }
        if !documents.add_first(loader, role, name, &candidates) {
            documents.omissions.push(Omission::in_summary(name, "missing"));
        }
    }
    documents
}

impl Documents {
    /// Adds the first of `candidates` that can be read, and returns false if none of them exists. A candidate that cannot
    /// be read is reported and the next one is tried.
    fn add_first(
        &mut self,
        loader: &Loader<'_>,
        role: &RoleProfile,
        name: &str,
        candidates: &[String],
    ) -> bool {
        let mut candidates = candidates.iter();
        let mut exists = false;
        while let Some(path) = candidates.next() {
            let loaded = match loader.load_document(path) {
                Ok(loaded) => loaded,
                Err(FileLoadError::NotFound) => continue,
                Err(error) => {
                    self.omissions.push(Omission::in_summary(path, error));
                    exists = true;
                    continue;
                }
            };
            let sha256 = &loaded.provenance.sha256;
            if let Some(duplicate) = self.sections.iter().find(|other| other.provenance.sha256 == *sha256) {
                let reason = format!("the same as {}", duplicate.path);
                self.omissions.push(Omission::in_summary(path, reason));
                return true;
            }
            for other in candidates {
                // Only files of the document's own name: a project that has CONVENTIONS.md and AGENTS.md may mean both.
                if other.ends_with(name) && loader.tree.state(other).is_ok() {
                    self.omissions.push(Omission::in_manifest(other, format!("{path} comes first")));
                }
            }
            self.names.push(path.rsplit('/').next().unwrap_or(path).to_owned());
            self.sections.push(Section {
                path: path.clone(),
                kind: SectionKind::Document,
                why: format!("document {name} of the role"),
                language: document_language(path),
                pieces: pieces::split_markdown(&loaded.text, role.completed_phases),
                text: loaded.text,
                provenance: loaded.provenance,
            });
            return true;
        }
        exists
    }
}
