//! The files of a project's tests, by their names.

use crate::ci::project::Project;
use crate::testing::results::TestsNotRun;
use crate::workspace::PathKind;

/// The number of folders that are looked at.
const MAX_FOLDERS: usize = 5_000;
/// The number of levels of folders that are looked at.
const MAX_DEPTH: usize = 16;

/// Folders of no project: what was installed, built or generated.
const OTHERS: [&str; 6] = ["__pycache__", "build", "dist", "node_modules", "target", "vendor"];

/// A search for files of tests below a folder of a project.
pub(super) struct TestFileSearch<'a> {
    pub(super) project: &'a Project,
    /// The folder at which it begins; `.` is the project's own.
    pub(super) start: &'a str,
    /// Returns false for a folder that is not entered, by its name.
    pub(super) enters: &'a dyn Fn(&str) -> bool,
    /// Returns true for the name of a file of tests.
    pub(super) is_test: &'a dyn Fn(&str) -> bool,
}

impl TestFileSearch<'_> {
    /// Returns the paths of the files, relative to the project's folder. A search that would take too long says so in
    /// `not_run`.
    pub(super) fn run(&self, not_run: &mut Vec<TestsNotRun>) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![(self.start.to_owned(), 0)];
        let mut looked_at = 0;
        let mut is_cut = false;
        while let Some((folder, depth)) = folders.pop() {
            looked_at += 1;
            if looked_at > MAX_FOLDERS {
                is_cut = true;
                break;
            }
            for (name, kind) in self.project.entries(&folder) {
                let path = if folder == "." { name.clone() } else { format!("{folder}/{name}") };
                let is_other = name.starts_with('.') || OTHERS.contains(&name.as_str());
                match kind {
                    PathKind::File if (self.is_test)(&name) => found.push(path),
                    PathKind::Directory if !is_other && (self.enters)(&name) => {
                        is_cut |= depth == MAX_DEPTH;
                        if depth < MAX_DEPTH {
                            folders.push((path, depth + 1));
                        }
                    }
                    _ => {}
                }
            }
        }
        if is_cut {
            let why = "the project has too many folders to look for tests that do not run in all of them";
            TestsNotRun::add(not_run, self.start, why);
        }
        found.sort_unstable();
        found
    }
}

/// Returns the folder of a path; empty for the project's own.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
