//! The test files of bats in folders that it does not look into.

use super::test_files::TestFileSearch;
use crate::ci::project::Project;
use crate::testing::plan::bats_folder;
use crate::testing::results::TestsNotRun;

/// Adds the files below the folder of tests, which bats runs only with `--recursive`.
pub(super) fn not_run(project: &Project, found: &mut Vec<TestsNotRun>) {
    let start = bats_folder(project);
    let search = TestFileSearch {
        project,
        start,
        // Bats itself and its libraries often lie beside the tests.
        enters: &|name| name != "bats" && !name.starts_with("bats-") && name != "test_helper",
        is_test: &|name| name.ends_with(".bats"),
    };
    let prefix = if start == "." { String::new() } else { format!("{start}/") };
    let why = format!(
        "bats looks into the folders below `{start}` only with `--recursive`: `args` `--recursive` runs them"
    );
    for path in search.run(found) {
        if path.strip_prefix(&prefix).is_some_and(|rest| rest.contains('/')) {
            TestsNotRun::add(found, &path, &why);
        }
    }
}
