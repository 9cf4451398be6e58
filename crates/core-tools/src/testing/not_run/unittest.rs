//! The test files of a Python project that the discovery of unittest passes over.

use super::test_files::{TestFileSearch, folder_of};
use crate::ci::project::Project;
use crate::testing::results::TestsNotRun;

/// Adds the files of tests below a folder without `__init__.py`: unittest enters no such folder.
pub(super) fn not_run(project: &Project, found: &mut Vec<TestsNotRun>) {
    let search = TestFileSearch {
        project,
        start: ".",
        enters: &|name| {
            !["env", "site-packages", "venv", "virtualenv"].contains(&name) && !name.ends_with(".egg-info")
        },
        is_test: &|name| name.starts_with("test") && name.ends_with(".py"),
    };
    for path in search.run(found) {
        let uses_unittest = || project.read(&path).is_some_and(|text| text.contains("TestCase"));
        let own = folder_of(&path);
        if let Some(folder) = folder_without_init(project, own).filter(|_| uses_unittest()) {
            let why = format!(
                "unittest enters no folder without an `__init__.py`: `{folder}`; `test_path` `{own}` runs these"
            );
            TestsNotRun::add(found, &path, &why);
        }
    }
}

/// Returns the outermost folder on the way to a folder that is no package.
fn folder_without_init<'a>(project: &Project, folder: &'a str) -> Option<&'a str> {
    let ends = folder.match_indices('/').map(|(index, _)| index).chain([folder.len()]);
    let mut folders = ends.map(|end| &folder[..end]).filter(|folder| !folder.is_empty());
    folders.find(|folder| !project.contains(&format!("{folder}/__init__.py")))
}
