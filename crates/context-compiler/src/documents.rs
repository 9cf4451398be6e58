//! The content of the stable prefix: the planning documents of a role.

use crate::catalogue::{PlanningLayout, RoleProfile};
use crate::load::{FileLoader, SourceLoadError};
use crate::manifest::{OmittedContent, SectionKind};
use crate::section::{QuotedSection, document_language};
use crate::source::path::join;
use crate::text_pieces;

/// The beginning of the reason why a second copy of a text is left out.
const SAME_TEXT: &str = "the same as";
/// The reason for a document of a project without planning documents.
const ORIENTATION: &str = "the project explains itself there";

/// The documents of a role, in the order of the prefix.
#[derive(Default)]
pub(crate) struct RoleDocuments {
    pub(crate) sections: Vec<QuotedSection>,
    /// The file names, for the summary.
    pub(crate) names: Vec<String>,
    pub(crate) omissions: Vec<OmittedContent>,
    /// True if the project has no planning documents, and explains itself by others.
    pub(crate) is_orientation: bool,
    /// The phase whose parts are kept first.
    phase: Option<u32>,
}

/// Returns the documents of `role`. Each is the first file of its name in the folders of `layout`.
///
/// A project that has fewer than half of them is no planned one: the files by which any project explains itself follow them.
pub(crate) fn collect_documents(
    loader: &FileLoader<'_>,
    layout: &PlanningLayout,
    role: &RoleProfile,
    phase: Option<u32>,
) -> RoleDocuments {
    let mut documents = RoleDocuments { phase, ..RoleDocuments::default() };
    let mut missing = Vec::new();
    for name in layout.sort_documents(&role.documents) {
        let mut candidates: Vec<String> = layout.folders.iter().map(|folder| join(folder, name)).collect();
        // The instruction files of agents take its place last, after every folder.
        if name == "CONVENTIONS.md" {
            candidates.extend(layout.conventions.iter().cloned());
        }
        let why = format!("document {name} of the role");
        if !documents.add_first(loader, role, name, &why, &candidates) {
            missing.push(OmittedContent::in_summary(name, "missing"));
        }
    }
    let is_own = |section: &&QuotedSection| {
        let name = section.path.rsplit('/').next().unwrap_or_default();
        role.documents.iter().any(|document| document.rsplit('/').next() == Some(name))
    };
    let found = documents.sections.iter().filter(is_own).count();
    if !role.documents.is_empty() && found * 2 < role.documents.len() {
        let planned = documents.sections.len();
        for name in &layout.orientation {
            if documents.sections.iter().all(|section| section.path != *name) {
                documents.add_first(loader, role, name, ORIENTATION, std::slice::from_ref(name));
            }
        }
        // Some projects keep one text under two of the names.
        documents.omissions.retain(|omission| {
            !layout.orientation.contains(&omission.path) || !omission.reason.starts_with(SAME_TEXT)
        });
        documents.is_orientation = documents.sections.len() > planned;
        if documents.is_orientation {
            // The reader of such a project misses nothing.
            missing.iter_mut().for_each(|omission| omission.in_summary = false);
        }
    }
    documents.omissions.extend(missing);
    documents
}

impl RoleDocuments {
    /// Adds the first of `candidates` that can be read, and returns false if none of them exists. A candidate that cannot
    /// be read is reported and the next one is tried.
    fn add_first(
        &mut self,
        loader: &FileLoader<'_>,
        role: &RoleProfile,
        name: &str,
        why: &str,
        candidates: &[String],
    ) -> bool {
        let mut candidates = candidates.iter();
        let mut exists = false;
        while let Some(path) = candidates.next() {
            let loaded = match loader.load_document(path) {
                Ok(loaded) => loaded,
                Err(SourceLoadError::NotFound) => continue,
                Err(error) => {
                    self.omissions.push(OmittedContent::in_summary(path, error));
                    exists = true;
                    continue;
                }
            };
            let sha256 = &loaded.provenance.sha256;
            if let Some(duplicate) = self.sections.iter().find(|other| other.provenance.sha256 == *sha256) {
                let reason = format!("{SAME_TEXT} {}", duplicate.path);
                self.omissions.push(OmittedContent::in_summary(path, reason));
                return true;
            }
            for other in candidates {
                // Only files of the document's own name: a project that has CONVENTIONS.md and AGENTS.md may mean both.
                if other.ends_with(name) && loader.tree.state(other).is_ok() {
                    self.omissions.push(OmittedContent::in_manifest(other, format!("{path} comes first")));
                }
            }
            self.names.push(path.rsplit('/').next().unwrap_or(path).to_owned());
            self.sections.push(QuotedSection {
                path: path.clone(),
                kind: SectionKind::Document,
                why: why.to_owned(),
                language: document_language(path),
                pieces: match document_language(path) {
                    "markdown" => {
                        text_pieces::split_markdown(&loaded.text, role.completed_phases, self.phase)
                    }
                    _ => text_pieces::split_plain_text(&loaded.text),
                },
                text: loaded.text,
                provenance: loaded.provenance,
            });
            return true;
        }
        exists
    }
}
