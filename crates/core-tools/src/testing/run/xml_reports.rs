//! The XML reports that a runner writes at its end.

use crate::ci::project::Project;
use crate::testing::parse::read_xml;
use crate::testing::results::TestResults;
use crate::workspace::PathKind;
use std::io::Read;
use std::time::SystemTime;

/// The longest XML report that is read, in bytes.
const MAX_XML_BYTES: u64 = 64 << 20;
/// The depth to which the modules of a project are searched.
const MAX_MODULE_DEPTH: usize = 4;
/// The number of folders that are searched for modules.
const MAX_MODULES: usize = 2_000;
/// The files that mark a folder as a module.
const MODULE_FILES: [&str; 3] = ["pom.xml", "build.gradle", "build.gradle.kts"];

/// Reads the XML files of a folder that were written since `since`, and returns how many there are.
pub(super) fn read_folder(folder: &Project, since: SystemTime, results: &mut TestResults) -> usize {
    let mut reports = 0;
    for name in folder.entry_names(".") {
        if !name.ends_with(".xml") && !name.ends_with(".trx") {
            continue;
        }
        let opened = folder.folder().join(&name).ok().and_then(|path| path.open_read().ok());
        let Some((file, metadata)) = opened else { continue };
        // Reports of an earlier run lie in the same folder, and may be of tests that no longer exist.
        if metadata.modified.is_some_and(|modified| modified < since) {
            continue;
        }
        let mut document = Vec::new();
        if file.take(MAX_XML_BYTES).read_to_end(&mut document).is_ok() && !document.is_empty() {
            read_xml(&document, results);
            reports += 1;
        }
    }
    reports
}

/// Returns the folders of these names in a project and its modules.
pub(super) fn report_folders(project: &Project, names: &[&str]) -> Vec<Project> {
    let mut found = Vec::new();
    let mut pending = vec![(project.clone(), 0)];
    let mut searched = 0;
    while let Some((module, depth)) = pending.pop() {
        searched += 1;
        if searched > MAX_MODULES {
            break;
        }
        let folders = names.iter().filter_map(|name| module.folder().join(name).ok().map(Project::new));
        found.extend(folders.filter(Project::is_folder));
        if depth == MAX_MODULE_DEPTH {
            continue;
        }
        for name in module.entry_names(".") {
            let Ok(path) = module.folder().join(&name) else { continue };
            // Not through links: they may lead in circles.
            let is_folder =
                matches!(path.link_metadata().map(|metadata| metadata.kind), Ok(PathKind::Directory));
            let folder = Project::new(path);
            if is_folder && may_have_modules(&name, &folder) {
                pending.push((folder, depth + 1));
            }
        }
    }
    found
}

/// Returns false for folders of tools, and for those that a build writes; a module may have such a name too.
fn may_have_modules(name: &str, folder: &Project) -> bool {
    !name.starts_with('.')
        && name != "node_modules"
        && (!["src", "target", "build"].contains(&name) || folder.contains_any(&MODULE_FILES))
}
