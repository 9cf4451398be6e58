//! The plans of a phase in the volatile tail.

use crate::catalogue::{PlanningLayout, RoleProfile};
use crate::error::Error;
use crate::load::{FileLoader, SourceLoadError};
use crate::manifest::{OmittedContent, SectionKind};
use crate::request::ContextRequest;
use crate::section::{QuotedSection, document_language};
use crate::source::path::join;
use crate::source::{SourceEntryKind, SourceTree};
use crate::text_pieces;

/// The plans of a request.
#[derive(Default)]
pub(crate) struct PhasePlans {
    pub(crate) sections: Vec<QuotedSection>,
    /// The file names, for the summary.
    pub(crate) names: Vec<String>,
    pub(crate) omissions: Vec<OmittedContent>,
    pub(crate) diagnostics: Vec<String>,
}

/// Returns the plan that the request names, or the plans of its phase.
///
/// # Errors
/// The plan that the request names cannot be read.
pub(crate) fn collect_plans(
    loader: &FileLoader<'_>,
    layout: &PlanningLayout,
    role: &RoleProfile,
    request: &ContextRequest,
) -> Result<PhasePlans, Error> {
    match (&request.plan, request.phase) {
        (Some(path), _) => named_plan(loader, path),
        (None, Some(phase)) if phase > 0 => Ok(plans_of_phase(loader, layout, role.max_plans, phase)),
        _ => Ok(PhasePlans::default()),
    }
}

fn named_plan(loader: &FileLoader<'_>, path: &str) -> Result<PhasePlans, Error> {
    let mut plans = PhasePlans::default();
    match plans.add(loader, path, "plan that was named") {
        Ok(()) => Ok(plans),
        Err(error) => Err(Error::Plan { path: path.to_owned(), problem: error.to_string() }),
    }
}

fn plans_of_phase(
    loader: &FileLoader<'_>,
    layout: &PlanningLayout,
    max_plans: usize,
    phase: u32,
) -> PhasePlans {
    let mut plans = PhasePlans::default();
    let (paths, diagnostics) = find_plans(loader.tree, layout, phase);
    plans.diagnostics = diagnostics;
    if paths.is_empty() {
        let (files, folders) = (layout.plans.join(", "), layout.phases.join(", "));
        plans.diagnostics.push(format!("phase {phase} has no plan: no {files} in its folder in {folders}"));
    }
    let why = format!("plan of phase {phase}");
    for path in paths {
        // Counted by the plans that were read: one that cannot be read must not take the place of another.
        if plans.sections.len() == max_plans {
            let reason = format!("a role reads {max_plans} plans at most");
            plans.omissions.push(OmittedContent::in_summary(path, reason));
            continue;
        }
        match plans.add(loader, &path, &why) {
            // Removed since the folder was listed.
            Ok(()) | Err(SourceLoadError::NotFound) => {}
            Err(error) => plans.omissions.push(OmittedContent::in_summary(path, error)),
        }
    }
    plans
}

impl PhasePlans {
    fn add(&mut self, loader: &FileLoader<'_>, path: &str, why: &str) -> Result<(), SourceLoadError> {
        let loaded = loader.load_document(path)?;
        self.names.push(path.rsplit('/').next().unwrap_or(path).to_owned());
        self.sections.push(QuotedSection {
            path: path.to_owned(),
            kind: SectionKind::Plan,
            why: why.to_owned(),
            language: document_language(path),
            pieces: text_pieces::split_markdown(&loaded.text, true, None),
            text: loaded.text,
            provenance: loaded.provenance,
        });
        Ok(())
    }
}

/// Returns the paths of the plans of `phase` in byte order of their names, and diagnostics. If several folders have the
/// number of the phase, the first one with plans counts.
fn find_plans(tree: &dyn SourceTree, layout: &PlanningLayout, phase: u32) -> (Vec<String>, Vec<String>) {
    let (mut first, mut diagnostics) = (None::<(String, Vec<String>)>, Vec::new());
    for base in &layout.phases {
        let folders = list_names(tree, base, SourceEntryKind::Folder).unwrap_or_default();
        for name in folders.into_iter().filter(|name| leading_number(name) == Some(phase)) {
            let folder = join(base, &name);
            let Some(files) = list_names(tree, &folder, SourceEntryKind::File) else {
                diagnostics.push(format!("{folder} cannot be read"));
                continue;
            };
            let is_plan = |name: &String| layout.plans.iter().any(|pattern| matches_pattern(pattern, name));
            let plans: Vec<String> =
                files.into_iter().filter(is_plan).map(|name| join(&folder, &name)).collect();
            match &first {
                _ if plans.is_empty() => {}
                None => first = Some((folder, plans)),
                Some((first, _)) => {
                    diagnostics.push(format!("phase {phase} is {first}; {folder} has the same number"));
                }
            }
        }
    }
    (first.map(|(_, plans)| plans).unwrap_or_default(), diagnostics)
}

/// Returns the names of the entries of `folder` that are of `kind` or links, in byte order. Trees of other programs may
/// list in any order.
fn list_names(tree: &dyn SourceTree, folder: &str, kind: SourceEntryKind) -> Option<Vec<String>> {
    let entries = tree.list(folder).ok()?.into_iter();
    let matching = entries.filter(|entry| entry.kind == kind || entry.kind == SourceEntryKind::Link);
    let mut names: Vec<String> = matching.map(|entry| entry.name).collect();
    names.sort_unstable();
    Some(names)
}

/// Returns the number that the name of a phase's folder begins with: 3 for `3`, `03` and `003-name`, none for `3.1-name`.
fn leading_number(name: &str) -> Option<u32> {
    let rest = name.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = name.strip_suffix(rest)?;
    (rest.is_empty() || rest.starts_with(['-', '_'])).then(|| number.parse().ok())?
}

/// Returns true if `name` matches `pattern`, in which a leading `*` matches any beginning.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(suffix) => name.ends_with(suffix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_phase_is_found_by_its_number_with_or_without_a_name() {
        let names = ["3", "03", "003-auth", "3_auth", "3.1-auth", "13", "auth-3", "", "99999999999"];
        let numbers = [Some(3), Some(3), Some(3), Some(3), None, Some(13), None, None, None];
        assert_eq!(names.map(leading_number), numbers);
    }

    #[test]
    fn a_plan_is_found_by_its_name() {
        assert!(matches_pattern("*-PLAN.md", "03-01-PLAN.md") && matches_pattern("plan.md", "plan.md"));
        assert!(!matches_pattern("*-PLAN.md", "03-01-PLAN.md.bak"));
        assert!(!matches_pattern("plan.md", "my-plan.md"));
    }
}
